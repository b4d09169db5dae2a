"""Two real control planes for the tests that want them, started once and healthy again before each test."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.resource import CRD
from crsyncer.sandbox.two_planes import Sandbox
from tests import planes
from tests.api import Api
from tests.disk import Disk
from tests.door.way_through import way_through_a_door
from tests.faults.rows import ROWS
from tests.link.link import Link, Way

_LOG_LINES = 60
_WAITING = {"contract", "delivery", "door", "faults", "system"}
"""Rooms whose tests mostly wait for processes."""


# How fast a machine is says nothing of what is shown.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("exploring", patient, derandomize=False)
"""Other examples each time: `make nightly`."""
settings.register_profile("patient", patient, derandomize=True)
settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rewrite`: transcripts in tests/scenarios and screens in OPERATING.md are made anew, to be read as a diff.

    `--door`: only tests with a link from an agent to its cloud, and that leads through a front door.
    """
    parser.addoption("--rewrite", action="store_true", help="rewrite the transcripts and OPERATING.md's screens")
    parser.addoption("--door", action="store_true", help="agents reach their cloud through a front door")


def pytest_configure(config: pytest.Config) -> None:
    """The tags of the fault matrix: `pytest -m fault_07`."""
    for row, text in ROWS.items():
        config.addinivalue_line("markers", f"fault_{row:02}: {text}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Spread the files that compute evenly between those that wait for servers, so that no processor is idle for long.

    Each worker takes the next file. One room after the other, all would first compute and then all wait.
    """
    if config.getoption("--door"):
        items[:] = [item for item in items if _reaches_its_cloud_by_a_link(item)]
    files = list(dict.fromkeys(item.path for item in items))
    waiting = [file for file in files if file.parent.name in _WAITING]
    computing = [file for file in files if file.parent.name not in _WAITING]
    place = {file: (number + 0.5) / len(some) for some in (waiting, computing) for number, file in enumerate(some)}
    items.sort(key=lambda item: (place[item.path], item.path))


def _reaches_its_cloud_by_a_link(item: pytest.Item) -> bool:
    """Whether an agent does; what is shown of the link itself holds without a door alone."""
    return "cloud_link" in getattr(item, "fixturenames", ()) and item.path.name != "test_sandbox_link.py"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that failed shows what its agents logged: the machine that it ran on may be out of reach."""
    report = yield
    if report.failed:
        directory = getattr(item, "funcargs", {}).get("tmp_path")
        for log in sorted(directory.rglob("*.log")) if directory else ():
            report.sections.append((log.name, "\n".join(log.read_text().splitlines()[-_LOG_LINES:])))
    return report


@pytest.fixture(scope="session")
def running_sandbox() -> Iterator[Sandbox]:
    """The planes of the whole session; tests use `sandbox`."""
    with Sandbox.up() as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(running_sandbox: Sandbox) -> Iterator[Sandbox]:
    """Both planes, made healthy again after a test that stopped or paused something."""
    yield running_sandbox
    for plane in running_sandbox.planes:
        make_healthy(plane)


def make_healthy(plane: Plane) -> None:
    """Have a plane run and answer, whatever a test has done to it; one that is only slow is waited for."""
    if not plane.healthy():
        for component in plane.pids():
            planes.resume(plane, component)
        plane.start()


@pytest.fixture
def cloud(sandbox: Sandbox) -> Plane:
    return sandbox.cloud


@pytest.fixture
def robot(sandbox: Sandbox) -> Plane:
    return sandbox.robot


@pytest.fixture
async def cloud_api(cloud: Plane) -> AsyncIterator[Api]:
    """The cloud's administrator, past every link."""
    async with Api(cloud.server, ca_file=cloud.ca_file, token=cloud.admin_token) as api:
        yield api


@pytest.fixture
async def robot_api(robot: Plane) -> AsyncIterator[Api]:
    """The robot's administrator, past every link."""
    async with Api(robot.server, ca_file=robot.ca_file, token=robot.admin_token) as api:
        yield api


@pytest.fixture(scope="session")
def way_to_cloud(
    running_sandbox: Sandbox, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Way | None]:
    """The way through a front door, with `--door`."""
    if not pytestconfig.getoption("--door"):
        yield None
        return
    with way_through_a_door(running_sandbox.cloud, tmp_path_factory.mktemp("way")) as way:
        yield way


@pytest.fixture
async def cloud_link(cloud: Plane, way_to_cloud: Way | None) -> AsyncIterator[Link]:
    """A scriptable link to the cloud."""
    async with Link(cloud, way=way_to_cloud) as link:
        yield link


@pytest.fixture
async def robot_link(robot: Plane) -> AsyncIterator[Link]:
    """A scriptable link to the robot's own API server."""
    async with Link(robot) as link:
        yield link


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """The disk under the test's directory, for what is started through it."""
    with Disk(tmp_path) as disk:
        if not disk.can_watch():
            pytest.skip("this kernel, or the container, does not let system calls be answered (seccomp_unotify)")
        yield disk


@pytest.fixture
async def group(sandbox: Sandbox) -> AsyncIterator[str]:
    """An API group of this test's own; its CRDs are gone from both planes afterwards.

    Gone, and not only deleted: until then they are kinds of the next test's agent.
    """
    name = f"t{secrets.token_hex(3)}.example.com"
    yield name

    async def clean(plane: Plane) -> None:
        await asyncio.to_thread(make_healthy, plane)
        async with Api(plane.server, ca_file=plane.ca_file, token=plane.admin_token) as api:
            await api.remove_crds(*(crd for crd in (await api.list(CRD))["items"] if crd["spec"]["group"] == name))

    await asyncio.gather(*map(clean, sandbox.planes))
