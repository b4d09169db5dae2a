"""What operators are told of CRDs that travel on virtual time: `api diff` and `explain` (C1.5, C8)."""

import asyncio

import pytest

from crsyncer.adapters.expressions import Expressions
from crsyncer.cli.api import _told
from crsyncer.console.compare import lister
from crsyncer.console.compare.api_diff import compare_api
from crsyncer.core.model import Json, Side
from tests.model.scenes.apis import CRD_RESOURCE, GOALS, ask, drop_crd, goals, revisions_on, travelling
from tests.model.scenes.policies import senders
from tests.model.simulation.world import World

BOTH = pytest.mark.parametrize("source", ["cloud", "robot"])


def diff(world: World) -> Json:
    """The row of goals in what `api diff` prints."""

    async def compared() -> Json:
        send = senders(world)
        apis = (await lister.configuration(send[Side.ROBOT], Expressions)).apis()
        return await compare_api(GOALS, apis[GOALS], "robot-1", send)

    return asyncio.run(compared())


def cited(world: World, rule: str) -> list[tuple[bool | None, str]]:
    """What `explain` says of a goal by a rule."""
    found = world.order("explain", resource=GOALS, name="a")
    return [(step["ok"], step["text"]) for step in found["steps"] if step["rule"] == rule]


@BOTH
def test_C8_3_diff_shows_what_would_change_and_what_that_breaks(source: str) -> None:
    with travelling(source, spec_source=source, fields=("x", "y")) as world:
        target = Side(source).other
        new = diff(world)
        assert (new["current"], new["error"], new["breaking"]) == (None, None, [])
        assert new["new"]["names"]["plural"] == "goals"
        world.begin(seconds=5)
        same = diff(world)
        assert (same["current"], same["held"]) == (same["new"], None)
        assert (same["revision"], same["entry"]) == (*revisions_on(world, target),) * 2
        world.planes[Side(source)].apply(goals("x", "z"))
        world.pass_time(10)
        found = diff(world)
        assert [(each["change"], each["version"], each["path"]) for each in found["breaking"]] == [
            ("FieldGone", "v1", "/spec/y")
        ]
        assert (found["held"], found["entry"]) == ("it is breaking", same["revision"])
        lines = [*_told(found)]
        title = f"# {GOALS}: {found['revision']} (held, it is breaking)"
        assert lines[:2] == [title, "# breaking: v1 /spec/y: is gone"]
        assert f"--- {target}/customresourcedefinitions/{GOALS}" in lines
        assert [line.strip("-+ ") for line in lines if line.endswith(("x:", "y:", "z:"))] == ["x:", "y:", "z:"]
        ask(world, source, spec_source=source, allowBreaking=True)
        assert diff(world)["held"] is None


def test_C8_2_diff_knows_whose_crd_it_is_and_that_another_scope_is_never_followed() -> None:
    with travelling("robot", spec_source="robot") as world:
        world.cloud.apply(goals("x", "y"))
        assert diff(world)["held"] == "the cloud's CRD was not made by robot-1"
    with travelling() as world:
        world.robot.apply(goals("x", cluster=True))
        assert diff(world)["held"] == "another scope is never followed"


def test_C8_4_diff_says_what_cannot_be_compared() -> None:
    with travelling() as world:
        drop_crd(world, "cloud")
        assert diff(world)["error"] == f"the cloud has no CRD {GOALS}"
        world.cloud.apply(goals("x"))
        ask(world, versions=["v7"])
        assert "v7 cannot be picked" in diff(world)["error"]
        ask(world)
        served = world.servers[Side.ROBOT].storage.of(CRD_RESOURCE)
        served.pop(("", "apisets.crsyncer.cloudrobotics.com"))
        found = diff(world)
        assert found["error"] == "the robot does not serve APIRevisions and APISets"
        assert "crsyncer crds --api" in found["hint"]


@BOTH
def test_C8_explain_says_what_becomes_of_the_crd(source: str) -> None:
    with travelling(source, spec_source=source, fields=("x", "y")) as world:
        world.begin(seconds=5)
        target = Side(source).other
        [revision] = revisions_on(world, target)
        assert cited(world, "C8.2") == [(True, f"the CRD follows {revision}")]
        world.planes[Side(source)].apply(goals("x"))
        world.pass_time(10)
        [(ok, text)] = cited(world, "C8.3")
        assert ok
        assert text.startswith(f"the CRD follows {revision}; it is held, and objects are synced on: ")
        ask(world, source, spec_source=source, paused=True)
        world.pass_time(5)
        assert cited(world, "C8.4") == [(True, f"the CRD follows {revision}; it is paused, so no new one comes")]
