"""The CRD of SyncPolicies on a real API server: what it takes, what it refuses, and what it sets by itself."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from tests.api import Api, ApiError
from tests.core.sync_policies import FULL, MINIMAL, WRONG, edited

CRD = Path(__file__).parents[2] / "robot/syncpolicy.yaml"


@pytest.fixture
async def api(robot_api: Api) -> AsyncIterator[Api]:
    """An API server that serves SyncPolicies, and no longer does afterwards."""
    crd = yaml.safe_load(CRD.read_text())
    try:
        await robot_api.apply_crd(crd)
        yield robot_api
    finally:
        if await robot_api.find(crd):
            await robot_api.delete(crd)
            await robot_api.until_gone(crd)


async def test_the_api_server_takes_whole_policies_and_sets_no_defaults_but_those_of_deletion(api: Api) -> None:
    for policy in (FULL, MINIMAL):
        created = await api.create(policy)
        assert created["spec"] == policy["spec"]
        await api.delete(policy)
    created = await api.create(edited(MINIMAL, "spec", "deletion", value={}))
    assert created["spec"]["deletion"] == {"mode": "async", "gracePeriod": "1h", "propagation": "background"}
    await api.patch_status(MINIMAL, {"conditions": [{"type": "Ready", "status": "True"}], "more": 1})
    assert (await api.get(MINIMAL))["status"]["more"] == 1


async def test_the_api_server_refuses_what_the_reader_refuses_without_a_cluster(api: Api) -> None:
    answers = {str(wrong): await _refusal(api, wrong.policy) for wrong in WRONG if wrong.server}
    assert [said for said, answer in answers.items() if answer != 422] == []


async def test_the_kind_of_a_policy_cannot_be_changed(api: Api) -> None:
    await api.create(FULL)
    for field in ("group", "resource"):
        with pytest.raises(ApiError, match="the kind of a policy cannot be changed"):
            await api.patch(FULL, {"spec": {"resource": {field: "other"}}})
    changed = await api.patch(FULL, {"spec": {"resource": {"version": "v2"}}})
    assert changed["spec"]["resource"]["version"] == "v2"
    await api.delete(FULL)


async def _refusal(api: Api, policy: dict) -> int:
    """How creating a policy is refused; 0: it is not."""
    try:
        await api.create(policy)
    except ApiError as error:
        return error.status
    await api.delete(policy)
    return 0
