"""Each request is addressed by how its side serves the kind."""

import pytest

from crsyncer.core.accounts.access import needs
from crsyncer.core.model import Key, Side
from crsyncer.core.pair import object_calls
from crsyncer.core.pair.compose import compose_copy
from crsyncer.core.pair.project import objection, view_of
from tests.core.builders import endpoint, goal, policy

TASKS = {"group": "", "plural": "tasks", "kind": "Task", "version": "v2"}
KEY = Key("default", "a")


def test_an_endpoint_has_the_names_that_kubernetes_uses():
    goals = endpoint()
    assert (goals.resource, goals.api_version, goals.scope) == (
        "goals.lab.example.com",
        "lab.example.com/v1",
        "Namespaced",
    )
    tasks = endpoint(**TASKS, namespaced=False)
    assert (tasks.resource, tasks.api_version, tasks.scope) == ("tasks", "v2", "Cluster")


@pytest.mark.parametrize("upstream", Side)
def test_C7_every_request_is_addressed_to_the_names_of_its_side(upstream):
    kind = policy(upstream, cloud=TASKS)
    paths = {
        Side.CLOUD: "/api/v2/namespaces/default/tasks",
        Side.ROBOT: "/apis/lab.example.com/v1/namespaces/default/goals",
    }
    for side in Side:
        assert object_calls.collection(kind, side, "default").path == paths[side]
        assert needs(kind, side)[0].acts[0].resource == kind.endpoint(side).plural
    down = paths[kind.downstream]
    for call in (
        object_calls.get(kind, KEY),
        object_calls.update(kind, KEY, {}),
        object_calls.delete(kind, KEY, "u"),
    ):
        assert call.path == f"{down}/a"
    assert object_calls.create(kind, KEY, {}).path == down
    seed = object_calls.seed_status(kind, KEY, uid="u", resource_version="1", status={"n": 1})
    assert (seed.path, seed.body["kind"]) == (f"{down}/a/status", kind.endpoint(kind.downstream).kind)
    patch = object_calls.patch_status(kind, KEY, "u", {"n": 1}, upstream=None)
    put = object_calls.put_status(kind, KEY, "u", {"n": 1}, upstream=goal())
    assert patch.path == put.path == f"{paths[upstream]}/a/status"
    assert put.body["apiVersion"] == kind.endpoint(upstream).api_version


@pytest.mark.parametrize("upstream", Side)
def test_C7_a_copy_is_of_the_kind_that_its_side_serves(upstream):
    kind = policy(upstream, cloud=TASKS)
    names = {
        side: {"apiVersion": each.api_version, "kind": each.kind} for side in Side if (each := kind.endpoint(side))
    }
    original = goal() | names[upstream]
    copy = compose_copy(original, view_of(original, kind, upstream), kind, downstream=None)
    assert {key: copy[key] for key in ("apiVersion", "kind")} == names[kind.downstream]
    assert objection(original, kind, upstream) == ""
    assert "not a" in objection(original, kind, upstream.other)


def test_an_item_of_a_list_gets_the_kind_that_only_the_list_names():
    item = {"kind": "Other"}
    endpoint().complete(item)
    assert item == {"apiVersion": "lab.example.com/v1", "kind": "Other"}
