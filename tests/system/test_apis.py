"""The kinds of CRDs that travel, and CRDs that follow a revision, on a real API server (C8)."""

from collections.abc import AsyncIterator
from copy import deepcopy

import pytest
import yaml

from crsyncer.cli.crds import APIS
from crsyncer.core.apis.revise import Revision, breaking, follow, revise
from crsyncer.core.kinds.sync_policy import API_VERSION
from crsyncer.core.model import Json
from tests.api import Api, ApiError
from tests.core.apis.crds import crd, version
from tests.system.bed import crd as bed_crd

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
SOURCE = crd(version("v1", x=TEXT), version("v2", storage=False, x={"type": "number", "maximum": 2.0}))


@pytest.fixture
async def api(robot_api: Api) -> AsyncIterator[Api]:
    """An API server that serves APIRevisions and APISets, and no longer does afterwards."""
    crds = [*yaml.safe_load_all(APIS.read_text())]
    try:
        for each in crds:
            await robot_api.apply_crd(each)
        yield robot_api
    finally:
        for each in crds:
            if await robot_api.find(each):
                await robot_api.delete(each)
                await robot_api.until_gone(each)


def revision_object(revision: Revision) -> Json:
    """An APIRevision."""
    return {
        "apiVersion": API_VERSION,
        "kind": "APIRevision",
        "metadata": {"name": revision.name},
        "spec": revision.spec,
    }


def test_the_file_has_the_kinds_of_this_section_and_no_other() -> None:
    kinds = [each["spec"]["names"]["kind"] for each in yaml.safe_load_all(APIS.read_text())]
    assert kinds == ["APIRevision", "APISet"]


async def test_C8_1_a_revision_is_kept_as_it_is_and_cannot_be_changed(api: Api) -> None:
    revision = revise(SOURCE)
    made = await api.create(revision_object(revision))
    assert made["spec"] == revision.spec
    assert revise(follow(None, Revision(revision.name, made["spec"]))) == revision
    versions = revision.spec["versions"]
    other = deepcopy(versions)
    other[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["x"]["description"] = "new"
    changes = [
        {"scope": "Cluster"},
        {"names": {"shortNames": ["g"]}},
        {"names": {"singular": None}},
        {"versions": other},
        {"versions": versions[:1]},
        {"versions": [{**versions[0], "subresources": {"status": {}}}, *versions[1:]]},
    ]
    for change in changes:
        with pytest.raises(ApiError, match="a revision cannot be changed"):
            await api.patch(made, {"spec": change})
    assert (await api.patch(made, {"metadata": {"labels": {"a": "b"}}}))["spec"] == revision.spec
    for name in ("v1.goals.lab.example.com", f"{revision.name}.org", revision.name.replace("goals", "tasks")):
        with pytest.raises(ApiError, match="the name must be"):
            await api.create(revision_object(Revision(name, revision.spec)))


async def test_C8_2_an_api_set_has_one_entry_for_a_kind(api: Api) -> None:
    entry = {"group": "lab.example.com", "resource": "goals", "revision": revise(SOURCE).name}
    made = {"apiVersion": API_VERSION, "kind": "APISet", "metadata": {"name": "crsyncer"}, "spec": {"apis": [entry]}}
    assert (await api.create(made))["spec"]["apis"] == [entry]
    with pytest.raises(ApiError, match="Duplicate value"):
        await api.patch(made, {"spec": {"apis": [entry, {**entry, "revision": "other"}]}})
    with pytest.raises(ApiError, match="revision"):
        await api.patch(made, {"spec": {"apis": [{key: entry[key] for key in ("group", "resource")}]}})
    assert await api.patch(made, {"spec": {"apis": []}})


async def test_C8_2_a_crd_follows_a_revision_and_keeps_versions_that_may_be_stored(robot_api: Api, group: str) -> None:
    before = bed_crd(group, source="cloud", versions=("v1alpha1", "v1"))
    await robot_api.apply_crd(before)
    shown = await robot_api.get(before)
    assert revise(shown).name == revise(before).name  # what the server adds is no difference
    new = deepcopy(before)
    new["spec"]["versions"] = [{**version("v2", x=NUMBER), "subresources": {"status": {}}}]
    revision = revise(new)
    assert {each.version for each in breaking(shown, revision)} == {"v1", "v1alpha1"}
    followed = await robot_api.replace(follow(shown, revision))
    versions = [(each["name"], each["served"], each["storage"]) for each in followed["spec"]["versions"]]
    assert versions == [("v2", True, True), ("v1", False, False)]
    assert followed["metadata"]["annotations"] == shown["metadata"]["annotations"]
    assert followed["spec"]["conversion"] == shown["spec"]["conversion"]
    shown = await robot_api.get(before)
    assert shown["status"]["storedVersions"] == ["v1", "v2"]
    assert revise(shown) == revision
    assert follow(shown, revision)["spec"] == shown["spec"]
    back = await robot_api.replace(follow(shown, revise(before)))
    assert revise(back) == revise(before)
