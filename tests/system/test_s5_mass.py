"""S5.5b: what an operator deletes is gone, however much it is; what nobody can confirm waits for a human."""

import asyncio
import time
from typing import Any

import pytest

from crsyncer.core import calls
from tests.link.faults import Request
from tests.system.asked import full_list, hit, lists
from tests.system.bed import Bed, eventually
from tests.system.commands import ask, one_hold, run, until_held
from tests.system.crowd import copied, holds_exactly
from tests.system.kinds import another, until_row
from tests.system.vanished import out_of_sight

FLEET = [40, pytest.param(215, marks=pytest.mark.nightly)]


def questions(bed: Bed) -> list[Request]:
    """How often the cloud was asked whether the kind is alive."""
    return [r for r in bed.cloud.link.requests if r.path in (f"/apis/{bed.group}/v1", f"{calls.CRDS}/{bed.resource}")]


async def delete_all(bed: Bed, names: list[str], how: str) -> None:
    """As `kubectl delete` in a loop, or with --all."""
    if how == "loop":
        for name in names:
            await bed.cloud.delete(name)
    else:
        status, _ = await bed.cloud.api.request("DELETE", bed.cloud.resource.path(namespace="default"))
        assert status == 200


async def delete_as_one(bed: Bed, names: list[str]) -> None:
    """Delete all, and let nothing go before all of it is known: else the first few pass as what they are, a few."""
    silent = bed.cloud.link.inject(f"^{calls.CRDS}/", status=500)
    await delete_all(bed, names, "collection")
    await bed.agent.until(lambda status: status["kinds"][0]["objects"]["cloud"] == 0)
    silent.remove()


async def all_gone_unheld(bed: Bed, *, seconds: float = 60.0) -> None:
    await holds_exactly(bed.robot, [], seconds=seconds)
    status = await bed.agent.until(lambda status: status["health"] == "healthy", seconds=seconds)
    assert (status["holds"], status["kinds"][0]["held"]) == ([], 0)


@pytest.mark.parametrize("how", [pytest.param("loop", marks=pytest.mark.nightly("a variation")), "collection"])
@pytest.mark.parametrize("count", FLEET)
async def test_S5_5b_what_an_operator_deletes_is_gone_with_a_verification_a_batch(bed: Bed, count: int, how: str):
    names = await copied(bed, count)
    bed.cloud.link.clear()
    await delete_all(bed, names, how)
    await all_gone_unheld(bed)
    assert lists(bed.cloud.link), "a fresh list has shown them gone"
    assert questions(bed), "the kind is alive"


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("how", ["down", "cut"])
@pytest.mark.parametrize("count", FLEET)
async def test_S5_5b_what_an_operator_deletes_out_of_sight_is_gone_when_it_is_seen(bed: Bed, count: int, how: str):
    names = await copied(bed, count)
    bed.cloud.link.clear()
    async with out_of_sight(bed, how):
        await delete_all(bed, names, "collection")
        began = time.monotonic()
    await all_gone_unheld(bed)
    assert len(lists(bed.cloud.link)) <= (time.monotonic() - began) / 2 + 3  # a batch is what comes within 2 s


@pytest.mark.nightly("to be shown by the model")
async def test_S5_5b_a_mass_deletion_whose_confirmation_the_link_cuts_off_is_confirmed_when_it_is_back(bed: Bed):
    names = await copied(bed, 20)
    bed.cloud.link.clear()
    silent = bed.cloud.link.stall("/goals", when=full_list)
    await delete_as_one(bed, names)
    await hit(silent)
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    assert await bed.robot.names() == set(names)
    silent.remove()
    bed.cloud.link.restore()
    await all_gone_unheld(bed)


async def unverifiable(bed: Bed, count: int) -> tuple[list[str], dict[str, Any]]:
    """Delete many while the cloud answers no list; all of them, and the hold."""
    names = await copied(bed, count)
    bed.cloud.link.inject("/goals", status=500, when=full_list)
    await delete_as_one(bed, names)
    await until_held(bed, count)
    return names, await one_hold(bed)


@pytest.mark.nightly("to be shown by the model")
async def test_S5_5b_a_mass_deletion_that_nobody_confirms_is_held_whole_and_everybody_says_the_same(bed: Bed):
    names, hold = await unverifiable(bed, 20)
    assert (hold["reason"], hold["objects"]) == ("MassDeletion", 20)
    release = f"crsyncer holds release {hold['id']}"
    assert release in hold["hint"]
    status = await bed.agent.status()
    assert [(h["id"], h["objects"]) for h in status["holds"]] == [(hold["id"], 20)]
    assert any(release in reason["hint"] for reason in status["reasons"])
    assert (status["health"], status["kinds"][0]["state"]) == ("attention", "held")
    explained = await ask(bed, "explain", bed.resource, names[7])
    assert [(h["id"], release in h["hint"]) for h in explained["holds"]] == [(hold["id"], True)]
    assert explained["state"] == "held"
    assert release in await run(bed, "status", code=12)
    for kill in (False, True):
        async with bed.stopped(kill=kill):
            stored = await one_hold(bed)
            assert (stored["id"], stored["objects"]) == (hold["id"], 20)
        await until_held(bed, 20)
        again = await one_hold(bed)
        assert (again["id"], again["since"]) == (hold["id"], hold["since"])
    assert await bed.robot.names() == set(names)


@pytest.mark.nightly("to be shown by the model")
async def test_S5_5b_what_is_held_is_said_from_the_first_moment_on_and_not_forgotten_before_it(bed: Bed):
    _, hold = await unverifiable(bed, 12)
    async with bed.stopped():
        for side in (bed.cloud, bed.robot):
            side.link.cut()
        await bed.agent.start()
        await bed.until_side("robot", "offline")
        await bed.agent.kill()
        assert (await one_hold(bed))["id"] == hold["id"]
        for side in (bed.cloud, bed.robot):
            side.link.restore()
    status = await bed.agent.until(lambda status: status["health"] not in ("degraded", "offline"))
    assert (status["health"], [(h["id"], h["objects"]) for h in status["holds"]]) == ("attention", [(hold["id"], 12)])


@pytest.mark.nightly("to be shown by the model")
async def test_S5_5b_objects_that_come_back_leave_the_hold_and_the_rest_can_be_let_go(bed: Bed):
    names, hold = await unverifiable(bed, 12)
    bed.cloud.link.heal()
    await asyncio.gather(*(bed.cloud.create(name, spec={"x": 2}) for name in names[:4]))
    status = await until_held(bed, 8)
    assert [(h["id"], h["objects"]) for h in status["holds"]] == [(hold["id"], 8)]
    for name in names[:4]:
        await bed.robot.shows(name, spec={"x": 2})
    assert f"8 objects of {bed.resource}" in await run(bed, "holds", "release", hold["id"], "--yes")
    await holds_exactly(bed.robot, names[:4])
    assert "there is no hold" in await run(bed, "holds", "release", hold["id"], code=1)
    assert "there is no hold h999" in await run(bed, "holds", "release", "h999", code=1)
    await bed.agent.until(lambda status: status["health"] == "healthy" and not status["holds"])


@pytest.mark.nightly("to be shown by the model")
async def test_S5_5b_what_is_released_while_the_cloud_is_away_is_done_at_once(bed: Bed):
    _, hold = await unverifiable(bed, 12)
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    await run(bed, "holds", "release", hold["id"], "--yes")
    await holds_exactly(bed.robot, [])
    async with bed.stopped():
        pass
    status = await bed.agent.until(lambda status: status["sides"]["cloud"]["state"] == "offline")
    assert status["holds"] == []
    bed.cloud.link.heal()
    await bed.agent.until(lambda status: status["health"] == "healthy")
    assert await bed.robot.names() == set()


@pytest.mark.nightly("to be shown by the model")
async def test_S5_5_while_one_kind_is_held_another_goes_on_at_once(bed: Bed):
    cloud_tasks, robot_tasks = await another(bed)
    await until_row(bed, "tasks", state="syncing")
    for name in ("t1", "t2"):
        await cloud_tasks.create(name, spec={"x": 1})
        await robot_tasks.shows(name, spec={"x": 1})
    names = await copied(bed, 12)
    bed.cloud.link.inject("/goals", status=500, when=full_list)
    await delete_all(bed, names[:11], "loop")
    await until_row(bed, state="held")
    await cloud_tasks.delete("t1")
    await robot_tasks.gone("t1")
    await cloud_tasks.patch("t2", {"spec": {"x": 2}})
    await robot_tasks.shows("t2", spec={"x": 2})
    # In the held kind itself, everything but deletions goes on.
    await bed.cloud.patch(names[11], {"spec": {"x": 2}})
    await bed.robot.shows(names[11], spec={"x": 2})
    await bed.robot.set_status(names[11], {"phase": "DONE"})
    await bed.cloud.shows(names[11], status={"phase": "DONE"})
    assert (await until_row(bed, "tasks", state="syncing"))["held"] == 0


@pytest.mark.nightly("to be shown by the model")
async def test_S5_5b_a_mass_of_terminating_objects_is_verified_and_deleted(bed: Bed):
    names = await copied(bed, 12)
    for name in names:
        await bed.cloud.patch(name, {"metadata": {"finalizers": ["lab.example.com/wait"]}})
    await bed.settled()
    await delete_all(bed, names, "collection")
    await holds_exactly(bed.robot, [])
    for name in names:
        await bed.cloud.patch(name, {"metadata": {"finalizers": None}})

    async def none() -> bool:
        return await bed.cloud.names() == set()

    await eventually(none, what="all is gone upstream, too")
    assert (await bed.agent.status())["holds"] == []
