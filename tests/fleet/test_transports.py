"""One contract for all transports, on two simulated API servers; and the names that each makes (F3.1, F3.2, F10)."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.content.annotations import ROBOT_LABEL, ROOT, SHARD_LABEL
from crsyncer.core.model import Json, Key
from crsyncer.core.requests.calls import CRD_COLLECTION
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.fleet_calls import NAMESPACES, create, get_object
from crsyncer.fleet.domain.names import SOURCE
from crsyncer.fleet.domain.replica_plan import Removal, new_body
from crsyncer.fleet.domain.transport.transports import TRANSPORTS, Request, apply, remove, target_of, watch
from crsyncer.fleet.domain.values import Create, Delete, Marks, Nothing, Patch, Rendering, SourceKey, Target, Verdict
from crsyncer.ports import Reply
from tests.fleet.made import GOALS, KIND, goal, key, marked, raw_placement, raw_robot, ready_fleet, row, stored, wanted
from tests.model.simulation.api_server import ApiServer
from tests.model.simulation.storage import Storage
from tests.system.bed import crd

KEY = SourceKey(GOALS, "site", "dock")
NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?", fullmatch=True)
ROBOTS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,55}[a-z0-9])?", fullmatch=True)
MADE = Rendering({"spec": {"x": 1}}, {}, {}, "stamp")
WANTED = wanted(MADE)
PLACE = Key("robot-r1", "dock")


class Mailbox:
    """The test double: the replicas of all robots are in one namespace, under names that nothing else makes."""

    def address(self, source: SourceKey, robot: str, *, namespaced: bool) -> Key:
        return Key("mailbox" if namespaced else "", f"{robot}.{source.namespace}.{source.name}")

    def prepare(self, robot: str, shard: str) -> Request | None:
        return Request(shard, create(NAMESPACES.path, {"metadata": {"name": "mailbox", "labels": {"for": robot}}}))


@dataclass(slots=True)
class Bed:
    """A fleet that knows its robots, and what two API servers have: r1 is on the root, r2 on the shard b."""

    fleet: Fleet
    servers: dict[str, ApiServer]
    target: Target

    def send(self, request: Request) -> Reply:
        return self.servers[request.shard].answer(request.call)

    def goals(self, shard: str) -> dict[Key, Json]:
        return {Key(*place): raw for place, raw in self.servers[shard].storage.of(GOALS).items()}

    def look(self, shard: str) -> None:
        """Show the fleet what the watch of a shard's kind shows."""
        kind = self.fleet.index.kinds[KIND.name if shard == ROOT else f"{shard}/{KIND.name}"]
        assert watch(kind).path == "/apis/lab.example.com/v1/goals"
        for raw in self.goals(shard).values():
            self.fleet.object_shown(raw, kind.name)


@pytest.fixture(params=["PerRobot", "Same", "Shared", "double"])
def bed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bed:
    target = Target.SAME if request.param == "double" else Target(request.param)
    is_shared = target is Target.SHARED
    way: dict[str, Any] = {"mode": "Shared"} if is_shared else {"target": str(target)}
    if request.param == "double":
        monkeypatch.setitem(TRANSPORTS, target, Mailbox())
    fleet = Fleet(home="default", shards=[ROOT, "b"])
    servers = {}
    for number, name in enumerate(sorted(fleet.shards), 1):
        servers[name] = ApiServer(Storage(name, revision=1000 * number, now=lambda: 0.0))
        servers[name].make_namespace("site")
        definition = crd("lab.example.com", plural="goals", filtered=None if is_shared else "true")
        servers[name].answer(create(CRD_COLLECTION.path, definition))
        fleet.kind_shown(replace(KIND, shard=name, shared=is_shared))
    fleet.robot_shown(raw_robot("r1"))
    fleet.robot_shown(raw_robot("r2", **{SHARD_LABEL: "b"}))
    fleet.placement_shown(raw_placement(robotSelectors=[{}], **way))
    fleet.object_shown(goal(), GOALS)
    fleet.inputs_listed(*ready_fleet().listed, f"b/{GOALS}")
    return Bed(fleet, servers, target)


@pytest.mark.parametrize(("robot", "shard", "other"), [("r1", ROOT, "b"), ("r2", "b", ROOT)])
def test_F10_2_a_transport_keeps_a_replica_at_its_address_on_its_robots_shard(bed: Bed, robot, shard, other):
    fleet, transport = bed.fleet, TRANSPORTS[bed.target]
    robot = "" if bed.target is Target.SHARED else robot
    at = key(robot, target=bed.target)._replace(shard=shard)
    found = fleet.wanted(at)
    if not robot and shard == ROOT:
        assert found is None  # robots at the root have the source itself
        return
    assert found is not None
    address = transport.address(found.source, robot, namespaced=True)
    assert address == (found.namespace, found.name)
    assert not robot or address != transport.address(found.source, f"{robot}x", namespaced=True)

    made = fleet.decide(at, found, removal=Removal.UNKNOWN)
    assert isinstance(made, Create)
    needed = transport.prepare(robot, shard)
    if needed is not None:
        assert bed.send(apply(found.kind, made, address)).status == 404
        assert bed.send(needed).status == 201
    assert bed.send(apply(found.kind, made, address)).status == 201
    assert bed.goals(shard)[address]["metadata"]["labels"].get(ROBOT_LABEL, "") == robot
    assert bed.goals(other) == {}

    bed.look(shard)
    assert (set(fleet.rows), fleet.replica_at(at.kind, address)) == ({at}, at)
    assert fleet.decide(at, found, removal=Removal.UNKNOWN) == Nothing()

    fleet.object_shown(goal(spec={"x": 2}), GOALS)
    edit = fleet.decide(at, fleet.wanted(at), removal=Removal.UNKNOWN)
    assert isinstance(edit, Patch)
    assert bed.send(apply(found.kind, edit, address)).status == 200
    assert bed.send(apply(found.kind, edit, address)).status >= 400  # it is not what was seen any more
    assert bed.goals(shard)[address]["spec"] == {"x": 2}

    seen = fleet.rows[at]
    fleet.object_gone(GOALS, "site", "dock")
    assert bed.send(remove(found.kind, seen)).status == 409
    bed.look(shard)
    assert isinstance(fleet.decide(at, fleet.wanted(at), removal=Removal.NOW), Delete)
    assert bed.send(remove(found.kind, fleet.rows[at])).status == 200
    assert bed.goals(shard) == bed.goals(other) == {}


def test_F3_1_a_replica_is_in_the_robots_namespace_or_beside_its_source():
    assert TRANSPORTS[Target.PER_ROBOT].address(KEY, "r1", namespaced=True) == ("robot-r1", "dock")
    assert TRANSPORTS[Target.SAME].address(KEY, "r1", namespaced=True) == ("site", "dock-r1")


def test_F3_1_a_cluster_scoped_replica_is_always_beside_its_source():
    source = SourceKey(GOALS, "", "dock")
    assert [each.address(source, "r1", namespaced=False) for each in TRANSPORTS.values()] == [
        *[("", "dock-r1")] * 2,
        ("", "dock"),
    ]


def test_F3_1_a_cluster_scoped_replica_is_that_of_target_same():
    marks, raw = marked(SourceKey(GOALS, "", "dock"), name="dock-r1", namespace="")
    assert target_of(raw, GOALS, marks, "r1") is Target.SAME


@given(NAMES, ROBOTS)
def test_F3_1_a_long_name_is_cut_and_stays_a_name(name, robot):
    _, made = TRANSPORTS[Target.SAME].address(SourceKey(GOALS, "site", name), robot, namespaced=True)
    assert len(made) <= 253
    assert made.endswith(f"-{robot}")
    assert ".-" not in made.removeprefix(name)


def test_F3_1_a_cut_name_has_eight_digits_of_the_whole():
    name = "a" * 240 + ".." + "b" * 11
    _, made = TRANSPORTS[Target.SAME].address(SourceKey(GOALS, "site", name), "r1", namespaced=True)
    assert made.startswith("a" * 240 + "-")
    assert len(made) == 240 + 1 + 8 + 3


@pytest.mark.parametrize("source", [KEY, KEY._replace(placement="all")])
@pytest.mark.parametrize(
    ("namespace", "name", "target"),
    [("robot-r1", "dock", Target.PER_ROBOT), ("site", "dock-r1", Target.SAME), ("site", "dock", None)],
)
def test_F3_2_a_replica_has_the_name_that_its_marks_make(source, namespace, name, target):
    marks, raw = marked(source, name=name, namespace=namespace)
    assert target_of(raw, GOALS, marks, "r1") is target


@pytest.mark.parametrize("source", ["dock", "all/dock"])
def test_F3_2_marks_that_do_not_fit_each_other_make_no_replica(source):
    _, raw = marked(name="dock-r1", namespace="site")
    forged = Marks("0" * 24, "stamp", 3, source, "uid")
    assert target_of(raw, GOALS, forged, "r1") is None


def test_F3_3_a_replica_is_made_by_a_post_in_the_robots_namespace():
    call = apply(KIND, Create(new_body(WANTED, MADE)), PLACE).call
    assert (call.method, call.path) == ("POST", "/apis/lab.example.com/v1/namespaces/robot-r1/goals")
    assert call.body["metadata"]["labels"][ROBOT_LABEL] == "r1"
    assert call.timeout == 5.0


def test_F3_3_a_replica_is_deleted_as_it_was_seen():
    call = remove(KIND, row(stored(WANTED))).call
    assert (call.method, call.path) == ("DELETE", "/apis/lab.example.com/v1/namespaces/robot-r1/goals/dock")
    assert call.body["preconditions"] == {"uid": "u1", "resourceVersion": "11"}
    assert call.body["propagationPolicy"] == "Background"


def test_F3_3_a_replica_is_patched_and_looked_at_by_its_name():
    call = apply(KIND, Patch(({"op": "remove", "path": "/spec"},)), PLACE).call
    assert (call.method, call.body) == ("PATCH", [{"op": "remove", "path": "/spec"}])
    assert get_object(KIND, "robot-r1", "dock").path == call.path


def test_F5_5_the_namespace_of_a_robot_says_whose_it_is():
    request = TRANSPORTS[Target.PER_ROBOT].prepare("r1", "b")
    assert request is not None
    assert request.shard == "b"
    call = request.call
    assert call.path == "/api/v1/namespaces"
    assert call.body["metadata"]["labels"] == {"crsyncer.cloudrobotics.com/robot-name": "r1"}


def test_F5_3_of_a_kind_that_may_not_be_placed_only_replicas_are_watched():
    assert watch(KIND).selector == ""
    assert watch(replace(KIND, verdict=Verdict.NOT_PLACEABLE)).selector == SOURCE
