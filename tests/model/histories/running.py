"""Runs random histories of any sort, makes failing ones shorter, and says what is found: what their commands share."""

import argparse
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol, TypeVar

Failure = Callable[[Any], str | None]
"""What is wrong with a history; None: nothing."""
_RULES = re.compile(r"\([A-Z]\d[\w.]*\)")


class Steps(Protocol):
    """A history: a frozen dataclass that can do without any of its steps."""

    @property
    def steps(self) -> tuple[Any, ...]:
        """What happens."""
        ...


AnyHistory = TypeVar("AnyHistory", bound=Steps)


def failure_of(run: Callable[[], object]) -> str | None:
    """What goes wrong; None: nothing."""
    try:
        run()
    except AssertionError as error:
        return str(error) or traceback.format_exc()
    except Exception:
        return traceback.format_exc()
    return None


def shrunk(history: AnyHistory, failure: Failure) -> AnyHistory:
    """The history without the steps that its failure does not need: it still breaks the same rule."""
    rules = _rules(failure(history))
    size = max(1, len(history.steps) // 2)
    while size:
        start = 0
        while start < len(history.steps):
            shorter = replace(history, steps=history.steps[:start] + history.steps[start + size :])  # type: ignore[type-var]
            wrong = failure(shorter)
            if wrong is not None and _rules(wrong) == rules:
                history = shorter
            else:
                start += size
        size //= 2
    return history


def failures(seeds: Iterable[int], failure: Callable[[int], str | None]) -> Iterator[tuple[int, str]]:
    """The seeds whose histories go wrong, and what is wrong with them."""
    for seed in seeds:
        if (wrong := failure(seed)) is not None:
            yield seed, wrong


def report(seeds: range, failure: Callable[[int], str | None], *, again: str, stop: bool) -> int:
    """Run the histories of seeds and say which fail; the exit code. `again`: the command that runs one."""
    started, count = time.monotonic(), 0
    for seed, wrong in failures(seeds, failure):
        count += 1
        print(f"seed {seed}: {wrong[-600:]}\n  again: {again} {seed} --shrink", flush=True)
        if stop:
            break
    print(f"{len(seeds)} histories, {count} failures, {time.monotonic() - started:.0f} s")
    return 1 if count else 0


def tell(history: Steps, run: Callable[[], object], writes: Callable[[], Iterable[Any]]) -> int:
    """Run one history and say what happens in it; the exit code."""
    print(history)
    for step in history.steps:
        print(f"  {step}")
    try:
        run()
    except Exception:
        for write in writes():
            print(f"{write.time:10.3f} {write}{' late' if write.late else ''}")
        print(traceback.format_exc())
        return 1
    print("nothing is wrong with it")
    return 0


def parser(program: str, description: str | None, *, most: int) -> argparse.ArgumentParser:
    """The arguments that all of these commands take."""
    made = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    made.add_argument("seed", nargs="?", type=int)
    made.add_argument("--shrink", action="store_true", help="leave out the steps that the failure does not need")
    made.add_argument("--from", dest="first", type=int, default=0)
    made.add_argument("--to", dest="last", type=int, default=most)
    made.add_argument("--stop", action="store_true", help="at the first failure")
    return made


def run_with_fixed_hashes(program: str, main: Callable[[], int]) -> None:
    """Run a command and exit: the order of sets is part of a history."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        arguments = [sys.executable, "-m", program, *sys.argv[1:]]
        os.execve(sys.executable, arguments, {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())


def _rules(wrong: str | None) -> set[str]:
    return set(_RULES.findall(wrong or ""))
