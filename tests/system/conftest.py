"""The `bed` that system tests stand on."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from crsyncer.cli.crds import SYNC_POLICY
from crsyncer.cli.fleet.fleet_crds import INVENTORY, KINDS, SCHEMAS
from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.resource import CRD, Resource
from crsyncer.sandbox.two_planes import Sandbox
from tests.api import Api, ApiError
from tests.link.link import Link
from tests.system.bed import ROBOT, Bed, SideBed, crd
from tests.system.confined import Confined
from tests.system.fleet_bed import FleetBed, make_fleet_bed

MakeBed = Callable[..., Awaitable[Bed]]
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "crsyncer-fleet", "namespace": "default"},
}
FLEET_CRDS = {name: yaml.safe_load((SCHEMAS / f"{name}.yaml").read_text()) for name in (*KINDS, INVENTORY)}


@pytest.fixture
async def fleet_api(cloud_api: Api) -> AsyncIterator[Api]:
    """A cloud that serves the kinds of the fleet and no others, and no longer does afterwards.

    Kinds that the tests of another file have left would be among those that may be placed, and a Lease that a
    controller has just held looks like one that leads.
    """
    await cloud_api.remove_crds(*(await cloud_api.list(CRD))["items"])
    with contextlib.suppress(ApiError):
        await cloud_api.delete(LEASE)
    try:
        await asyncio.gather(*map(cloud_api.apply_crd, FLEET_CRDS.values()))
        yield cloud_api
    finally:
        await cloud_api.remove_crds(*FLEET_CRDS.values())


@pytest.fixture(scope="module")
def confined(running_sandbox: Sandbox) -> Confined:
    """A cloud whose robots are confined."""
    return Confined(running_sandbox.cloud)


@pytest.fixture
async def policy_api(robot_api: Api) -> AsyncIterator[Api]:
    """The robot's API server serves SyncPolicies, and no longer does afterwards."""
    kind = yaml.safe_load(SYNC_POLICY.read_text())
    await robot_api.apply_crd(kind)
    yield robot_api
    await robot_api.remove_crds(kind)


@pytest.fixture
async def fleet(fleet_api: Api, cloud: Plane, tmp_path: Path, group: str) -> AsyncIterator[FleetBed]:
    """A bed of the fleet's tests; its controllers end with it."""
    fleet = await make_fleet_bed(fleet_api, cloud, tmp_path, group)
    yield fleet
    await fleet.stop()


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


@pytest.fixture
async def make_bed(
    cloud_api: Api, robot_api: Api, cloud_link: Link, robot_link: Link, group: str, tmp_path: Path
) -> AsyncIterator[MakeBed]:
    """Make a bed: CRDs applied on both planes, agent made but not started. Keywords as of `crd`, and:

    `cloud_crd`: other keywords for the cloud's CRD (False: none there), `robot_name`, `flags`, `environment`,
    `cloud_token`: the agent's credential there (default: everything allowed), `wrapper`: what starts the agent,
    `start`: start it right away.
    """
    async with contextlib.AsyncExitStack() as stack:

        async def make(
            *,
            cloud_crd: dict[str, Any] | bool | None = None,
            robot_name: str = ROBOT,
            flags: tuple[str, ...] = (),
            environment: dict[str, str] | None = None,
            cloud_token: str | None = None,
            wrapper: tuple[str, ...] = (),
            start: bool = True,
            **keywords: Any,
        ) -> Bed:
            robot_crd = crd(group, **keywords)
            resource = Resource.of_crd(robot_crd)
            cloud_resource = resource
            applied = robot_api.apply_crd(robot_crd)
            if cloud_crd is False:
                await applied
            else:
                changed = cloud_crd if isinstance(cloud_crd, dict) else {}
                wanted = cloud_api.apply_crd(crd(group, **{**keywords, **changed}))
                cloud_resource, _ = await asyncio.gather(wanted, applied)
            agent = AgentProcess(
                tmp_path,
                cloud_kubeconfig=cloud_link.kubeconfig(tmp_path / "cloud.yaml", token=cloud_token),
                robot_kubeconfig=robot_link.kubeconfig(tmp_path / "robot.yaml"),
                robot_name=robot_name,
                flags=flags,
                environment=environment,
                wrapper=wrapper,
            )
            stack.push_async_callback(agent.kill)
            status = keywords.get("status", True)
            cloud_status = cloud_crd.get("status", status) if isinstance(cloud_crd, dict) else status
            bed = Bed(
                group,
                tmp_path,
                SideBed(cloud_api, cloud_link.plane, cloud_link, cloud_resource, cloud_status),
                SideBed(robot_api, robot_link.plane, robot_link, resource, status),
                agent,
            )
            if start:
                await bed.start()
            return bed

        yield make


@pytest.fixture
async def bed(make_bed: MakeBed) -> Bed:
    """The usual bed: an unfiltered, namespaced kind with the status subresource, spec from the cloud, agent running."""
    return await make_bed()
