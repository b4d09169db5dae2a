"""Random histories of the whole agent: a failure prints the seed that repeats it."""

import subprocess
import sys
from pathlib import Path
from types import FunctionType
from typing import cast

import pytest

from tests.model.mutants.known_defects import KNOWN_DEFECTS

_ROOT = Path(__file__).parents[3]


def histories(*options: str, to: int) -> None:
    """Run these many. In a process of their own, for the order of sets is part of a history."""
    command = [sys.executable, "-m", "tests.model", "--to", str(to), *options]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_three_hundred_random_histories_do_nothing_that_must_never_happen() -> None:
    histories("--stop", to=300)


def test_random_histories_under_a_policy_do_nothing_that_must_never_happen() -> None:
    histories("--policies", "--stop", to=40)


def test_random_histories_of_what_keeps_copies_do_nothing_that_must_never_happen() -> None:
    histories("--keeping", "--stop", to=40)


@pytest.mark.nightly
def test_two_thousand_random_histories_of_what_keeps_copies_do_nothing_that_must_never_happen() -> None:
    histories("--keeping", "--stop", to=2_000)


@pytest.mark.nightly
def test_ten_thousand_random_histories_under_a_policy_do_nothing_that_must_never_happen() -> None:
    histories("--policies", "--stop", to=10_000)


@pytest.mark.nightly
def test_ten_thousand_random_histories_do_nothing_that_must_never_happen() -> None:
    histories("--stop", to=10_000)


@pytest.mark.nightly
def test_random_histories_find_every_defect_that_users_have_met() -> None:
    histories("--known-defects", to=1_500)


def test_each_known_defect_can_be_put_into_the_agent_of_today() -> None:
    for defect in KNOWN_DEFECTS:
        function = cast("FunctionType", defect.function)
        sound = function.__code__
        with defect.alive():
            assert function.__code__ is not sound, defect.name
