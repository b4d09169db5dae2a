"""What operators can ask and order: holds, pending, resync, explain, on real planes."""

import asyncio
from typing import Any

from tests.system.asked import full_list, lists
from tests.system.bed import Bed, SideBed, eventually
from tests.system.commands import ask, one_hold, run, until_held
from tests.system.conftest import MakeBed
from tests.system.kinds import until_row
from tests.system.state_dir import hold_is_written

TEXT_ONLY = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    },
}
LOOSE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


async def all_held(bed: Bed) -> set[str]:
    """The copies, once each of them is held."""
    names = await bed.robot.names()
    return names if (await bed.kind())["held"] == len(names) else set()


async def copied(bed: Bed, *names: str) -> None:
    """Create these objects in the cloud, and wait until they are on both sides and nothing is left to do."""
    await asyncio.gather(*(bed.cloud.create(name, spec={"x": 1}) for name in names))
    await until_names(bed.robot, set(names))
    await bed.settled()


async def until_names(side: SideBed, names: set[str]) -> None:
    async def check() -> bool:
        return await side.names() == names

    await eventually(check, what=f"{side.plane.name} has exactly {names}")


# Holds


async def test_S5_5b_a_held_mass_deletion_is_carried_out_once_it_is_released_also_after_restarts(bed: Bed):
    assert await run(bed, "holds", "list") == "nothing is held\n"
    names = [f"g{number:02}" for number in range(12)]
    await copied(bed, *names)
    bed.cloud.link.inject("/goals", status=500, when=full_list)
    await asyncio.gather(*(bed.cloud.delete(name) for name in names))
    kept = await eventually(lambda: all_held(bed), what="what was not deleted is held")
    await until_held(bed, len(kept), "MassDeletion")
    hold = await one_hold(bed, "MassDeletion")
    assert f"crsyncer holds release {hold['id']}" in hold["hint"]
    assert set(hold["names"]) <= {f"default/{name}" for name in names}
    await hold_is_written(bed, hold["id"], len(kept))
    async with bed.stopped(kill=True):
        offline = await one_hold(bed, "MassDeletion")
        assert (offline["id"], offline["since"]) == (hold["id"], hold["since"])
    again = await until_held(bed, len(kept), "MassDeletion")
    assert (again["id"], again["since"]) == (hold["id"], hold["since"])
    assert await bed.robot.names() == kept
    # The agent is stopped before it can do what was released.
    bed.robot.link.cut()
    await bed.until_side("robot", "offline")
    shown = await run(bed, "holds", "release", hold["id"])
    assert all(f"default/{name}" in shown for name in kept)
    said = await run(bed, "holds", "release", hold["id"], "--yes")
    assert f"{len(kept)} objects of {bed.resource}" in said
    async with bed.stopped(kill=True):
        bed.robot.link.restore()
        bed.cloud.link.heal()
    await until_names(bed.robot, set())
    await bed.agent.until(lambda status: status["health"] == "healthy" and status["holds"] == [])
    assert "there is no hold" in await run(bed, "holds", "release", hold["id"], code=1)


async def test_S5_5_a_human_holds_back_the_deletions_of_a_kind_and_lets_them_go(bed: Bed):
    await copied(bed, "a", "b", "c")
    said = await run(bed, "holds", "add", bed.resource.partition(".")[0])  # the plural will do
    hold = await one_hold(bed, "Manual")
    assert hold["objects"] == 0
    assert f"crsyncer holds release {hold['id']}" in said
    await until_row(bed, state="syncing", held=0)
    await bed.cloud.delete("a")
    replaced = await bed.robot.get("b")
    await bed.cloud.delete("b")
    await bed.cloud.create("b", spec={"x": 2})
    await bed.cloud.patch("c", {"spec": {"x": 3}})
    await bed.robot.shows("c", spec={"x": 3})
    await until_held(bed, 2, "Manual")
    async with bed.stopped():
        pass
    again = await until_held(bed, 2, "Manual")
    assert (again["id"], again["since"]) == (hold["id"], hold["since"])
    assert (await bed.robot.get("b"))["metadata"]["uid"] == replaced["metadata"]["uid"]
    assert await bed.robot.names() == {"a", "b", "c"}
    assert "released" not in await run(bed, "holds", "release", hold["id"], "-o", "wide")
    shown = await run(bed, "holds", "release", hold["id"])  # without a terminal and --yes it is only shown
    assert f"deletions of {bed.resource} will be carried out again" in shown
    assert (await one_hold(bed, "Manual"))["id"] == hold["id"]
    await run(bed, "holds", "release", hold["id"], "--yes")
    await bed.robot.gone("a")
    await bed.robot.shows("b", spec={"x": 2})
    await bed.agent.until(lambda status: status["health"] == "healthy")
    async with bed.stopped():
        pass
    await bed.until_kind("syncing")
    await bed.cloud.delete("c")
    await bed.robot.gone("c")


async def test_S8_3_another_cluster_is_accepted_by_hand_and_still_deletes_nothing_by_itself(bed: Bed):
    await copied(bed, "a", "b")
    metadata = {"name": "kube-system", "uid": "11111111-2222-3333-4444-555555555555", "resourceVersion": "5"}
    body = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    assert "the cloud is not held" in await run(bed, "holds", "release", "cloud", code=1)
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    await bed.cloud.delete("a")  # the other cluster lacks it, and has another `b`
    await bed.cloud.delete("b")
    await bed.cloud.create("b", spec={"x": 2})
    await bed.cloud.create("c", spec={"x": 1})
    bed.cloud.link.inject("^/api/v1/namespaces/kube-system$", status=200, body=body)
    bed.cloud.link.restore()
    await bed.until_side("cloud", "identity-changed", seconds=90)
    hold = await one_hold(bed, "IdentityChanged")
    assert hold["id"] == "cloud"
    assert "crsyncer holds release cloud" in hold["hint"]
    await run(bed, "holds", "release", "cloud", "--yes")
    await bed.robot.shows("c", spec={"x": 1})
    await until_held(bed, 2, "Restored")
    async with bed.stopped(kill=True):
        pass
    await bed.until_side("cloud", "connected")
    restored = await until_held(bed, 2, "Restored")
    assert await bed.robot.names() == {"a", "b", "c"}
    assert (await bed.robot.get("b"))["spec"] == {"x": 1}
    await run(bed, "holds", "release", restored["id"], "--yes")
    await bed.robot.gone("a")
    await bed.robot.shows("b", spec={"x": 2})


# The outbox


async def test_S6_3_what_waits_for_the_cloud_is_listed_with_and_without_an_agent(bed: Bed):
    assert await run(bed, "pending", "list") == "nothing is pending\n"
    await copied(bed, "a")
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    await bed.robot.set_status("a", {"phase": "A"})
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 1)
    (row,) = (await ask(bed, "pending", "list"))["pending"]
    assert (row["resource"], row["namespace"], row["name"], row["what"]) == (bed.resource, "default", "a", "status")
    assert (row["dead"], row["to"]) == (False, "cloud")
    assert "default/a" in await run(bed, "pending", "list")
    assert "has no dead letter" in await run(bed, "pending", "drop", bed.resource, "a", "--yes", code=1)
    explained = await ask(bed, "explain", bed.resource, "a")
    assert explained["state"] == "waiting"
    assert [entry["what"] for entry in explained["pending"]] == ["status"]
    async with bed.stopped():
        (stored,) = (await ask(bed, "pending", "list"))["pending"]
        assert (stored["name"], stored["what"], stored["since"]) == ("a", "status", row["since"])
        explained = await ask(bed, "explain", bed.resource, "default/a")
        assert (explained["agent"], explained["objects"]["robot"]["state"]) == ("stopped", "seen")
        assert explained["pending"][0]["since"] == row["since"]
        bed.cloud.link.restore()
    await bed.cloud.shows("a", status={"phase": "A"})


async def test_S10_a_dead_letter_is_listed_tried_again_and_given_up(make_bed: MakeBed):
    bed = await make_bed(schema=LOOSE, cloud_crd={"schema": TEXT_ONLY})
    await copied(bed, "a", "b")
    await bed.robot.set_status("a", {"phase": 1})

    async def is_dead() -> bool:
        rows = (await ask(bed, "pending", "list"))["pending"]
        explained = await ask(bed, "explain", bed.resource, "a")
        told = [(row["name"], row["dead"], "phase" in (row["error"] or ""), bool(row["nextTry"])) for row in rows]
        errors = [row["error"] for row in rows] == [entry["error"] for entry in explained["pending"]]
        why = "S10" in [step["rule"] for step in explained["steps"] if step["ok"] is False]
        return told == [("a", True, True, True)] and errors and why and explained["state"] == "refused"

    await eventually(is_dead, what="the status is a dead letter, and explained")
    bed.cloud.link.clear()
    assert "retrying 1 object" in await run(bed, "pending", "retry")

    async def tried() -> bool:
        return any(r.method == "PATCH" and r.done for r in bed.cloud.link.requests)

    await eventually(tried, what="the status is sent again at once")
    await bed.agent.until(lambda status: status["outbox"]["deadLetters"] == 1)
    said = await run(bed, "pending", "drop", f"{bed.resource}/a")
    assert '{"phase": 1}' in said
    assert "--yes" in said
    assert "dropped" in await run(bed, "pending", "drop", bed.resource, "default/a", "--yes")
    async with bed.stopped():
        pass
    await bed.agent.until(lambda status: status["health"] == "healthy" and status["outbox"]["depth"] == 0)
    await run(bed, "resync")
    await bed.agent.until(lambda now: now["outbox"] == {"depth": 0, "oldestSeconds": None, "deadLetters": 0})
    assert "status" not in await bed.cloud.get("a")
    await bed.robot.set_status("a", {"phase": "good"})
    await bed.cloud.shows("a", status={"phase": "good"})
    assert await run(bed, "pending", "retry", bed.resource) == "there are no dead letters\n"


# Resync


async def test_S4_8_a_resync_lists_both_sides_and_makes_the_robots_status_win_again(bed: Bed):
    await copied(bed, "a", "b")
    await bed.robot.set_status("a", {"phase": "A"})
    await bed.cloud.shows("a", status={"phase": "A"})
    await bed.settled()
    await bed.cloud.set_status("a", {"phase": "WRONG"})
    await bed.settled()
    for side in (bed.cloud, bed.robot):
        side.link.clear()
    said = await run(bed, "resync", bed.resource)
    assert f"{bed.resource}: compared 2 objects in the cloud with 2 on the robot" in said
    assert lists(bed.cloud.link)
    assert lists(bed.robot.link)
    await bed.cloud.shows("a", status={"phase": "A"})
    (kind,) = (await ask(bed, "resync"))["kinds"]
    assert (kind["resource"], kind["state"], kind["left"]) == (bed.resource, "done", 0)
    await bed.cloud.patch("b", {"spec": {"x": 2}})
    await bed.robot.shows("b", spec={"x": 2})


# Explain


async def test_explain_says_that_both_sides_agree_and_where_they_do_not(bed: Bed):
    await copied(bed, "a")
    await bed.robot.set_status("a", {"phase": "A"})
    await bed.cloud.shows("a", status={"phase": "A"})
    await bed.settled()

    async def agree() -> bool:
        explained = await ask(bed, "explain", bed.resource, "a")
        if (explained["state"], explained["differences"], explained["pending"]) != ("in-sync", [], []):
            return False
        shown = [explained["objects"][side] for side in ("cloud", "robot")]
        real = [await side.get("a") for side in (bed.cloud, bed.robot)]
        fields = ("uid", "resourceVersion")
        as_they_are = [[each[field] for field in fields] for each in shown] == [
            [each["metadata"][field] for field in fields] for each in real
        ]
        specs = [each["object"]["spec"] for each in shown]
        return as_they_are and specs == [{"x": 1}] * 2 and all(step["ok"] for step in explained["steps"])

    await eventually(agree, what="both sides agree, and are as the servers show them")
    bed.robot.link.cut()
    await bed.until_side("robot", "offline")
    await bed.cloud.patch("a", {"spec": {"x": 2}})

    async def heard() -> Any:
        found = await ask(bed, "explain", bed.resource, "a")
        difference = {"path": "spec.x", "cloud": 2, "robot": 1}
        return (found["differences"], found["state"]) == ([difference], "waiting")

    await eventually(heard, what="the change is known, and waits")
    text = await run(bed, "explain", bed.resource, "default/a")
    assert "spec.x: cloud 2, robot 1" in text
    assert "the robot is offline" in text


async def test_S1_2_explain_says_which_kinds_are_synced_and_which_are_misconfigured(make_bed: MakeBed):
    bed = await make_bed(source="moon", start=False)
    await bed.start(state="misconfigured")
    explained = await ask(bed, "explain", bed.resource, "a")
    assert explained["state"] == "not-synced"
    assert "moon" in explained["summary"]
    explained = await ask(bed, "explain", "maps.lab.example.com", "a")
    assert explained["state"] == "not-synced"
    assert bed.resource in explained["summary"]
    assert "is not synced at the moment: misconfigured" in await run(bed, "holds", "add", bed.resource, code=1)
