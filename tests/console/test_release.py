"""C6.4: what `crsyncer release` asks of a server, and what it makes of answers that real servers seldom give."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from crsyncer.console.operators.finalizer_release import Wish, find_kind, release_objects
from crsyncer.core.requests.calls import SYNC_POLICIES, Call
from crsyncer.errors import NotAllowed, SyncError, Unsure
from crsyncer.ports import Reply

OURS = "crsyncer.cloudrobotics.com/robot-r1"
GOALS = "/apis/lab.example.com/v1/goals"
DATE, NOW = 100_000.0, "1970-01-02T03:46:40Z"
FAILED_TEST = Reply(422, {"kind": "Status", "code": 422, "reason": "Invalid", "message": "it is not so"})
DOWN = Reply(503, {"message": "the server is currently unable to handle the request"})


def goal(name: str, *finalizers: str, uid: str = "", deleted: str = "1970-01-01T02:46:40Z") -> dict[str, Any]:
    """An object as a list shows it; with an empty `deleted` nobody has deleted it."""
    metadata = {"name": name, "namespace": "n", "uid": uid or f"uid-{name}", "finalizers": list(finalizers)}
    return {"metadata": metadata | ({"deletionTimestamp": deleted} if deleted else {})}


def listed(*items: dict[str, Any]) -> Reply:
    return Reply(200, {"kind": "PartialObjectMetadataList", "metadata": {"resourceVersion": "7"}, "items": list(items)})


class Server:
    """Answers by path."""

    def __init__(self, *items: dict[str, Any]) -> None:
        resource = {"name": "goals", "singularName": "goal", "kind": "Goal", "namespaced": True, "shortNames": ["gl"]}
        status = {"name": "goals/status", "kind": "Goal", "namespaced": True}
        self.answers: dict[str, Any] = {
            "/version": Reply(200, {}, date=DATE),
            "/apis": Reply(200, {"groups": [{"name": "lab.example.com"}, {"name": "broken.example.com"}]}),
            "/api/v1": Reply(200, {"resources": [{"name": "nodes", "singularName": "node", "kind": "Node"}]}),
            "/apis/lab.example.com": Reply(200, {"preferredVersion": {"version": "v1"}}),
            "/apis/lab.example.com/v1": Reply(200, {"resources": [resource, status]}),
            "/apis/broken.example.com": DOWN,
            GOALS: listed(*items),
        }
        self.asked: list[Call] = []

    async def send(self, call: Call) -> Reply:
        self.asked.append(call)
        answer = self.answers.get(call.path, Reply(404, {}, "404 page not found"))
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Reply)
        return answer

    @property
    def patches(self) -> list[str]:
        return [call.path.rpartition("/")[2] for call in self.asked if call.method == "PATCH"]

    async def release(
        self,
        *,
        dry_run: bool = False,
        clock: Callable[[], float] = lambda: 0.0,
        in_cloud: Mapping[str, str] = {},
        **wish: Any,
    ) -> Any:
        given: dict[str, Any] = {"resource": "goals.lab.example.com", "older_than": 60.0}
        wanted = Wish("r1", **(given | wish))
        return await release_objects(self.send, wanted, clock=clock, dry_run=dry_run, in_cloud=in_cloud)


def states(content: Any) -> dict[str, str]:
    return {row["name"]: row["state"] for row in content["objects"]}


def path(name: str) -> str:
    return f"/apis/lab.example.com/v1/namespaces/n/goals/{name}"


async def test_C6_4_a_dry_run_lists_what_is_due_and_counts_what_is_left_out() -> None:
    server = Server(goal("a", OURS), goal("b", "x"), goal("new", OURS, deleted=NOW), goal("lives", OURS, deleted=""))
    content = await server.release(dry_run=True)
    assert content == {
        "schema": "crsyncer.robot-release/v1",
        "robot": "r1",
        "resource": "goals.lab.example.com",
        "cloudResource": "goals.lab.example.com",
        "finalizer": OURS,
        "time": NOW,
        "dryRun": True,
        "objects": [
            {
                "namespace": "n",
                "name": "a",
                "uid": "uid-a",
                "deletionTimestamp": "1970-01-01T02:46:40Z",
                "state": "kept",
                "error": None,
            }
        ],
        "recent": 1,
        "living": 1,
    }
    assert {call.method for call in server.asked} == {"GET"}


async def test_C6_4_without_a_date_of_the_server_ours_counts() -> None:
    server = Server(goal("a", OURS))
    server.answers["/version"] = Reply(200, {})
    assert states(await server.release(dry_run=True, clock=lambda: DATE)) == {"a": "kept"}
    assert states(await server.release(dry_run=True, clock=lambda: 10_020.0)) == {}


async def test_C7_the_robots_name_of_a_kind_means_what_the_cloud_calls_otherwise() -> None:
    def policy(plural: str, **spec: Any) -> dict[str, Any]:
        return {"metadata": {"name": plural}, "spec": {"resource": {"group": "x.io", "resource": plural}, **spec}}

    here = {"projection": {"group": "lab.example.com", "resource": "goals"}}
    policies = [policy("orders", **here), policy("walks"), policy("broken", **here, conflict="?")]
    server = Server(goal("a", OURS))
    for resource in ("orders", "orders.x.io"):
        known = {"visits.x.io": "goals.lab.example.com"}
        assert states(await server.release(resource="visits", in_cloud=known, dry_run=True)) == {"a": "kept"}
        with pytest.raises(SyncError, match=f"the cloud serves no {resource}"):
            await server.release(resource=resource)
        server.answers[SYNC_POLICIES.path] = listed(*policies)
        found = await server.release(resource=resource, dry_run=True)
        assert (found["resource"], found["cloudResource"]) == ("orders.x.io", "goals.lab.example.com")
        server.answers[SYNC_POLICIES.path] = Reply(403, {"message": "it is forbidden"})
    for resource in ("walks", "broken"):
        with pytest.raises(SyncError, match=f"the cloud serves no {resource}"):
            await server.release(resource=resource)
    assert (await server.release(dry_run=True))["resource"] == "goals.lab.example.com"


@pytest.mark.parametrize("text", ["goals.lab.example.com", "goal.lab.example.com", "goals", "Goal", "gl"])
async def test_C6_4_a_kind_may_be_named_as_kubectl_names_it_although_another_group_is_down(text: str) -> None:
    kind = await find_kind(Server().send, text)
    assert (kind.collection.path, kind.namespaced) == (GOALS, True)


async def test_C6_4_a_kind_of_the_core_group_is_found() -> None:
    kind = await find_kind(Server().send, "node")
    assert (kind.collection.path, kind.namespaced) == ("/api/v1/nodes", False)


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("walks", SyncError, "the cloud serves no walks"),
        ("goals.nowhere.example.com", SyncError, "the cloud serves no goals.nowhere.example.com"),
        ("goals.broken.example.com", Unsure, "unable to handle the request"),
    ],
)
async def test_C6_4_a_kind_that_is_not_there_is_said_so(text: str, error: type[SyncError], says: str) -> None:
    with pytest.raises(error, match=says):
        await find_kind(Server().send, text)


async def test_C6_4_a_namespace_of_a_kind_that_is_in_none_is_refused() -> None:
    with pytest.raises(SyncError, match="nodes are in no namespace"):
        await Server().release(resource="nodes", name="n/a")


async def test_C6_4_a_credential_that_is_refused_is_said_so() -> None:
    server = Server()
    server.answers["/apis/lab.example.com"] = Reply(403, {"message": "it is forbidden"})
    with pytest.raises(NotAllowed, match="it is forbidden"):
        await server.release()


async def test_C6_2_a_list_that_keeps_changing_is_given_up_and_the_next_object_is_tried() -> None:
    server = Server()
    server.answers[GOALS] = listed(goal("a", OURS), goal("b", OURS))
    server.answers["/apis/lab.example.com/v1/namespaces/n/goals"] = listed(goal("a", OURS))
    server.answers |= {path("a"): FAILED_TEST, path("b"): Reply(200, {})}
    content = await server.release()
    assert states(content) == {"a": "failed", "b": "released"}
    assert content["objects"][0]["error"] == "its finalizers keep changing"
    assert server.patches == ["a"] * 5 + ["b"]


@pytest.mark.parametrize("now", [(), (goal("a", "x"),), (goal("a", OURS, uid="another"),)], ids=len)
async def test_C6_2_what_is_gone_or_released_or_another_object_meanwhile_is_left_alone(now: Any) -> None:
    server = Server(goal("a", OURS))
    server.answers |= {path("a"): FAILED_TEST, "/apis/lab.example.com/v1/namespaces/n/goals": listed(*now)}
    assert states(await server.release()) == {"a": "gone"}
    assert server.patches == ["a"]


async def test_C6_4_what_is_refused_is_named_and_the_rest_is_tried() -> None:
    server = Server(goal("a", OURS), goal("b", OURS))
    server.answers |= {path("a"): Reply(403, {"message": "it is forbidden"}), path("b"): Reply(200, {})}
    content = await server.release()
    assert states(content) == {"a": "failed", "b": "released"}
    assert content["objects"][0]["error"] == "it is forbidden"


async def test_C6_2_an_object_that_cannot_be_looked_at_again_is_named() -> None:
    server = Server(goal("a", OURS))
    server.answers |= {path("a"): FAILED_TEST, "/apis/lab.example.com/v1/namespaces/n/goals": Reply(403, {})}
    assert states(await server.release()) == {"a": "failed"}


async def test_C6_4_a_server_that_is_gone_is_not_asked_for_the_rest() -> None:
    server = Server(goal("a", OURS), goal("b", OURS), goal("c", OURS))
    server.answers |= {path("a"): Reply(200, {}), path("b"): Unsure("no answer within 30 s")}
    assert states(await server.release()) == {"a": "released", "b": "failed", "c": "kept"}
    assert server.patches == ["a", "b"]
