"""The settings of the fleet's commands, which talk to the cloud alone."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from crsyncer.adapters.config.load import at, chosen, read_config
from crsyncer.adapters.config.options import OPTIONS, a_listen, a_namespace, a_path, is_not, matching, option
from crsyncer.adapters.kubeconfig import SERVICE_ACCOUNT, Kubeconfig, NoContext, read_account, read_kubeconfig
from crsyncer.core.content.annotations import ROOT
from crsyncer.errors import ConfigError

_ROBOTS = "robots.registry.cloudrobotics.com"

_robots = matching(
    r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?\.[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?",
    f"RESOURCE.GROUP such as {_ROBOTS}",
)

_SHARD = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def _shards(_ctx: click.Context, _param: click.Parameter, texts: tuple[str, ...]) -> tuple[tuple[str, Path], ...]:
    """The kubeconfig of each shard, by name."""
    found: dict[str, Path] = {}
    for text in texts:
        name, equals, file = text.partition("=")
        if not equals or not _SHARD.fullmatch(name) or name == ROOT:
            raise is_not(text, f"NAME=FILE: a DNS label that is not {ROOT!r}, and a kubeconfig")
        if name in found:
            raise is_not(text, f"allowed: shard {name} is given twice")
        found[name] = a_path(file)
    return tuple(found.items())


_, SHARDS = option(
    "shards", "--shard", "NAME=FILE",
    "A shard and the kubeconfig for it, repeatable. The variable takes several, separated by blanks, and the key a"
    " mapping.",
    otherwise="none: the root alone", name="shards", multiple=True, callback=_shards,
)  # fmt: skip
"""The setting that names the API servers beside the root."""

FLEET_OPTIONS: Mapping[str, click.Option] = dict((
    option(
        "cloud.kubeconfig", "--cloud-kubeconfig", "FILE",
        "How to reach the cloud's API server.",
        otherwise="the pod's account", type=a_path,
    ),
    ("cloud.context", OPTIONS["cloud.context"]),
    ("insecureSkipTlsVerify", OPTIONS["insecureSkipTlsVerify"]),
    option(
        "controllerNamespace", "--controller-namespace", "NS",
        "The controller's namespace. Only placements there may select cluster-scoped objects.",
        otherwise="the pod's, else default", type=a_namespace,
    ),
    option(
        "robots.resource", "--robots", "RESOURCE.GROUP",
        "The kind whose objects are the robots.",
        otherwise=_ROBOTS, type=_robots,
    ),
    option(
        "robots.namespace", "--robots-namespace", "NS",
        "The namespace of the robots' objects.",
        otherwise="default", type=a_namespace,
    ),
))  # fmt: skip
"""By key. An option's name is a field of FleetSettings."""

FLEET_RUN_OPTIONS: Mapping[str, click.Option] = dict((
    *FLEET_OPTIONS.items(),
    ("shards", SHARDS),
    option(
        "listen", "--listen", "HOST:PORT",
        "Where to serve the page of the fleet, /livez, /readyz and /metrics; off for nowhere.",
        otherwise="127.0.0.1:9465", type=a_listen,
    ),
    *((key, OPTIONS[key]) for key in ("log.format", "log.level", "watchTimeout")),
))  # fmt: skip
"""Those of `crsyncer fleet run`. The other commands let a configuration file have them, too."""


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """What a command of the fleet runs with."""

    cloud_kubeconfig: Path | None = None
    """None: the account of the pod, if this is one."""
    cloud_context: str = ""
    """Empty: the kubeconfig's current context."""
    insecure_skip_tls_verify: bool = False
    controller_namespace: str = "default"
    robots: str = _ROBOTS
    robots_namespace: str = "default"
    has_login: bool = False
    """Whether there is a kubeconfig, or the account of a pod."""
    listen: tuple[str, int] | None = ("127.0.0.1", 9465)
    log_format: str = "text"
    log_level: str = "info"
    watch_timeout: int = 300
    """Seconds."""
    shards: tuple[tuple[str, Path], ...] = ()
    """The kubeconfig of each shard but the root, by its name."""
    files: tuple[Path, ...] = ()
    """What the credentials are read from."""


def load_fleet(
    given: Mapping[str, Any],
    environ: Mapping[str, str],
    *,
    root: Path = Path("/"),
    in_file: Mapping[str, tuple[Any, str]] | None = None,
) -> FleetSettings:
    """The settings in force, as `load` has it for the agent. Raises ConfigError, one line.

    `in_file` is the configuration file's, where that has been read already.
    """
    if in_file is None:
        in_file = read_config(given.get("config"), options=FLEET_RUN_OPTIONS)
    values, places = chosen(given, in_file, FLEET_RUN_OPTIONS)
    path, context = values.get("cloud_kubeconfig"), values.get("cloud_context", "")
    if values.get("listen") == "off":
        values["listen"] = None
    account = read_account(environ, root=root) if path is None else None
    login = account
    try:
        if path is not None:
            login = read_kubeconfig(path, context)
    except NoContext as error:
        raise at(places["cloud_context"], error) from None
    except ConfigError as error:
        raise at(places["cloud_kubeconfig"], error) from None
    if path is None and context:
        raise ConfigError(f"{places['cloud_context']} needs --cloud-kubeconfig: a pod's account has no contexts")
    if account is not None and "controller_namespace" not in values:
        values["controller_namespace"] = _pod_namespace(root)
    logins = [] if login is None else [login]
    logins += [each for _, each in shard_logins(values.get("shards", ()), login, places["shards"])]
    files = tuple(file for each in logins for file in each.files)
    return FleetSettings(**values, has_login=login is not None, files=files)


def shard_logins(
    shards: Sequence[tuple[str, Path]], root: Kubeconfig | None, place: str
) -> list[tuple[str, Kubeconfig]]:
    """The login of each shard, by its name. Raises ConfigError, also where two are one server.

    Servers are told apart by their address: a clone has the uid of the cluster that it was made of (G7.2).
    """
    servers = {} if root is None else {_address(root.server): ROOT}
    logins = []
    for name, file in shards:
        try:
            login = read_kubeconfig(file)
        except ConfigError as error:
            raise at(f"{place}: {name}", error) from None
        if (same := servers.setdefault(_address(login.server), name)) != name:
            raise ConfigError(f"{place}: {name} and {same} are the same server, {login.server}; allowed: each once")
        logins.append((name, login))
    return logins


def _address(server: str) -> tuple[str | None, int, str]:
    """Host, port and path of a server, of whose URL there are several spellings."""
    url = urlsplit(server)
    return url.hostname, url.port or 443, url.path.rstrip("/")


def _pod_namespace(root: Path) -> str:
    try:
        return (root / SERVICE_ACCOUNT.relative_to("/") / "namespace").read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"
