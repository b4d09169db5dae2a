"""S6.1, S6.3: `kill -9` at every commit, at every request and at any time: nothing is lost, nothing is done twice."""

import asyncio
import random
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from tests import dying
from tests.dying import VARIABLE
from tests.system.asked import deletes
from tests.system.bed import Bed, History, eventually
from tests.system.conftest import MakeBed
from tests.system.crowd import copied

SECONDS = 300.0
"""Long, because the agent dies again and again meanwhile."""


async def life(bed: Bed, name: str) -> None:
    """An object is made, changed, reported on and deleted, each when the other side shows what was before."""
    await bed.cloud.create(name, spec={"step": 1})
    await bed.robot.shows(name, spec={"step": 1}, seconds=SECONDS)
    await bed.cloud.patch(name, {"spec": {"step": 2}})
    await bed.robot.shows(name, spec={"step": 2}, seconds=SECONDS)
    await bed.robot.set_status(name, {"phase": "DONE"})
    await bed.cloud.shows(name, status={"phase": "DONE"}, seconds=SECONDS)
    await bed.cloud.delete(name)
    await bed.robot.gone(name, seconds=SECONDS)


async def lived_once(bed: Bed, histories: list[History], names: list[str]) -> None:
    """Nothing that was asked for again has changed anything: each life happened once, on either side.

    Its two changes are the spec's and the status's: one by the agent, one by those it works for.
    """
    life_of = {"ADDED": 1, "MODIFIED": 2, "DELETED": 1}
    once = Counter({(name, event): number for name in names for event, number in life_of.items()})

    async def told() -> bool:
        return all(counted(history) >= once for history in histories)

    await eventually(told, seconds=SECONDS, what="all of it is told")
    await bed.settled()
    assert [counted(history) for history in histories] == [once, once]


def counted(history: History) -> Counter[tuple[str, str]]:
    """How often what happened to which object."""
    return Counter((obj["metadata"]["name"], event) for event, obj in history.events)


async def sound(state_dir: Path, scratch: Path) -> None:
    """The database of a killed agent is whole, as SQLite finds when it looks at a copy."""
    scratch.mkdir(exist_ok=True)
    for file in state_dir.glob("state.db*"):
        (scratch / file.name).write_bytes(file.read_bytes())
    with closing(sqlite3.connect(scratch / "state.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def die(bed: Bed, faults: Iterable[str]) -> None:
    """Start the agent with one fault after the other, each as soon as the one before has killed it."""
    for fault in faults:
        await bed.agent.start(ready=False, environment={VARIABLE: fault})

        async def dead() -> bool:
            return not bed.agent.running

        await eventually(dead, seconds=SECONDS, what=f"dead by {fault}")
        await sound(bed.agent.state_dir, bed.directory / "scratch")


@pytest.mark.fault_01
@pytest.mark.parametrize(
    "commits", [pytest.param(range(1, 4), id="few"), pytest.param(range(1, 25), id="many", marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("point", [pytest.param("commit", marks=pytest.mark.nightly("a variation")), "committed"])
async def test_S6_1_killed_at_every_commit_what_is_replayed_changes_nothing(
    make_bed: MakeBed, point: str, commits: range
) -> None:
    bed = await make_bed(start=False, wrapper=(sys.executable, dying.__file__))
    histories = [await side.record() for side in (bed.cloud, bed.robot)]
    death = asyncio.create_task(die(bed, [f"{point}:{number}" for number in commits]))
    lives: list[str] = []
    while not death.done():
        lives.append(f"g{len(lives)}")
        living = asyncio.create_task(life(bed, lives[-1]))
        await asyncio.wait([living, death], return_when=asyncio.FIRST_COMPLETED)
        if death.done():
            await death
            await bed.start()
        await living
    await lived_once(bed, histories, lives)


@pytest.mark.fault_02
@pytest.mark.parametrize("kills", [5, pytest.param(200, marks=pytest.mark.nightly)])
async def test_S6_3_killed_again_and_again_under_load_it_loses_nothing(bed: Bed, kills: int) -> None:
    names = await copied(bed, 10)
    seeded, over = random.Random(kills), asyncio.Event()

    async def load() -> None:
        step = 0
        while not over.is_set():
            step += 1
            name = seeded.choice(names)
            await bed.cloud.patch(name, {"spec": {"step": step}})
            await bed.robot.set_status(seeded.choice(names), {"step": step})
            await asyncio.sleep(0.05)

    loading = asyncio.create_task(load())
    for _ in range(kills):
        await asyncio.wait([loading], timeout=seeded.uniform(0.1, 3.0))
        assert not loading.done(), loading.exception()
        await bed.agent.kill()
        await sound(bed.agent.state_dir, bed.directory / "scratch")
        await bed.agent.start(ready=False)
    over.set()
    await loading  # a request that is given up may still be carried out, after everything has settled
    await bed.until_kind("syncing", seconds=SECONDS)
    await bed.settled(seconds=SECONDS)

    async def agree() -> bool:
        shown = []
        for side in (bed.cloud, bed.robot):
            items = (await side.api.list(side.resource))["items"]
            shown.append({item["metadata"]["name"]: (item["spec"], item.get("status")) for item in items})
        return shown[0] == shown[1] and shown[0].keys() == set(names)

    await eventually(agree, seconds=SECONDS, what="both sides show the same")
    assert deletes(bed.robot.link) == deletes(bed.cloud.link) == []
