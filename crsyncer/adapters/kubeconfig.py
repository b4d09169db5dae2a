"""Reads one context of a kubeconfig as kubectl does, as far as that takes no other file, no server and no plug-in.

The Kubernetes library could read all of it, but costs 0.7 s and 55 MiB each time, which a robot should pay for
nothing but the logins that need it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from crsyncer.adapters.files import read_documents
from crsyncer.errors import ConfigError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_REFERENCES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


class NoContext(ConfigError):
    """The context that was asked for is not in the file."""


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """One context of a kubeconfig, or the account of a pod, which is read as one."""

    directory: Path
    """Relative paths count from here."""
    file: Path | None
    """None: the account of a pod."""
    context: str
    server: str
    """Base URL, always https, without credentials."""
    cluster: Mapping[str, Any] = field(repr=False)
    user: Mapping[str, Any] = field(repr=False)

    def path(self, name: str) -> Path | None:
        """The file that a field names, such as `tokenFile`."""
        named = self.cluster.get(name) or self.user.get(name)
        return self.directory / str(named) if named else None

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that the login depends on."""
        return tuple(file for file in (self.file, *map(self.path, _REFERENCES)) if file is not None)


def read_kubeconfig(path: Path, context: str = "") -> Kubeconfig:
    """One context of a file, the current one where none is named; raises ConfigError, whose hint says what is allowed.

    An error is one line that names the file and quotes none of its secrets.
    """
    path = path.absolute()
    document, *more = read_documents(path) or [None]
    if more or not isinstance(document, dict):
        document = {}
    contexts = _named(document, "contexts")
    name = context or str(document.get("current-context") or "")
    if name not in contexts:
        known = ", ".join(sorted(contexts)) or "a kubeconfig file"
        if context and contexts:
            raise NoContext(f'{path} has no context "{context}"', hint=known)
        raise ConfigError(f"{path} has no {'valid current-context' if contexts else 'contexts'}", hint=known)
    about = contexts[name]
    cluster = _of_context(path, document, "cluster", str(about.get("cluster")))
    user = _of_context(path, document, "user", str(about["user"])) if about.get("user") else {}
    try:
        _refuse_what_is_not_supported(user)
        return Kubeconfig(path.parent, path, name, _server(cluster), cluster, user)
    except ConfigError as error:
        raise ConfigError(f"{path}: context {name}: {error}", hint=error.hint) from None


def read_account(environ: Mapping[str, str], *, root: Path = Path("/")) -> Kubeconfig | None:
    """The account of the pod that we are in; None outside of pods."""
    directory = root / SERVICE_ACCOUNT.relative_to("/")
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        return None
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    cluster = {"certificate-authority": "ca.crt"}
    return Kubeconfig(directory, None, "", server, cluster, {"tokenFile": "token"})


def url_parts(url: object, *schemes: str) -> SplitResult | None:
    """The parts of a URL; None where it is none of these schemes, or has no host or no possible port."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        good = parts.scheme in schemes and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if good else None


def _named(document: dict[str, Any], section: str) -> dict[str, dict[str, Any]]:
    """The entries of clusters, contexts or users by name; what is malformed is left out."""
    entries = document.get(section)
    return {
        entry["name"]: entry.get(section[:-1]) or {}
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
        and isinstance(entry.get("name"), str)
        and isinstance(entry.get(section[:-1]) or {}, dict)
    }


def _of_context(path: Path, document: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    known = _named(document, f"{kind}s")
    if name not in known:
        raise ConfigError(f"{path}: no {kind} is named {name!r}", hint=", ".join(sorted(known)) or f"a list `{kind}s`")
    return known[name]


def _server(cluster: dict[str, Any]) -> str:
    hint = "https://HOST[:PORT][/PATH]; credentials never travel in the clear"
    parts = url_parts(cluster.get("server"), "https")
    if parts is None:
        raise ConfigError("its server is not an https:// URL", hint=hint)
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigError("its server holds more than host, port and path", hint=hint)
    if "/clusters/*/" in f"{unquote(parts.path)}/":
        raise ConfigError("its server is all logical clusters at once (/clusters/*)", hint="/clusters/PATH of one")
    return f"https://{parts.netloc}{parts.path}".rstrip("/")


def _refuse_what_is_not_supported(user: dict[str, Any]) -> None:
    """Leaving these out in silence would be worse: without `as`, we would act with more rights than were meant."""
    if any(user.get(field) for field in ("as", "as-uid", "as-groups", "as-user-extra")):
        raise ConfigError("it impersonates another user (`as`)", hint="a user of the agent's own")
    provider = user.get("auth-provider")
    if provider and (not isinstance(provider, dict) or provider.get("name") not in ("oidc", "gcp")):
        raise ConfigError("its auth-provider is not supported", hint="oidc, gcp, an exec plug-in")
    plugin = user.get("exec")
    if plugin and (not isinstance(plugin, dict) or not isinstance(plugin.get("command"), str)):
        raise ConfigError("its exec plug-in has no command", hint="`exec` with a `command`")
