"""S3.1 to S3.4 and S3.7: content travels downwards, whole, and nothing else does."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.system.bed import LABEL, OURS, ROBOT, SYNCER, Bed, eventually, writes
from tests.system.conftest import MakeBed
from tests.system.kinds import one_sided
from tests.system.roles import APPLIED, FINALIZER, ROBOT_KEY, UID, roles, touched

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
BOTH = pytest.mark.parametrize("source", ["cloud", pytest.param("robot", marks=pytest.mark.nightly("a variation"))])


@BOTH
async def test_S3_1_content_is_every_top_level_field_but_status(make_bed: MakeBed, source: str) -> None:
    bed = await make_bed(source=source)
    up, down = roles(bed, source)
    fields: dict[str, Any] = {
        "spec": {"x": 1, "gone": {"y": [1, 2]}},
        "data": {"key": "value"},
        "roleRef": {"name": "someone"},
        "unheardOf": [{"deep": None, "kept": False}, 3],
    }
    await up.create("a", **fields)
    made = (await up.get("a"))["unheardOf"]
    await down.shows("a", **{**fields, "unheardOf": made}, status=None)
    await up.patch("a", {"spec": {"gone": None}, "data": None, "late": {"field": "too"}})
    await down.shows("a", spec={"x": 1}, data=None, late={"field": "too"}, roleRef={"name": "someone"})
    await up.patch("a", {"spec": None, "roleRef": None, "unheardOf": None, "late": None})
    await down.shows("a", spec=None, roleRef=None, unheardOf=None, late=None)


@pytest.mark.nightly("to be shown by the model")
@BOTH
async def test_S3_2_an_agreed_pair_costs_no_request_not_even_after_a_restart(make_bed: MakeBed, source: str) -> None:
    bed = await make_bed(source=source)
    up, down = roles(bed, source)
    await up.create("a", spec={"x": 1}, labels={"zone": "b"})
    await down.shows("a", spec={"x": 1})
    await down.set_status("a", {"phase": "DONE"})
    await up.shows("a", status={"phase": "DONE"})
    await bed.settled()
    up.link.clear()
    down.link.clear()
    await down.patch("a", {"metadata": {"labels": {"theirs": "1"}}})
    await up.set_status("a", {"phase": "DONE", "note": "somebody upstream"})
    await bed.settled()
    async with bed.stopped():
        pass
    await bed.until_kind("syncing")
    await bed.settled()
    assert (writes(up.link), writes(down.link)) == ([], [])


async def test_S3_2_an_update_is_guarded_by_uid_and_resource_version(bed: Bed) -> None:
    await bed.cloud.create("a", spec={"x": 1})
    before = await bed.robot.shows("a", spec={"x": 1})
    await bed.settled()
    bed.robot.link.clear()
    await bed.cloud.patch("a", {"spec": {"x": 2}})
    await bed.robot.shows("a", spec={"x": 2})
    puts = [r for r in bed.robot.link.requests if r.method == "PUT"]
    for put in puts:
        assert before["metadata"]["uid"].encode() in put.body
        assert b'"resourceVersion"' in put.body
    assert len(puts) == 1


@pytest.mark.nightly("to be shown by the model")
async def test_S3_2_a_change_that_meets_another_writer_is_decided_anew(bed: Bed) -> None:
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.settled()
    conflict = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409}
    bed.robot.link.inject("/goals/a$", method="PUT", status=409, body=conflict, times=3)
    await bed.cloud.patch("a", {"spec": {"x": 2}})
    await bed.robot.shows("a", spec={"x": 2})
    await bed.agent.until(lambda status: status["health"] == "healthy")


@BOTH
async def test_S3_3_what_belongs_to_one_object_alone_is_not_copied_and_not_lost(make_bed: MakeBed, source: str) -> None:
    bed = await make_bed(source=source)
    up, down = roles(bed, source)

    def owner(uid: str) -> list[dict[str, str]]:
        return [{"apiVersion": "v1", "kind": "ConfigMap", "name": f"owner-{uid}", "uid": uid}]

    upstream = up.goal("a", spec={"x": 1})
    upstream["metadata"] |= {"finalizers": [FINALIZER], "ownerReferences": owner("up")}
    upstream = await up.api.create(upstream)
    copy = await down.shows("a", spec={"x": 1})
    assert not copy["metadata"].keys() & {"finalizers", "ownerReferences", "generateName"}
    assert copy["metadata"]["uid"] != upstream["metadata"]["uid"]
    assert copy["metadata"]["annotations"][UID] == upstream["metadata"]["uid"]
    assert copy["metadata"]["annotations"].get(ROBOT_KEY) == (ROBOT if source == "robot" else None)
    await down.patch("a", {"metadata": {"finalizers": ["lab.example.com/theirs"], "ownerReferences": owner("down")}})
    await up.patch("a", {"spec": {"x": 2}})
    copy = await down.shows("a", spec={"x": 2})
    assert copy["metadata"]["finalizers"] == ["lab.example.com/theirs"]
    assert [each["uid"] for each in copy["metadata"]["ownerReferences"]] == ["down"]
    for side in (up, down):
        await side.patch("a", {"metadata": {"finalizers": None}})


@pytest.mark.nightly("to be shown by the model")
async def test_S3_3_an_object_with_a_generated_name_is_copied_under_that_name(bed: Bed) -> None:
    draft = bed.cloud.goal("x", spec={"x": 1})
    draft["metadata"] = {"generateName": "gen-", "namespace": "default"}
    made = await bed.cloud.api.create(draft)
    copy = await bed.robot.shows(made["metadata"]["name"], spec={"x": 1})
    assert "generateName" not in copy["metadata"]


@pytest.mark.nightly("to be shown by the model")
@BOTH
async def test_S3_3_excluded_annotations_never_travel_and_nothing_of_ours_goes_upstream(
    make_bed: MakeBed, source: str
) -> None:
    bed = await make_bed(source=source)
    up, down = roles(bed, source)
    excluded = {LAST_APPLIED: "{}", SYNCER + "note": "x", OURS + "note": "y", UID: "not-ours", APPLIED: "junk"}
    plain = {"lab.example.com/note": "kept"}
    created = await up.create("a", spec={"x": 1}, annotations=excluded | plain)
    copy = await down.shows("a", spec={"x": 1})
    annotations = copy["metadata"]["annotations"]
    assert annotations.keys() & (excluded.keys() | plain.keys()) == {UID, APPLIED, *plain}
    assert annotations[UID] == created["metadata"]["uid"]
    assert annotations[APPLIED] != "junk"
    await down.set_status("a", {"phase": "DONE"})
    upstream = await up.shows("a", status={"phase": "DONE"})
    assert upstream["metadata"]["annotations"] == excluded | plain
    assert upstream["metadata"]["generation"] == created["metadata"]["generation"]
    await bed.settled()
    down.link.clear()
    await up.patch("a", {"metadata": {"annotations": {LAST_APPLIED: '{"changed": 1}'}}})
    await bed.settled()
    assert writes(down.link) == []


@BOTH
async def test_S3_4_labels_and_annotations_are_three_way(make_bed: MakeBed, source: str) -> None:
    bed = await make_bed(source=source)
    up, down = roles(bed, source)
    for field in ("labels", "annotations"):
        name = field
        await up.create(name, spec={"x": 1}, **{field: {"up/keep": "1", "up/drop": "1", "up/both": "1"}})

        async def shows(expected: dict[str, str | None], field: str = field) -> dict[str, Any]:
            async def check() -> dict[str, Any] | None:
                found = await down.find(field)
                have = (found or {"metadata": {}})["metadata"].get(field) or {}
                return found if found and all(have.get(k) == v for k, v in expected.items()) else None

            result: dict[str, Any] = await eventually(check, what=f"{field} {expected}")
            return result

        await shows({"up/keep": "1", "up/drop": "1"})
        # Downstream actors add keys of their own, and meddle with upstream's.
        await down.patch(name, {"metadata": {field: {"down/added": "1", "up/keep": "meddled", "up/both": None}}})
        await shows({"down/added": "1", "up/keep": "1", "up/both": "1"})
        # Upstream drops, changes and adds, also a key that somebody downstream has added before.
        await up.patch(name, {"metadata": {field: {"up/drop": None, "up/keep": "2", "up/new": "1"}}})
        await shows({"down/added": "1", "up/drop": None, "up/keep": "2", "up/new": "1"})
        await up.patch(name, {"metadata": {field: {"down/added": "taken"}}})
        await shows({"down/added": "taken"})
        await up.patch(name, {"metadata": {field: {"down/added": None}}})
        await shows({"down/added": None, "up/keep": "2"})


@pytest.mark.nightly("to be shown by the model")
async def test_S3_4_which_keys_upstream_owns_is_remembered_on_the_copy_not_in_the_store(bed: Bed) -> None:
    await bed.cloud.create("a", labels={"drop": "1", "keep": "1"})
    await bed.robot.shows("a")
    await bed.robot.patch("a", {"metadata": {"labels": {"theirs": "1"}}})
    await bed.settled()
    async with bed.stopped():
        await bed.cloud.patch("a", {"metadata": {"labels": {"drop": None}}, "spec": {"x": 2}})
        for file in bed.agent.state_dir.glob("*.db*"):
            file.unlink()
        assert not list(bed.agent.state_dir.glob("*.db"))
    copy = await bed.robot.shows("a", spec={"x": 2})
    assert copy["metadata"]["labels"] == {"keep": "1", "theirs": "1"}


VALUES = {
    "big": 9007199254740993,
    "biggest": 9223372036854775807,
    "negative": -9223372036854775808,
    "float": 0.1,
    "small": 5e-324,
    "exponent": 1.5e300,
    "whole": 1.0,
    "zero": 0,
    "false": False,
    "empty": "",
    "nothing": [],
    "none": {},
    "text": 'grüße 机器人 🤖 \u2028 \\ " \x7f \u0000 e\u0301 é',
    "ключ/~0 ~1 a.b": {"$ref": "#/x", "": 1},
    "looks like": {"number": "1", "bool": "true", "date": "2026-01-01T00:00:00Z"},
    "order": {"z": 1, "a": {"b": 2, "B": 3}},
    "mixed": [1, 1.5, "1", True, {"x": []}],
}


@BOTH
async def test_S3_7_numbers_unicode_and_key_order_survive_in_both_directions(make_bed: MakeBed, source: str) -> None:
    bed = await make_bed(source=source)
    up, down = roles(bed, source)
    await up.create("a", spec=VALUES)
    original = await up.get("a")
    copy = await down.shows("a", spec=original["spec"])
    assert copy["spec"]["big"] == 9007199254740993
    assert isinstance(copy["spec"]["big"], int)
    await down.set_status("a", VALUES)
    upstream = await up.shows("a", status=(await down.get("a"))["status"])
    assert upstream["status"]["biggest"] == 9223372036854775807
    await bed.settled()
    up.link.clear()
    down.link.clear()
    await touched(bed, up)
    assert writes(up.link) == []
    assert [w for w in writes(down.link) if w.endswith("/a")] == []


@pytest.mark.nightly("to be shown by the model")
async def test_S3_7_neighbouring_big_numbers_are_told_apart(bed: Bed) -> None:
    await bed.cloud.create("a", spec={"n": 9007199254740992})
    await bed.robot.shows("a", spec={"n": 9007199254740992})
    await bed.cloud.patch("a", {"spec": {"n": 9007199254740993}})
    await bed.robot.shows("a", spec={"n": 9007199254740993})
    await bed.robot.set_status("a", {"n": 9007199254740992})
    await bed.cloud.shows("a", status={"n": 9007199254740992})
    await bed.robot.set_status("a", {"n": 9007199254740993})
    await bed.cloud.shows("a", status={"n": 9007199254740993})


@pytest.mark.nightly("to be shown by the model")
async def test_S3_7_the_same_value_written_differently_is_not_sent_again(bed: Bed) -> None:
    path = bed.cloud.api.path(bed.cloud.goal("a"), name=False)
    head = f'"apiVersion":"{bed.cloud.resource.api_version}","kind":"Goal","metadata":{{"name":"a"}}'
    body = f'{{{head},"spec":{{"z":1.0,"a":1e2,"t":"\\u00e9","o":{{"y":1,"x":2}}}}}}'
    status, _ = await bed.cloud.api.request("POST", path, json=body.encode())
    assert status == 201
    await bed.robot.shows("a", spec={"z": 1, "a": 100, "t": "é", "o": {"x": 2, "y": 1}})
    await bed.settled()
    bed.robot.link.clear()
    again = '{"spec":{"o":{"x":2.0,"y":1},"t":"é","a":100,"z":1}}'
    headers = {"Content-Type": "application/merge-patch+json"}
    status, _ = await bed.cloud.api.request("PATCH", f"{path}/a", json=again.encode(), headers=headers)
    assert status == 200
    await touched(bed, bed.cloud)
    assert [w for w in writes(bed.robot.link) if w.endswith("/a")] == []


@pytest.fixture
def deep_json() -> Iterator[None]:
    """The JSON decoder of this process, too, would give up at 1,000 levels."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    yield
    sys.setrecursionlimit(usual)


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("depth", [300, 9000])
async def test_S3_7_deep_nesting_stops_nobody(bed: Bed, deep_json: None, depth: int) -> None:
    path = bed.cloud.api.path(bed.cloud.goal("deep"), name=False)
    head = f'"apiVersion":"{bed.cloud.resource.api_version}","kind":"Goal","metadata":{{"name":"deep"}}'
    nested = '{"a":' * depth + "1" + "}" * depth
    body = f'{{{head},"spec":{nested}}}'.encode()
    status, _ = await bed.cloud.api.request("POST", path, json=body)
    assert status == 201

    async def copied() -> bool:
        return (await bed.robot.api.request("GET", f"{path}/deep"))[0] == 200

    await eventually(copied, what="the deep object is copied")
    await bed.cloud.create("b", spec={"x": 1})
    await bed.robot.shows("b", spec={"x": 1})
    await bed.cloud.patch("b", {"spec": {"x": 2}})
    await bed.robot.shows("b", spec={"x": 2})
    async with bed.stopped():
        await bed.cloud.patch("b", {"spec": {"x": 3}})
    await bed.robot.shows("b", spec={"x": 3})


@pytest.mark.parametrize("source", ["cloud", pytest.param("robot", marks=pytest.mark.nightly("a variation"))])
@pytest.mark.parametrize(
    "cluster", [pytest.param(False, marks=pytest.mark.nightly("a variation")), True], ids=["namespaced", "cluster"]
)
async def test_S3_content_follows_in_both_scopes_filtered(make_bed: MakeBed, source: str, cluster: bool) -> None:
    bed = await make_bed(source=source, cluster=cluster, filtered="true")
    up, down = roles(bed, source)
    await up.create("a", spec={"x": 1}, labels={LABEL: ROBOT})
    await up.create("b", spec={"x": 1}, labels={LABEL: "robot-2"})
    await up.create("c", spec={"x": 1})
    await down.shows("a", spec={"x": 1})
    await down.set_status("a", {"phase": "DONE"})
    await up.shows("a", status={"phase": "DONE"})
    await up.patch("a", {"spec": {"x": 2}})
    await down.shows("a", spec={"x": 2}, status={"phase": "DONE"})
    await bed.settled()
    assert await down.names() == {"a"}


@pytest.mark.nightly("to be shown by the model")
async def test_S3_objects_of_one_name_in_several_namespaces_do_not_mix(bed: Bed) -> None:
    spaces = [f"{bed.group.partition('.')[0]}-{n}" for n in range(3)]
    for number, space in enumerate(spaces):
        await bed.cloud.api.ensure_namespace(space)  # missing on the robot: made there (S1.7)
        await bed.cloud.create("a", namespace=space, spec={"n": number})
    for number, space in enumerate(spaces):
        await bed.robot.shows("a", namespace=space, spec={"n": number})
        await bed.robot.set_status("a", {"n": number}, namespace=space)
    for number, space in enumerate(spaces):
        await bed.cloud.shows("a", namespace=space, status={"n": number})


async def test_S3_1_a_kind_whose_schema_prunes_downstream_settles(make_bed: MakeBed) -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": {"type": "integer"}}}}}
    bed = await make_bed(**one_sided("robot", schema))
    await bed.cloud.create("a", spec={"x": 1, "unknown": "there"}, data={"k": "v"})
    await bed.robot.shows("a", spec={"x": 1}, data=None)
    await bed.settled()
    bed.robot.link.clear()
    await touched(bed, bed.cloud)
    assert [w for w in writes(bed.robot.link) if w.endswith("/a")] == []
