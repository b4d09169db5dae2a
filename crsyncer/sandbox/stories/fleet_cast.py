"""The cast of `crsyncer demo --fleet`: a cloud with a controller, robots with agents, and what runs on the robots."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from kubernetes.aio.client import ApiException

from crsyncer.core.accounts.robot_account import robot_namespace
from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.cluster import Cluster
from crsyncer.sandbox.fleet_process import controller, fleet_command
from crsyncer.sandbox.program import Program
from crsyncer.sandbox.relay import Relay
from crsyncer.sandbox.resource import Resource

Json = dict[str, Any]

CRD_FILE = Path(__file__).parent / "fleet_demo" / "navigations.yaml"
CRD, SOURCE, PLACEMENT = yaml.safe_load_all(CRD_FILE.read_text(encoding="utf-8"))
"""The kind that is placed, the object that a user edits, and its placement."""
NAVIGATIONS = Resource.of_crd(CRD)
_FLEET = "fleet.crsyncer.cloudrobotics.com"
PLACEMENTS = Resource(_FLEET, "v1alpha1", "robotplacements", "RobotPlacement")
DECISIONS = Resource(_FLEET, "v1alpha1", "robotplacementdecisions", "RobotPlacementDecision")
REPORTS = Resource(_FLEET, "v1alpha1", "robotsyncstates", "RobotSyncState")
ROBOTS = Resource("registry.cloudrobotics.com", "v1alpha1", "robots", "Robot")
BAD = "2.0"
"""The release with which a robot's navigation crashes."""
COPY = NAVIGATIONS.object("nav")
"""The object on a robot."""
_SILENCE = timedelta(minutes=12)
_PERIOD_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Robot:
    """A robot with an API server and an agent."""

    name: str
    cluster: Cluster
    agent: AgentProcess

    @property
    def replica(self) -> Json:
        """Its object in the cloud."""
        return replica(self.name)

    async def navigate(self) -> None:
        """Do what a controller on the robot does, for ever: take a release, and report whether it drives with it."""
        while True:
            with suppress(ApiException, aiohttp.ClientError, TimeoutError):  # it is gone meanwhile, or the server is
                found = await self.cluster.find(NAVIGATIONS, COPY)
                release = None if found is None else found["spec"]["release"]
                if found is not None and (found.get("status") or {}).get("release") != release:
                    status = {"release": release, "phase": "CRASHED" if release == BAD else "DRIVING"}
                    await self.cluster.patch(NAVIGATIONS, COPY, {"status": status}, subresource="status")
            await asyncio.sleep(_PERIOD_SECONDS)


@dataclass(slots=True)
class FleetCast:
    """Everybody. People use the API servers directly; one robot's agent uses the link."""

    cloud: Cluster
    kubeconfig: Path
    """The cloud's."""
    directory: Path
    robots: Mapping[str, Robot]
    link: Relay
    controller: Program = field(init=False)

    def __post_init__(self) -> None:
        self.controller = controller(self.directory, kubeconfig=self.kubeconfig)

    async def crsyncer(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command of `crsyncer fleet`: exit code, standard output, standard error."""
        return await fleet_command(self.kubeconfig, *arguments)

    async def backdate_report(self, robot: str) -> None:
        """Date the last report of a robot back, so that it counts as offline for a controller that starts now.

        An API server keeps the times in managedFields that a request has, if something else changes as well.
        """
        report = REPORTS.object(robot, namespace=robot_namespace(robot))
        found = await self.cloud.get(REPORTS, report)
        time = (datetime.now(UTC) - _SILENCE).strftime("%Y-%m-%dT%H:%M:%SZ")
        fields = [{**each, "time": time} for each in found["metadata"]["managedFields"]]
        change = {"annotations": {"demo": "dated back"}, "managedFields": fields}
        await self.cloud.patch(REPORTS, report, {"metadata": change})


def replica(robot: str) -> Json:
    """The object of a robot in the cloud."""
    return NAVIGATIONS.object("nav", namespace=robot_namespace(robot))
