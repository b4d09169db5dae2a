"""What `fleet plan`, `explain` and `release` say of robots on shards is what the controller does there (section 12)."""

from collections.abc import Iterable

from crsyncer.core.model import Json
from crsyncer.core.requests.calls import Call
from crsyncer.errors import Unsure
from crsyncer.ports import Reply, Send
from tests.fleet_model.asking import Asked
from tests.fleet_model.oracle import PLACEMENTS, ROBOTS
from tests.fleet_model.sharded import GOALS, Shard, Sharded, sharded
from tests.model.simulation.answers import FORBIDDEN, invalid
from tests.model.simulation.plane import GROUP
from tests.system.bed import crd

NEW = {"x": 2}


def asked(fleet: Sharded, given: Iterable[str] = "bc", *, away: str = "") -> Asked:
    """The commands with `--shard` for these shards, of which one does not answer."""
    return Asked(fleet.world, {name: _send(fleet[name], is_away=name == away) for name in given})


def _send(shard: Shard, *, is_away: bool = False, forbids: str = "") -> Send:
    async def send(call: Call) -> Reply:
        if forbids and forbids in call.path:
            return FORBIDDEN
        if is_away:
            raise Unsure("the connection is refused")
        return shard.server.answer(call)

    return send


def explained(commands: Asked, robot: str) -> Json:
    [found] = commands.explain("p", robot)["replicas"]
    return dict(found)


def test_section_12_a_plan_names_the_writes_on_each_shard_and_none_once_they_are_made() -> None:
    with sharded() as fleet:
        assert asked(fleet).plan()["writes"] == []
        fleet.world.kill()
        fleet.world.cloud.set("dock", spec=NEW)
        fleet["c"].cloud.delete("dock", namespace="robot-rc")
        writes = asked(fleet).plan()["writes"]
        assert [(each["verb"], each["shard"], each["namespace"]) for each in writes] == [
            ("update", "root", "robot-r0"),
            ("update", "b", "robot-rb"),
            ("create", "c", "robot-rc"),
        ]
        began = fleet.world.clock.now
        fleet.world.start()
        fleet.agree()
        assert (fleet["b"].verbs(began), fleet["c"].verbs(began)) == (["patch"], ["create"])
        assert asked(fleet).unknown() == asked(fleet).plan()["writes"] == []


def test_section_12_what_is_on_a_shard_that_is_not_given_or_away_is_not_known() -> None:
    with sharded() as fleet:
        fleet.world.kill()
        fleet.world.cloud.set("dock", spec=NEW)
        for commands, why in (
            (asked(fleet, "b"), "shard c is not given: what is there is not known"),
            (asked(fleet, away="c"), "shard c cannot be read: the connection is refused"),
        ):
            assert commands.whens() == {"update robot-r0/dock": "now", "update robot-rb/dock": "now"}
            assert commands.unknown() == commands.unknown("rc") == [why]
            assert commands.unknown("rb") == []
            found = explained(commands, "rc")
            assert (found["verdict"], found["reason"], found["uid"]) == ("blocked", "NotRead", None)


def test_section_12_an_object_of_a_file_is_tried_at_the_root_alone_also_where_a_shard_has_another_version() -> None:
    with sharded() as fleet:
        fleet["b"].serve(crd(GROUP, filtered="true", versions=("v1beta1",)))
        fleet.world.settle()
        about = {"name": "dock", "namespace": "default"}
        found = asked(fleet).plan({"apiVersion": f"{GROUP}/v1", "kind": "Goal", "metadata": about, "spec": NEW})
        assert found["notes"] == []
        assert found["counts"]["update"] == 3


def test_section_12_a_replica_is_explained_as_it_is_on_its_robots_shard() -> None:
    with sharded() as fleet:
        found = explained(asked(fleet), "rb")
        assert (found["shard"], found["verdict"], found["written"] == found["stamp"]) == ("b", "current", True)
        assert found["uid"] == fleet["b"].cloud.objects("goals", namespace="robot-rb")["dock"]["metadata"]["uid"]
        fleet.world.kill()
        fleet["b"].cloud.set("dock", spec=NEW, namespace="robot-rb")
        assert explained(asked(fleet), "rb")["reason"] == "Drifted"


def test_F10_2_a_robot_whose_label_alone_was_moved_is_explained() -> None:
    with sharded() as fleet:
        fleet.move("rb", "c")
        fleet.world.settle()
        found = asked(fleet).explain("p", "rb")["replicas"]
        assert {each["shard"]: (each["verdict"], each["reason"], each["rule"]) for each in found} == {
            "b": ("blocked", "OtherShard", "F10.2"),
            "c": ("blocked", "OtherShard", "F10.2"),
        }
        assert fleet.world.decided()["rb"] == "Blocked"
        fleet.move("rb", "b")
        fleet.agree()


def test_F5_2_a_hold_is_released_with_the_names_of_its_replicas_on_all_shards() -> None:
    with sharded() as fleet:
        for name in ("r0", "rb", "rc"):
            fleet.world.cloud.delete(name, kind=ROBOTS)
        fleet.world.settle()
        assert sum(fleet.world.holds().values()) == 3
        held = asked(fleet).held()
        names = [f"{GOALS}/robot-{robot}/dock" for robot in ("r0", "rb", "rc")]
        assert sorted(name for each in held for name in each.names or ()) == names
        assert None in [each.names for each in asked(fleet, "b").held()]  # the id is that of all replicas of the hold
        fleet.enrol("r0", "root")
        fleet.enrol("rb", "b")
        fleet.enrol("rc", "c")
        fleet.agree()


def test_F10_3_copies_whose_kind_no_placement_names_any_more_are_planned() -> None:
    with sharded(filtered=None, mode="Shared") as fleet:
        fleet.world.kill()
        fleet.world.edit(resources=[])
        writes = asked(fleet).plan()["writes"]
        assert [(each["verb"], each["shard"], each["when"]) for each in writes] == [
            ("delete", "b", "held"),
            ("delete", "c", "held"),
        ]
        fleet.world.start()
        fleet.world.settle()
        assert fleet.world.holds() == {"SourcesLost": 2}


def test_F10_3_F5_2_copies_of_a_placement_that_is_gone_are_planned_as_held() -> None:
    with sharded(filtered=None, mode="Shared") as fleet:
        fleet.world.kill()
        fleet.world.cloud.finalize("p", kind=PLACEMENTS)
        fleet.world.unplace()
        writes = asked(fleet).plan()["writes"]
        assert [(each["verb"], each["shard"], each["when"]) for each in writes] == [
            ("delete", "b", "held"),
            ("delete", "c", "held"),
        ]


def test_F1_1_who_may_not_list_what_all_robots_get_and_nobody_places_is_told_nothing_of_it() -> None:
    with sharded(filtered=None, mode="Shared") as fleet:
        forbidding = {name: _send(fleet[name], forbids="/goals") for name in "bc"}
        assert Asked(fleet.world, forbidding).unknown() != []
        fleet.world.kill()
        fleet.world.edit(resources=[])
        assert Asked(fleet.world, forbidding).unknown() == []


def test_F10_3_what_one_shard_has_refused_explains_no_copy_on_another() -> None:
    with sharded(filtered=None, mode="Shared") as fleet:
        fleet.world.inject(invalid(), name=fleet["b"].link, verb="patch", part="/goals", times=1)
        fleet.world.cloud.set("dock", spec=NEW)
        fleet.world.pass_time(60)
        assert explained(asked(fleet), "rb")["reason"] == "Refused"
        assert explained(asked(fleet), "rc")["reason"] == "Current"
        plan = asked(fleet).plan()
        assert (plan["writes"], [each["reason"] for each in plan["blocked"]]) == ([], ["Refused"])
        fleet.world.kill()
        fleet.world.cloud.set("dock", spec={"x": 3})
        assert explained(asked(fleet), "rc")["reason"] == "OtherStamp"
        assert [each["shard"] for each in asked(fleet).plan()["writes"]] == ["b", "c"]
