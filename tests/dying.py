"""A program that dies, as by `kill -9`, before or after its n-th commit to SQLite.

`python tests/dying.py PYTHON -m MODULE ARGUMENTS...` runs a module so, as `DIE_AT` says: `commit:3` dies with the third
transaction written but not committed, `committed:3` just after it. It replaces no code of the module's.
"""

import os
import runpy
import signal
import sqlite3
import sys
from collections.abc import Iterator
from itertools import count
from typing import Any

VARIABLE = "DIE_AT"


def die_at(fault: str) -> None:
    """Die at a commit of any connection that is made from now on."""
    point, _, number = fault.partition(":")
    commits, last = count(1), int(number)

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if sql.upper() != "COMMIT":
                return super().execute(sql, *parameters)
            dying = next(commits) == last
            if dying and point == "commit":
                os.kill(os.getpid(), signal.SIGKILL)
            cursor = super().execute(sql, *parameters)
            if dying:
                os.kill(os.getpid(), signal.SIGKILL)
            return cursor

    connect = sqlite3.connect

    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return connect(*arguments, **options, factory=Connection)

    sqlite3.connect = connected  # type: ignore[assignment]


def main(arguments: Iterator[str]) -> None:
    """Run a module, and die if it is said when."""
    if fault := os.environ.get(VARIABLE):
        die_at(fault)
    _python, _m, module = next(arguments), next(arguments), next(arguments)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(iter(sys.argv[1:]))
