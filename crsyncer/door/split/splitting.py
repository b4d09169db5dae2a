"""Takes the steps by which a shard is split, each only where it may be taken, and looks at everything before each."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from crsyncer.core.accounts.robot_account import robot_namespace
from crsyncer.core.content.annotations import SHARD_LABEL
from crsyncer.core.model import Json
from crsyncer.core.reports.text import count
from crsyncer.core.requests.calls import Call, Collection
from crsyncer.door.assignment import Assignment, assign
from crsyncer.door.domain.robots_map import shard_label
from crsyncer.door.domain.split_objects import Place, StoredObject, why_it_stays
from crsyncer.door.domain.split_plan import (
    LABELS,
    STEPS,
    THEIRS,
    AskedDoor,
    SplitFacts,
    State,
    Step,
    blocker,
    going,
    is_awaited,
    judge_split,
    other_robots,
    split_document,
)
from crsyncer.door.robots import PAGE
from crsyncer.door.split.shard_objects import ShardObjects, choose_versions
from crsyncer.errors import Conflict, SyncError
from crsyncer.ports import Send
from crsyncer.runtime.list_objects import objects

_POLL_SECONDS = 0.5
_AT_ONCE = 16
"""Objects that are removed at the same time."""
_ROUNDS = 3
"""How often what has changed meanwhile is looked at again."""


@dataclass(slots=True)
class Splitting:
    """One split.

    `ask` asks the doors about shards, `patience` is for how many seconds robots get to leave a shard and to come to the
    other.
    """

    root: Send
    robots: Collection
    shard: ShardObjects
    new: ShardObjects
    names: tuple[str, ...]
    ask: Callable[[Sequence[str]], Awaitable[tuple[AskedDoor, ...]]]
    patience: float = 60.0
    acts: list[str] = field(default_factory=list)
    """What was done, a line each."""

    async def run(self, number: int | None, *, yes: bool) -> tuple[Json, Step | None]:
        """Take this step, or (None) all that are open; without `yes` only look.

        The document, and the step that failed or is not done: None where everything is as it was asked for. Raises
        SyncError for an unknown robot, and where a shard or the root does not answer.
        """
        facts = await self.look()
        if yes:
            for each in STEPS if number is None else (number,):
                facts = await self._take(each, facts)
                if not judge_split(facts)[each - 1].holds:
                    break
        steps = judge_split(facts)
        wanted = steps if number is None else steps[number - 1 : number]
        failed = next(
            (each for each in wanted if each.state is State.FAILED or (yes and each.state is not State.DONE)), None
        )
        if number is not None and (before := blocker(steps, number)) is not None:
            failed = before
        return split_document(facts, wanted, self.acts), failed

    async def look(self) -> SplitFacts:
        """Everything as it is now."""
        robots = objects(self.root, self.robots, page=PAGE)
        labels = {raw["metadata"]["name"]: shard_label(raw) async for raw in robots}
        if unknown := [name for name in self.names if name not in labels]:
            raise SyncError(
                f"there is no robot {unknown[0]}", hint=f"robots are the {self.robots.resource} of the root"
            )
        others = other_robots(labels, self.shard.name, self.names)
        theirs = frozenset(map(robot_namespace, self.names))
        one, other, *_ = await asyncio.gather(
            self.shard.read_identity(), self.new.read_identity(), self.shard.read_kinds(), self.new.read_kinds()
        )
        choose_versions(self.shard, self.new)
        # NEW is read last: what it has not is not there when the shard's is looked at, and later.
        at_shard = await self.shard.read_objects(theirs)
        at_new = await self.new.read_objects(theirs | frozenset(map(robot_namespace, others)))
        doors = await self.ask((self.shard.name, self.new.name))
        return SplitFacts(self.shard.name, self.new.name, self.names, labels, (one, other), at_shard, at_new, doors)

    async def _take(self, number: int, facts: SplitFacts) -> SplitFacts:
        """Take a step as far as it can be; everything as it is then."""
        if blocker(judge_split(facts), number) is not None:
            return facts
        loop = asyncio.get_running_loop()
        until = loop.time() + self.patience
        while is_awaited(facts, number) and loop.time() < until:
            await asyncio.sleep(_POLL_SECONDS)
            facts = replace(facts, doors=await self.ask((facts.shard, facts.new)))
        for _ in range(_ROUNDS):
            if judge_split(facts)[number - 1].state is not State.OPEN:
                break
            if number == LABELS:
                await self._label(facts)
            else:
                await self._remove(facts, number)
            facts = await self.look()
        return facts

    async def _label(self, facts: SplitFacts) -> None:
        """Have the Robots say that they are at the new shard."""
        for name in facts.names:
            robot = await self._robot(name)
            if shard_label(robot) == facts.shard:
                await assign(self.root, self.robots, Assignment(name, facts.new, robot["metadata"]["resourceVersion"]))
                self.acts.append(f"robot {name}: {SHARD_LABEL}={facts.new}")

    async def _remove(self, facts: SplitFacts, number: int) -> None:
        """Remove what step 4 or 5 removes, robot by robot, while the robot is where its label says."""
        at, stays_at = (self.shard, facts.new) if number == THEIRS else (self.new, facts.shard)
        for name, group in groupby(going(facts, number), key=lambda each: each[0]):
            if shard_label(await self._robot(name)) != stays_at:
                continue
            found = [(place, stored) for _, place, stored in group]
            removed = 0
            for start in range(0, len(found), _AT_ONCE):
                some = found[start : start + _AT_ONCE]
                removed += sum(await asyncio.gather(*(self._remove_one(at, place, stored) for place, stored in some)))
            if removed:
                self.acts.append(f"robot {name}: {count(removed, 'object')} removed at {at.name}")

    async def _remove_one(self, at: ShardObjects, place: Place, stored: StoredObject) -> bool:
        """Remove an object in the version that was seen; whether it was. What has changed is looked at again."""
        if at is self.shard:
            now = await self.new.read_again(place)
            if why_it_stays(self.shard.name, self.new.name, stored, now) is not None:
                return False
        try:
            await at.remove(place, stored)
        except Conflict:
            return False
        return True

    async def _robot(self, name: str) -> Json:
        reply = await self.root(Call("get", "GET", f"{self.robots.path}/{name}"))
        if (error := reply.error()) is not None:
            raise SyncError(f"robot {name}: {error}", hint=error.hint)
        return reply.body
