"""What happens when, drawn from a seed before anything happens: the same seed does the same things."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.faults.chaos.kinds import KINDS, SIDES, Kind

_WRITES_PER_SECOND = 2.5
_FAULTS_PER_SECOND = 0.22
_SLOTS = 7
"""Objects of a kind that live at a time."""
_WORDS = {
    "change": 30,
    "report": 40,
    "drift": 5,
    "lose": 3,
    "last_words": 3,
    "delete": 6,
    "recreate": 5,
    "finish": 2,
    "relabel": 6,
    "neighbour": 6,
}
"""How often a writer does what to an object that is there."""
_FAULTS = {
    "cut": 12,
    "half_open": 8,
    "delay": 5,
    "throttle": 5,
    "truncate": 6,
    "answer": 12,
    "lost_reply": 10,
    "restart": 3,
    "pause": 5,
    "compact": 3,
    "crd": 4,
    "agent_pause": 5,
    "agent_kill": 10,
    "agent_stop": 5,
}


@dataclass(frozen=True, slots=True)
class Step:
    """One action. `at` is in seconds after the beginning; `arguments` are what its performer takes."""

    at: float
    action: str
    arguments: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        words = " ".join(f"{key}={value}" for key, value in self.arguments.items())
        return f"{self.at:8.2f}  {self.action:<12} {words}"


def draw(*, seed: int, seconds: float) -> list[Step]:
    """The whole schedule, in order."""
    writers = random.Random(f"writers {seed}")
    faults = random.Random(f"faults {seed}")
    return sorted([*_writes(writers, seconds), *_faults(faults, seconds)], key=lambda step: step.at)


def _writes(rng: random.Random, seconds: float) -> Iterator[Step]:
    slots: dict[tuple[str, int], str] = {}
    at, number = 0.0, 0
    while (at := at + rng.expovariate(_WRITES_PER_SECOND)) < seconds:
        number += 1
        kind = rng.choice(list(KINDS.values()))
        slot = (kind.plural, rng.randrange(_SLOTS))
        state = slots.get(slot, "absent 0")
        word, _, generation = state.partition(" ")
        name = f"{kind.letter}{slot[1]}-{generation}"
        action = {"absent": "create", "away": rng.choice(["relabel", "relabel", "change"])}.get(word)
        action = action or rng.choices(*_words(kind))[0]
        arguments: dict[str, Any] = {"kind": kind.plural, "name": name, "number": number}
        match action:
            case "create":
                slots[slot] = f"here {generation}"
            case "delete":
                slots[slot] = f"absent {generation}"
            case "finish":
                slots[slot] = f"absent {int(generation) + 1}"
            case "relabel":
                slots[slot] = f"{'here' if word == 'away' else 'away'} {generation}"
                arguments["away"] = word != "away"
        yield Step(round(at, 2), action, arguments)


def _words(kind: Kind) -> tuple[list[str], list[int]]:
    unfit = {*(() if kind.filtered else ("relabel",)), *(() if kind.subtree else ("neighbour",))}
    if kind.settings or kind.primary:
        unfit.add("finish")  # it would take the agent's finalizer away, and another name has no related objects
    if kind.primary:
        unfit |= {"report", "last_words"}
    words = {word: weight for word, weight in _WORDS.items() if word not in unfit}
    return list(words), list(words.values())


def _faults(rng: random.Random, seconds: float) -> Iterator[Step]:
    busy: dict[str, float] = {}
    at = 0.0
    while (at := at + rng.expovariate(_FAULTS_PER_SECOND)) < seconds:
        action = rng.choices(list(_FAULTS), list(_FAULTS.values()))[0]
        arguments: dict[str, Any] = {} if action.startswith("agent") else {"side": rng.choice(SIDES)}
        arguments |= _details(action, rng)
        lane = f"{_LANES.get(action, action)} {arguments.get('side', '')}"
        if busy.get(lane, 0.0) > at:
            continue
        busy[lane] = at + arguments.get("seconds", 0.0) + 0.5
        yield Step(round(at, 2), action, arguments)


_LANES = {
    "cut": "wire",
    "half_open": "wire",
    "restart": "plane",
    "pause": "plane",
    "agent_pause": "agent",
    "agent_kill": "agent",
    "agent_stop": "agent",
}
"""What cannot be done to the same thing at the same time."""


def _details(action: str, rng: random.Random) -> dict[str, Any]:
    def between(low: float, high: float) -> float:
        return round(rng.uniform(low, high), 2)

    match action:
        case "cut" | "half_open":
            return {"seconds": between(1, 10)}
        case "delay":
            return {"seconds": between(3, 10), "late": between(0.1, 1.0)}
        case "throttle":
            return {"seconds": between(3, 10), "rate": rng.choice([4_000, 16_000, 64_000])}
        case "truncate":
            return {"after": rng.randrange(1, 3_000)}
        case "answer":
            return {"seconds": between(1, 5), "status": rng.choice([500, 503, 429, 409]), "times": rng.randrange(1, 4)}
        case "lost_reply":
            return {"seconds": between(2, 6), "times": rng.randrange(1, 3)}
        case "pause" | "agent_pause":
            return {"seconds": between(1, 6)}
        case "agent_kill" | "agent_stop":
            return {"seconds": between(0, 4)}
        case _:
            return {}
