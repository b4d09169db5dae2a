"""The CRDs of the fleet on a real API server: what it takes, what it refuses, and what it sets by itself."""

import re
from pathlib import Path

import pytest
import yaml

from crsyncer.cli.crds import SYNC_POLICY
from crsyncer.cli.fleet.fleet_crds import KINDS
from crsyncer.core.model import Json
from crsyncer.sandbox.resource import Resource
from tests.api import Api, ApiError
from tests.core.sync_policies import edited
from tests.system import fleet_objects as objects
from tests.system.conftest import FLEET_CRDS as CRDS

_WRONG_STATUSES: dict[str, Json] = {
    "9 conditions": {"conditions": [{"type": f"t{number}", "status": "True"} for number in range(9)]},
    "a condition twice": {"conditions": [{"type": "Held", "status": "True"}] * 2},
    "a condition without a type": {"conditions": [{"status": "True"}]},
    "a condition without a status": {"conditions": [{"type": "Held"}]},
    "another status": {"conditions": [{"type": "Held", "status": "Maybe"}]},
    "a long reason": {"conditions": [{"type": "Held", "status": "True", "reason": "r" * 64}]},
    "a long message": {"conditions": [{"type": "Held", "status": "True", "message": "m" * 1025}]},
    "a count that is a text": {"counts": {"selected": "1"}},
    "21 errors": {"errors": [{}] * 21},
    "an error with a long message": {"errors": [{"message": "m" * 257}]},
    "21 holds": {"holds": [{}] * 21},
    "a hold with a long id": {"holds": [{"id": "a" * 25}]},
    "501 singletons": {"singletons": [{}] * 501},
    "a singleton with a long source": {"singletons": [{"source": "s" * 601}]},
}


async def _answer(fleet_api: Api, obj: Json) -> int:
    """What a server would answer to the creation of an object, of which it stores nothing."""
    status, _ = await fleet_api.request("POST", fleet_api.path(obj, name=False), params={"dryRun": "All"}, json=obj)
    return status


async def test_the_api_server_has_no_objection_to_the_crds(fleet_api: Api) -> None:
    for crd in CRDS.values():
        found = {each["type"]: each["status"] for each in (await fleet_api.get(crd))["status"]["conditions"]}
        assert found == {"NamesAccepted": "True", "Established": "True"}, crd["metadata"]["name"]


async def test_the_api_server_stores_what_is_right_as_it_was_sent(fleet_api: Api) -> None:
    for title, obj in objects.RIGHT.items():
        strict = {"fieldValidation": "Strict", "dryRun": "All"}
        status, found = await fleet_api.request("POST", fleet_api.path(obj, name=False), params=strict, json=obj)
        assert status == 201, (title, found)
        assert {**found, "metadata": obj["metadata"]} == obj, title


async def test_the_api_server_sets_the_defaults_of_a_placement(fleet_api: Api) -> None:
    for placement, spec in ((objects.MINIMAL, objects.DEFAULTS), (objects.SHORT, objects.SHORT_WITH_DEFAULTS)):
        assert (await fleet_api.create(placement))["spec"] == spec
        await fleet_api.delete(placement)
    assert (await fleet_api.create(objects.ROWS))["spec"]["limit"] == 20


async def test_the_api_server_refuses_each_mistake(fleet_api: Api) -> None:
    answers = {title: await _answer(fleet_api, obj) for title, obj in objects.WRONG.items()}
    assert {title: status for title, status in answers.items() if status != 422} == {}


async def test_the_api_server_takes_each_object_of_the_page_as_it_stands(fleet_api: Api) -> None:
    page = re.findall(r"```yaml\n(.*?)```", (Path(__file__).parents[2] / "FLEET.md").read_text(), re.DOTALL)
    assert page
    policies = yaml.safe_load(SYNC_POLICY.read_text())
    await fleet_api.apply_crd(policies)
    try:
        for obj in (each for text in page for each in yaml.safe_load_all(text)):
            strict = {"fieldValidation": "Strict", "dryRun": "All"}
            status, body = await fleet_api.request("POST", fleet_api.path(obj, name=False), params=strict, json=obj)
            assert status == 201, body
    finally:
        await fleet_api.remove_crds(policies)


async def test_mode_and_target_of_a_placement_cannot_be_changed(fleet_api: Api) -> None:
    await fleet_api.create(objects.MINIMAL)
    for field, value in (("mode", "Shared"), ("target", "Same")):
        with pytest.raises(ApiError, match=f"the {field} of a placement cannot be changed"):
            await fleet_api.patch(objects.MINIMAL, {"spec": {field: value}})


async def test_a_status_is_written_by_itself_and_checked(fleet_api: Api) -> None:
    placement = objects.MINIMAL
    await fleet_api.create(edited(placement, "status", value={"group": 7}))
    assert "status" not in await fleet_api.get(placement)
    await fleet_api.patch_status(placement, objects.STATUS)
    assert (await fleet_api.get(placement))["status"] == objects.STATUS
    for title, status in _WRONG_STATUSES.items():
        with pytest.raises(ApiError) as refused:
            await fleet_api.patch_status(placement, status)
        assert refused.value.status == 422, title
    for obj in (objects.STRIP, objects.ROWS):
        await fleet_api.create(obj)
        await fleet_api.patch_status(obj, {"observedGeneration": 1})


async def test_kubectl_shows_what_an_operator_asks_first(fleet_api: Api) -> None:
    await fleet_api.create(objects.MINIMAL)
    await fleet_api.patch_status(objects.MINIMAL, objects.STATUS)
    kind = Resource.of_crd(CRDS["robotplacements"])
    table = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    _, found = await fleet_api.request("GET", kind.path(namespace="default"), headers=table)
    shown = [each["name"] for each in found["columnDefinitions"] if each["priority"] == 0]
    assert shown == ["Name", "Selected", "Ready", "InFlight", "Failed", "Offline", "Held", "Age"]
    assert [each["name"] for each in found["columnDefinitions"] if each["priority"]] == ["Unreported"]
    [row] = found["rows"]
    assert row["cells"][:7] == ["a", 1, 1, 1, 1, 1, "True"]
    discovered = await fleet_api.request("GET", f"/apis/{kind.api_version}")
    names = {each["name"]: each.get("shortNames") for each in discovered[1]["resources"] if "/" not in each["name"]}
    assert names == {
        **dict.fromkeys(KINDS, None),
        "robotplacements": ["rp"],
        "robotplacementdecisions": ["rpd"],
    }
