"""What else can be wrong with connections, kinds and objects, and how the hint ends it."""

import math

from crsyncer.core.content.annotations import FILTER, OURS
from crsyncer.core.model import Side
from crsyncer.core.reports.text import rfc3339
from tests.model.scenes.policies import delete_policy, edit_policy, put_policy, serve_policies
from tests.model.scenes.provoked import CLOUD, FILTERED, MINE, ROBOTS, Steps, case
from tests.model.scenes.shared import crd_of_statuses, mark
from tests.model.simulation.answers import FORBIDDEN, INTERNAL_ERROR, UNAUTHORIZED, UNAVAILABLE
from tests.model.simulation.clock import EPOCH
from tests.model.simulation.life import ROBOT
from tests.model.simulation.plane import GROUP, NAMESPACE
from tests.model.simulation.scene import define
from tests.model.simulation.storage import copied
from tests.model.simulation.weather import Fate
from tests.model.simulation.world import World
from tests.system.bed import crd

LIMITED = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": {"maximum": 10}}}}}


def resync(world: World) -> None:
    world.order("resync")
    world.pass_time(30)


@case("DuplicateInstance", 12, "or an old robot still runs: stop it", kinds=FILTERED)
def a_second_agent_writes_a_status(world: World) -> Steps:
    storage, where = world.cloud.server.storage, (NAMESPACE, "a")
    found = copied(storage.of(f"goals.{GROUP}")[where])
    writer = {"manager": "crsyncer-5f0c2a91", "time": rfc3339(EPOCH + world.clock.now)}
    found["metadata"]["managedFields"] = [writer]
    storage.put(f"goals.{GROUP}", where, found)
    world.cloud.signal.ring()
    world.pass_time(5)
    yield
    world.pass_time(700)


@case("DuplicateInstance", 12, "or an old robot still runs: stop it", kinds={"goals": {"source": "robot"}})
def a_second_agent_makes_a_copy_of_an_object_that_this_robot_lacks(world: World) -> Steps:
    """The copy is an orphan for this agent, which deletes it; the second one makes it again."""
    writer = {"manager": "crsyncer-5f0c2a91", "time": rfc3339(EPOCH + world.clock.now)}
    marks = {OURS + "upstream-uid": "of-its-own-cluster", OURS + "robot": ROBOT}
    world.cloud.create("b", annotations=marks, managedFields=[writer], spec={"x": 1})
    world.pass_time(5)
    assert world.cloud.get("b") is None
    yield
    world.pass_time(700)


@case(
    "CloudUnauthorized",
    12,
    "renew the token or certificate; the agent reads the kubeconfig again",
    metric=CLOUD,
)
def the_cloud_refuses_the_token(world: World) -> Steps:
    yield from unauthorized(world, "cloud")


@case(
    "RobotUnauthorized",
    12,
    "renew the token or certificate; the agent reads the kubeconfig again",
    metric=ROBOTS,
)
def the_robot_refuses_the_certificate(world: World) -> Steps:
    yield from unauthorized(world, "robot")


def unauthorized(world: World, side: str) -> Steps:
    world.cut(side, seconds=5)
    world.inject(side, UNAUTHORIZED, times=math.inf)
    world.weather[Side(side)].cut = False
    world.pass_time(30)
    yield
    world.mend(side)


@case("Misconfigured", 12, "correct what the message names")
def an_annotation_has_a_wrong_value(world: World) -> Steps:
    world.robot.annotate_kind({FILTER: "perhaps"})
    world.pass_time(5)
    yield
    world.robot.annotate_kind({FILTER: "false"})


@case("PolicyMisconfigured", 12, "correct or delete the SyncPolicy on the robot")
def a_policy_is_for_a_kind_that_none_may_be_for(world: World) -> Steps:
    serve_policies(world.robot)
    put_policy(world.robot, "p", {"resource": {"group": "", "resource": "namespaces"}})
    world.pass_time(5)
    yield
    delete_policy(world.robot)


@case("VersionMismatch", 12, "serve one version of the CRD on both sides")
def the_robot_has_only_a_newer_version(world: World) -> Steps:
    define(world, "robot", versions=("v2",), seconds=60)
    yield
    define(world, "cloud", versions=("v1", "v2"), seconds=120)


@case("Forbidden", 12, "grant the account list and watch")
def the_account_may_not_list_the_kind(world: World) -> Steps:
    world.inject("cloud", FORBIDDEN, part="/goals", times=math.inf)
    world.cut("cloud", seconds=5)
    world.weather[Side.CLOUD].cut = False
    world.pass_time(60)
    yield
    world.heal("cloud", seconds=60)


@case(
    "DeadLetters", 12, "correct the object or the schema, then: crsyncer pending retry", metric="crsyncer_dead_letters"
)
def the_robots_schema_refuses_an_object(world: World) -> Steps:
    world.robot.apply(crd(GROUP, schema=LIMITED))
    world.add("bad", spec={"x": 11}, seconds=30)
    yield
    world.robot.apply(crd(GROUP))
    world.order("retry", resource="", name="")
    world.pass_time(10)
    assert world.robot.objects()["bad"]["spec"] == {"x": 11}


@case("ClockSuspect", 10, "set this machine's clock", metric='crsyncer_side_clock_offset_seconds{side="cloud"}')
def the_clock_is_wrong(world: World) -> Steps:
    world.weather[Side.CLOUD].clock_offset = 5400.0
    resync(world)
    yield
    world.weather[Side.CLOUD].clock_offset = 0.0
    resync(world)


@case("RobotOffline", 10, "is the robot's API server up?", metric=ROBOTS)
def the_robots_server_is_down(world: World) -> Steps:
    world.cut("robot", seconds=60)
    yield
    world.mend("robot")


@case("CloudOffline", 11, "check the network if it should be up", metric=CLOUD)
def the_link_is_cut(world: World) -> Steps:
    world.cut("cloud", seconds=60)
    yield
    world.mend("cloud")


@case("Starting", 10, "wait a moment", metric=CLOUD)
def the_agent_has_just_been_started_and_the_cloud_is_slow(world: World) -> Steps:
    with world.down():
        world.weather[Side.CLOUD].latency = 3.0
    world.pass_time(1)
    yield
    world.weather[Side.CLOUD].latency = 0.0
    world.pass_time(60)


@case("NotListed", 10, "wait a moment")
def the_first_list_takes_a_while(world: World) -> Steps:
    with world.down():
        world.lose_database()
        world.inject("cloud", Fate.LOST, verb="list", part="/goals", times=1)
    world.pass_time(20)
    yield
    world.pass_time(240)


@case("NotWatched", 10, "the agent retries")
def a_proxy_lets_no_watch_through(world: World) -> Steps:
    world.inject("cloud", UNAVAILABLE, verb="watch", part="/goals", times=math.inf)
    world.cut("cloud", seconds=5)
    world.weather[Side.CLOUD].cut = False
    world.pass_time(40)
    yield
    world.heal("cloud", seconds=90)


@case("Stuck", 10, "crsyncer explain the pending step")
def a_copy_cannot_be_created(world: World) -> Steps:
    world.inject("robot", INTERNAL_ERROR, verb="create", part="/goals", times=math.inf)
    world.add("b", labels=MINE, seconds=300)
    yield
    explained = world.order("explain", resource="goals", name="b")
    assert "the copy must be created on the robot" in str(explained)
    world.heal("robot", seconds=90)


@case("Stuck", 10, "check that the agent's account may list the kind upstream")
def a_deletion_cannot_be_verified(world: World) -> Steps:
    world.inject("cloud", INTERNAL_ERROR, verb="discover", part=f"/apis/{GROUP}/v1", times=math.inf)
    world.remove("a", seconds=300)
    yield
    world.heal("cloud", seconds=120)


def _somebody_elses_finalizer(world: World) -> Steps:
    world.robot.finalize("a", "lab.example.com/wait")
    world.settle()
    world.remove("a", seconds=700)
    yield
    explained = world.order("explain", resource="goals", name="a")
    assert "lab.example.com/wait" in str(explained)
    world.robot.finalize("a")
    world.pass_time(30)


@case("Stuck", 10, "the finalizer's controller must remove it")
def a_finalizer_blocks_a_deletion(world: World) -> Steps:
    yield from _somebody_elses_finalizer(world)


@case("StatusNotReturned", 10, "crsyncer fleet crds prints its CRD")
def the_cloud_takes_no_robot_object_status(world: World) -> Steps:
    mark(world)
    world.report("a", {"n": 1}, seconds=30)
    yield
    world.cloud.apply(crd_of_statuses())
    world.order("retry", resource="goals.lab.example.com", name="a")
    world.pass_time(30)


@case("DeletionOverdue", 10, "its finalizer's controller must remove it")
def a_finalizer_outlasts_the_grace_period(world: World) -> Steps:
    serve_policies(world.robot)
    edit_policy(world, deletion={"mode": "blocking", "gracePeriod": "10m"})
    yield from _somebody_elses_finalizer(world)


@case("Stuck", 10, "the server's answer is in the agent's log")
def a_list_fails(world: World) -> Steps:
    world.inject("cloud", INTERNAL_ERROR, verb="list", part="/goals", times=math.inf)
    world.cloud.restart()
    world.pass_time(300)
    yield
    world.heal("cloud", seconds=120)


@case("Backlog", 10, "crsyncer pending list shows the server's answer", metric="crsyncer_outbox_oldest_seconds")
def the_cloud_answers_errors_to_statuses(world: World) -> Steps:
    world.inject("cloud", INTERNAL_ERROR, verb="patch", part="/goals", times=math.inf)
    world.report("a", {"phase": "DONE"}, seconds=300)
    yield
    [waiting] = world.order("pending")["pending"]
    assert waiting["error"] == "storm"
    world.heal("cloud", seconds=90)
