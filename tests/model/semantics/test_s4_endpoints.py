"""S4 on virtual time: the status subresource of a CRD comes and goes while a kind is synced."""

from typing import Any

import pytest

from crsyncer.core.model import Side
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import SOURCES, roles
from tests.model.simulation.world import World
from tests.system.bed import crd

BOTH = pytest.mark.parametrize("source", SOURCES)


@pytest.mark.parametrize("side", ["cloud", "robot"])
@pytest.mark.parametrize("source", SOURCES)
def test_S4_6_a_side_that_loses_its_status_endpoint_is_not_asked_for_it_without_end(source: str, side: str) -> None:
    with World(kinds={"goals": {"source": source}}) as world:
        up, down = roles(world, source)
        up.create("a", spec={"x": 1})
        world.start()
        world.settle()
        keywords: dict[str, Any] = {} if source == "cloud" else {"source": "robot"}
        world.planes[Side(side)].apply(crd(GROUP, status=False, **keywords))
        down.set_status("a", {"n": 1})
        since = world.clock.now
        world.pass_time(120)
        assert up.objects()["a"]["status"] == {"n": 1}
        refused = [each for each in world.journal.asked(verb="status", since=since) if each.status == 404]
        assert len(refused) <= 6  # as many tries as a minute has (S10)
        made = len(world.writes)
        world.pass_time(3600)
        assert (len(world.writes), world.troubles) == (made, [])


@BOTH
@pytest.mark.parametrize("side", ["up", "down"])
@pytest.mark.parametrize("gone", [True, False], ids=["goes", "comes"])
@pytest.mark.parametrize("seen", [True, False], ids=["seen", "down"])
def test_S4_6_no_status_is_lost_where_the_endpoint_comes_or_goes_and_nobody_tells(
    source: str, side: str, gone: bool, seen: bool
) -> None:
    with World(kinds={"goals": {"source": source, "status": gone}}) as world:
        up, down = roles(world, source)
        world.begin("a", source=source)
        down.set_status("a", {"n": 1})
        world.settle()
        if not seen:
            world.crash()
        (up if side == "up" else down).apply(crd(GROUP, source=source, status=not gone))
        if not seen:
            world.start()
        world.pass_time(60)
        up.set("a", spec={"x": 2})
        world.pass_time(60)
        assert down.objects()["a"]["spec"] == {"x": 2}
        assert (up.objects()["a"]["status"], down.objects()["a"]["status"]) == ({"n": 1}, {"n": 1})


@BOTH
def test_S4_4_a_copy_that_is_made_again_gets_its_status_where_the_endpoint_has_gone(source: str) -> None:
    with World(kinds={"goals": {"source": source}}) as world:
        up, down = roles(world, source)
        world.begin("a", source=source)
        down.set_status("a", {"n": 1})
        world.settle()
        world.crash()
        down.apply(crd(GROUP, source=source, status=False))
        world.start()
        world.pass_time(60)
        down.delete("a")
        world.pass_time(120)
        assert (up.objects()["a"]["status"], down.objects()["a"]["status"]) == ({"n": 1}, {"n": 1})
        assert world.status()["health"] == "healthy"
