"""Settings as the command reads them, and refusals in one line."""

import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
import pytest

from crsyncer.adapters import config
from crsyncer.adapters.config import CONFIG, OPTIONS, Settings
from crsyncer.errors import ConfigError

FIELDS = [str(option.name) for option in OPTIONS.values()]
KEYS = dict(zip(FIELDS, OPTIONS, strict=True))
COMMAND = click.Command("run", params=[CONFIG, *OPTIONS.values()])


def kubeconfig(server: str = "https://cloud.example.com", **user) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [
            {"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("one", "two", "three", "four")
        ],
        "users": [{"name": "u", "user": user}],
    }


def flags(place: Path, **more) -> dict:
    return {"cloud_kubeconfig": str(place / "cloud-default"), "robot_kubeconfig": str(place / "robot-default")} | more


def file(place: Path, text: str) -> str:
    (place / "c.yaml").write_text(text)
    return str(place / "c.yaml")


def given(flags: dict, environ: dict) -> dict[str, Any]:
    """What click makes of flags and variables."""
    arguments = []
    for option in COMMAND.params:
        value = flags.get(str(option.name))
        if isinstance(option, click.Option) and option.is_flag:
            arguments += [option.opts[0]] if value else []
        elif value is not None:
            arguments += [f"{option.opts[0]}={text}" for text in ([value] if isinstance(value, str) else value)]
    with patch.dict(os.environ, environ, clear=True):
        return COMMAND.make_context("run", arguments).params


def load(flags: dict, environ: dict, **more) -> Settings:
    return config.load(given(flags, environ), environ, **more)


def state_dir(flags: dict, environ: dict) -> Path:
    return config.state_dir(given(flags, environ))


def refusal(flags: dict, environ: dict | None = None, **more) -> str:
    with pytest.raises((ConfigError, click.UsageError)) as caught:
        load(flags, environ or {}, **more)
    error = caught.value
    message = error.format_message() if isinstance(error, click.UsageError) else str(error)
    assert "\n" not in message
    assert not getattr(error, "hint", "")
    return message
