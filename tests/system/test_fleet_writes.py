"""Each edit costs exactly the writes that it needs and that `fleet plan` names, by the API server's own audit log."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from crsyncer.core.model import Json
from crsyncer.sandbox.fleet_process import fleet_command
from crsyncer.sandbox.free_ports import free_ports
from crsyncer.sandbox.resource import CONFIG_MAP
from crsyncer.sandbox.two_planes import Sandbox
from tests.api import Api
from tests.system.audited import AuditLog, audited_plane
from tests.system.bed import eventually, some_at_a_time
from tests.system.conftest import FLEET_CRDS
from tests.system.fleet_bed import FleetBed, make_fleet_bed

ROBOTS = [f"r{number}" for number in range(100)]
PROPERTIES = "crsyncer-properties"
STEP = {"path": "/spec/speed", "property": {"name": "speed"}}
GROUP = "audited.example.com"


class Ledger:
    """A fleet on an API server with an audit log, and what was written since somebody looked last."""

    def __init__(self, bed: FleetBed, log: AuditLog) -> None:
        self.bed = bed
        self._log = log
        self._seen: Counter[str] = Counter()
        (self._port,) = free_ports(1)
        self._barriers = 0

    def start(self, name: str) -> None:
        """Start a controller that shows its metrics."""
        self.bed.start(name, "--listen", f"127.0.0.1:{self._port}")

    async def plan(self, obj: Json) -> Counter[str]:
        """What `fleet plan` says of an edit."""
        file = self.bed.directory / "edit.yaml"
        file.write_text(yaml.safe_dump(obj))
        kubeconfig = self.bed.cloud.kubeconfig(self.bed.directory / "plan.kubeconfig")
        code, out, error = await fleet_command(kubeconfig, "plan", "-f", str(file), "--json")
        assert code in (0, 1), error
        verbs = {"create": "create", "update": "patch", "delete": "delete"}
        return Counter(
            f"{verbs[each['verb']]} {each['namespace']}/{each['name']}" for each in json.loads(out)["writes"]
        )

    async def pass_barrier(self) -> None:
        """Wait until a later edit has had its effect, and the controller says that nothing is due any more."""
        self._barriers += 1
        number = self._barriers
        await self.bed.api.patch(self.bed.goal("barrier"), {"spec": {"number": number}})

        async def passed() -> bool:
            found = (await self.bed.replicas()).get("robot-r0/barrier")
            return found is not None and found["spec"].get("number") == number

        async def settled() -> bool:
            try:
                url = f"http://127.0.0.1:{self._port}/metrics"
                async with aiohttp.ClientSession() as session, session.get(url) as reply:
                    return "crsyncer_fleet_due 0.0" in await reply.text()
            except aiohttp.ClientError:
                return False

        await eventually(passed, seconds=180, what="an edit after the edit")
        await eventually(settled, seconds=180, what="a controller with nothing due")

    async def written(self) -> Counter[str]:
        """What the controller has written since this was asked last, but for the barrier."""
        await self.pass_barrier()
        now = self._log.writes(GROUP)
        found, self._seen = now - self._seen, now
        return Counter({name: number for name, number in found.items() if not name.endswith("/barrier")})

    async def apply(self, obj: Json, change: list[Json]) -> Counter[str]:
        """Plan an edit, make it, hold what is written against the plan, and return it."""
        planned = await self.plan(obj)
        await self.bed.api.patch(obj, change)
        written = await self.written()
        assert written == planned
        return written


@pytest.fixture
async def ledger(running_sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Ledger]:
    """A hundred Robots with the source dock; one of them has lift too, and r0 what shows that an edit was seen."""
    with audited_plane(tmp_path, running_sandbox) as (plane, log):
        async with Api(plane.server, ca_file=plane.ca_file, token=plane.admin_token) as api:
            for crd in FLEET_CRDS.values():
                await api.apply_crd(crd)
            bed = await make_fleet_bed(api, plane, tmp_path, GROUP)
            await api.ensure_namespace(PROPERTIES)
            labels = {name: {"lift": "no"} for name in ROBOTS} | {"r7": {"lift": "yes", "uses": "yes"}}
            await some_at_a_time(api.create(bed.robot(name, **labels[name])) for name in ROBOTS)
            for name in ("r7", "r8"):
                data = {"speed": "1", "color": "red"}
                await api.create(CONFIG_MAP.object(name, namespace=PROPERTIES, data=data))
            for name in ("dock", "lift", "barrier"):
                await api.create(bed.goal(name, x=1))

            def entry(name: str) -> list[Json]:
                return [{"group": GROUP, "resource": "goals", "names": [name]}]

            lifted: dict[str, Any] = {"robotSelectors": [{"matchLabels": {"lift": "yes"}}]}
            uses = {"robotSelector": {"matchLabels": {"uses": "yes"}}, "steps": [STEP]}
            await bed.place("dock", resources=entry("dock"), overrides=[uses])
            await bed.place("lift", resources=entry("lift"), **lifted, overrides=[{"steps": [STEP]}])
            await bed.place("barrier", resources=entry("barrier"), robotSelectors=[], robotNames=["r0"])
            found = Ledger(bed, log)
            found.start("first")
            try:
                yield found
            finally:
                await bed.stop()


async def test_F3_4_F11_an_edit_costs_exactly_the_writes_that_it_needs_and_a_plan_names(ledger: Ledger) -> None:
    bed = ledger.bed
    first = await ledger.written()
    assert first == Counter([*(f"create robot-{name}/dock" for name in ROBOTS), "create robot-r7/lift"])

    source = await ledger.apply(bed.goal("dock", x=2), [{"op": "replace", "path": "/spec/x", "value": 2}])
    assert source == Counter(f"patch robot-{name}/dock" for name in ROBOTS)
    properties = CONFIG_MAP.object("r7", namespace=PROPERTIES, data={"speed": "2", "color": "red"})
    used = await ledger.apply(properties, [{"op": "replace", "path": "/data/speed", "value": "2"}])
    assert used == Counter(["patch robot-r7/dock", "patch robot-r7/lift"])
    label = [{"op": "replace", "path": "/metadata/labels/lift", "value": "yes"}]
    assert await ledger.apply(bed.robot("r8", lift="yes"), label) == Counter(["create robot-r8/lift"])
    unused = CONFIG_MAP.object("r7", namespace=PROPERTIES, data={"speed": "2", "color": "blue"})
    assert await ledger.apply(unused, [{"op": "replace", "path": "/data/color", "value": "blue"}]) == Counter()

    await bed.controllers["first"].stop()
    ledger.start("second")
    assert await ledger.written() == Counter()
