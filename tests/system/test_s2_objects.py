"""S2 on real API servers: selectors, and the few rights that an agent needs; tests/model shows the rest."""

import pytest

from tests.api import Api
from tests.system.bed import LABEL, ROBOT, Bed
from tests.system.conftest import MakeBed
from tests.system.kinds import account, account_name, rules

MINE = {LABEL: ROBOT}


async def works(bed: Bed) -> None:
    """Specs go down, statuses up, changes and deletions too."""
    await bed.cloud.create("a", spec={"x": 1}, labels=MINE)
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"phase": "RUNNING"})
    await bed.cloud.shows("a", status={"phase": "RUNNING"})
    await bed.cloud.patch("a", {"spec": {"x": 2}})
    await bed.robot.shows("a", spec={"x": 2})
    await bed.robot.set_status("a", {"phase": "DONE"})
    await bed.cloud.shows("a", status={"phase": "DONE"})
    await bed.cloud.delete("a")
    await bed.robot.gone("a")


@pytest.mark.parametrize("verb", [pytest.param("patch", marks=pytest.mark.nightly("a variation")), "update"])
async def test_S2_1_list_watch_and_either_write_of_status_are_all_rights_that_the_cloud_must_grant(
    make_bed: MakeBed, cloud_api: Api, group: str, verb: str
):
    token = await account(cloud_api, account_name(group), rules(group, verb))
    bed = await make_bed(filtered="true", cloud_token=token)
    await works(bed)
    await bed.agent.until(lambda status: status["health"] == "healthy")
    async with bed.stopped():
        pass
    await works(bed)
