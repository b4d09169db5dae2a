"""F10.3 on real API servers: a marked object's status is an object of the robot's own, which no other robot writes."""

from collections.abc import AsyncIterator, Iterator

import pytest

from crsyncer.console.confinement.manifests import Plan, Profile, confinable
from crsyncer.core.content.annotations import SHARED as MARK
from crsyncer.core.content.object_content import ROBOT as ROBOT_ANNOTATION
from crsyncer.core.content.object_content import digest
from crsyncer.core.model import Json
from crsyncer.sandbox.resource import CRD, Resource
from tests.api import Api
from tests.model.scenes.shared import crd_of_statuses
from tests.system.bed import LABEL, ROBOT, Bed, eventually
from tests.system.confined import ROBOTS, Answer, Confined
from tests.system.conftest import MakeBed

CRD_OF_STATUSES = crd_of_statuses()
STATUSES = Resource.of_crd(CRD_OF_STATUSES)
ID = "0123456789abcdef01234567"


@pytest.fixture
async def sharing(make_bed: MakeBed, cloud_api: Api) -> AsyncIterator[Bed]:
    """An agent that has copied an object of an unfiltered kind, and a cloud that takes RobotObjectStatus."""
    await cloud_api.apply_crd(CRD_OF_STATUSES)
    bed = await make_bed()
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    yield bed
    await bed.agent.kill()
    await cloud_api.remove_crds(CRD_OF_STATUSES)


async def test_F10_3_the_status_follows_the_mark_there_and_back(sharing: Bed, cloud_api: Api) -> None:
    bed = sharing
    resource = f"{bed.cloud.resource.plural}.{bed.cloud.resource.group}"
    source = await bed.cloud.patch("a", {"metadata": {"annotations": {MARK: "placement-uid"}}})
    namespace = source["metadata"]["namespace"]
    name = f"{digest([resource, namespace, 'a'])}-{ROBOT}"
    await bed.settled()

    async def returned() -> Json:
        found = (await cloud_api.list(STATUSES, namespace="default"))["items"]
        return {each["metadata"]["name"]: each["spec"].get("returned") for each in found}

    async def until(expected: Json) -> None:
        async def check() -> bool:
            return await returned() == expected

        await eventually(check, what=f"the cloud has {expected}")

    for number in (1, 2):
        await bed.robot.set_status("a", {"n": number})
        await until({name: {"n": number}})
    assert "status" not in await bed.cloud.get("a")
    async with bed.stopped(kill=True):
        await bed.robot.set_status("a", {"n": 3})
    await until({name: {"n": 3}})
    await bed.cloud.patch("a", {"metadata": {"annotations": {MARK: None}}})
    await bed.cloud.shows("a", status={"n": 3})
    await until({})


@pytest.fixture(scope="module")
def confined(confined: Confined) -> Iterator[Confined]:
    """Robots that are confined, and may write statuses of their own."""
    assert confined.admin.ask("POST", CRD.path(), CRD_OF_STATUSES).status in (201, 409)
    kind = confinable(CRD_OF_STATUSES, Profile.NAMESPACE, place="-")
    confined.apply(Plan(ROBOTS, (kind,), profile=Profile.NAMESPACE))
    yield confined
    assert confined.admin.ask("DELETE", CRD.path(name=CRD_OF_STATUSES["metadata"]["name"])).status == 200


async def test_F10_3_a_confined_robot_writes_its_own_statuses_and_no_others(confined: Confined) -> None:
    robot = confined.robots["r2"]

    def status(name: str, owner: str) -> Json:
        marked = {"labels": {LABEL: owner}, "annotations": {ROBOT_ANNOTATION: owner}}
        head = {"apiVersion": STATUSES.api_version, "kind": STATUSES.kind}
        return head | {"metadata": {"name": name, **marked}, "spec": {"returned": {"n": 1}}}

    def create(name: str, owner: str = "r2", namespace: str = "robot-r2") -> Answer:
        return robot.ask("POST", STATUSES.path(namespace=namespace), status(name, owner))

    async def in_force() -> bool:
        listed = robot.ask("GET", STATUSES.path(namespace="robot-r2")).status
        return (listed, create(f"{ID}-r3").status) == (200, 403)

    await eventually(in_force, what="roles and policies are in force")
    made = create(f"{ID}-r2")
    assert made.status == 201, made
    refused = [
        *map(create, (f"{ID}-x-r2", "r2", f"{ID[:-1]}-r2", f"{ID}-r2.r2")),
        create(f"{ID}-r3", "r3"),
        create(f"{ID}-r3", "r3", "robot-r3"),
    ]
    assert {each.status for each in refused} <= {403, 422}, refused  # 422: a label that is not that of the namespace
    path = STATUSES.path(namespace="robot-r2", name=f"{ID}-r2")
    assert robot.ask("PUT", path, {**made.body, "spec": {"returned": {"n": 2}}}).status == 200
    assert robot.ask("DELETE", path).status == 200
