"""The Decisions of one placement: which robot is in which one, what they shall say, and what is stored (F6.3)."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from crsyncer.fleet.domain.rollout.decisions import MOST_ROBOTS, Decided, Decision


class DecisionBook:
    """A robot keeps its N; a new one gets the lowest N with room. `taken`: N of Decisions of another uid.

    Robots that the stored Decisions name are kept until they are dropped.
    """

    def __init__(self, stored: Iterable[Decision], *, taken: Collection[int]) -> None:
        self.wanted: dict[int, dict[str, Decided]] = defaultdict(dict)
        """By N: what shall be stored."""
        self._taken = frozenset(taken)
        self._stored: dict[int, Mapping[str, Decided]] = {}
        self._numbers: dict[str, int] = {}
        self._differing: dict[int, set[str]] = defaultdict(set)
        """By N: the robots of which something else, or nothing, is stored."""
        for each in sorted(stored, key=lambda decision: decision.number):
            if each.number >= 0 and each.number not in self._taken:
                for robot, decided in each.robots.items():
                    if robot not in self._numbers:
                        self._numbers[robot] = each.number
                        self.wanted[each.number][robot] = decided
                self.store(each.number, each.robots)

    @property
    def robots(self) -> Collection[str]:
        """All robots in the book."""
        return self._numbers.keys()

    def put(self, robot: str, decided: Decided) -> None:
        """Have a Decision say this of a robot."""
        number = self._numbers.get(robot)
        if number is None:
            number = self._numbers[robot] = self._free()
        self.wanted[number][robot] = decided
        self._compare(number, robot)

    def drop(self, robot: str) -> None:
        """Have no Decision name a robot."""
        number = self._numbers.pop(robot)
        del self.wanted[number][robot]
        self._compare(number, robot)

    def take(self, taken: Collection[int]) -> None:
        """Other numbers are those of another placement's uid now: robots in such a Decision move."""
        self._taken = frozenset(taken)
        for number in self._taken & self.wanted.keys():
            moved = self.wanted.pop(number)
            self._stored.pop(number, None)
            self._differing.pop(number, None)
            for robot, decided in moved.items():
                del self._numbers[robot]
                self.put(robot, decided)

    def store(self, number: int, robots: Mapping[str, Decided] | None) -> set[str]:
        """A Decision is stored with these robots, or (None) it is gone. The robots of which it says something else."""
        old, new = self._stored.pop(number, {}), robots or {}
        if robots is not None:
            self._stored[number] = robots
        changed = {robot for robot in old.keys() | new.keys() if old.get(robot) != new.get(robot)}
        for robot in changed:
            self._compare(number, robot)
        return changed

    def stored(self, robot: str) -> Decided | None:
        """What is stored of a robot; None: nothing."""
        return self._stored.get(self._numbers.get(robot, -1), {}).get(robot)

    def unstored(self) -> set[int]:
        """The N of the Decisions that are to be written, or, where nothing is wanted in one, deleted."""
        return self._differing.keys() | {number for number in self._stored if not self.wanted.get(number)}

    def number(self, robot: str) -> int:
        """The N of a robot's Decision."""
        return self._numbers[robot]

    def _free(self) -> int:
        number = 0
        while number in self._taken or len(self.wanted.get(number, ())) >= MOST_ROBOTS:
            number += 1
        return number

    def _compare(self, number: int, robot: str) -> None:
        stored = self._stored.get(number, {}).get(robot)
        if self.wanted.get(number, {}).get(robot) != stored:
            self._differing[number].add(robot)
            return
        self._differing[number].discard(robot)
        if not self._differing[number]:
            del self._differing[number]
