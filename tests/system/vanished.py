"""What tests of kinds that vanish upstream share: who may see it, what is held, how all comes back."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from crsyncer.sandbox.resource import CRD
from tests.system.bed import Bed, crd
from tests.system.state_dir import quiet


@contextlib.asynccontextmanager
async def out_of_sight(bed: Bed, how: str) -> AsyncIterator[None]:
    """What happens inside, the agent does not see; all that it saw before is on disk."""
    if how == "down":
        await quiet(bed)
        async with bed.stopped(kill=True):
            yield
    else:
        bed.cloud.link.cut()
        await bed.until_side("cloud", "offline")
        yield
        bed.cloud.link.restore()


async def delete_crd(bed: Bed) -> None:
    """Delete the kind in the cloud, and wait until its objects and it are gone."""
    await bed.cloud.api.delete(CRD.object(bed.resource))
    await bed.cloud.api.until_gone(CRD.object(bed.resource))


async def all_held(bed: Bed, count: int, *, state: str = "kind-missing", seconds: float = 60.0) -> dict[str, Any]:
    """Wait until so many objects are held because their kind has vanished, and it is said; the hold."""

    def held(status: dict[str, Any]) -> bool:
        kinds = [(kind["state"], kind["held"]) for kind in status["kinds"]]
        holds = [(hold["reason"], hold["objects"], hold["resource"]) for hold in status["holds"]]
        said = "KindMissing" in [reason["code"] for reason in status["reasons"]]
        wanted = ([(state, count)], [("KindMissing", count, bed.resource)], "attention", True)
        return (kinds, holds, status["health"], said) == wanted

    status = await bed.agent.until(held, seconds=seconds)
    (hold,) = status["holds"]
    assert f"crsyncer holds release {hold['id']}" in hold["hint"]
    return dict(hold)


async def back(bed: Bed, names: list[str], *, x: int = 2, seconds: float = 120.0) -> None:
    """Put the CRD and these objects back, and wait until all is well without anybody's help."""
    await bed.cloud.api.apply_crd(crd(bed.group))
    await asyncio.gather(*(bed.cloud.create(name, spec={"x": x}) for name in names))

    def well(status: dict[str, Any]) -> bool:
        held = [kind["held"] for kind in status["kinds"]]
        return (status["health"], status["holds"], held) == ("healthy", [], [0])

    await bed.agent.until(well, seconds=seconds)
    for name in names[:3]:
        await bed.robot.shows(name, spec={"x": x}, seconds=seconds)
    await bed.settled(seconds=seconds)
