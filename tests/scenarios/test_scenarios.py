"""Every transcript is what the agent does today: `--rewrite` tells them anew."""

from pathlib import Path

import pytest

from tests.scenarios.story import EVENT, told

TRANSCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_scenario_is_as_it_was_written(path: Path, request: pytest.FixtureRequest) -> None:
    now = told(path.read_text())
    if request.config.getoption("--rewrite"):
        path.write_text(now)
    assert path.read_text() == now


def test_no_transcript_is_without_an_event_or_an_outcome() -> None:
    for path in TRANSCRIPTS:
        lines = path.read_text().splitlines()
        assert [line for line in lines if line.startswith(EVENT)], path.name
        assert lines[-1].startswith(("cloud has", "robot has", "waiting", "health")), path.name
