"""C1.3 and C5.4 on virtual time: copies that two policies need, of which one is misconfigured or gone."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from crsyncer.core.model import Json, Side
from tests.model.scenes.config_maps import data, maps, put_map
from tests.model.scenes.policies import apply_policy, delete_policy, edit_policy, serve_policies
from tests.model.scenes.related import BOTH, EDGE, ends, entry, related
from tests.model.simulation.scene import refuse_lists, scene
from tests.model.simulation.world import World

_WRONG = {"naming": {"name": "{nope}"}}
STOPPED = pytest.mark.parametrize("stopped", [False, True])
"""Whether the agent is stopped while the policy changes."""


@contextmanager
def shared(origin: str, *, by: Json | None = None) -> Iterator[World]:
    """A goal refers to `both` and `p`, a task to `both` and `q`; `by`: what the tasks' policy says of its entry."""
    with scene(goals={"source": "cloud"}, tasks={"source": "cloud"}) as world:
        serve_policies(world.robot)
        apply_policy(world.robot, "p", kind="goals", related=[entry(origin)])
        apply_policy(world.robot, "q", kind="tasks", related=[entry(origin, **(by or {}))])
        for name in ("both", "p", "q"):
            put_map(ends(world, origin)[0], name, labels={} if name == "p" else {"tier": "edge"}, x="1")
        world.cloud.create("g", spec={"maps": ["both", "p"]})
        world.begin("t", kind="tasks", spec={"maps": ["both", "q"]})
        assert _copies(world, origin) == {"both", "p", "q"}
        yield world


def _copies(world: World, origin: str) -> set[str]:
    return set(maps(ends(world, origin)[1]))


def _change(world: World, *, stopped: bool, origin: str, **spec: Json) -> None:
    with world.down(stopped):
        apply_policy(world.robot, "p", kind="goals", related=[entry(origin)], **spec)
    world.settle()


@BOTH
@STOPPED
@pytest.mark.parametrize("how", ["deleted", "refers to nothing"])
def test_C1_3_what_a_misconfigured_policy_may_need_stays_when_another_lets_go(
    origin: str, stopped: bool, how: str
) -> None:
    with shared(origin) as world:
        _change(world, stopped=stopped, origin=origin, **_WRONG)
        if how == "deleted":
            world.cloud.delete("t", kind="tasks")
        else:
            world.cloud.set("t", kind="tasks", spec={"maps": []})
        world.settle()
        assert _copies(world, origin) >= {"both", "p"}
        _change(world, stopped=stopped, origin=origin)
        put_map(ends(world, origin)[0], "both", x="2")
        world.settle()
        assert maps(ends(world, origin)[1])["both"]["data"] == {"x": "2"}
        world.remove("g")
        assert not _copies(world, origin) & {"both", "p"}


@BOTH
@pytest.mark.parametrize("how", ["deleted", "label"])
def test_C1_3_what_a_misconfigured_policy_may_need_stays_when_another_selects_it_no_more(origin: str, how: str) -> None:
    with shared(origin, by={"object": EDGE}) as world:
        _change(world, stopped=False, origin=origin, **_WRONG)
        if how == "deleted":
            world.cloud.delete("t", kind="tasks")
        else:
            put_map(ends(world, origin)[0], "both", labels={"tier": "cloud"}, x="1")
        world.settle()
        assert _copies(world, origin) == {"both", "p"} | ({"q"} if how == "label" else set())


@BOTH
@STOPPED
def test_C5_4_of_a_policy_that_is_deleted_only_what_no_other_needs_is_kept(origin: str, stopped: bool) -> None:
    with shared(origin) as world:
        with world.down(stopped):
            delete_policy(world.robot, "p")
        world.settle()
        assert _copies(world, origin) == {"both", "p", "q"}
        world.remove("t", kind="tasks")
        assert _copies(world, origin) == {"p"}


@BOTH
@STOPPED
def test_C5_4_of_an_entry_that_goes_before_all_primaries_are_known_the_copies_stay(origin: str, stopped: bool) -> None:
    with scene(goals={"source": "cloud"}, tasks={"source": "cloud"}) as world:
        serve_policies(world.robot)
        rule = refuse_lists(world)
        world.start()
        for policy, kind in (("p", "tasks"), ("q", "goals")):
            apply_policy(world.robot, policy, kind=kind, related=[entry(origin)])
        put_map(ends(world, origin)[0], "p", x="1")
        world.add("t", kind="tasks", spec={"maps": ["p"]}, seconds=60)
        assert _copies(world, origin) == {"p"}
        with world.down(stopped, kill=True):
            apply_policy(world.robot, "p", kind="tasks", related=[entry(origin)], **_WRONG)
        world.pass_time(60)
        world.weather[Side.CLOUD].rules.remove(rule)
        world.pass_time(600)
        assert _copies(world, origin) == {"p"}


def test_C5_1_what_is_no_longer_referred_to_when_the_link_is_back_is_not_fetched() -> None:
    with related(start=False) as world:
        world.begin("g", spec={"maps": ["m"]})
        with world.down():
            world.cut("cloud")
        world.pass_time(5)
        edit_policy(world, subtree="part", related=[entry()], seconds=5)
        world.heal("cloud")
        put_map(world.cloud, "m", x="1")
        world.settle()
        assert data(world.robot) == {"m": {"x": "1"}}
