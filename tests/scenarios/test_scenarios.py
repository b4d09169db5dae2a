"""Every transcript is what the agent does today: `--rewrite` tells them anew."""

from pathlib import Path

import pytest

from tests.scenarios.story import told

TRANSCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_scenario_is_as_it_was_written(path: Path, request: pytest.FixtureRequest) -> None:
    now = told(path.read_text())
    if request.config.getoption("--rewrite"):
        path.write_text(now)
    assert path.read_text() == now


def test_there_are_a_dozen_of_them() -> None:
    assert len(TRANSCRIPTS) >= 12
