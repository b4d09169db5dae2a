"""CRDs that travel between real API servers (C8)."""

from collections.abc import AsyncIterator

import pytest
import yaml

from crsyncer.cli.crds import APIS, SYNC_POLICY
from crsyncer.core.model import Json, Side
from tests.api import Api
from tests.core.sync_policies import MINIMAL
from tests.system.bed import Bed, crd, eventually
from tests.system.commands import access
from tests.system.conftest import MakeBed
from tests.system.kinds import policy_of, until_row


@pytest.fixture
async def apis(cloud_api: Api, robot_api: Api) -> AsyncIterator[dict[Side, Api]]:
    """API servers that serve the kinds of this section, the robot's SyncPolicies too, and no longer do afterwards."""
    kinds = [*yaml.safe_load_all(APIS.read_text())]
    served = [(api, kind) for api in (cloud_api, robot_api) for kind in kinds]
    served.append((robot_api, yaml.safe_load(SYNC_POLICY.read_text())))
    for api, kind in served:
        await api.apply_crd(kind)
    yield {Side.CLOUD: cloud_api, Side.ROBOT: robot_api}
    for api, kind in served:
        await api.remove_crds(kind)


def schema(*fields: str) -> Json:
    """The schema of objects that have these text fields in spec."""
    texts = {name: {"type": "string"} for name in fields}
    parts = {"spec": {"type": "object", "properties": texts}, "status": {"type": "object"}}
    return {"type": "object", "properties": parts}


async def until_followed(bed: Bed, api: Api, *fields: str) -> None:
    """Wait until a CRD has just these fields of spec."""

    async def follows() -> bool:
        found = await api.find(crd(bed.group, source=None))
        if found is None:
            return False
        properties = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        return set(properties["spec"].get("properties", ())) == set(fields)

    await eventually(follows, what=f"the CRD has {fields}")


async def until_api(bed: Bed, state: str, message: str = "", *, revision: str = "", before: str = "") -> str:
    """Wait until `status` shows the CRD in a state, with a part of the message; the revision.

    Where they are given, it is `revision`, and no longer the one `before`.
    """

    def good(row: Json | None) -> bool:
        if row is None or row["state"] != state or message not in (row["message"] or ""):
            return False
        return row["revision"] != before if before else revision in ("", row["revision"])

    def rows(status: Json) -> list[Json]:
        return [kind["api"] for kind in status["kinds"] if kind["resource"] == bed.resource and good(kind["api"])]

    (row,) = rows(await bed.agent.until(lambda status: rows(status) != []))
    return str(row["revision"])


async def test_C8_1_C8_3_a_new_field_arrives_a_removed_one_is_held_and_undone_finds_the_old_revision(
    apis: dict[Side, Api], make_bed: MakeBed
) -> None:
    owner, target = apis[Side.CLOUD], apis[Side.ROBOT]
    bed = await make_bed(source=None, schema=schema("x", "y"), start=False)
    policy = policy_of(bed, specSource="cloud", api={"source": "cloud"})
    await target.create(policy)
    await bed.start(state=None)
    first = await until_api(bed, "current")
    await until_row(bed, state="syncing")
    owner.learn(bed.cloud.resource)
    await bed.cloud.create("a", spec={"x": "1", "y": "2"})
    await bed.robot.shows("a", spec={"x": "1", "y": "2"})

    await owner.apply_crd(crd(bed.group, source=None, schema=schema("x", "y", "z")))
    await until_followed(bed, target, "x", "y", "z")
    second = await until_api(bed, "current", before=first)

    await owner.apply_crd(crd(bed.group, source=None, schema=schema("x", "z")))
    await until_api(bed, "held", "/spec/y: is gone", revision=second)
    code, out, _ = await bed.agent.crsyncer("api", "diff", bed.resource, *access(bed))
    assert (code, "# breaking: v1 /spec/y: is gone" in out, "(held, it is breaking)" in out) == (1, True, True)
    await bed.cloud.create("b", spec={"x": "1"})  # objects sync on
    await bed.robot.shows("b", spec={"x": "1"})

    def is_held(status: Json) -> bool:
        holds = [(hold["reason"], "/spec/y" in hold["message"]) for hold in status["holds"]]
        return (status["health"], holds) == ("attention", [("APIHeld", True)])

    await bed.agent.until(is_held)

    await owner.apply_crd(crd(bed.group, source=None, schema=schema("x", "y", "z")))
    await until_api(bed, "current", revision=second)
    await bed.agent.until(lambda status: status["holds"] == [])
    await until_followed(bed, target, "x", "y", "z")
    found = await target.get({"apiVersion": MINIMAL["apiVersion"], "kind": "APIRevision", "metadata": {"name": second}})
    assert found["metadata"]["generation"] == 1
