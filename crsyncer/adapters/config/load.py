"""Settings: flags, environment, configuration file and defaults, in that order, checked before anything is touched."""

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from crsyncer.adapters.config.options import K3S, OPTIONS, Given, Option, parse_path
from crsyncer.adapters.files import read_yaml
from crsyncer.adapters.kubeconfig import NoContext, read_account, read_kubeconfig
from crsyncer.errors import ConfigError


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
    state_dir: Path = Path("/var/lib/crsyncer")
    listen: tuple[str, int] | None = ("127.0.0.1", 9464)
    """Host and port for health and metrics; None: off. Port 0 takes any free port."""
    insecure_skip_tls_verify: bool = False
    """Whether a kubeconfig may have the server's certificate not verified."""
    namespaces: tuple[str, ...] = ()
    """Empty: all."""
    log_format: str = "text"
    log_level: str = "info"
    watch_timeout: int = 300
    """Seconds after which the server is asked to end a watch."""
    audit_interval: int = 21_600
    """Seconds between two audits of a kind, more or less."""
    boot_id_file: Path = Path("/proc/sys/kernel/random/boot_id")
    servers: tuple[str, ...] = ()
    """Where the kubeconfigs lead."""
    config_file: Path | None = None
    files: tuple[Path, ...] = ()
    """Every file these settings depend on, credentials included: a change of one is a reason to load again."""


def load(flags: Mapping[str, Any], environ: Mapping[str, str], *, root: Path = Path("/")) -> Settings:
    """The settings in force: flag, else environment, else file, else default.

    `flags` maps fields of Settings, and `config`, to texts (a sequence for `namespaces`), None where a flag was not
    given. `root` is where the in-cluster account and k3s' kubeconfig are looked for. Reads files and nothing else;
    raises ConfigError, one line, for the first thing that cannot be used.
    """
    config_file = _config_file(flags, environ)
    in_file = _read_config(config_file) if config_file else {}
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for option in OPTIONS:
        # The file is checked as a whole: a mistake in it is a mistake also where a flag hides it today.
        if written := in_file.get(option.key):
            option.parse(written)
        if given := _given(option, flags, environ, in_file):
            values[option.field] = option.parse(given)
            places[option.field] = given.place
    if "cloud_kubeconfig" not in values:
        raise ConfigError(
            "--cloud-kubeconfig is required; allowed: the path of a kubeconfig file, also as"
            " CRSYNCER_CLOUD_KUBECONFIG or as cloud.kubeconfig in the configuration file"
        )
    files, servers, contexts = [config_file] if config_file else [], [], set()
    for side in ("cloud", "robot"):
        if f"{side}_kubeconfig" not in values:
            values["robot_kubeconfig"] = _robot_default(environ, root)
            places["robot_kubeconfig"] = "--robot-kubeconfig (by default)"
        path, context = values[f"{side}_kubeconfig"], values.get(f"{side}_context", "")
        context_place = places.get(f"{side}_context", f"--{side}-context")
        try:
            login = read_kubeconfig(path, context) if path is not None else read_account(environ, root=root)
        except NoContext as error:
            raise _at(context_place, error) from None
        except ConfigError as error:
            raise _at(places[f"{side}_kubeconfig"], error) from None
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
    return Settings(**values, servers=tuple(servers), config_file=config_file, files=tuple(dict.fromkeys(files)))


def origins(flags: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, str]:
    """Where each setting that somebody gave comes from, by its key: its flag, its variable or FILE:LINE."""
    config_file = _config_file(flags, environ)
    in_file = _read_config(config_file) if config_file else {}
    given = {option.key: _given(option, flags, environ, in_file) for option in OPTIONS}
    return {key: value.place.removesuffix(f": {key}") for key, value in given.items() if value is not None}


def state_dir(flags: Mapping[str, Any], environ: Mapping[str, str]) -> Path:
    """Only the state directory, so that looking at an agent works while other settings are wrong or missing.

    Raises ConfigError where the value, or a configuration file that has to be read for it, cannot be used.
    """
    option = next(option for option in OPTIONS if option.field == "state_dir")
    given = _given(option, flags, environ, {})
    config_file = _config_file(flags, environ)
    if given is None and config_file:
        given = _given(option, flags, environ, _read_config(config_file, only=option.key))
    chosen: Path = option.parse(given) if given else Path(option.default)
    return chosen


def _config_file(flags: Mapping[str, Any], environ: Mapping[str, str]) -> Path | None:
    for text, place in (
        (flags.get("config"), "--config"),
        (environ.get("CRSYNCER_CONFIG") or None, "CRSYNCER_CONFIG (--config)"),
    ):
        if text is not None:
            return parse_path(Given((text,), place, Path.cwd()))
    return None


def _given(
    option: Option, flags: Mapping[str, Any], environ: Mapping[str, str], in_file: Mapping[str, Given]
) -> Given | None:
    flag = flags.get(option.field)
    if flag is not None and flag != ():
        return Given((flag,) if isinstance(flag, str) else tuple(flag), option.flag, Path.cwd())
    for variable in option.variables:
        if text := environ.get(variable, ""):
            if option.many:
                texts = tuple(part for part in re.split(r"[,\s]+", text) if part)
            else:
                # systemd separates several state directories by colons.
                texts = (text.split(":")[0],) if variable == "STATE_DIRECTORY" else (text,)
            if texts:
                return Given(texts, f"{variable} ({option.flag})", Path.cwd())
    return in_file.get(option.key)


def _read_config(path: Path, *, only: str = "") -> dict[str, Given]:
    """The values in a configuration file, by dotted key. `only` ignores whatever is wrong with other keys."""
    try:
        top = read_yaml(path)
    except ConfigError as error:
        raise _at("--config", error) from None
    keys = {option.key: option for option in OPTIONS}
    sections = {key.split(".")[0] for key in keys if "." in key}
    found: dict[str, Given] = {}

    def walk(node: Any, prefix: str) -> None:
        if node.id != "mapping":
            where = f"{path}:{node.start_mark.line + 1}: "
            raise ConfigError(f"{where}{prefix.rstrip('.') or 'the file'} is not a mapping; allowed: KEY: VALUE lines")
        for name_node, value in node.value:
            key = f"{prefix}{name_node.value}" if name_node.id == "scalar" else f"{prefix}?"
            place = f"{path}:{name_node.start_mark.line + 1}: {key}"
            if only and not only.startswith(key):
                continue
            if value.tag == "tag:yaml.org,2002:null" and (key in keys or key in sections):
                continue
            if key in sections:
                walk(value, f"{key}.")
            elif key not in keys:
                raise ConfigError(f"{place} is not a known key{_did_you_mean(key, keys)}; allowed: {', '.join(keys)}")
            elif key in found:
                raise ConfigError(f"{place} is given twice; allowed: once")
            elif texts := _texts(value, keys[key], place):
                found[key] = Given(texts, place, path.parent)

    if top is not None and top.tag != "tag:yaml.org,2002:null":
        walk(top, "")
    return found


def _texts(node: Any, option: Option, place: str) -> tuple[str, ...]:
    """A YAML value as the texts that a flag would have had: `off` and `7` stay what was written. Empty: not set."""
    items = node.value if option.many and node.id == "sequence" else [node]
    if (option.many and node.id != "sequence") or any(item.id != "scalar" for item in items):
        raise ConfigError(f"{place} has the wrong shape; allowed: {'a list of names' if option.many else 'one value'}")
    texts = tuple(item.value for item in items)
    return texts if option.many or texts[0] else ()


def _did_you_mean(key: str, known: Collection[str]) -> str:
    if close := get_close_matches(key, known, n=1, cutoff=0.6):
        return f"; did you mean {close[0]}?"
    return ""


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


def _at(place: str, error: ConfigError) -> ConfigError:
    """An error of a file, as one of the setting that names it."""
    return ConfigError(f"{place}: {error}; allowed: {error.hint}")
