"""Every reason that `status` can show: a real fault provokes it, and following its hint ends it."""

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from crsyncer.adapters.metrics import Metrics
from crsyncer.console.screens.reasons import CODES
from crsyncer.console.screens.report import exit_code
from crsyncer.core.model import Json
from tests.model.scenes import provoked_holds, provoked_troubles
from tests.model.scenes.provoked import BY_PROCESSES, MINE, Case, codes
from tests.model.simulation.world import World

CASES = {
    name: each
    for module in (provoked_holds, provoked_troubles)
    for name, each in vars(module).items()
    if isinstance(each, Case)
}


def sample(content: Json, series: str) -> float | None:
    """The value of `name` or `name{label="value"}` in the metrics of an agent with this status."""
    name, _, label = series.partition("{")
    labels = dict(re.findall(r'(\w+)="(.*?)"', label))
    for family in text_string_to_metric_families(Metrics(CODES).render(content).decode()):
        for each in family.samples:
            if each.name == name and labels.items() <= each.labels.items():
                return float(each.value)
    return None


@pytest.mark.parametrize("name", CASES)
def test_a_reason_shows_and_its_hint_ends_it(name: str) -> None:
    provoked = CASES[name]
    with World(kinds=provoked.kinds) as world:
        world.begin("a", labels=MINE)
        sound = world.status()
        assert (exit_code(sound), sound["reasons"]) == (0, [])
        steps = provoked.steps(world)
        next(steps)
        status = world.status()
        hints = [reason["hint"] for reason in status["reasons"] if reason["code"] == provoked.code]
        assert provoked.hint in " ".join(hints), status["reasons"]
        assert exit_code(status) == provoked.exit_code
        series = [f'crsyncer_reasons{{code="{provoked.code}"}}', *([provoked.metric] if provoked.metric else [])]
        before = [sample(sound, each) for each in series]
        assert all(sample(status, each) != value for each, value in zip(series, before, strict=True))
        next(steps, None)
        world.settle()
        status = world.status()
        assert (codes(world), exit_code(status)) == ([], 0)
        assert [sample(status, each) for each in series] == before
        assert world.troubles == []


def test_every_reason_is_provoked_by_something():
    assert {each.code for each in CASES.values()} | BY_PROCESSES == set(CODES)
