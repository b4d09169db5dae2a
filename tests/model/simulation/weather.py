"""What befalls requests between the agent and one API server."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from random import Random

from crsyncer.core.requests.calls import Call
from crsyncer.ports import Reply


class Fate(Enum):
    """What becomes of one request."""

    LOST = "the request is lost"
    """It never arrives, and the answer is waited for in vain."""
    REPLY_LOST = "the reply is lost"
    """It is carried out, and the answer is waited for in vain."""
    SNAPPED = "the connection breaks"
    """It is carried out, and the connection breaks at once."""
    HUNG = "the server never answers"
    """It takes the request; also a watch is waited for in vain."""
    LATE = "it is late"
    """It is carried out when nobody waits for the answer any more."""


@dataclass(slots=True)
class Rule:
    """The next `times` requests that match meet this fate, or are answered with this reply instead.

    `until` is seconds since the world began: from then on, none does.
    """

    matches: Callable[[Call], bool]
    fate: Fate | Reply
    times: float
    until: float = math.inf
    standing: bool = False
    """It is how the server is, rather than a fault: nobody has to meet it."""
    met: int = 0
    """How many requests did."""


@dataclass(slots=True)
class Weather:
    """One link. Times are in seconds."""

    chance: Random
    latency: float = 0.0
    """What a message needs one way, and a little by chance."""
    jitter: float = 0.0
    """How much longer a message may take by chance: a list, a write and an event then arrive in any order."""
    clock_offset: float | None = None
    """By how much the server's clock is ahead of the agent's, as its answers tell; None: they do not."""
    cut: bool = False
    """Connections are refused, and those there are break."""
    silent: bool = False
    """Connections stand, and nothing comes through them any more (half-open)."""
    lag: float = 0.0
    """How long after its change a watch event comes."""
    closing: float = 0.0
    """How long it takes to close a watch."""
    repeats: int = 0
    """How many of the next watch events are delivered twice."""
    ends: int = 0
    """How many of the next watch events come after a clean end of the watch instead."""
    closes: bool = False
    """Watches end cleanly as soon as they have begun."""
    garbage: int = 0
    """How many of the next watch events come as something that is no JSON."""
    gone_as_status: bool = False
    """A watch from too long ago is answered with HTTP 410 instead of an ERROR line."""
    bytes_per_second: float | None = None
    """How much of an answer the line carries, for all answers together; None: any."""
    busy_until: float = 0.0
    """Event loop time, in seconds, at which the line has carried what it was given so far."""
    rules: list[Rule] = field(default_factory=list)
    injected: list[Rule] = field(default_factory=list)
    """All rules that there ever were."""

    def add(self, rule: Rule, *, first: bool = False) -> Rule:
        """Have a rule hold, after the others or before them."""
        self.rules.insert(0 if first else len(self.rules), rule)
        self.injected.append(rule)
        return rule

    def unmet(self) -> list[str]:
        """The faults that no request has met: a test that injects them shows nothing about them."""
        return [f"{rule.fate}" for rule in self.injected if not (rule.met or rule.standing)]

    def fate(self, call: Call, now: float) -> Fate | Reply | None:
        """What becomes of a request; None: nothing in particular."""
        for rule in self.rules:
            if rule.times > 0 and now < rule.until and rule.matches(call):
                rule.times -= 1
                rule.met += 1
                return rule.fate
        return None

    def travel(self) -> float:
        """How long a message takes."""
        return self.latency + self.chance.uniform(0.001, 0.03 + self.jitter)

    def behind(self) -> float:
        """How long after its change a watch event leaves the server."""
        return self.latency + self.lag + (self.chance.uniform(0.0, self.jitter) if self.jitter else 0.0)

    def clear(self) -> None:
        """Fine weather from now on."""
        self.cut = self.silent = self.gone_as_status = self.closes = False
        self.lag, self.closing = 0.0, 0.0
        self.repeats, self.ends, self.garbage = 0, 0, 0
        self.bytes_per_second = None
        self.rules.clear()
