"""The bed of the fleet's tests: a real cloud with the fleet's kinds, robots, and controllers as processes."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import yaml

from crsyncer.sandbox.fleet_process import controller
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.program import Program
from crsyncer.sandbox.resource import Resource
from tests.api import Api, Object
from tests.delivery.command_line import crsyncer
from tests.system.bed import crd, eventually
from tests.system.fleet_objects import made

OURS = "crsyncer.cloudrobotics.com/"
HOME = "default"
Check = tuple[str, str]


@dataclass(slots=True)
class FleetBed:
    """Verbs of a platform engineer. Objects of the placed kind are goals of a group of the test's own."""

    api: Api
    cloud: Plane
    directory: Path
    group: str
    goals: Resource
    controllers: dict[str, Program] = field(default_factory=dict)

    def start(self, name: str = "fleet", *flags: str) -> Program:
        """Start a controller."""
        kubeconfig = self.cloud.kubeconfig(self.directory / "fleet.kubeconfig")
        program = controller(self.directory, kubeconfig=kubeconfig, name=name, flags=flags)
        program.start()
        self.controllers[name] = program
        return program

    async def stop(self) -> None:
        """End all controllers."""
        for each in self.controllers.values():
            await each.kill()

    async def command(
        self, *words: str | Path, code: int | None = 0, login: Path | None = None
    ) -> CompletedProcess[str]:
        """Run `crsyncer fleet`, as an administrator or with another login; its exit code has to be this one."""
        kubeconfig = login or self.cloud.kubeconfig(self.directory / "cloud.yaml")
        done = await asyncio.to_thread(crsyncer, "fleet", *words, "--cloud-kubeconfig", kubeconfig)
        assert code in (None, done.returncode), done.stdout + done.stderr
        return done

    async def asked(self, *words: str | Path, code: int | None = 0, login: Path | None = None) -> Object:
        """The document that a command prints."""
        return dict(json.loads((await self.command(*words, "--json", code=code, login=login)).stdout))

    async def checked(self, *words: str, code: int | None = None, login: Path | None = None) -> dict[Check, Object]:
        """The checks of `fleet doctor`, by name and resource."""
        checks = (await self.asked("doctor", *words, code=code, login=login))["checks"]
        return {(each["name"], each["resource"] or ""): each for each in checks}

    def file(self, *objects: Object) -> Path:
        """A file with these objects."""
        path = self.directory / "objects.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        return path

    async def robots(self, *names: str, **labels: str) -> None:
        """Make Robots."""
        for name in names:
            await self.api.create(self.robot(name, **labels))

    def robot(self, name: str, **labels: str) -> Object:
        """A Robot, as somebody writes it."""
        metadata = {"name": name, "namespace": HOME, "labels": labels}
        return {"apiVersion": "registry.cloudrobotics.com/v1alpha1", "kind": "Robot", "metadata": metadata}

    def goal(self, name: str = "dock", namespace: str = HOME, **spec: Any) -> Object:
        """A goal, as somebody writes it."""
        metadata = {"name": name, "namespace": namespace}
        return {"apiVersion": self.goals.api_version, "kind": "Goal", "metadata": metadata, "spec": spec}

    async def place(self, name: str = "all", **spec: Any) -> Object:
        """Make a placement of all goals for all robots."""
        resources = [{"group": self.group, "resource": "goals", "selectors": [{}]}]
        whole = {"robotSelectors": [{}], "resources": resources, **spec}
        return await self.api.create({**made("RobotPlacement", spec=whole), "metadata": _named(name)})

    async def placement(self, name: str = "all") -> Object:
        """A placement as it is."""
        return await self.api.get({**made("RobotPlacement", spec={}), "metadata": _named(name)})

    async def replicas(self) -> dict[str, Object]:
        """The goals that are replicas, by namespace and name."""
        items = (await self.api.list(self.goals))["items"]
        marked = [each for each in items if OURS + "source" in each["metadata"].get("labels", {})]
        return {f"{each['metadata']['namespace']}/{each['metadata']['name']}": each for each in marked}

    async def until_specs(self, **specs: Any) -> None:
        """Wait until the replicas `dock` of these robots, and no others, have these specs."""
        wanted = {f"robot-{robot}/dock": spec for robot, spec in specs.items()}

        async def same() -> bool:
            return {name: each.get("spec") for name, each in (await self.replicas()).items()} == wanted

        await eventually(same, what=f"replicas {wanted}")

    async def until_status(self, good: Callable[[Object], bool], name: str = "all") -> Object:
        """Wait until the status of a placement is good."""

        async def look() -> Object | None:
            status = (await self.placement(name)).get("status") or {}
            return status if status and good(status) else None

        found: Object = await eventually(look, what="status of the placement")
        return found


async def make_fleet_bed(api: Api, cloud: Plane, directory: Path, group: str) -> FleetBed:
    """A bed whose kind may be placed."""
    goals = await api.apply_crd(crd(group, filtered="true"))
    return FleetBed(api, cloud, directory, group, goals)


def _named(name: str) -> Object:
    return {"name": name, "namespace": HOME}


def condition(status: Object, kind: str) -> tuple[str, str]:
    """Status and reason of a condition; two empty texts: there is none."""
    found = [each for each in status.get("conditions") or () if each["type"] == kind]
    return next(((each["status"], each["reason"]) for each in found), ("", ""))


def marks(replica: Object) -> Object:
    """What the annotation of a replica says."""
    found: Object = json.loads(replica["metadata"]["annotations"][OURS + "replica"])
    return found
