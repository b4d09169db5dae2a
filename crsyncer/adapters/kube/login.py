"""The login to one API server as far as its files tell it: who we are, whom we trust, and the way there."""

import base64
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from crsyncer.adapters.files import read
from crsyncer.adapters.kube.proxy import proxy_for
from crsyncer.adapters.kube.tls import Identity, Secret, tls_context
from crsyncer.adapters.kubeconfig import Kubeconfig, read_account, read_kubeconfig, url_parts
from crsyncer.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Login:
    """How to reach one API server, and the credentials for it."""

    config: Kubeconfig
    identity: Identity
    tls: ssl.SSLContext
    """Made of `identity`."""
    proxy: Secret | None
    helper: Secret | None
    """The user as YAML, where a plug-in or a provider has to be asked for the credentials."""
    authorization: Secret | None = None
    """The value of the Authorization header."""
    renewed: bool = False
    """The token is short-lived, and renewed by itself."""
    trouble: ConfigError | None = field(default=None, compare=False)
    """Why no request can be sent: the token file has never held a token."""

    @property
    def server_name(self) -> str | None:
        """The name in the server's certificate, where it is another than that in its URL."""
        name = self.config.cluster.get("tls-server-name")
        return str(name) if name else None


def read_login(path: Path | None, context: str, *, insecure: bool, old: Login | None = None) -> Login:
    """The login of a kubeconfig, or of the pod without one; raises ConfigError. The TLS of `old` is kept if it fits.

    `insecure`: take a kubeconfig that turns off verification of the server's certificate.
    """
    config = read_kubeconfig(path, context) if path is not None else read_account(os.environ)
    if config is None:
        raise ConfigError("there is no account of a pod here", hint="name a kubeconfig")
    try:
        if config.cluster.get("insecure-skip-tls-verify") and not insecure:
            message = f"insecure-skip-tls-verify lets anybody pose as {config.server}"
            raise ConfigError(message, hint="put the CA into it, or give --insecure-skip-tls-verify as well")
        return _login(config, old)
    except ConfigError as error:
        raise named(config, error) from None


def named(config: Kubeconfig, error: ConfigError) -> ConfigError:
    """An error of a login, with where it is from."""
    where = f"kubeconfig {config.file}" if config.file is not None else "in-cluster account"
    return ConfigError(f"{where}: {error}", hint=error.hint)


def with_certificate(login: Login, certificate: str, key: str, *, old: Login | None) -> Login:
    """The login with another client certificate; raises ConfigError. The TLS of `old` is kept if it fits."""
    identity = replace(login.identity, certificate=certificate, key=Secret(key))
    return replace(login, identity=identity, tls=_tls(identity, old))


def bearer(token: str) -> Secret:
    """The Authorization header for a token; raises ConfigError where it would break out of the header."""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable():
        raise ConfigError("the token is empty or holds characters that no token has", hint="write it anew")
    return Secret(f"Bearer {token}")


def _login(config: Kubeconfig, old: Login | None) -> Login:
    user, authorization, trouble = config.user, None, None
    certificate, key = (_pem(config, user, part) for part in ("client-certificate", "client-key"))
    if bool(certificate) != bool(key):
        raise ConfigError("client-certificate and client-key are not both there", hint="give both or none")
    verify = not config.cluster.get("insecure-skip-tls-verify")
    identity = Identity(_pem(config, config.cluster, "certificate-authority"), verify, certificate, Secret(key))
    try:
        authorization = _authorization(config)
    except ConfigError as error:
        if config.path("tokenFile") is None:
            raise
        trouble = named(config, error)
    helped = {part: user[part] for part in ("exec", "auth-provider") if user.get(part)}
    login = Login(
        config,
        identity,
        _tls(identity, old),
        proxy=_proxy(config),
        helper=Secret(yaml.safe_dump(helped)) if helped else None,
        authorization=authorization,
        trouble=trouble,
    )
    name = login.server_name or urlsplit(config.server).hostname
    try:
        ssl.SSLContext.wrap_bio(login.tls, ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname=name)
    except (TypeError, ValueError):  # an empty or too long part, a leading dot, a zero byte
        raise ConfigError("its server or tls-server-name is not a host name", hint="a DNS name or an address") from None
    return login


def _tls(identity: Identity, old: Login | None) -> ssl.SSLContext:
    """The TLS context for an identity: that of `old`, and with it its connections, if it still fits."""
    return old.tls if old is not None and old.identity == identity else tls_context(identity)


def _authorization(config: Kubeconfig) -> Secret | None:
    """The header for the token in a file, which wins, or in the kubeconfig, or for a password; raises ConfigError."""
    user = config.user
    if file := config.path("tokenFile"):
        try:
            return bearer(read(file))
        except ConfigError:
            message = f"token file {file}: missing, unreadable, empty or no token"
            raise ConfigError(message, hint="whoever renews the token has to write it there") from None
    if user.get("token"):
        return bearer(str(user["token"]))
    if user.get("username") and user.get("password"):
        pair = f"{user['username']}:{user['password']}"
        return Secret("Basic " + base64.b64encode(pair.encode()).decode())
    return None


def _pem(config: Kubeconfig, holder: Mapping[str, Any], field: str) -> str:
    """The text of FIELD-data (base64) or else of the file FIELD names; empty where neither is there."""
    if data := holder.get(f"{field}-data"):
        try:
            return base64.b64decode("".join(str(data).split()), validate=True).decode()
        except ValueError:
            raise ConfigError(f"{field} is not PEM in base64", hint="check it with: kubectl config view") from None
    file = config.path(field)
    try:
        return read(file) if file is not None else ""
    except ConfigError as error:
        raise ConfigError(f"{field} {error}", hint=error.hint) from None


def _proxy(config: Kubeconfig) -> Secret | None:
    """The proxy that kubectl would use: the file's, else the environment's."""
    proxy = config.cluster.get("proxy-url") or proxy_for(config.server, os.environ)
    if not proxy:
        return None
    if url_parts(proxy, "http", "https") is None:
        raise ConfigError("its proxy is not an http:// or https:// URL", hint="other proxies are not supported")
    return Secret(str(proxy))
