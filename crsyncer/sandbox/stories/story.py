"""Writes a story in numbered steps and checks each one: what is expected, and what the servers show."""

import textwrap
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import aiohttp
from kubernetes.aio.client import ApiException

from crsyncer.adapters.retries import until_async
from crsyncer.core.reports.text import plain
from crsyncer.errors import SyncError

WIDTH = 100
_PATIENCE = 45.0
"""Seconds until a step fails: after a cut the agent retries the link after a while, not at once."""
_GREEN, _RED, _BOLD, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[1m", "\x1b[0m"


class Untrue(Exception):
    """A step failed."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One observation: who shows what, and whether it is as expected."""

    who: str
    what: str
    holds: bool


Look = Callable[[], Awaitable[Seen]]


class Story:
    """Writes lines of at most 100 columns, each at once, so that a log shows where a story hangs."""

    def __init__(self, write: Callable[[str], None], *, colour: bool = False) -> None:
        self.steps = 0
        self._write = write
        self._colour = colour
        self._started = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since the story began."""
        return time.monotonic() - self._started

    def step(self, title: str) -> None:
        """Begin the next step."""
        self.steps += 1
        self._write("")
        self._write(self._painted(f"[{self.elapsed:5.1f} s] {self.steps}. {title}", _BOLD))

    def says(self, who: str, what: str) -> None:
        """Write a line about a side, the agent or a command."""
        for line in _wrapped(f"      {who:<9} {plain(what)}"):
            self._write(line)

    def quotes(self, text: str) -> None:
        """Show a program's output as it is."""
        for line in text.splitlines():
            self._write(line)

    async def expect(self, what: str, *looks: Look, seconds: float = _PATIENCE) -> None:
        """Write what is expected, repeat every look until all hold, and write the last observations.

        Raises Untrue when they do not all hold within `seconds`; 0: they must hold now.
        """
        self.says("expected", what)
        began = time.monotonic()

        async def look_at_all() -> list[Seen]:
            return [await look() for look in looks]

        seen = await until_async(look_at_all, lambda seen: all(each.holds for each in seen), seconds=seconds)
        waited = time.monotonic() - began
        for each in seen:
            self.says(each.who, each.what if each.holds else f"WRONG: {each.what}")
        if not all(each.holds for each in seen):
            raise Untrue(f"{what} (waited {waited:.0f} s)")
        self._write(f"      {self._painted('ok', _GREEN)}        after {waited:.1f} s")

    def fails(self, error: BaseException) -> None:
        """Write the last lines after a failed step."""
        self._write("")
        verdict = self._painted("FAILED", _RED)
        self._write(f"{verdict}: step {self.steps}, after {self.elapsed:.0f} s")
        for line in str(error).splitlines() or [type(error).__name__]:
            self.says("", line)
        if hint := getattr(error, "hint", ""):
            self.says("hint", hint)

    def ends(self) -> None:
        """Write the last line after the last step."""
        self._write("")
        self._write(f"{self._painted('PASSED', _GREEN)}: all {self.steps} steps, after {self.elapsed:.0f} s")

    def _painted(self, text: str, colour: str) -> str:
        return f"{colour}{text}{_PLAIN}" if self._colour else text


def tell(story: Story, plot: Callable[[], None]) -> int:
    """Run a plot up to its end or the first failed step, and return the exit code: 0, or 1."""
    try:
        plot()
    except (Untrue, SyncError, ApiException, aiohttp.ClientError, TimeoutError, OSError) as error:
        story.fails(error)
        return 1
    story.ends()
    return 0


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=" " * 16, max_lines=3, placeholder=" …")
