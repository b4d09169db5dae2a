"""Groups of commands whose modules are imported when they are used, so that `--help` is fast on a slow robot."""

import importlib
from collections.abc import Mapping
from typing import Any

import click

from crsyncer.core.reports.text import did_you_mean


class LazyGroup(click.Group):
    """A click group that imports commands lazily. (click offers inheritance as the only way to do this.)

    `table` has each command's line in the help. `modules` is the pattern of the module's name, such as `package.{}`;
    the command is the object in it that has the last part of that name. Dashes are underscores there.
    """

    def __init__(self, *arguments: Any, table: Mapping[str, str], modules: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._table = table
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self._table:
            return None
        module = self._modules.format(cmd_name.replace("-", "_"))
        command: click.Command = getattr(importlib.import_module(module), module.rpartition(".")[2])
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self._table and not name.startswith("-"):
            ctx.fail(f"No such command {name!r}{did_you_mean(name, self._table)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([*self._table.items()])
