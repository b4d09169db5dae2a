"""A split between two simulated API servers, on virtual time: what is removed, and in no case more than that."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from crsyncer.core.content.annotations import ROBOT_LABEL, SHARD_LABEL
from crsyncer.core.content.object_content import ROBOT
from crsyncer.core.model import Json
from crsyncer.core.requests.calls import JSON_PATCH, Call, Collection
from crsyncer.door.domain.split_plan import AskedDoor, Step
from crsyncer.door.split.shard_objects import ShardObjects
from crsyncer.door.split.splitting import Splitting
from crsyncer.errors import SyncError
from crsyncer.ports import Reply
from tests.door.simulated import answered
from tests.model.simulation.api_server import ApiServer
from tests.model.simulation.clock import Clock
from tests.model.simulation.storage import Storage
from tests.system.bed import crd

GOALS, FINDINGS = (crd("lab.example.com", plural=plural) for plural in ("goals", "findings"))
ROBOTS = Collection("registry.cloudrobotics.com", "v1", "robots", "default")
KEPT = "crsyncer.cloudrobotics.com/robot-{}"
MOVING = ("r1", "r2")
Place = tuple[str, str, str]


class Shard:
    """An API server that is asked by requests; what is done to it is written down."""

    def __init__(self, name: str, world: "World") -> None:
        self.name, self.world = name, world
        self.server = ApiServer(Storage(name, revision=100))
        self.writes: list[tuple[str, str]] = []
        self.is_down = False

    async def send(self, call: Call) -> Reply:
        """Answer; `before` of the world may do something first, or have the command die."""
        if call.method != "GET":
            self.world.before(self, call)
            self.writes.append((call.method, call.path))
        if self.is_down:
            return Reply(500, {"message": "busy"})
        return answered(self.server, call)

    def do(self, method: str, path: str, body: Any = None) -> Json:
        """A person's request."""
        reply = self.server.answer(Call("x", method, path, body=body, content_type=JSON_PATCH))
        assert reply.status < 300, reply
        return reply.body

    def make(self, plural: str, robot: str, name: str, **metadata: Any) -> str:
        """Make an object of a robot; its path."""
        root = "/api" if plural == "configmaps" else "/apis/lab.example.com"
        path = f"{root}/v1/namespaces/robot-{robot}/{plural}"
        self.do("POST", path, {"metadata": {"name": name, **metadata}, "spec": {"a": 1}})
        return f"{path}/{name}"

    def edit(self, path: str, value: Any = 2) -> None:
        """Change an object's content."""
        self.do("PATCH", path, [{"op": "add", "path": "/spec/a", "value": value}])

    def objects(self, *robots: str) -> set[Place]:
        """The objects in the namespaces of robots."""
        kinds = ("goals.lab.example.com", "findings.lab.example.com", "configmaps", "secrets")
        wanted = {f"robot-{robot}" for robot in robots}
        return {(kind, *where) for kind in kinds for where in self.server.storage.of(kind) if where[0] in wanted}


class World:
    """A root that is split, its clone, and a door that follows the Robots' labels."""

    def __init__(self, *, robots: Sequence[str] = ("r1", "r2", "r3")) -> None:
        self.clock = Clock()
        self.robots = robots
        self.before: Callable[[Shard, Call], None] = lambda _shard, _call: None
        self.connected = set(robots)
        self.stuck: set[str] = set()
        """Robots whose streams at the root never end."""
        self.silent = ""
        self.a, self.b = Shard("root", self), Shard("b", self)
        self.a.server.storage.put("robots.registry.cloudrobotics.com", ("", ""), {"metadata": {}})
        self.a.server.storage.remove("robots.registry.cloudrobotics.com", ("", ""))
        robot_crd = crd("registry.cloudrobotics.com", plural="robots")
        for each in (GOALS, FINDINGS, robot_crd):
            self.a.do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", each)
        for robot in robots:
            self.a.server.make_namespace(f"robot-{robot}")
            self.a.do("POST", ROBOTS.path, {"metadata": {"name": robot}})
            self.a.make("goals", robot, "plain")
            self.a.make("goals", robot, "kept", finalizers=[KEPT.format(robot)])
            self.a.make("findings", robot, "own", annotations={ROBOT: robot})
            self.a.make("configmaps", robot, "settings", labels={ROBOT_LABEL: robot})
            self.a.make("configmaps", robot, "unlabelled")
        self.b.server.storage.restore(self.a.server.storage.snapshot())

    @property
    def labels(self) -> dict[str, str]:
        """Where each Robot shall be."""
        found = self.a.server.storage.of("robots.registry.cloudrobotics.com").values()
        return {
            each["metadata"]["name"]: (each["metadata"].get("labels") or {}).get(SHARD_LABEL, "root") for each in found
        }

    def label(self, robot: str, shard: str) -> None:
        """Somebody sets a Robot's label."""
        body = [{"op": "add", "path": "/metadata/labels", "value": {SHARD_LABEL: shard}}]
        self.a.do("PATCH", f"{ROBOTS.path}/{robot}", body)

    async def ask(self, shards: Sequence[str]) -> tuple[AskedDoor, ...]:
        """The door."""
        if self.silent:
            return (AskedDoor("door", self.silent),)
        routed = {shard: frozenset(name for name, own in self.labels.items() if own == shard) for shard in shards}
        streams = {shard: names & self.connected for shard, names in routed.items()}
        streams["root"] |= self.stuck
        return (AskedDoor("door", streams=streams, routed=routed),)

    def split(self, step: int | None = None, *, names: tuple[str, ...] = MOVING, yes: bool = True) -> "Told":
        """Run the command."""
        one, other = ShardObjects("root", self.a.send), ShardObjects("b", self.b.send)

        async def root(call: Call) -> Reply:
            if call.method == "PATCH":  # a merge patch, of the label alone
                self.before(self.a, call)
                self.label(call.path.rpartition("/")[2], call.body["metadata"]["labels"][SHARD_LABEL])
                return Reply(200, {"metadata": {}})
            return await self.a.send(call)

        splitting = Splitting(root, ROBOTS, one, other, names, self.ask)
        return Told(*self.clock.run(splitting.run(step, yes=yes)))

    def is_split(self) -> bool:
        """Whether each shard has what its robots have, and nothing of the others."""
        whole = {(robot, number) for robot in self.robots for number in range(5)}
        at_a, at_b = self.a.objects("r3"), self.b.objects(*MOVING)
        moved = {place for place in self.a.objects(*MOVING) | self.b.objects("r3") if place[2] != "unlabelled"}
        return len(at_a | at_b) == len(whole) and not moved


class Told:
    """What the command says."""

    def __init__(self, content: Json, failed: Step | None) -> None:
        self.content = content
        self.states = [each["state"] for each in content["steps"]]
        self.why = "" if failed is None else f"{failed.number}: {failed.message}"


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.clock.close()


class Died(Exception):
    """The command was killed."""


def test_G7_2_a_split_leaves_each_object_where_its_robot_is_and_writes_no_more_than_that(world: World):
    assert world.split(yes=False).states == ["done", "open", "open", "open", "open"]
    assert (world.a.writes, world.b.writes) == ([], [])
    told = world.split()
    assert (told.states, told.why) == (["done"] * 5, "")
    assert world.is_split()
    removed = {path for method, path in world.a.writes if method == "DELETE"}
    assert len(removed) == 8
    assert all("/robot-r1/" in path or "/robot-r2/" in path for path in removed)
    assert {path.split("/namespaces/")[1] for method, path in world.b.writes if method == "DELETE"} == {
        "robot-r3/goals/plain", "robot-r3/goals/kept", "robot-r3/findings/own", "robot-r3/configmaps/settings",
    }  # fmt: skip
    assert told.content["done"] == [
        *(f"robot {name}: {SHARD_LABEL}=b" for name in MOVING),
        *(f"robot {name}: 4 objects removed at root" for name in MOVING),
        "robot r3: 4 objects removed at b",
    ]
    before = (len(world.a.writes), len(world.b.writes))
    assert world.split().states == ["done"] * 5
    assert (len(world.a.writes), len(world.b.writes)) == before


def test_G7_2_a_split_that_is_killed_before_any_of_its_requests_is_resumed():
    number = 0
    while True:
        number += 1
        world, left = World(), number
        first = world.a.objects(*MOVING)

        def die(_shard: Shard, _call: Call) -> None:
            nonlocal left
            left -= 1
            if not left:
                raise Died

        world.before = die
        try:
            world.split()
            break
        except (Died, ExceptionGroup):
            world.before = lambda _shard, _call: None
            gone = first - world.a.objects(*MOVING)
            assert gone <= world.b.objects(*MOVING), "what went at the shard is at the clone"
            assert world.split().states == ["done"] * 5
            assert world.is_split()
        finally:
            world.clock.close()
    assert number > 15


def test_G7_2_before_their_objects_go_a_split_is_undone_by_the_labels(world: World):
    assert world.split(2).states == ["done"]
    assert world.split(3).states == ["done"]
    for name in MOVING:
        world.label(name, "root")
    assert world.split(yes=False).states == ["done", "open", "open", "open", "open"]
    assert len(world.a.objects(*world.robots)) == len(world.b.objects(*world.robots)) == 15


def test_G7_2_what_is_written_at_the_shard_just_before_it_goes_stays_and_is_named(world: World):
    path = "/apis/lab.example.com/v1/namespaces/robot-r1/goals/plain"

    def write(shard: Shard, call: Call) -> None:
        if shard is world.a and (call.method, call.path) == ("DELETE", path):
            world.before = lambda _shard, _call: None
            shard.edit(path)

    world.before = write
    told = world.split()
    assert told.states == ["done", "done", "done", "failed", "open"]
    assert told.why.endswith(
        "goals.lab.example.com/robot-r1/plain differs in its content: it was written after the snapshot"
    )
    assert ("goals.lab.example.com", "robot-r1", "plain") in world.a.objects("r1")
    assert not world.b.writes
    world.b.edit(path)  # a human makes them alike
    assert world.split().states == ["done"] * 5


def test_G7_2_what_goes_at_the_clone_meanwhile_is_not_removed_at_the_shard(world: World):
    path = "/apis/lab.example.com/v1/namespaces/robot-r2/goals/plain"

    def remove(shard: Shard, call: Call) -> None:
        if shard is world.a and call.method == "DELETE":
            world.before = lambda _shard, _call: None
            world.b.do("DELETE", path)

    world.before = remove
    told = world.split()
    assert told.states[3] == "failed"
    assert "goals.lab.example.com/robot-r2/plain is at root alone" in told.why
    assert ("goals.lab.example.com", "robot-r2", "plain") in world.a.objects("r2")


def test_G7_2_a_robot_that_is_led_back_meanwhile_loses_nothing(world: World):
    def lead_back(shard: Shard, call: Call) -> None:
        if shard is world.a and call.method == "DELETE":
            world.before = lambda _shard, _call: None
            world.label("r2", "root")

    world.before = lead_back
    told = world.split()
    assert told.states[:2] == ["done", "open"]
    assert len(world.a.objects("r2")) == 5
    assert not world.b.writes


def test_G7_2_a_robot_that_is_away_keeps_its_objects_until_it_is_seen_at_the_clone(world: World):
    world.connected.remove("r2")
    began = world.clock.now
    told = world.split()
    assert told.states == ["done", "done", "done", "waits", "done"]
    assert told.why == "4: 1 robot not seen at b yet: r2"
    assert world.clock.now - began == pytest.approx(60, abs=1)
    assert len(world.a.objects("r2")) == 5
    assert len(world.a.objects("r1")) == 1
    world.connected.add("r2")
    assert world.split().states == ["done"] * 5
    assert world.is_split()


def test_G7_2_while_a_stream_is_left_nothing_goes(world: World):
    world.stuck.add("r1")
    told = world.split()
    assert (told.states[2], told.why) == ("failed", "3: 1 robot still at root: r1")
    assert world.split(4).why == told.why
    assert not [method for method, _ in (*world.a.writes, *world.b.writes) if method == "DELETE"]
    world.stuck.clear()
    assert world.split().states == ["done"] * 5


def test_G7_2_without_the_answer_of_a_door_nothing_is_switched_and_nothing_goes(world: World):
    world.silent = "away"
    assert world.split().why == "2: 1 door did not answer, and may serve these robots: door: away"
    assert set(world.labels.values()) == {"root"}
    world.silent = ""
    world.split(2)
    world.silent = "away"
    began = world.clock.now
    assert world.split().why == "3: 1 door did not answer, and may serve these robots: door: away"
    assert world.clock.now - began < 1
    assert len(world.a.objects(*MOVING)) == 10


def test_G7_2_an_object_that_others_keep_is_deleted_and_waited_for(world: World):
    path = world.a.make("goals", "r1", "other", finalizers=["example.com/keeps", KEPT.format("r1")])
    world.b.server.storage.restore(world.a.server.storage.snapshot())
    told = world.split()
    assert told.states == ["done", "done", "done", "waits", "done"]
    assert told.why == "4: 1 object deleted at root, but kept by finalizers of others"
    world.a.do("PATCH", path, [{"op": "remove", "path": "/metadata/finalizers"}])
    assert world.split().states == ["done"] * 5


def test_G7_2_what_a_robot_makes_may_differ_and_goes_once_it_is_at_the_clone(world: World):
    own = world.a.make("findings", "r1", "new", annotations={ROBOT: "r1"})
    world.a.edit("/apis/lab.example.com/v1/namespaces/robot-r1/findings/own")
    told = world.split()
    assert (told.states[0], told.states[3]) == ("done", "failed")
    assert "findings.lab.example.com/robot-r1/new is not at b yet, where its robot makes it anew" in told.why
    assert world.b.make("findings", "r1", "new", annotations={ROBOT: "r1"}) == own
    assert world.split().states == ["done"] * 5


def test_a_robot_that_nobody_knows_ends_the_command_before_anything(world: World):
    with pytest.raises(SyncError, match="there is no robot r9"):
        world.split(names=("r1", "r9"))


def test_shards_without_a_common_version_or_that_do_not_answer_end_it_in_a_line(world: World):
    versions = [{**GOALS["spec"]["versions"][0], "name": "v2"}]
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/goals.lab.example.com"
    world.b.do("PATCH", path, [{"op": "replace", "path": "/spec/versions", "value": versions}])
    with pytest.raises(SyncError, match=r"shards root and b serve goals.lab.example.com in no common version"):
        world.split()
    world.b.is_down = True
    with pytest.raises(SyncError, match=r"shard b: .*: busy"):
        world.split()
