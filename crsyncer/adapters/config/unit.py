"""What a package's systemd unit gives to its program, read from the unit's files: so commands need no flag.

Read by systemd.unit(5) and systemd.exec(5): the unit, then its drop-ins in the order of their names. Works also where
systemd does not run, and without its help.
"""

import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from crsyncer.adapters.config.options import CONFIG, OPTIONS
from crsyncer.adapters.files import read
from crsyncer.errors import ConfigError

UNIT = "crsyncer.service"
"""The agent's."""
_FOLDERS = (
    *("etc/systemd/system", "run/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system"),
    "lib/systemd/system",
)
_CREDENTIALS = Path("/run/credentials")


def with_unit(
    given: Mapping[str, Any],
    *,
    root: Path = Path("/"),
    unit: str = UNIT,
    options: Mapping[str, click.Option] = OPTIONS,
    home: str = "state_dir",
) -> Mapping[str, Any]:
    """What flags and variables gave a command, and for the rest what the unit gives its program; raises ConfigError.

    A configuration file, or a directory by the setting `home`, that is given is another program's: `given` is all then.
    """
    if given.get("config") or given.get(home):
        return given
    environment = unit_environment(root, unit)
    found: dict[str, Any] = {}
    for option in (CONFIG, *options.values()):
        name, envvar = str(option.name), option.envvar or ()
        variable = next((each for each in envvar if environment.get(each)), None)
        if variable is None or given.get(name) not in (None, ()):
            continue
        text = environment[variable]
        try:
            found[name] = option.process_value(
                click.Context(click.Command("")), text.split() if option.multiple else text
            )
        except click.BadParameter as error:
            raise ConfigError(f"{unit}: {variable} is not allowed: {error.message}") from None
    return {**given, **found} if found else given


def unit_environment(root: Path = Path("/"), unit: str = UNIT) -> Mapping[str, str]:
    """The variables that the unit's program starts with; empty without the unit.

    A credential is the unit's copy where we may see it, else the file that it is a copy of.
    """
    environment: dict[str, str] = {}
    credentials: dict[str, str] = {}
    from_files: list[str] = []
    for key, value in _settings(root, unit):
        match key:
            case "Environment" if value:
                environment |= _assignments(shlex.split(value))
            case "Environment":
                environment.clear()
            case "EnvironmentFile":
                from_files = [*from_files, value] if value else []
            case "LoadCredential" if value:
                name, _, source = value.partition(":")
                credentials[name] = source
            case "LoadCredential":
                credentials.clear()
            case "StateDirectory" if value:
                environment["STATE_DIRECTORY"] = f"/var/lib/{value.split()[0]}"
    for name in from_files:
        with suppress(ConfigError, ValueError):  # a file with "-" before its name may be missing
            environment |= _assignments(shlex.split(read(_inside(root, name.removeprefix("-"))), comments=True))
    return {name: _source(value, _CREDENTIALS / unit, credentials, root) for name, value in environment.items()}


def _settings(root: Path, unit: str) -> Iterator[tuple[str, str]]:
    """The settings of the unit's section [Service], as key and value."""
    folders = [root / folder for folder in _FOLDERS]
    units = [folder / unit for folder in folders if (folder / unit).is_file()]
    drop_ins: dict[str, Path] = {}
    for folder in reversed(folders):
        drop_ins |= {file.name: file for file in (folder / f"{unit}.d").glob("*.conf")}
    for file in (*units[:1], *(drop_ins[name] for name in sorted(drop_ins) if units)):
        section = ""
        with suppress(ConfigError):
            for line in read(file).replace("\\\n", " ").splitlines():
                text = line.strip()
                if text.startswith("["):
                    section = text
                elif section == "[Service]" and not text.startswith(("#", ";")):
                    key, _, value = text.partition("=")
                    yield key.strip(), _expanded(value.strip(), unit)


def _expanded(value: str, unit: str) -> str:
    """A value without specifiers; those that are not known to this file stay."""
    name = unit.removesuffix(".service")
    meanings = {"%t": "/run", "%n": unit, "%N": name, "%p": name, "%d": str(_CREDENTIALS / unit)}
    for specifier, meaning in meanings.items():
        value = value.replace(specifier, meaning)
    return value.replace("%%", "%")


def _assignments(words: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words if "=" in word)


def _source(value: str, folder: Path, credentials: Mapping[str, str], root: Path) -> str:
    path = Path(value)
    if path.parent != folder or path.name not in credentials:
        return value
    with suppress(OSError):
        if _inside(root, value).exists():
            return value
    return credentials[path.name]


def _inside(root: Path, path: str) -> Path:
    return root / path.lstrip("/")
