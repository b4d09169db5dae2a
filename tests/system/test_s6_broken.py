"""S6.4, S6.5: a database that is broken, foreign, half there or of another version costs a relist at most."""

import pytest

from tests.system.bed import Bed, writes
from tests.system.crowd import copied, report_all, shown_all


@pytest.mark.fault_45
@pytest.mark.fault_47
async def test_S6_5_a_bad_database_is_set_aside_and_rebuilt(bed: Bed) -> None:
    names = await copied(bed, 5)
    await report_all(bed, names, "RUNNING")
    await shown_all(bed, names, "RUNNING")
    await bed.settled()
    async with bed.stopped():
        (bed.agent.state_dir / "state.db").write_bytes(b"This is not a database. " * 500)
        bed.robot.link.clear()
        bed.cloud.link.clear()
    await bed.until_kind("syncing")
    await bed.settled()
    await bed.agent.until(lambda status: (status["store"]["state"], status["health"]) == ("rebuilt", "healthy"))
    aside = list(bed.agent.state_dir.glob("state.db.broken-*"))
    assert aside
    assert "the database could not be used" in bed.agent.log.read_text()
    assert {file.stat().st_mode & 0o777 for file in bed.agent.state_dir.glob("state.db*")} == {0o600}
    assert writes(bed.robot.link) == writes(bed.cloud.link) == []
    assert await bed.robot.names() == await bed.cloud.names() == set(names)
