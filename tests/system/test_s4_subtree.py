"""S4.5 and S4.6: only `status[K]` moves where a subtree is annotated; status without its subresource on a side."""

import json
from typing import Any

import pytest

from tests.system.bed import SideBed, eventually, writes
from tests.system.conftest import MakeBed
from tests.system.roles import answered, decoded, roles, status_writes, touched

BOTH = pytest.mark.parametrize("source", ["cloud", pytest.param("robot", marks=pytest.mark.nightly("a variation"))])
SHAPES = pytest.mark.parametrize(
    "subresource", [True, pytest.param(False, marks=pytest.mark.nightly("a variation"))], ids=["subresource", "main"]
)
FORBIDDEN = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}
CLOUD: dict[str, Any] = {"cloud": {"plan": 1}, "configuration": {"trolley": True}}


async def add_to_status(side: SideBed, key: str, value: Any) -> None:
    """Set (None: remove) one key of the status as a controller that minds its own business does."""
    obj = side.goal("a")
    await side.api.patch(obj, {"status": {key: value}}, subresource="status" if side.subresource else "")


@BOTH
@SHAPES
async def test_S4_5_only_the_subtree_moves_and_its_neighbours_stay(
    make_bed: MakeBed, source: str, subresource: bool
) -> None:
    bed = await make_bed(source=source, subtree="robot", status=subresource)
    up, down = roles(bed, source)
    await up.create("a", spec={"x": 1})
    await down.shows("a", spec={"x": 1})
    # Upstream has no status at all: the parent is made.
    await down.set_status("a", {"robot": {"n": 1}, "local": "stays"})
    await up.shows("a", status={"robot": {"n": 1}})
    for key, value in CLOUD.items():
        await add_to_status(up, key, value)
    await add_to_status(down, "robot", {"n": 2})
    await up.shows("a", status={**CLOUD, "robot": {"n": 2}}, spec={"x": 1})
    await touched(bed, up)
    assert (await down.get("a"))["status"] == {"robot": {"n": 2}, "local": "stays"}
    # The subtree is gone, the status is not: removed upstream, alone.
    await add_to_status(down, "robot", None)
    await up.shows("a", status=CLOUD)
    await add_to_status(down, "robot", {"n": 3})
    await up.shows("a", status={**CLOUD, "robot": {"n": 3}})
    # The whole status is gone: upstream's stays as it was.
    await down.set_status("a", None)
    await touched(bed, down)
    assert (await up.get("a"))["status"] == {**CLOUD, "robot": {"n": 3}}


@pytest.mark.nightly("to be shown by the model")
async def test_S4_5_a_change_beside_the_subtree_is_not_sent(make_bed: MakeBed) -> None:
    bed = await make_bed(subtree="robot")
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a")
    await bed.robot.set_status("a", {"local": 1})
    await touched(bed, bed.robot)
    assert "status" not in await bed.cloud.get("a")
    await bed.robot.set_status("a", {"robot": {"n": 1}, "local": 1})
    await bed.cloud.shows("a", status={"robot": {"n": 1}})
    bed.cloud.link.clear()
    await bed.robot.set_status("a", {"robot": {"n": 1}, "local": 2})
    await touched(bed, bed.robot)
    assert status_writes(bed.cloud, "a") == []


@pytest.mark.nightly("to be shown by the model")
async def test_S4_5_the_patch_names_the_key_even_where_it_has_to_be_escaped(make_bed: MakeBed) -> None:
    bed = await make_bed(subtree="a/b~c", start=False)
    await bed.cloud.create("a", spec={"x": 1})
    await bed.cloud.set_status("a", {"other": 1})
    await bed.start()
    await bed.robot.shows("a", spec={"x": 1})
    await add_to_status(bed.robot, "a/b~c", {"n": 1})
    await bed.cloud.shows("a", status={"other": 1, "a/b~c": {"n": 1}})
    (request,) = await answered(bed.cloud, "a")
    assert [op["op"] for op in decoded(request)] == ["test", "add"]


@SHAPES
async def test_S4_5_a_put_in_place_of_the_patch_keeps_the_neighbours_too(make_bed: MakeBed, subresource: bool) -> None:
    bed = await make_bed(subtree="robot", status=subresource, start=False)
    bed.cloud.link.inject("/goals/", method="PATCH", status=403, body=FORBIDDEN)
    await bed.cloud.create("a", spec={"x": 1})
    await bed.cloud.set_status("a", CLOUD)
    await bed.start()
    await bed.robot.shows("a", spec={"x": 1})
    await add_to_status(bed.robot, "robot", {"n": 1})
    await bed.cloud.shows("a", status={**CLOUD, "robot": {"n": 1}}, spec={"x": 1})
    await add_to_status(bed.cloud, "cloud", {"plan": 2})
    await add_to_status(bed.robot, "robot", None)
    await bed.cloud.shows("a", status={**CLOUD, "cloud": {"plan": 2}}, spec={"x": 1})


@pytest.mark.nightly("to be shown by the model")
async def test_S4_5_neighbours_that_appear_while_the_status_is_made_survive(make_bed: MakeBed) -> None:
    bed = await make_bed(subtree="robot")
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    stall = bed.cloud.link.stall("/goals/a", method="PATCH")
    await bed.robot.set_status("a", {"robot": {"n": 1}})

    async def asked() -> bool:
        return stall.count > 0

    await eventually(asked, what="the status is on its way")
    await bed.cloud.set_status("a", CLOUD)
    stall.remove()
    await bed.cloud.shows("a", status={**CLOUD, "robot": {"n": 1}})


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("value", [[1, 2], "text", 7, False, {"deep": {"er": None}}], ids=str)
async def test_S4_5_the_subtree_may_be_any_value(make_bed: MakeBed, value: Any) -> None:
    bed = await make_bed(subtree="robot", start=False)
    await bed.cloud.create("a", spec={"x": 1})
    await bed.start()
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"robot": value})
    made = (await bed.robot.get("a"))["status"]
    await bed.cloud.shows("a", status=made)


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize(
    "subtree", [None, pytest.param("robot", marks=pytest.mark.nightly("a variation"))], ids=["whole", "subtree"]
)
async def test_S4_5_a_downstream_status_that_is_no_object_is_reported_and_not_sent(
    make_bed: MakeBed, subtree: str | None
) -> None:
    bed = await make_bed(subtree=subtree, status=False)
    for name in ("a", "b"):
        await bed.cloud.create(name, spec={"x": 1})
        await bed.robot.shows(name, spec={"x": 1})
        await bed.robot.set_status(name, {"robot": {"n": 1}})
        await bed.cloud.shows(name, status={"robot": {"n": 1}})
    await bed.robot.set_status("a", "just text")
    status = await bed.agent.until(lambda status: status["health"] == "attention")
    assert "StatusNotAnObject" in {reason["code"] for reason in status["reasons"]}
    await bed.robot.set_status("b", {"robot": {"n": 2}})
    await bed.cloud.shows("b", status={"robot": {"n": 2}})
    await touched(bed, bed.robot)
    assert (await bed.agent.ask() or {})["health"] == "attention"
    assert (await bed.cloud.get("a"))["status"] == {"robot": {"n": 1}}
    # Content is synced all the same, without guessing at that status, and it ends when the status is mended.
    await bed.cloud.patch("a", {"spec": {"x": 2}})
    await bed.robot.shows("a", spec={"x": 2}, status="just text")
    await bed.robot.set_status("a", {"robot": {"n": 3}})
    await bed.cloud.shows("a", status={"robot": {"n": 3}})
    await bed.agent.until(lambda status: status["health"] == "healthy")


@pytest.mark.nightly("to be shown by the model")
async def test_S4_5_an_upstream_status_that_is_no_object_has_no_place_for_a_subtree(make_bed: MakeBed) -> None:
    bed = await make_bed(subtree="robot", status=False)
    await bed.cloud.create("a", spec={"x": 1}, status="just text")
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"robot": {"n": 1}})
    await bed.agent.until(lambda status: status["health"] == "attention")
    assert (await bed.cloud.get("a"))["status"] == "just text"
    await bed.cloud.set_status("a", CLOUD)
    await bed.cloud.shows("a", status={**CLOUD, "robot": {"n": 1}})
    await bed.agent.until(lambda status: status["health"] == "healthy")


# S4.6


@BOTH
@pytest.mark.parametrize(
    ("cloud_has", "robot_has"), [(False, False), (True, False), (False, True)], ids=["neither", "cloud", "robot"]
)
@pytest.mark.parametrize(
    "subtree", [None, pytest.param("robot", marks=pytest.mark.nightly("a variation"))], ids=["whole", "subtree"]
)
async def test_S4_6_status_works_without_the_subresource_on_either_side(
    make_bed: MakeBed, source: str, cloud_has: bool, robot_has: bool, subtree: str | None
) -> None:
    bed = await make_bed(source=source, status=robot_has, cloud_crd={"status": cloud_has}, subtree=subtree, start=False)
    up, down = roles(bed, source)
    before = {"robot": {"n": 0}}
    await up.create("a", spec={"x": 1})
    await up.set_status("a", before)
    await bed.start()
    await down.shows("a", spec={"x": 1}, status=before)
    await down.set_status("a", {"robot": {"n": 1}})
    await up.shows("a", spec={"x": 1}, status={"robot": {"n": 1}})
    await up.patch("a", {"spec": {"x": 2}})
    await down.shows("a", spec={"x": 2}, status={"robot": {"n": 1}})
    await down.patch("a", {"spec": {"x": 9}})
    await down.shows("a", spec={"x": 2}, status={"robot": {"n": 1}})
    await bed.settled()
    uid = (await up.get("a"))["metadata"]["uid"]
    for request in status_writes(up, "a"):
        assert request.path.endswith("/status") == up.subresource
        assert decoded(request)[0] == {"op": "test", "path": "/metadata/uid", "value": uid}
    posts = [r for r in down.link.requests if r.method == "POST" and b'"x":1' in r.body.replace(b" ", b"")]
    assert ("status" in json.loads(posts[0].body)) is not down.subresource
    up.link.clear()
    down.link.clear()
    await touched(bed, up)
    assert [w for side in (up, down) for w in writes(side.link) if "/a" in w.removeprefix("PUT ")[-9:]] == []


@pytest.mark.nightly("to be shown by the model")
async def test_S4_6_without_the_subresource_the_status_is_no_content(make_bed: MakeBed) -> None:
    """A status in the main resource changes the generation, but is neither drift downstream nor a change upstream."""
    bed = await make_bed(status=False)
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    bed.robot.link.clear()
    for number in range(5):
        await bed.robot.set_status("a", {"n": number})
        await bed.cloud.shows("a", status={"n": number})
    await bed.cloud.set_status("a", {"by": "somebody"})
    await touched(bed, bed.cloud)
    assert [w for w in writes(bed.robot.link) if w.endswith("/a")] == []
