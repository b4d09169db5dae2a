"""Worlds where the cloud serves the robot's goals as tasks of another group."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from crsyncer.core.kinds.namespaces import Namespaces
from crsyncer.core.model import Json, Side
from tests.model.scenes.policies import apply_policy, serve_policies
from tests.model.simulation.life import AgentSettings
from tests.model.simulation.plane import Plane
from tests.model.simulation.scene import roles
from tests.model.simulation.world import World
from tests.system.bed import crd

FLEET = "fleet.example.org"
TASKS = f"tasks.{FLEET}"
JOB_KIND = f"jobs.{FLEET}"
PROJECTION: Json = {"group": FLEET, "resource": "tasks", "kind": "Task"}
JOBS: Json = {"group": FLEET, "resource": "jobs", "kind": "Job"}
NONES: Json = {"group": FLEET, "resource": "nones", "kind": "None"}
"""What the cloud does not serve."""
TO_CLUSTER: Json = {"name": "{namespace}-{name}"}
FROM_CLUSTER: Json = {"namespace": "home"}


@contextmanager
def projected(
    source: str | None = "cloud",
    *,
    projection: Mapping[str, Any] | None = None,
    cloud: Mapping[str, Any] | None = None,
    namespaces: Namespaces | None = None,
    spec: Mapping[str, Any] | None = None,
    **kind: Any,
) -> Iterator[World]:
    """A world where goals are projected; the agent does not run yet.

    `projection` is the policy's (None: PROJECTION), `spec` more of it; `cloud` are the keywords of `bed.crd` for the
    tasks of the cloud, `kind` those for the goals of the robot.
    """
    settings = AgentSettings() if namespaces is None else AgentSettings(namespaces=namespaces)
    with World(kinds={"goals": {"source": source, **kind}}, settings=settings) as world:
        world.cloud.drop_kind()
        world.cloud.apply(crd(FLEET, plural="tasks", source=None, **(cloud or {})))
        for plane in world.planes.values():
            plane.make_namespace("home")
        serve_policies(world.robot)
        apply_policy(world.robot, projection=dict(PROJECTION if projection is None else projection), **(spec or {}))
        yield world
        assert world.troubles == []


@contextmanager
def tasks(source: str, *names: str, **spec: Any) -> Iterator[World]:
    """Goals of these names that are tasks in the cloud, which also serves jobs; the agent runs."""
    with projected(source, spec=spec) as world:
        serve_jobs(world)
        for number, name in enumerate(names, 1):
            Pair(world, source).up.create(name, spec={"x": number})
        world.start()
        world.settle()
        yield world


def serve_jobs(world: World) -> None:
    """The cloud serves jobs, too."""
    world.cloud.apply(crd(FLEET, plural="jobs", source=None))


def name_on(side: Side) -> str:
    """What a side calls the kind."""
    return TASKS if side is Side.CLOUD else "goals"


class Pair:
    """Upstream and downstream, each with its own name for the kind."""

    def __init__(self, world: World, source: str) -> None:
        up, down = roles(world, source)
        self.up = End(up)
        self.down = End(down)


class End:
    """One side, in verbs about objects of the projected kind (`Plane`)."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._kind = name_on(plane.side)

    def create(self, name: str, **fields: Any) -> Json:
        """Create an object."""
        return self._plane.create(name, kind=self._kind, **fields)

    def set(self, name: str, *, namespace: str = "", **fields: Any) -> None:
        """Set top-level fields."""
        self._plane.set(name, kind=self._kind, namespace=namespace, **fields)

    def set_status(self, name: str, status: Any, *, namespace: str = "") -> None:
        """Replace the status."""
        self._plane.set_status(name, status, kind=self._kind, namespace=namespace)

    def delete(self, name: str, *, namespace: str = "") -> None:
        """Delete an object."""
        self._plane.delete(name, kind=self._kind, namespace=namespace)

    def objects(self, namespace: str = "") -> dict[str, Json]:
        """The objects in a namespace, or in none, by name."""
        return self._plane.objects(self._kind, namespace)
