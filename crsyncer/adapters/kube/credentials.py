"""The login to one API server, and how it stays fresh: files are watched by their stamps, plug-ins by their expiry."""

import asyncio
import base64
import binascii
import json
import logging
import math
import os
import signal
import ssl
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from crsyncer.adapters.files import read
from crsyncer.adapters.kube.proxy import proxy_for
from crsyncer.adapters.kube.tls import Identity, Secret, tls_context
from crsyncer.adapters.kubeconfig import Kubeconfig, read_account, read_kubeconfig
from crsyncer.errors import ConfigError, NotAllowed

_LOADER = "from crsyncer.adapters.kube.loader import main; main()"
_HELPER_TIMEOUT = 60.0
_MARGIN = 30.0
"""Seconds before its expiry at which a plug-in's answer is renewed."""
_PATIENCE = 10.0
"""Seconds between two looks at the files, and between two runs of a plug-in."""

log = logging.getLogger(__name__)

_Stamp = tuple[int, int, int]


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
    expires: float | None = None
    """Unix time at which the plug-in's answer ends; None: never, or unknown."""
    renewed: bool = False
    """The token is short-lived, and renewed by itself."""
    trouble: ConfigError | None = None
    """Why no request can be sent: neither the plug-in nor the token file has ever given a credential."""

    @property
    def server_name(self) -> str | None:
        """The name in the server's certificate, where it is another than that in its URL."""
        name = self.config.cluster.get("tls-server-name")
        return str(name) if name else None


class Credentials:
    """The current login to one API server. `generation` rises whenever something in it changed."""

    def __init__(self, path: Path | None, *, context: str = "", insecure: bool = False) -> None:
        """Check the form of a kubeconfig; raises ConfigError. `current` asks its plug-in.

        Without a path it is the account of the pod. `insecure`: take a kubeconfig that turns off verification of the
        server's certificate.
        """
        self.generation = 0
        self._path = path
        self._context = context
        self._insecure = insecure
        self._stamps: dict[Path, _Stamp | None] = {}
        """Every file of the login, and its stamp from before it was read."""
        self._next_look = self._last_load = -math.inf
        self._loading = asyncio.Lock()
        self.login = self._read()
        self._stale = self.login.helper is not None
        if not self.login.identity.verify:
            log.warning("the certificate of %s is NOT verified (insecure-skip-tls-verify)", self.login.config.server)

    async def current(self) -> Login:
        """The login for the next request; cheap unless something changed or a plug-in's answer expires.

        Raises NotAllowed while neither the plug-in nor the token file has ever given a credential.
        """
        if time.monotonic() >= self._next_look:
            self._look(ask=False)
        if self._stale:
            await self._reload()
        if (trouble := self.login.trouble) is not None:
            raise NotAllowed(str(trouble), status=401, hint=trouble.hint)
        return self.login

    def refresh(self) -> bool:
        """Look at every file again; True when one changed, or when a plug-in is due to be asked again.

        What changed is loaded before the next request.
        """
        return self._look(ask=True)

    async def renew(self, refused: int) -> bool:
        """After a 401 to a request of generation `refused`: is there anything newer to try?"""
        if self.generation == refused:
            self.refresh()
            await self.current()
        return self.generation != refused

    def _look(self, *, ask: bool) -> bool:
        """Whether to load again. `ask` the plug-in also where it has given an answer that has not expired."""
        now, login = time.monotonic(), self.login
        self._next_look = now + _PATIENCE
        expired = login.expires is not None and time.time() > login.expires - _MARGIN
        due = login.helper is not None and now - self._last_load >= _PATIENCE
        due = due and (ask or expired or login.trouble is not None)
        stamps = {file: _stamp(file) for file in self._stamps}
        changed = stamps != self._stamps
        self._stamps = stamps  # so that a bad file is tried once, and once more as soon as it changes
        self._stale = self._stale or due or changed
        return due or changed

    async def _reload(self) -> None:
        """Load everything anew. A failure changes nothing: the old login may well go on working."""
        async with self._loading:
            if not self._stale:
                return
            self._stale = False
            old = self.login
            try:
                new = self._read(old)
                if new.config.server != old.config.server:
                    message = f"the kubeconfig now names another server, {new.config.server}"
                    raise ConfigError(message, hint="its login is not for this one")
                if new.helper is not None:
                    new = await _ask(new, old)
                if new.trouble is not None:
                    raise new.trouble
            except ConfigError as error:
                if old.trouble is None:
                    log.warning("credentials stay as they were: %s (%s)", error, error.hint)
                else:
                    self.login = replace(old, trouble=error)
                return
            finally:
                self._last_load = time.monotonic()
            self.login = new
            if (new.tls, new.proxy, new.authorization) != (old.tls, old.proxy, old.authorization):
                self.generation += 1

    def _read(self, old: Login | None = None) -> Login:
        """The login as far as its files tell; raises ConfigError. What still fits of `old` is kept."""
        before = {self._path: _stamp(self._path)} if self._path is not None else {}
        config = read_kubeconfig(self._path, self._context) if self._path is not None else read_account(os.environ)
        if config is None:
            raise ConfigError("there is no account of a pod here", hint="name a kubeconfig")
        stamps = {file: _stamp(file) for file in config.files} | before
        try:
            if config.cluster.get("insecure-skip-tls-verify") and not self._insecure:
                message = f"insecure-skip-tls-verify lets anybody pose as {config.server}"
                raise ConfigError(message, hint="put the CA into it, or give --insecure-skip-tls-verify as well")
            login = _login(config, old)
        except ConfigError as error:
            raise _named(config, error) from None
        self._stamps = stamps
        return login


def _stamp(path: Path) -> _Stamp | None:
    """What changes when a file does: time, inode (a ConfigMap swaps symlinks) and size. None: it is not there."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _named(config: Kubeconfig, error: ConfigError) -> ConfigError:
    where = f"kubeconfig {config.file}" if config.file is not None else "in-cluster account"
    return ConfigError(f"{where}: {error}", hint=error.hint)


def _login(config: Kubeconfig, old: Login | None) -> Login:
    """The login of a kubeconfig without its plug-in's answer; raises ConfigError."""
    user, trouble = config.user, None
    certificate, key = (_pem(config, user, field) for field in ("client-certificate", "client-key"))
    if bool(certificate) != bool(key):
        raise ConfigError("client-certificate and client-key are not both there", hint="give both or none")
    verify = not config.cluster.get("insecure-skip-tls-verify")
    identity = Identity(_pem(config, config.cluster, "certificate-authority"), verify, certificate, Secret(key))
    helped = {field: user[field] for field in ("exec", "auth-provider") if user.get(field)}
    if helped and config.path("tokenFile") is None:
        trouble = ConfigError("its exec plug-in or auth-provider has not answered yet")
    try:
        authorization = _authorization(config)
    except ConfigError as error:
        if config.path("tokenFile") is None:
            raise
        authorization, trouble = None, _named(config, error)
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
            return _bearer(read(file))
        except ConfigError:
            message = f"token file {file}: missing, unreadable, empty or no token"
            raise ConfigError(message, hint="whoever renews the token has to write it there") from None
    if user.get("token"):
        return _bearer(str(user["token"]))
    if user.get("username") and user.get("password"):
        pair = f"{user['username']}:{user['password']}"
        return Secret("Basic " + base64.b64encode(pair.encode()).decode())
    return None


def _bearer(token: str) -> Secret:
    """The Authorization header for a token; raises ConfigError where it would break out of the header."""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable():
        raise ConfigError("the token is empty or holds characters that no token has", hint="write it anew")
    return Secret(f"Bearer {token}")


def _pem(config: Kubeconfig, holder: Mapping[str, Any], field: str) -> str:
    """The text of FIELD-data (base64) or else of the file FIELD names; empty where neither is there."""
    if data := holder.get(f"{field}-data"):
        try:
            return base64.b64decode(str(data), validate=False).decode()
        except (binascii.Error, UnicodeDecodeError):
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
    try:
        parts = urlsplit(str(proxy))
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise ConfigError("its proxy is not an http:// or https:// URL", hint="other proxies are not supported")
    return Secret(str(proxy))


async def _ask(login: Login, old: Login) -> Login:
    """The login with what its plug-in or provider answers; raises ConfigError. What still fits of `old` is kept."""
    config = login.config
    try:
        given = await _ask_helper(login.helper or Secret(""), directory=config.directory)
        if "error" in given:
            raise ConfigError(given["error"], hint=given["hint"])
        identity = login.identity
        if given["certificate"] and given["key"]:
            identity = replace(identity, certificate=given["certificate"], key=Secret(given["key"]))
        login = replace(login, identity=identity, tls=_tls(identity, old), expires=given["expires"])
        if config.path("tokenFile") is not None:  # it wins over the plug-in's answer, as for kubectl
            return login
        authorization = _bearer(given["authorization"].removeprefix("Bearer ")) if given["authorization"] else None
        return replace(login, authorization=authorization, trouble=None)
    except ConfigError as error:
        raise _named(config, error) from None


async def _ask_helper(user: Secret, *, directory: Path) -> dict[str, Any]:
    """What the loader printed. It has a session of its own, so that a hanging plug-in is ended together with it."""
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-c", _LOADER),
            cwd=directory,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        message = f"its exec plug-in or auth-provider could not be asked ({(error.strerror or '').lower()})"
        raise ConfigError(message, hint="raise the limits on tasks (TasksMax), memory and open files") from None
    try:
        async with asyncio.timeout(_HELPER_TIMEOUT):
            output, _ = await process.communicate(user.text.encode())
    except TimeoutError:
        message = f"its exec plug-in or auth-provider gave nothing within {_HELPER_TIMEOUT:g} s"
        raise ConfigError(message, hint="run it by hand") from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    try:
        found = json.loads(output)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        message = f"its exec plug-in or auth-provider could not be asked (exit {process.returncode})"
        raise ConfigError(message, hint="does kubectl work with this kubeconfig?")
    return found
