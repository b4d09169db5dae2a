"""Reads a kubeconfig as kubectl does, short of running anything: plug-ins and token providers are `loader`'s.

The Kubernetes library could read all of it, but costs 0.7 s and 55 MiB each time, which a robot should pay for
nothing but the logins that need it.
"""

import base64
import binascii
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from crsyncer.adapters.files import check_depth
from crsyncer.adapters.kube.proxy import proxy_for
from crsyncer.errors import ConfigError

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
K3S = Path("/etc/rancher/k3s/k3s.yaml")
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """Text that never shows: not in a repr, a log line or an error."""

    text: str

    def __repr__(self) -> str:
        return "Secret(…)"


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """One context of a kubeconfig, its files read."""

    directory: Path
    """Relative paths count from here."""
    server: str
    server_name: str | None
    verify: bool
    ca: str
    """PEM; empty: the machine's roots."""
    certificate: str
    key: Secret
    """The client's certificate and key, as PEM; empty where there is none."""
    authorization: Secret | None
    token_file: str | None
    """Wins over `authorization`, as for kubectl. Not read here: whoever uses it will have to again and again."""
    proxy: Secret | None
    helper: Secret | None
    """The user as YAML, where a plug-in or a provider has to be asked for the credentials."""
    files: dict[str, Stamp | None]
    """Every file that was read for this, and its stamp from before."""


def stamp(path: str) -> Stamp | None:
    """What changes when a file does: time, inode (a ConfigMap swaps symlinks) and size. None: it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def read_kubeconfig(path: Path | None, *, context: str | None) -> Kubeconfig:
    """One context of `path`; without a path the in-cluster account, and outside a pod k3s' own file.

    Raises ConfigError: one line that names the file and holds no secrets.
    """
    if path is None:
        if host := os.environ.get("KUBERNETES_SERVICE_HOST"):
            return _in_cluster(host, os.environ.get("KUBERNETES_SERVICE_PORT") or "443")
        if not os.path.lexists(K3S):
            raise ConfigError(f"no kubeconfig: not in a pod, and {K3S} cannot be seen", hint="name a kubeconfig")
        path = K3S
    path = path.absolute()
    files = {str(path): stamp(str(path))}
    try:
        return _resolve(_parse(path), context=context, directory=path.parent, files=files)
    except ConfigError as error:
        raise ConfigError(f"kubeconfig {path}: {error}", hint=error.hint) from None


def _in_cluster(host: str, port: str) -> Kubeconfig:
    token, ca = SERVICE_ACCOUNT / "token", SERVICE_ACCOUNT / "ca.crt"
    files = {str(ca): stamp(str(ca))}
    try:
        bundle = ca.read_text()
    except OSError as error:
        hint = "mount the service account's token (automountServiceAccountToken), or name a kubeconfig"
        raise ConfigError(f"in-cluster account: {ca}: {_why(error)}", hint=hint) from None
    return Kubeconfig(
        directory=SERVICE_ACCOUNT,
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        server_name=None,
        verify=True,
        ca=bundle,
        certificate="",
        key=Secret(""),
        authorization=None,
        token_file=str(token),
        proxy=None,
        helper=None,
        files=files,
    )


def _parse(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text()
        check_depth(text, _LOADER)
        document = yaml.load(text, Loader=_LOADER)  # noqa: S506 - it is a safe loader
    except OSError as error:
        hint = "k3s writes it for root only" if path == K3S else "check the path and its permissions"
        raise ConfigError(_why(error), hint=hint) from None
    except (yaml.YAMLError, ValueError) as error:
        # The parser's text quotes the file, secrets included; the line number does not.
        mark = getattr(error, "problem_mark", None)
        raise ConfigError(f"not YAML (line {mark.line + 1})" if mark else "not YAML", hint=_VIEW) from None
    if not isinstance(document, dict):
        raise ConfigError("not a mapping", hint=_VIEW)
    return document


_VIEW = "check it with: kubectl config view"


def _named(document: dict[str, Any], section: str, name: Any) -> dict[str, Any]:
    """The entry `name` of clusters, contexts or users."""
    key = section[:-1]
    entries = document.get(section)
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(key) or {}, dict):
            return entry.get(key) or {}
    raise ConfigError(f"no {key} is named {name!r}", hint=f"see the list `{section}` in it")


def _resolve(
    document: dict[str, Any], *, context: str | None, directory: Path, files: dict[str, Stamp | None]
) -> Kubeconfig:
    name = context or document.get("current-context")
    if not name:
        raise ConfigError("it has no current-context", hint="name a context")
    chosen = _named(document, "contexts", name)
    cluster = _named(document, "clusters", chosen.get("cluster"))
    user = _named(document, "users", chosen["user"]) if chosen.get("user") else {}
    server = _server(cluster)
    _refuse_what_is_not_supported(user)
    certificate, key = (_pem(user, field, directory, files) for field in ("client-certificate", "client-key"))
    if bool(certificate) != bool(key):
        raise ConfigError("client-certificate and client-key are not both there", hint="give both or none")
    helped = {field: user[field] for field in ("exec", "auth-provider") if user.get(field)}
    return Kubeconfig(
        directory=directory,
        server=server,
        server_name=str(cluster["tls-server-name"]) if cluster.get("tls-server-name") else None,
        verify=not cluster.get("insecure-skip-tls-verify"),
        ca=_pem(cluster, "certificate-authority", directory, files),
        certificate=certificate,
        key=Secret(key),
        authorization=_authorization(user),
        token_file=str(directory / str(user["tokenFile"])) if user.get("tokenFile") else None,
        proxy=_proxy(cluster, server),
        helper=Secret(yaml.safe_dump(helped)) if helped else None,
        files=files,
    )


def _server(cluster: dict[str, Any]) -> str:
    server = cluster.get("server")
    hint = "https://HOST[:PORT][/PATH]; credentials never travel in the clear"
    try:
        parts = urlsplit(server if isinstance(server, str) else "")
        good = parts.scheme == "https" and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise ConfigError("its server is not an https:// URL", hint=hint)
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigError("its server holds more than host, port and path", hint=hint)
    return f"https://{parts.netloc}{parts.path}".rstrip("/")


def _refuse_what_is_not_supported(user: dict[str, Any]) -> None:
    """Leaving these out in silence would be worse: without `as`, we would act with more rights than were meant."""
    if any(user.get(field) for field in ("as", "as-uid", "as-groups", "as-user-extra")):
        raise ConfigError("it impersonates another user (`as`)", hint="give the agent a user of its own")
    provider = user.get("auth-provider")
    if provider and (not isinstance(provider, dict) or provider.get("name") not in ("oidc", "gcp")):
        raise ConfigError("its auth-provider is not supported (oidc and gcp are)", hint="use an exec plug-in")
    plugin = user.get("exec")
    if plugin and (not isinstance(plugin, dict) or not isinstance(plugin.get("command"), str)):
        raise ConfigError("its exec plug-in has no command", hint="check the user's `exec`")


def _authorization(user: dict[str, Any]) -> Secret | None:
    if user.get("token"):
        return bearer(str(user["token"]))
    if user.get("username") and user.get("password"):
        pair = f"{user['username']}:{user['password']}"
        return Secret("Basic " + base64.b64encode(pair.encode()).decode())
    return None


def bearer(token: str) -> Secret:
    """The Authorization header for a token; raises ConfigError where it would break out of the header."""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable():
        raise ConfigError("the token is empty or holds characters that no token has", hint="write it anew")
    return Secret(f"Bearer {token}")


def _pem(holder: dict[str, Any], field: str, directory: Path, files: dict[str, Stamp | None]) -> str:
    """The text of FIELD-data (base64) or else of the file FIELD names; empty where neither is there."""
    try:
        if data := holder.get(f"{field}-data"):
            return base64.b64decode(str(data), validate=False).decode()
        if not holder.get(field):
            return ""
        path = directory / str(holder[field])
        files[str(path)] = stamp(str(path))
        return path.read_text()
    except OSError as error:
        raise ConfigError(f"{field} {path}: {_why(error)}", hint="check the path and its permissions") from None
    except (binascii.Error, UnicodeDecodeError):
        raise ConfigError(f"{field} is not PEM (in base64, for -data)", hint=_VIEW) from None


def _proxy(cluster: dict[str, Any], server: str) -> Secret | None:
    """The proxy that kubectl would use: the file's, else the environment's."""
    proxy = cluster.get("proxy-url") or proxy_for(server, os.environ)
    if not proxy:
        return None
    if urlsplit(str(proxy)).scheme not in ("http", "https"):
        raise ConfigError("its proxy is neither http:// nor https://", hint="other proxies are not supported")
    return Secret(str(proxy))


def _why(error: OSError) -> str:
    return (error.strerror or "unreadable").lower()
