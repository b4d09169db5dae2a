"""What a CRD that travels is called on each side (C7, C8.1)."""

from typing import Any

import pytest

from crsyncer.core.apis.travel_names import name_on, revision_of
from crsyncer.core.kinds.sync_policy import Api, Projection, read_sync_policy
from crsyncer.core.model import Json, Side
from tests.core.apis.crds import crd, version

GOALS = "goals.lab.example.com"
CLOUD = Projection(group="shop.example.com", resource="purchases", kind="Purchase")


def travelling(source: Side = Side.ROBOT, projection: Projection | None = CLOUD, **more: Any) -> Api:
    return Api(source, projection=projection, **more)


def test_C8_1_a_revision_has_the_names_of_the_other_side():
    found = revision_of(crd(version(a={"type": "string"})), GOALS, travelling())
    assert found.name.partition(".")[2] == "purchases.shop.example.com"
    assert found.spec["group"] == "shop.example.com"
    assert found.spec["names"] == {
        "plural": "purchases",
        "kind": "Purchase",
        "singular": "purchase",
        "listKind": "PurchaseList",
    }
    assert (
        found.spec["versions"]
        == revision_of(crd(version(a={"type": "string"})), GOALS, Api(Side.ROBOT)).spec["versions"]
    )


@pytest.mark.parametrize(
    ("source", "given", "scope"),
    [
        (Side.ROBOT, False, "Cluster"),
        (Side.CLOUD, True, "Cluster"),
        (Side.CLOUD, False, "Namespaced"),
        (Side.ROBOT, None, "Namespaced"),
    ],
)
def test_C8_1_the_scope_that_differs_is_that_of_the_cloud(source, given, scope):
    own = crd(version(), scope="Cluster" if (source, given) == (Side.CLOUD, False) else "Namespaced")
    assert revision_of(own, GOALS, travelling(source, Projection(namespaced=given))).spec["scope"] == scope


def test_C8_1_where_both_versions_are_given_one_is_called_as_the_other():
    def names(source: Side, robots: str | None, clouds: str | None) -> list[str]:
        api = travelling(source, Projection(version=clouds), robots_version=robots)
        return [each["name"] for each in revision_of(crd(version("v1")), GOALS, api).spec["versions"]]

    assert names(Side.ROBOT, "v1", "v7") == ["v7"]
    assert names(Side.CLOUD, "v7", "v1") == ["v7"]
    assert names(Side.ROBOT, "v1", None) == names(Side.ROBOT, None, "v1") == ["v1"]


def test_C7_without_a_projection_both_sides_have_one_name():
    assert [name_on(side, GOALS, Api(Side.CLOUD)) for side in Side] == [GOALS, GOALS]
    assert [name_on(side, GOALS, travelling()) for side in Side] == ["purchases.shop.example.com", GOALS]
    assert name_on(Side.CLOUD, GOALS, travelling(projection=Projection(group=""))) == "goals"


def test_C8_1_a_policy_has_its_crd_travel_as_it_projects_it():
    def read(**more: Any) -> Api | None:
        spec: Json = {"resource": {"group": "lab.example.com", "resource": "goals", "version": "v1"}, **more}
        head = {"apiVersion": "crsyncer.cloudrobotics.com/v1alpha1", "kind": "SyncPolicy", "metadata": {"name": "a"}}
        return read_sync_policy(head | {"spec": spec}).api

    found = read(api={"source": "robot"}, projection={"group": "x"})
    assert found == Api(Side.ROBOT, projection=Projection(group="x"), robots_version="v1")
    assert read(api={"source": "robot"}) == Api(Side.ROBOT)
    assert read(projection={"group": "x"}) is None
