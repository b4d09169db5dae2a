"""S1.1 to S1.4 and S1.8: the annotations of the robot's CRDs are the configuration, and they are live."""

import pytest

from crsyncer.sandbox.resource import CRD
from tests.system.asked import hit, watches
from tests.system.bed import LABEL, ROBOT, Bed, eventually
from tests.system.conftest import MakeBed
from tests.system.kinds import annotate, another, asked, row, until_row

MINE = {LABEL: ROBOT}


async def test_S1_1_a_changed_annotation_takes_effect_at_once_and_restarts_only_its_kind(bed: Bed):
    await another(bed)
    await until_row(bed, "tasks", state="syncing")
    await bed.cloud.create("mine", spec={"x": 1}, labels=MINE)
    await bed.settled()
    bed.cloud.link.clear()
    bed.robot.link.clear()
    await annotate(bed, filter_by_robot_name="true")

    async def filtered() -> bool:
        return any("labelSelector" in r.query and r.status == 200 for r in watches(bed.cloud.link))

    await eventually(filtered, what="a filtered watch")
    await until_row(bed, state="syncing", filterByRobotName=True)
    await bed.cloud.create("later", spec={"x": 2}, labels=MINE)
    await bed.robot.shows("later", spec={"x": 2})
    assert asked(bed.cloud.link, "tasks") == []
    assert asked(bed.robot.link, "tasks") == []


@pytest.mark.nightly("to be shown by the model")
async def test_S1_1_what_does_not_concern_us_on_a_crd_changes_nothing(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.settled()
    before = await bed.kind()
    bed.cloud.link.clear()
    bed.robot.link.clear()
    metadata = {"labels": {"team": "lab"}, "annotations": {"example.com/note": "hello"}}
    await bed.robot.api.patch(CRD.object(bed.resource), {"metadata": metadata})
    await another(bed)  # the CRDs' events come in order: this one is the last
    await until_row(bed, "tasks", state="syncing")
    assert asked(bed.cloud.link) == asked(bed.robot.link) == []
    described = [
        {"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/description", "value": "what a robot shall do"}
    ]
    await bed.robot.api.patch(CRD.object(bed.resource), described)
    await another(bed, "notes")
    await until_row(bed, "notes", state="syncing")
    assert asked(bed.cloud.link) == []  # the robot's own server ends its watches when a schema is edited
    await bed.cloud.create("b", spec={"x": 1})
    await bed.robot.shows("b", spec={"x": 1})
    after = await bed.kind()
    assert after["relists"]["cloud"] == before["relists"]["cloud"]
    assert after["resumes"]["cloud"] == before["resumes"]["cloud"]


@pytest.mark.nightly("to be shown by the model")
async def test_S1_2_spec_source_says_which_way_and_whether_at_all(make_bed: MakeBed):
    bed = await make_bed(source=None, start=False)
    await bed.start(state=None)
    await another(bed)
    await until_row(bed, "tasks", state="syncing")
    assert await row(bed) is None
    await annotate(bed, spec_source="")
    await another(bed, "notes")
    await until_row(bed, "notes", state="syncing")
    assert await row(bed) is None
    await annotate(bed, spec_source="Cloud")
    wrong = await until_row(bed, state="misconfigured")
    assert wrong["specSource"] == "Cloud"
    assert '"Cloud"' in wrong["message"]
    assert asked(bed.cloud.link) == asked(bed.robot.link) == []
    await annotate(bed, spec_source="cloud")
    await until_row(bed, state="syncing", specSource="cloud")
    await bed.cloud.create("down", spec={"x": 1})
    await bed.robot.shows("down", spec={"x": 1})


async def test_S1_2_spec_source_robot_brings_specs_up_and_statuses_down(make_bed: MakeBed):
    bed = await make_bed(source="robot")
    await bed.robot.create("up", spec={"x": 1})
    await bed.cloud.shows("up", spec={"x": 1})
    await bed.cloud.set_status("up", {"seen": True})
    await bed.robot.shows("up", status={"seen": True})


@pytest.mark.nightly("to be shown by the model")
async def test_S1_3_every_spelling_of_true_and_false_is_understood(bed: Bed):
    spellings = zip(("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False"), strict=True)
    for true, false in spellings:
        for text, meaning in ((true, True), (false, False)):
            await annotate(bed, filter_by_robot_name=text)
            found = await until_row(bed, filterByRobotName=meaning)
            assert found["state"] != "misconfigured"
    await annotate(bed, filter_by_robot_name="true")
    await until_row(bed, filterByRobotName=True)
    await annotate(bed, filter_by_robot_name=None)
    await until_row(bed, filterByRobotName=False, state="syncing")


async def test_S1_3_any_other_text_closes_the_kind_and_never_opens_it(make_bed: MakeBed):
    bed = await make_bed(filtered="yes", start=False)
    await bed.start(state="misconfigured")
    await another(bed)
    await until_row(bed, "tasks", state="syncing")
    for text in ("", " true", "tRUE", "on", "2"):
        await annotate(bed, filter_by_robot_name=text)

        async def said(text: str = text) -> bool:
            found = await row(bed)
            return bool(found and found["state"] == "misconfigured" and f'"{text}"' in found["message"])

        await eventually(said, what=f"misconfigured for {text!r}")
    for labels in ({}, MINE, {LABEL: "robot-2"}):
        await bed.cloud.create(f"goal-{len(labels)}-{labels.get(LABEL, 'none')}", labels=labels)
    await another(bed, "notes")
    await until_row(bed, "notes", state="syncing")
    assert asked(bed.cloud.link) == asked(bed.robot.link) == []
    assert await bed.robot.names() == set()
    code, screen, _ = await bed.agent.crsyncer("status")
    assert code == 12
    assert "misconfigured" in screen
    assert "filter-by-robot-name" in screen
    await annotate(bed, filter_by_robot_name="true")
    await bed.robot.shows(f"goal-1-{ROBOT}")
    assert await bed.robot.names() == {f"goal-1-{ROBOT}"}


@pytest.mark.nightly("to be shown by the model")
async def test_S1_3_without_a_robot_name_a_filtered_kind_stays_closed(make_bed: MakeBed):
    bed = await make_bed(filtered="true", robot_name="", start=False)
    await bed.start(state="misconfigured")
    tasks_cloud, tasks_robot = await another(bed)
    await bed.cloud.create("anybody", spec={"x": 1})
    await bed.cloud.create("empty", labels={LABEL: ""})
    await tasks_cloud.create("t", spec={"x": 1})
    await tasks_robot.shows("t", spec={"x": 1})
    assert asked(bed.cloud.link) == asked(bed.robot.link) == []
    assert await bed.robot.names() == set()
    code, screen, _ = await bed.agent.crsyncer("status")
    assert code == 12
    assert "robot name" in screen
    document = await bed.agent.status()
    assert document["health"] == "attention"
    assert "--robot-name" in "".join(f"{r['message']} {r['hint']}" for r in document["reasons"])


async def test_S1_4_a_subtree_that_is_no_single_key_is_refused(make_bed: MakeBed):
    bed = await make_bed(subtree="", start=False)
    await bed.start(state="misconfigured")
    await bed.cloud.create("a", spec={"x": 1})
    await annotate(bed, status_subtree="robot.state")
    dotted = await until_row(bed, state="misconfigured", statusSubtree="robot.state")
    assert "status-subtree" in dotted["message"]
    assert asked(bed.cloud.link) == asked(bed.robot.link) == []
    await annotate(bed, status_subtree="robot")
    await until_row(bed, state="syncing", statusSubtree="robot")
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"robot": {"at": "dock"}, "local": 1})
    await bed.cloud.shows("a", status={"robot": {"at": "dock"}})
    await annotate(bed, status_subtree=None)
    await bed.cloud.shows("a", status={"robot": {"at": "dock"}, "local": 1})


@pytest.mark.nightly("to be shown by the model")
async def test_S1_8_an_annotation_taken_away_leaves_copies_and_given_back_catches_up(bed: Bed):
    for name in ("kept", "deleted", "changed"):
        await bed.cloud.create(name, spec={"x": 1})
    await bed.settled()
    assert await bed.robot.names() == {"kept", "deleted", "changed"}
    await annotate(bed, spec_source=None)

    async def stopped() -> bool:
        return await row(bed) is None

    await eventually(stopped, what="the kind is not ours any more")
    await bed.cloud.delete("deleted")
    await bed.cloud.patch("changed", {"spec": {"x": 2}})
    await bed.cloud.create("new", spec={"x": 3})
    await another(bed)
    await until_row(bed, "tasks", state="syncing")
    assert await bed.robot.names() == {"kept", "deleted", "changed"}
    assert (await bed.robot.get("changed"))["spec"] == {"x": 1}
    await annotate(bed, spec_source="cloud")
    await bed.robot.gone("deleted")
    await bed.robot.shows("changed", spec={"x": 2})
    await bed.robot.shows("new", spec={"x": 3})
    await bed.robot.shows("kept", spec={"x": 1})


@pytest.mark.fault_18
async def test_S1_8_a_crd_deleted_on_the_robot_stops_its_kind_and_comes_back_with_everything(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    raw = await bed.robot.api.get(CRD.object(bed.resource))
    await bed.robot.api.delete(CRD.object(bed.resource))

    async def stopped() -> bool:
        return await row(bed) is None

    await eventually(stopped, what="the kind is not ours any more")
    await bed.robot.api.until_gone(CRD.object(bed.resource))
    assert await bed.cloud.names() == {"a"}
    metadata = {"name": bed.resource, "annotations": raw["metadata"]["annotations"]}
    await bed.robot.api.apply_crd(raw | {"metadata": metadata})
    await bed.robot.shows("a", spec={"x": 1})
    assert await bed.cloud.names() == {"a"}


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("source", ["cloud", "robot"])
async def test_S1_3_closing_a_kind_to_others_deletes_nothing_of_theirs(make_bed: MakeBed, source: str):
    bed = await make_bed(source=source)
    up, down = (bed.cloud, bed.robot) if source == "cloud" else (bed.robot, bed.cloud)
    await up.create("mine", labels=MINE)
    await up.create("plain")
    await bed.settled()
    late = down.link.stall("goals.*labelSelector", method="GET")  # upstream is listed long before downstream
    await annotate(bed, filter_by_robot_name="true")

    async def listed() -> bool:
        return any("labelSelector" in r.query and r.status == 200 for r in watches(up.link))

    await eventually(listed, what="upstream is watched with the selector")
    await hit(late)
    await another(bed)
    await until_row(bed, "tasks", state="syncing")
    late.remove()
    await until_row(bed, filterByRobotName=True, state="syncing")
    await up.create("later", labels=MINE)
    await down.shows("later")
    await bed.settled()
    assert await down.names() == {"mine", "plain", "later"}
    await annotate(bed, filter_by_robot_name="false")
    await until_row(bed, filterByRobotName=False, state="syncing")
    await up.delete("plain")
    await down.gone("plain")
    assert await up.names() == {"mine", "later"}
