"""The settings of the front door's commands."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from crsyncer.adapters.config.fleet_options import (
    FLEET_OPTIONS,
    FLEET_RUN_OPTIONS,
    SHARDS,
    FleetSettings,
    load_fleet,
    shard_logins,
)
from crsyncer.adapters.config.load import chosen, read_config
from crsyncer.adapters.config.options import OPTIONS, a_directory, a_listen, a_path, is_not, option
from crsyncer.adapters.config.unit import with_unit
from crsyncer.adapters.kubeconfig import Kubeconfig, read_account, read_kubeconfig
from crsyncer.core.content.annotations import ROOT
from crsyncer.errors import ConfigError

DOOR_UNIT = "crsyncer-door.service"
"""The unit of `crsyncer door run`."""
_DIRECTORY = Path("/etc/crsyncer-door")
_SOCKET = Path("/run/haproxy-master.sock")
_PLAIN = re.compile(r"[A-Za-z0-9/._-]+")
"""What a path may have that stands in HAProxy's configuration: no text that would have to be quoted there."""


def _plain(path: Path, text: str) -> Path:
    if not _PLAIN.fullmatch(str(path)):
        raise is_not(text, "a path of letters, digits, '/', '.', '_' and '-': HAProxy's configuration names it")
    return path


def _plain_directory(text: str) -> Path:
    return _plain(a_directory(text), text)


def _exporter(text: str) -> tuple[str, int] | str:
    if text == "off":
        return text
    try:
        return _bind(text)
    except click.BadParameter:
        raise is_not(text, "HOST:PORT such as 127.0.0.1:8404 or [::1]:8404, or off") from None


def _bind(text: str) -> tuple[str, int]:
    refused = is_not(text, "HOST:PORT such as :8443, 192.0.2.1:8443 or [::]:8443")
    try:
        parsed = a_listen(f"*{text}" if text.startswith(":") else text)
    except click.BadParameter:
        raise refused from None
    if isinstance(parsed, str) or not parsed[1] or not re.fullmatch(r"[A-Za-z0-9.:*-]+", parsed[0]):
        raise refused
    return parsed


_DOORS = dict((
    ("shards", SHARDS),
    option(
        "listen", "--listen", "HOST:PORT",
        "Where `door run` serves /livez, /readyz, /metrics and /streams, and is asked; off for nowhere.",
        otherwise="127.0.0.1:9466", type=a_listen,
    ),
    ("log.format", OPTIONS["log.format"]),
    ("log.level", OPTIONS["log.level"]),
    ("watchTimeout", OPTIONS["watchTimeout"]),
    option(
        "door.directory", "--directory", "DIR",
        "Where HAProxy's files are made.",
        otherwise=str(_DIRECTORY), envvar=["CRSYNCER_DOOR_DIRECTORY"], type=_plain_directory,
    ),
    option(
        "door.socket", "--socket", "FILE",
        "HAProxy's master socket, as in haproxy -W -S FILE.",
        otherwise=str(_SOCKET), envvar=["CRSYNCER_DOOR_SOCKET"], type=a_path,
    ),
    option(
        "door.bind", "--bind", "HOST:PORT",
        "Where HAProxy listens for robots.",
        otherwise=":8443", envvar=["CRSYNCER_DOOR_BIND"], type=_bind,
    ),
    option(
        "door.exporter", "--exporter", "HOST:PORT",
        "Where HAProxy serves its own /metrics, for Prometheus; off for nowhere. Robots must not reach it.",
        otherwise="off", envvar=["CRSYNCER_DOOR_EXPORTER"], type=_exporter,
    ),
    option(
        "door.certificate", "--certificate", "FILE",
        "The door's certificate with its key, PEM.",
        otherwise="required", envvar=["CRSYNCER_DOOR_CERTIFICATE"], type=a_path,
    ),
))  # fmt: skip
_FLEETS = {key: each for key, each in FLEET_OPTIONS.items() if key != "controllerNamespace"}
_MAKING = ("door.bind", "door.exporter", "door.certificate")
DOOR_OPTIONS: Mapping[str, click.Option] = {**_FLEETS, **_DOORS}
"""By key the settings of the commands that make HAProxy's configuration."""
DOOR_VIEW_OPTIONS: Mapping[str, click.Option] = {k: each for k, each in DOOR_OPTIONS.items() if k not in _MAKING}
"""By key those of the commands that only look at it."""
HAPROXY_OPTIONS: Mapping[str, click.Option] = {key: DOOR_OPTIONS[key] for key in ("door.directory", "door.socket")}
"""By key those of the commands that talk to HAProxy alone."""
_IN_FILE = {**FLEET_RUN_OPTIONS, **DOOR_OPTIONS}
"""The keys of a configuration file, which door and controller may share."""


@dataclass(frozen=True, slots=True)
class DoorSettings:
    """What a command of the front door runs with. Every path is absolute."""

    root: FleetSettings
    """How to reach the root, and which of its objects are the robots."""
    logins: tuple[tuple[str, Kubeconfig], ...]
    """The login of each shard by its name, the root's first."""
    shards: tuple[tuple[str, Path], ...] = ()
    """The kubeconfig of each shard but the root, by its name."""
    listen: tuple[str, int] | None = ("127.0.0.1", 9466)
    log_format: str = "text"
    log_level: str = "info"
    watch_timeout: int = 300
    directory: Path = _DIRECTORY
    socket: Path = _SOCKET
    bind: tuple[str, int] = ("*", 8443)
    exporter: tuple[str, int] | None = None
    certificate: Path | None = None
    config_file: Path | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that HAProxy's configuration depends on; tokens are read again when a server refuses them."""
        own = [each for each in (self.config_file, self.certificate) if each is not None]
        logins = [file for _, login in self.logins for file in login.files if file != login.path("tokenFile")]
        return tuple(dict.fromkeys([*own, *logins]))


def load_door(
    given: Mapping[str, Any], environ: Mapping[str, str], *, making: bool = False, root: Path = Path("/")
) -> DoorSettings:
    """The settings in force, as `load` has it for the agent. Raises ConfigError, one line.

    `making`: HAProxy's configuration is to be made, which takes a certificate.
    """
    given = _with_unit(given, root)
    config_file = given.get("config")
    in_file = read_config(config_file, options=_IN_FILE)
    values, places = chosen(given, in_file, _DOORS)
    home = load_fleet(given, environ, root=root, in_file=in_file)
    path = home.cloud_kubeconfig
    first = read_account(environ, root=root) if path is None else read_kubeconfig(path, home.cloud_context)
    if first is None:
        raise ConfigError(
            "--cloud-kubeconfig is required; allowed: the path of a kubeconfig file for the root, and none in a pod"
        )
    if making and "certificate" not in values:
        raise ConfigError(
            f"{places['certificate']} is required; allowed: the path of a PEM file with the certificate and its key"
        )
    logins = [(ROOT, first), *shard_logins(values.get("shards", ()), first, places["shards"])]
    values |= {name: None for name in ("listen", "exporter") if values.get(name) == "off"}
    return DoorSettings(home, tuple(logins), **values, config_file=config_file)


def load_haproxy(given: Mapping[str, Any], *, root: Path = Path("/")) -> tuple[Path, Path]:
    """HAProxy's directory and its master socket, as `load_door` has them. Raises ConfigError, one line."""
    given = _with_unit(given, root)
    values, _ = chosen(given, read_config(given.get("config"), options=_IN_FILE), HAPROXY_OPTIONS)
    return values.get("directory", _DIRECTORY), values.get("socket", _SOCKET)


def _with_unit(given: Mapping[str, Any], root: Path) -> Mapping[str, Any]:
    """What was given, and for the rest what the package's unit gives to `door run`: so commands need no flag."""
    return with_unit(given, root=root, unit=DOOR_UNIT, options=DOOR_OPTIONS, home="directory")
