"""Runs the hazards that a mutant's name asks for, and says whether one of them goes wrong."""

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from inspect import getmembers, isfunction, signature
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.model.mutants.mutant import Mutant
from tests.model.simulation.scene import synced

HERE = ("tests.model",)


@cache
def all_tests(folders: tuple[str, ...]) -> list[tuple[str, Callable[..., None]]]:
    """Every test of some directories and of those inside, named as packages, by name."""
    root = Path(__file__).parents[3]
    files = [path for each in folders for path in sorted((root / each.replace(".", "/")).rglob("test_*.py"))]
    names = [".".join(path.relative_to(root).with_suffix("").parts) for path in files if path.parent.name != "mutants"]
    return [found for name in names for found in getmembers(import_module(name), isfunction)]


def arguments(hazard: Callable[..., None]) -> Iterator[dict[str, Any]]:
    """What a test is to be called with, one after another, as its parametrize marks say."""
    marks = [mark.args for mark in getattr(hazard, "pytestmark", []) if mark.name == "parametrize"]
    rows = [[named(names, value) for value in values] for names, values in marks]
    for row in product(*rows):
        yield {name: value for part in row for name, value in part.items()}


def named(names: Any, value: Any) -> dict[str, Any]:
    """One row of a parametrize mark."""
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    values = getattr(value, "values", value) if len(names) > 1 or hasattr(value, "marks") else (value,)
    return dict(zip(names, values, strict=True))


def hazards(begin: str, folders: tuple[str, ...] = HERE) -> Iterator[Callable[[], None]]:
    """The tests whose names begin so, as something to be run."""
    for name, hazard in all_tests(folders):
        if not name.startswith(f"test_{begin}"):
            continue
        for given in arguments(hazard):
            missing = signature(hazard).parameters.keys() - given.keys()
            if missing - {"world"}:
                continue  # it stands on a fixture

            def run(
                hazard: Callable[..., None] = hazard,
                given: dict[str, Any] = given,
                missing: frozenset[str] | set[str] = missing,
            ) -> None:
                if not missing:
                    hazard(**given)
                    return
                with synced() as world:
                    hazard(**given, world=world)

            yield run


def noticed(mutant: Mutant, folders: tuple[str, ...] = HERE) -> bool:
    """Whether some hazard goes wrong while the agent, or another program, has the defect."""
    with mutant.alive():
        for hazard in hazards(mutant.noticed_by, folders):
            try:
                hazard()
            except (Exception, pytest.fail.Exception):
                return True
    return False
