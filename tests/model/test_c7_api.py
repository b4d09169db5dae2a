"""C7 and C8 on virtual time: a CRD that travels to the names of the other side."""

import pytest

from crsyncer.core.model import Side
from tests.model.apis import api_row, api_set, crd_on, revisions_on, serve_apis
from tests.model.plane import GROUP
from tests.model.policies import apply_policy, serve_policies
from tests.model.projected import FLEET, JOB_KIND, JOBS, PROJECTION, TASKS
from tests.model.scene import restart, state
from tests.model.world import World
from tests.system.bed import crd


def projected_api(source: str, *, own: str) -> World:
    """A world where only the source has the CRD, by its own name `own`; the agent does not run yet."""
    world = World(kinds={"errands": {}})
    serve_policies(world.robot)
    serve_apis(world.planes[Side(source).other])
    plural, _, group = own.partition(".")
    world.planes[Side(source)].apply(crd(group, plural=plural, source=None))
    apply_policy(world.robot, specSource=source, projection=PROJECTION, api={"source": source})
    return world


@pytest.mark.parametrize("source", ["robot", "cloud"])
def test_C8_1_a_crd_travels_to_the_names_of_the_other_side(source: str) -> None:
    own, there = (f"goals.{GROUP}", TASKS) if source == "robot" else (TASKS, f"goals.{GROUP}")
    target, plural = ("cloud", "tasks") if source == "robot" else ("robot", "goals")
    with projected_api(source, own=own) as world:
        world.start()
        world.pass_time(10)
        made = crd_on(world, target, there)
        assert made is not None
        assert (made["spec"]["group"], made["spec"]["names"]["plural"]) == (there.partition(".")[2], plural)
        [revision] = revisions_on(world, target)
        assert revision.partition(".")[2] == there
        name = "crsyncer-robot-1" if target == "cloud" else "crsyncer"
        apis = (api_set(world, target, name) or {"spec": {}})["spec"]["apis"]
        assert apis == [{"group": there.partition(".")[2], "resource": plural, "revision": revision}]
        assert api_row(world) == (revision, "current", None)
        world.pass_time(60)
        assert state(world) == "syncing"
        up, down = (world.robot, world.cloud) if source == "robot" else (world.cloud, world.robot)
        up.create("a", kind=own, spec={"x": 1})
        world.settle()
        assert down.objects(there)["a"]["spec"] == {"x": 1}
        before = len(world.writes)
        restart(world)
        assert [write.verb for write in world.writes[before:] if write.verb != "patch"] == []
        assert api_row(world) == (revision, "current", None)


def test_C8_2_a_crd_by_another_projection_is_another_crd() -> None:
    with projected_api("robot", own=f"goals.{GROUP}") as world:
        world.start()
        world.pass_time(10)
        apply_policy(world.robot, specSource="robot", projection=JOBS, api={"source": "robot"})
        world.pass_time(10)
        made = crd_on(world, "cloud", JOB_KIND)
        assert made is not None
        assert made["spec"]["names"]["kind"] == "Job"
        assert crd_on(world, "cloud", TASKS) is not None
        assert str(api_row(world)[0]).endswith(f".jobs.{FLEET}")
