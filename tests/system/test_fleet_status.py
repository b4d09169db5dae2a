"""`crsyncer fleet status` reads a real API server: its health, its exit code, and what it shows of a robot."""

import asyncio
import itertools
from subprocess import CompletedProcess

from crsyncer.core.model import Json
from crsyncer.fleet.domain import lease
from tests.system.conftest import FLEET_CRDS
from tests.system.fleet_bed import FleetBed
from tests.system.fleet_objects import STATUS, made

COUNTS = dict.fromkeys(STATUS["counts"], 0) | {"selected": 1, "ready": 1}
LEASE: Json = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"} | {
    "metadata": {"name": lease.LEASE, "namespace": "default"}
}


async def test_status_reads_the_fleet_and_says_what_needs_a_human(fleet: FleetBed) -> None:
    async def run(*words: str, code: int) -> CompletedProcess[str]:
        return await fleet.command("status", *words, code=code)

    async def status(*words: str, code: int) -> Json:
        return await fleet.asked("status", *words, code=code)

    placement = await fleet.api.create(made("RobotPlacement", spec={"robotNames": ["r1"]}))
    await fleet.robots("r1")
    stopped = await status(code=13)
    assert (stopped["schema"], stopped["controller"]["state"]) == ("crsyncer.fleet-status/v1", "stopped")
    assert "STOPPED: no controller runs" in (await run(code=13)).stdout

    async def lead() -> None:
        """Keep the Lease, as a controller whose clock is far behind: the API server's time counts (F1.2)."""
        for number in itertools.count(1):
            spec = {"holderIdentity": "pod-a", "renewTime": lease.micro_time(number), "leaseTransitions": number}
            await (fleet.api.create({**LEASE, "spec": spec}) if number == 1 else fleet.api.patch(LEASE, {"spec": spec}))
            led.set()
            await asyncio.sleep(2)

    led = asyncio.Event()
    leading = asyncio.create_task(lead())
    try:
        await led.wait()
        good = {"observedGeneration": 1, "conditions": [], "counts": COUNTS, "errorCount": 0, "holds": []}
        await fleet.api.patch_status(placement, good)
        healthy = await status("--robot", "r1", code=0)
        assert healthy["controller"]["holder"] == "pod-a"
        assert healthy["robots"] == {"all": 1, "online": 0, "offline": 0, "unreported": 1}
        assert healthy["placements"][0]["counts"] == COUNTS
        assert healthy["robot"]["placements"][0]["state"] is None
        uid = placement["metadata"]["uid"]
        robots = [{"name": "r1", "state": "Ready", "since": "2026-01-01T00:00:00Z"}]
        decision = made("RobotPlacementDecision", placement={"name": "a", "uid": uid}, robots=robots)
        await fleet.api.create({**decision, "metadata": {"name": "a-0", "namespace": "default"}})
        shown = (await run("a", "--robot", "r1", code=0)).stdout
        assert shown.startswith("HEALTHY: 1 placement for 1 robot.")
        assert "default/a  Ready" in shown
        assert (await run("-o", "name", code=0)).stdout == "robotplacement/default/a\n"
        assert "there is no RobotPlacement default/b" in (await run("b", code=1)).stderr
        assert "there is no robot r2" in (await run("--robot", "r2", code=1)).stderr
        hold = {"id": "ab12", "reason": "RobotsLost", "objects": 7, "message": "7 replicas\u001b[2J\nlost"}
        await fleet.api.patch_status(placement, {"holds": [hold]})
        held_text = (await run(code=12)).stdout
        assert "crsyncer fleet release ab12" in held_text
        assert "\x1b" not in held_text
        await fleet.api.patch_status(placement, {"holds": []})
        await fleet.api.remove_crds(FLEET_CRDS["fieldstrips"])
        [reason] = (await status(code=12))["reasons"]
        assert reason["code"] == "KindNotServed"
    finally:
        leading.cancel()
        await fleet.api.delete(LEASE)
