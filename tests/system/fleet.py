"""Five kinds as fleets have them, in two sets: our own examples, and the ones that the Go cr-syncer federates."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.resource import Resource
from tests.api import Api
from tests.link.link import Link
from tests.system.bed import LABEL, ROBOT, SYNCER, SideBed

CHECKOUT = Path(__file__).parents[2]
EXAMPLES = CHECKOUT / "cloud" / "examples"
PREDECESSORS = CHECKOUT.parent / "shared" / "crds"
"""Data beside the checkout, for compatibility tests only."""


@dataclass(frozen=True)
class Sample:
    """What an object of a kind looks like: spec, a changed spec, two statuses; empty where none is reported."""

    spec: dict[str, Any]
    change: dict[str, Any]
    statuses: tuple[dict[str, Any], ...] = ()
    neighbours: dict[str, Any] = field(default_factory=dict)
    """What others write into the status upstream, beside the subtree."""


SAMPLES: dict[str, Sample] = {
    "RobotModel": Sample({"vendor": "Acme", "series": "T4", "payloadKilograms": 12.5}, {"series": "T5"}),
    "Robot": Sample(
        {"model": "t4", "site": "hall-2"},
        {"site": "hall-3"},
        (
            {"robot": {"mode": "Working", "batteryPercent": 55.5, "facts": {"firmware": "1.2"}}},
            {"robot": {"mode": "Charging", "batteryPercent": 100}},
        ),
        {"fleet": {"lastContact": "2026-01-01T00:00:00Z"}},
    ),
    "Rollout": Sample(
        {"package": "navigation", "release": "4.1.0", "settings": {"speed": 1.5, "zones": [{"id": 2**53 + 1}]}},
        {"release": "4.2.0"},
        ({"state": "Installing", "observedGeneration": 1}, {"state": "Ready", "observedGeneration": 1}),
    ),
    "Errand": Sample(
        {"timeoutSeconds": 90.5, "steps": [{"goTo": "gate"}, {"chargeUntilPercent": 80}]},
        {"timeoutSeconds": 30},
        ({"outcome": "Running", "step": 1}, {"outcome": "Done", "finished": "2026-01-01T00:00:00Z"}),
    ),
    "Recharge": Sample({"until": 80}, {"until": 90}, ({"level": 20}, {"level": 80, "done": True})),
    "RobotType": Sample({"make": "Acme", "model": "T4"}, {"model": "T5"}),
    "registry.cloudrobotics.com/Robot": Sample(
        {"type": "t4", "project": "lab"},
        {"project": "hall"},
        (
            {"robot": {"state": "AVAILABLE", "batteryPercentage": 55.5, "info": {"firmware": "1.2"}}},
            {"robot": {"state": "ERROR", "emergencyStopButtonPressed": True}},
        ),
        {"cloud": {"seen": [1, 2]}, "configuration": {"trolleyAttached": True}},
    ),
    "ChartAssignment": Sample(
        {
            "clusterName": ROBOT,
            "namespaceName": "apps",
            "chart": {"name": "nav", "version": "1", "values": {"a": [1.5]}},
        },
        {"clusterName": "elsewhere"},
        (
            {"phase": "Updating", "observedGeneration": 1},
            {"phase": "Ready", "observedGeneration": 1, "conditions": [{"type": "Settled", "status": "True"}]},
        ),
    ),
    "Mission": Sample(
        {"actions": [{"move_to_named_position": {"target_name": "gate"}}], "time_out_sec": 60.5},
        {"time_out_sec": 30},
        (
            {"status": "RUNNING", "active_action": {"id": "7", "index": 0, "status": "MOVING"}},
            {"status": "SUCCEEDED", "queue_entry_id": "12", "time_of_actuation": "2026-01-01T00:00:00Z"},
        ),
    ),
    "ChargeAction": Sample({"until": 80}, {"until": 90}, ({"level": 20}, {"level": 80, "done": True})),
}


@dataclass
class Kind:
    """One kind on both planes."""

    crd: dict[str, Any]
    cloud: SideBed
    robot: SideBed

    @property
    def name(self) -> str:
        """The CRD's name."""
        return str(self.crd["metadata"]["name"])

    @property
    def sample(self) -> Sample:
        """What its objects look like."""
        resource = self.cloud.resource
        return SAMPLES.get(f"{resource.group}/{resource.kind}") or SAMPLES[resource.kind]

    @property
    def annotations(self) -> dict[str, str]:
        """Of the CRD, the predecessor's, without their prefix."""
        annotations = self.crd["metadata"]["annotations"].items()
        return {key.removeprefix(SYNCER): value for key, value in annotations}

    @property
    def filtered(self) -> bool:
        """Whether only labelled objects are synced."""
        return self.annotations.get("filter-by-robot-name", "false").lower() == "true"

    @property
    def label(self) -> dict[str, str]:
        """The labels of an object of this robot."""
        return {LABEL: ROBOT} if self.filtered else {}


@dataclass
class Fleet:
    """All kinds of a set, and the agent between them."""

    kinds: list[Kind]
    agent: AgentProcess
    cloud_link: Link
    robot_link: Link

    async def start(self) -> dict[str, Any]:
        """Start the agent, and wait until every kind is synced; the status."""
        await self.agent.start()
        return await self.agent.until(
            lambda status: (
                len(status["kinds"]) == len(self.kinds)
                and all(kind["state"] == "syncing" for kind in status["kinds"])
                and status["health"] == "healthy"
            ),
            seconds=60,
        )


def crds(directory: Path) -> list[dict[str, Any]]:
    """The CRDs in a directory."""
    return [doc for path in sorted(directory.glob("*.yaml")) for doc in yaml.safe_load_all(path.read_text()) if doc]


def kinds(found: list[dict[str, Any]], *, cloud: Api, robot: Api, cloud_link: Link, robot_link: Link) -> Iterator[Kind]:
    """The kinds of CRDs that are applied on both planes."""
    for crd in found:
        resource = Resource.of_crd(crd)
        status = "status" in crd["spec"]["versions"][0].get("subresources", {})
        sides = (
            SideBed(api, link.plane, link, resource, status) for api, link in ((cloud, cloud_link), (robot, robot_link))
        )
        yield Kind(crd, *sides)
