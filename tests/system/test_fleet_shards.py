"""The fleet controller on three real API servers: the root, and two shards of which one is killed (F1.1, F10.2)."""

from pathlib import Path

import pytest

from crsyncer.core.content.annotations import SHARD_LABEL
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.two_planes import Sandbox
from tests.api import Api
from tests.system.bed import crd, eventually
from tests.system.conftest import FLEET_CRDS
from tests.system.fleet_bed import FleetBed, make_bed

REPORTS = FLEET_CRDS["robotsyncstates"]


@pytest.fixture
async def bed(fleet_api: Api, cloud: Plane, tmp_path: Path, group: str):
    bed = await make_bed(fleet_api, cloud, tmp_path, group)
    try:
        yield bed
    finally:
        await bed.stop()


@pytest.fixture
def plane_b(running_sandbox: Sandbox, tmp_path: Path):
    """An API server of the test's own."""
    programs = running_sandbox.programs
    plane = Plane("b", tmp_path / "plane-b", apiserver=programs.kube_apiserver, datastore=programs.etcd)
    plane.start()
    try:
        yield plane
    finally:
        plane.stop(graceful=False)


async def test_F10_2_a_robots_replicas_are_on_its_shard_and_a_shard_that_is_killed_stops_no_other(
    bed: FleetBed, plane_b: Plane, robot: Plane, robot_api: Api, group: str, tmp_path: Path
):
    async with Api(plane_b.server, ca_file=plane_b.ca_file, token=plane_b.admin_token) as api_b:
        kind = crd(group, filtered="true")
        on_b = FleetBed(api_b, plane_b, tmp_path, group, await api_b.apply_crd(kind))
        on_c = FleetBed(robot_api, robot, tmp_path, group, await robot_api.apply_crd(kind))
        for api in (api_b, robot_api):
            await api.apply_crd(REPORTS)
        try:
            await bed.robots("r0")
            await bed.robots("rb", **{SHARD_LABEL: "b"})
            await bed.robots("rc", **{SHARD_LABEL: "c"})
            source = await bed.api.create(bed.goal(speed=1))
            await bed.place()
            shards = [("b", plane_b), ("c", robot)]
            files = [f"{name}={plane.kubeconfig(tmp_path / f'{name}.kubeconfig')}" for name, plane in shards]
            bed.start("fleet", "--shard", files[0], "--shard", files[1])
            await bed.until_specs(r0={"speed": 1})
            await on_b.until_specs(rb={"speed": 1})
            await on_c.until_specs(rc={"speed": 1})
            old = (await on_b.replicas())["robot-rb/dock"]["metadata"]["uid"]

            plane_b.stop("apiserver", graceful=False)
            await bed.api.patch(source, {"spec": {"speed": 2}})
            await bed.until_specs(r0={"speed": 2})
            await on_c.until_specs(rc={"speed": 2})
            await bed.until_status(lambda status: status["counts"]["waiting"] == 1 and not status["holds"])

            plane_b.start()
            await on_b.until_specs(rb={"speed": 2})
            assert (await on_b.replicas())["robot-rb/dock"]["metadata"]["uid"] == old
            await bed.until_status(lambda status: status["counts"]["waiting"] == 0)

            await bed.api.delete(await bed.placement())

            async def none_left() -> bool:
                return not (await on_b.replicas() or await on_c.replicas() or await bed.replicas())

            await eventually(none_left, what="no replica on any shard")
        finally:
            await bed.stop()
            await robot_api.remove_crds(REPORTS)
