"""S8.1 and S8.2 on virtual time: which cluster it is, and whether its history is the one that is known."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from crsyncer.core.model import Side
from crsyncer.core.requests import calls
from crsyncer.core.requests.calls import REPLAY_SECONDS, Call
from crsyncer.ports import Reply
from tests.model.simulation.answers import FORBIDDEN
from tests.model.simulation.journal import Request
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import copy, full_lists, holds, redefine, restart, scene, state, synced
from tests.model.simulation.weather import Rule
from tests.model.simulation.world import World
from tests.system.bed import crd

KUBE_SYSTEM = "/namespaces/kube-system"
YOUNG = Reply(
    404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": 'namespaces "kube-system" not found'}
)


def replays(world: World, side: str, since: float) -> list[Request]:
    """The watches that only ask a server to repeat what is known already, to prove its history."""
    asked = world.journal.asked(side, verb="watch", since=since)
    return [r for r in asked if r.query.get("timeoutSeconds") in {str(seconds) for seconds in REPLAY_SECONDS}]


def reconnect(world: World, side: str = "cloud", *, seconds: float = 5.0) -> None:
    """Every connection breaks; others write something meanwhile, or there would be nothing to be proven."""
    world.cut(side, seconds=seconds)
    world.planes[Side(side)].others_write(3)
    world.connect(side)


def identity(world: World, side: str = "cloud") -> str:
    """By what a side is known."""
    return str(world.status()["sides"][side]["identity"])


def connection(world: World, side: str = "cloud") -> str:
    """The state of a side."""
    return str(world.status()["sides"][side]["state"])


def blind(world: World) -> None:
    """The agent may not read kube-system in the cloud."""
    world.inject("cloud", FORBIDDEN, part=KUBE_SYSTEM, times=math.inf)


@contextmanager
def known_by_its_crds(*kinds: str) -> Iterator[World]:
    """A cloud of which the agent can only read its CRDs; it has made the copy of a, and was connected twice."""
    with World(kinds={kind: {} for kind in kinds}) as world:
        blind(world)
        world.begin("a")
        reconnect(world)
        world.settle()
        yield world
        assert world.troubles == []


# Which cluster it is (S8.1)


def test_S8_1_where_kube_system_may_not_be_read_the_uid_of_a_crd_is_the_identity_and_another_is_another_cluster() -> (
    None
):
    with known_by_its_crds("goals") as world:
        assert identity(world).startswith(f"crd:goals.{GROUP}:")
        with world.down(kill=True):
            redefine(world)
        world.pass_time(60)
        assert (connection(world), holds(world)) == ("identity-changed", [("IdentityChanged", 0)])
        world.order("release", id="cloud")
        world.pass_time(120)
        assert (set(world.robot.objects()), holds(world)) == ({"a"}, [("Restored", 1)])


def test_S8_1_a_crd_made_anew_before_our_eyes_is_the_same_cluster() -> None:
    with known_by_its_crds("goals") as world:
        world.cloud.drop_kind()
        world.pass_time(60)
        assert state(world) == "kind-missing"
        world.crash()
        world.cloud.apply(crd(GROUP))
        world.begin("a", spec={"x": 2})
        assert (copy(world)["spec"], connection(world), holds(world)) == ({"x": 2}, "connected", [])


def test_S8_1_one_crd_of_several_made_anew_is_the_same_cluster() -> None:
    with known_by_its_crds("goals", "tasks") as world:
        with world.down(kill=True):
            redefine(world, "a")
        world.pass_time(120)
        assert (copy(world)["spec"], connection(world)) == ({"x": 2}, "connected")


@pytest.mark.parametrize("reply", [FORBIDDEN, Reply(404, {}, "404 page not found")], ids=["403", "404"])
def test_S8_1_where_nothing_can_be_read_server_and_authority_tell_clusters_apart(reply: Reply) -> None:
    with scene() as world:
        for part in (KUBE_SYSTEM, calls.CRDS):
            world.inject("cloud", reply, part=part, times=math.inf)
        world.begin("a")
        known = identity(world)
        assert known.startswith("server:")
        since = world.clock.now
        restart(world)
        assert (identity(world), full_lists(world, "cloud", since)) == (known, [])


def test_S8_1_a_crd_that_may_not_be_read_is_the_only_one_that_is_asked_for() -> None:
    with scene(goals={}, tasks={}) as world:
        for part in (KUBE_SYSTEM, calls.CRDS):
            world.inject("cloud", FORBIDDEN, part=part, times=math.inf)
        world.begin()
        since = world.clock.now
        reconnect(world)
        world.settle()
        asked = world.journal.asked("cloud", part=calls.CRDS, since=since)
        assert {request.call.path for request in asked} == {f"{calls.CRDS}/goals.{GROUP}"}


def test_S8_3_another_cluster_is_asked_for_nothing_of_ours_and_the_known_one_is_not_listed_again() -> None:
    with scene() as world:
        world.begin("a", "b")
        uids = {name: copy(world, name)["metadata"]["uid"] for name in ("a", "b")}
        stranger = {"kind": "PartialObjectMetadata", "metadata": {"name": "kube-system", "uid": "another"}}
        world.inject("cloud", Reply(200, stranger), part=KUBE_SYSTEM, times=math.inf)
        reconnect(world)
        world.pass_time(60)
        since = world.clock.now
        world.cloud.create("theirs", spec={"x": 1})
        world.cloud.set("a", spec={"x": 9})
        world.robot.set("a", spec={"x": 5})
        world.report("a", {"phase": "DONE"}, seconds=600)
        restart(world, kill=True, seconds=600)
        assert (connection(world), holds(world)) == ("identity-changed", [("IdentityChanged", 0)])
        assert (copy(world)["spec"], set(world.robot.objects())) == ({"x": 1}, {"a", "b"})
        assert full_lists(world, "cloud", since) == []
        for verb in ("watch", "get", "write"):
            assert world.journal.asked("cloud", verb=verb, kind="goals", since=since) == []
        world.weather[Side.CLOUD].rules.clear()
        world.pass_time(120)
        assert (copy(world)["spec"], copy(world, "theirs")["spec"]) == ({"x": 9}, {"x": 1})
        assert world.cloud.objects()["a"]["status"] == {"phase": "DONE"}
        assert {name: copy(world, name)["metadata"]["uid"] for name in ("a", "b")} == uids
        assert (full_lists(world, "cloud", since), holds(world)) == ([], [])


def test_S8_1_a_right_that_comes_or_goes_is_no_other_cluster(world: World) -> None:
    known = identity(world)
    for number, forbidden in enumerate((True, False, True), start=2):
        if forbidden:
            blind(world)
        else:
            world.weather[Side.CLOUD].rules.clear()
        since = world.clock.now
        reconnect(world)
        world.edit("a", spec={"x": number})
        assert (copy(world)["spec"], identity(world), holds(world)) == ({"x": number}, known, [])
        restart(world)
        assert full_lists(world, "cloud", since) == []
    world.weather[Side.CLOUD].rules.clear()
    world.cloud.rebuild()
    world.pass_time(60)
    assert connection(world) == "identity-changed", "what was known of it still counts"


def test_S8_1_a_server_that_has_not_made_its_namespaces_is_no_cluster_yet(world: World) -> None:
    world.inject("cloud", YOUNG, part=KUBE_SYSTEM, times=math.inf)
    reconnect(world)
    world.edit("a", spec={"x": 2}, seconds=60)
    assert (connection(world), copy(world)["spec"]) == ("offline", {"x": 1})
    assert "kube-system" in str(world.status()["sides"]["cloud"]["error"])
    world.heal("cloud")
    assert (copy(world)["spec"], holds(world)) == ({"x": 2}, [])


# The resume check (S8.2)


def test_S8_2_each_kind_proves_its_history_and_is_not_listed_also_an_empty_one() -> None:
    with scene(goals={}, tasks={}) as world:
        world.begin("a")
        for _ in range(3):
            since = world.clock.now
            reconnect(world)
            world.settle()
            assert full_lists(world, "cloud", since) == []
            assert {request.kind for request in replays(world, "cloud", since)} <= {"goals", "tasks"}
            first_watch = world.journal.asked("cloud", verb="watch", since=since)[0].sent
            revision = [r for r in world.journal.asked("cloud", verb="list", since=since) if r.sent < first_watch]
            assert revision, "a cheap consistent list precedes every resume"
            assert all(r.query["limit"] == "1" and "resourceVersion" not in r.query for r in revision)


def test_S8_2_a_watch_that_a_server_ended_early_is_not_resumed_unseen_either(world: World) -> None:
    since = world.clock.now
    world.weather[Side.CLOUD].ends = 1
    world.cloud.set("a", spec={"x": 2})
    world.cloud.others_write(3)
    world.settle()
    asked = [r for r in world.journal.asked("cloud", kind="goals", since=since) if r.verb in ("list", "watch")]
    assert next(r for r in asked if r.verb == "list").query["limit"] == "1"
    assert (copy(world)["spec"], full_lists(world, "cloud", since)) == ({"x": 2}, [])


@pytest.mark.parametrize("latency", [0.5, 1.5, 4.0])
def test_S8_2_a_slow_link_is_no_restored_cluster(world: World, latency: float) -> None:
    since = world.clock.now
    world.weather[Side.CLOUD].latency = latency
    for number in range(2, 5):
        reconnect(world)
        world.edit("a", spec={"x": number}, seconds=300)
        assert (copy(world)["spec"], holds(world)) == ({"x": number}, [])
    assert full_lists(world, "cloud", since) == []


@pytest.mark.parametrize("status", [403, 500, 503])
def test_S8_2_a_proof_that_cannot_be_had_is_asked_for_again_and_nothing_is_listed(world: World, status: int) -> None:
    def matches(call: Call) -> bool:
        return call.verb == "watch" and dict(call.query).get("timeoutSeconds") in {str(s) for s in REPLAY_SECONDS}

    world.add("b")
    since = world.clock.now
    rule = Rule(matches, Reply(status, {}), 5)
    world.weather[Side.CLOUD].add(rule)
    world.cut("cloud", seconds=5)
    world.cloud.others_write(3)
    world.connect("cloud")
    world.edit("a", spec={"x": 2}, seconds=300)
    assert rule.times < 5, "the proof was asked for"
    assert (copy(world)["spec"], full_lists(world, "cloud", since), holds(world)) == ({"x": 2}, [], [])


@pytest.mark.parametrize("latency", [0.0, 0.3])
def test_S8_2_a_probe_that_our_own_writes_overtake_is_no_restore(latency: float) -> None:
    with synced() as world:
        names = [f"a{number}" for number in range(8)]
        world.add(*names)
        since = world.clock.now
        world.weather[Side.CLOUD].latency = latency
        for number in range(120):
            world.report(names[number % len(names)], {"n": number}, seconds=0.05)
            if number % 20 == 10:
                world.cut("cloud", seconds=0.05)
                world.connect("cloud")
        world.settle()
        assert (full_lists(world, "cloud", since), holds(world)) == ([], [])


def test_S8_2_S9_2_a_quiet_kind_is_listed_once_for_each_start_of_an_api_server(world: World) -> None:
    since = world.clock.now
    world.cut("cloud", seconds=5)
    world.cloud.restart()
    world.cloud.others_write(3)
    world.heal("cloud")
    listed = len(full_lists(world, "cloud", since))
    assert listed <= 1
    for _ in range(3):
        reconnect(world)
        world.settle()
    with world.down():
        world.cloud.others_write(3)
    world.settle()
    assert len(full_lists(world, "cloud", since)) == listed
