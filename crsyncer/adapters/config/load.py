"""Settings: flags, environment, configuration file and defaults, in that order, checked before anything is touched."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from crsyncer.adapters.config.options import K3S, OPTIONS, PAIR
from crsyncer.adapters.files import read_yaml
from crsyncer.adapters.kubeconfig import NoContext, read_account, read_kubeconfig
from crsyncer.core.kinds.namespaces import Namespaces, same_names
from crsyncer.core.reports.text import did_you_mean
from crsyncer.errors import ConfigError

_STATE_DIR = Path("/var/lib/crsyncer")
_SHAPES = {"scalar": "one value", "sequence": "a list of names", "mapping": "lines, one name each"}
_NULL = "tag:yaml.org,2002:null"


@dataclass(frozen=True, slots=True)
class Settings:
    """What one agent runs with. Every path is absolute."""

    cloud_kubeconfig: Path
    robot_kubeconfig: Path | None
    """None: the in-cluster account."""
    robot_name: str = ""
    """Empty: none; filtered kinds and those with `spec-source: robot` are then misconfigured."""
    cloud_context: str = ""
    """Empty: the kubeconfig's current context; likewise for the robot."""
    robot_context: str = ""
    state_dir: Path = _STATE_DIR
    listen: tuple[str, int] | None = ("127.0.0.1", 9464)
    """Host and port for health and metrics; None: off. Port 0 takes any free port."""
    insecure_skip_tls_verify: bool = False
    """Whether a kubeconfig may have the server's certificate not verified."""
    require_confinement: bool = False
    """Whether an account of the cloud that may do more than a robot should is not used."""
    namespaces: tuple[str, ...] = ()
    """Empty: all, or those of the map."""
    namespace_map: tuple[tuple[str, str], ...] = ()
    """The cloud's and the robot's name of each namespace; empty: the names are the same."""
    trust: tuple[str, ...] = ()
    """What a SyncPolicy that is itself a copy may ask for beyond kinds with a CRD."""
    report_namespace: str | None = "default"
    """Where in the cloud the agent reports to a fleet, unless it syncs the robot's own namespace; None: nowhere."""
    log_format: str = "text"
    log_level: str = "info"
    watch_timeout: int = 300
    """Seconds after which the server is asked to end a watch."""
    audit_interval: int = 21_600
    """Seconds between two audits of a kind, more or less."""
    control_group: str = ""
    """Whose members may change something by the control socket, beside the agent's own user and root."""
    runtime_dir: Path | None = None
    """Where systemd has the agent put its control socket; None: in the state directory."""
    boot_id_file: Path = Path("/proc/sys/kernel/random/boot_id")
    servers: tuple[str, ...] = ()
    """Where the kubeconfigs lead."""
    config_file: Path | None = None
    files: tuple[Path, ...] = ()
    """Every file these settings depend on, credentials included: a change of one is a reason to load again."""

    @property
    def synced_namespaces(self) -> Namespaces:
        """The namespaces that are synced."""
        cloud, robot = zip(*sorted(self.namespace_map), strict=True) if self.namespace_map else ((), ())
        return Namespaces(cloud, robot) if self.namespace_map else same_names(self.namespaces)


def load(given: Mapping[str, Any], environ: Mapping[str, str], *, root: Path = Path("/")) -> Settings:
    """The settings in force: what flags and variables gave, else the file, else the default.

    `given` is by field of Settings, and `config`, as click hands them to a command. `environ` and `root` are where the
    in-cluster account and k3s' kubeconfig are looked for. Reads files and nothing else; raises ConfigError, one line,
    for the first thing that cannot be used.
    """
    config_file = given.get("config")
    in_file = read_config(config_file)
    values, places = chosen(given, in_file, OPTIONS)
    if {"namespaces", "namespace_map"} <= values.keys():
        raise ConfigError(
            f"{places['namespaces']} and {places['namespace_map']} exclude each other; allowed: one of them, for the"
            " map names the namespaces that are synced"
        )
    if "cloud_kubeconfig" not in values:
        raise ConfigError(
            "--cloud-kubeconfig is required; allowed: the path of a kubeconfig file, also as"
            " CRSYNCER_CLOUD_KUBECONFIG or as cloud.kubeconfig in the configuration file"
        )
    values |= {name: None for name in ("listen", "report_namespace") if values.get(name) == "off"}
    files, servers, contexts = [config_file] if config_file else [], [], set()
    for side in ("cloud", "robot"):
        if f"{side}_kubeconfig" not in values:
            values["robot_kubeconfig"] = _robot_default(environ, root)
            places["robot_kubeconfig"] = "--robot-kubeconfig (by default)"
        path, context = values[f"{side}_kubeconfig"], values.get(f"{side}_context", "")
        context_place = places[f"{side}_context"]
        try:
            login = read_kubeconfig(path, context) if path is not None else read_account(environ, root=root)
        except NoContext as error:
            raise at(context_place, error) from None
        except ConfigError as error:
            raise at(places[f"{side}_kubeconfig"], error) from None
        if path is None and context:
            raise ConfigError(f"{context_place} needs --robot-kubeconfig: the in-cluster account has no contexts")
        if login is not None:
            servers.append(login.server)
            files += login.files
            contexts.add((os.path.realpath(login.file or ""), login.context))
    if len(contexts) < 2:
        raise ConfigError(
            f"{places['robot_kubeconfig']} and {places['cloud_kubeconfig']} are the same context of the same file;"
            " allowed: two different clusters"
        )
    runtime_dir = environ.get("RUNTIME_DIRECTORY", "").split(":")[0]  # systemd separates several by colons
    return Settings(
        **values,
        runtime_dir=Path(runtime_dir) if runtime_dir else None,
        servers=tuple(servers),
        config_file=config_file,
        files=tuple(dict.fromkeys(files)),
    )


def chosen(
    given: Mapping[str, Any], in_file: Mapping[str, tuple[Any, str]], options: Mapping[str, click.Option]
) -> tuple[dict[str, Any], dict[str, str]]:
    """By field the values of settings that flags, variables or the file gave; and of all settings the place to name."""
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for key, each in options.items():
        name = str(each.name)
        value, place = given.get(name), each.opts[0]
        if value in (None, ()):
            value, place = in_file.get(key, (None, place))
        places[name] = place
        if value not in (None, ()):
            values[name] = value
    return values, places


def state_dir(given: Mapping[str, Any]) -> Path:
    """Only the state directory, so that looking at an agent works while other settings are wrong or missing.

    Raises ConfigError where a configuration file that has to be read for it cannot be used.
    """
    directory: Path | None = given.get("state_dir")
    if directory is None:
        directory, _ = read_config(given.get("config"), only="stateDir").get("stateDir", (_STATE_DIR, ""))
    return directory


def read_config(
    path: Path | None, *, only: str = "", options: Mapping[str, click.Option] = OPTIONS
) -> dict[str, tuple[Any, str]]:
    """The values in a configuration file and the lines they are in, by key. Raises ConfigError for the first mistake.

    Every key is checked: a mistake is one also where a flag hides it. `only` ignores whatever is wrong with other keys.
    `options` are the settings that there are.
    """
    if path is None:
        return {}
    try:
        top = read_yaml(path)
    except ConfigError as error:
        raise at("--config", error) from None
    sections = {key.split(".")[0] for key in options if "." in key}
    found: dict[str, tuple[Any, str]] = {}
    read: set[str] = set()

    def walk(node: Any, prefix: str) -> None:
        if node.id != "mapping":
            where = f"{path}:{node.start_mark.line + 1}: "
            raise ConfigError(f"{where}{prefix.rstrip('.') or 'the file'} is not a mapping; allowed: KEY: VALUE lines")
        for name, value in node.value:
            key = f"{prefix}{name.value}" if name.id == "scalar" else f"{prefix}?"
            place = f"{path}:{name.start_mark.line + 1}: {key}"
            if (only and not only.startswith(key)) or (value.tag == _NULL and (key in options or key in sections)):
                continue
            if key not in sections and key not in options:
                raise ConfigError(
                    f"{place} is not a known key{did_you_mean(key, options)}; allowed: {', '.join(options)}"
                )
            if key in read:
                raise ConfigError(f"{place} is given twice; allowed: once")
            read.add(key)
            if key in sections:
                walk(value, f"{key}.")
            elif value.value or value.id != _shape(options[key]):
                found[key] = _value(options[key], value, place, path.parent), place

    if top is not None and top.tag != _NULL:
        walk(top, "")
    return found


def _shape(option: click.Option) -> str:
    """The kind of YAML node that an option takes."""
    return "mapping" if "=" in (option.metavar or "") else "sequence" if option.multiple else "scalar"


def _value(option: click.Option, node: Any, place: str, folder: Path) -> Any:
    """A YAML value as click reads a flag's text: `off` and `7` stay what was written, paths start at the file."""
    shape = _shape(option)
    items = [node] if shape == "scalar" else node.value if node.id == shape else []
    scalars = [item for each in items for item in (each if shape == "mapping" else (each,))]
    if node.id != shape or any(item.id != "scalar" for item in scalars):
        pair = f"{(option.metavar or '').replace('=', ': ')} " if shape == "mapping" else ""
        raise ConfigError(f"{place} has the wrong shape; allowed: {pair}{_SHAPES[shape]}")
    texts = [item.value for item in scalars]
    if shape == "mapping":
        has_files = option.metavar != PAIR
        texts = [f"{name.value}={folder / item.value if has_files else item.value}" for name, item in items]
    elif option.metavar in ("DIR", "FILE"):
        texts = [str(folder / text) for text in texts]
    try:
        return option.process_value(click.Context(click.Command("")), texts if option.multiple else texts[0])
    except click.BadParameter as error:
        raise ConfigError(f"{place} is not allowed: {error.message}") from None


def _robot_default(environ: Mapping[str, str], root: Path) -> Path | None:
    account = read_account(environ, root=root)
    if account is not None and all(os.path.isfile(file) for file in account.files):
        return None
    if os.path.exists(root / K3S):
        return root / K3S
    raise ConfigError(
        "--robot-kubeconfig is required here: this is not a pod with a service account, and there is no"
        f" /{K3S}; allowed: the path of a kubeconfig file"
    )


def at(place: str, error: ConfigError) -> ConfigError:
    """An error of a file, as one of the setting that names it."""
    return ConfigError(f"{place}: {error}; allowed: {error.hint}")
