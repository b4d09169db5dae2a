"""SyncPolicies in the made-up world: their CRD, and policies as people write them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import CRDS, SYNC_POLICIES, Call
from crsyncer.ports import Reply, Send
from tests.model.simulation.plane import GROUP, Plane
from tests.model.simulation.world import World
from tests.system.bed import crd

PLURAL = SYNC_POLICIES.plural
EDGE = {"selector": {"matchLabels": {"tier": "edge"}}}


def serve_policies(plane: Plane, **keywords: Any) -> None:
    """A cluster has the CRD of SyncPolicies, with a schema that refuses nothing; `keywords` are those of `bed.crd`."""
    raw = crd(
        SYNC_POLICIES.group,
        plural=PLURAL,
        cluster=True,
        versions=(SYNC_POLICIES.version,),
        **{"source": None, **keywords},
    )
    raw["spec"]["names"] |= {"kind": "SyncPolicy", "singular": "syncpolicy", "listKind": "SyncPolicyList"}
    plane.apply(raw)


@contextmanager
def with_policy(*, kinds: Mapping[str, Mapping[str, Any]] | None = None, **spec: Any) -> Iterator[World]:
    """A world whose robot has a policy for goals; the agent does not run yet."""
    with World(kinds=kinds) as world:
        serve_policies(world.robot)
        apply_policy(world.robot, **spec)
        yield world


def apply_policy(plane: Plane, name: str = "p", *, kind: str = "goals", **spec: Any) -> None:
    """Create a policy for a kind, or replace its spec."""
    put_policy(plane, name, {"resource": {"group": GROUP, "resource": kind}, **spec})


def edit_policy(world: World, name: str = "p", *, seconds: float | None = None, **spec: Any) -> None:
    """Create a policy on the robot, or replace its spec, and let the agent go on for so long, or settle."""
    apply_policy(world.robot, name, **spec)
    world.settle() if seconds is None else world.pass_time(seconds)


def put_policy(plane: Plane, name: str, spec: Any) -> None:
    """Create a policy, or replace its spec, whatever it is."""
    found = policies(plane).get(name)
    metadata: Json = {"name": name}
    if found is None:
        call = Call("create", "POST", SYNC_POLICIES.path, body={"metadata": metadata, "spec": spec})
    else:
        metadata["resourceVersion"] = found["metadata"]["resourceVersion"]
        call = Call("update", "PUT", f"{SYNC_POLICIES.path}/{name}", body={"metadata": metadata, "spec": spec})
    _ask(plane, call)


def delete_policy(plane: Plane, name: str = "p") -> None:
    """Delete a policy."""
    _ask(plane, Call("delete", "DELETE", f"{SYNC_POLICIES.path}/{name}"))


def policies(plane: Plane) -> dict[str, Json]:
    """The policies of a cluster by name, as stored."""
    return {name: found for (_, name), found in plane.server.storage.of(SYNC_POLICIES.resource).items()}


def drop_policies(world: World) -> None:
    """The CRD of SyncPolicies is deleted on the robot, and they with it."""
    world.robot.server.answer(Call("delete", "DELETE", f"{CRDS}/{SYNC_POLICIES.resource}"))
    world.robot.signal.ring()
    world.pass_time(1)
    assert world.robot.sweep(PLURAL, group=SYNC_POLICIES.group)
    world.pass_time(1)


def ready(plane: Plane, name: str = "p") -> tuple[str, str, str]:
    """Status, reason and message of a policy's condition Ready."""
    conditions = (policies(plane)[name].get("status") or {}).get("conditions") or []
    found = [(each["status"], each["reason"], each["message"]) for each in conditions if each["type"] == "Ready"]
    assert len(found) == 1, conditions
    return found[0]


def policy_rows(world: World) -> dict[str, tuple[str, str | None]]:
    """What `status` says of each policy: state and message."""
    return {row["name"]: (row["state"], row["message"]) for row in world.status()["policies"]}


def _ask(plane: Plane, call: Call) -> None:
    reply = plane.server.answer(call)
    assert reply.status < 300, reply.body
    plane.signal.ring()


def senders(world: World) -> dict[Side, Send]:
    """What sends requests to each side for commands that work without the agent."""

    def sender(side: Side) -> Send:
        async def send(call: Call) -> Reply:
            return world.servers[side].answer(call)

        return send

    return {side: sender(side) for side in Side}


def on_robot(world: World, kind: str = "goals") -> set[str]:
    """The names of the robot's objects of a kind."""
    return set(world.robot.objects(kind))


def two_tiers(world: World) -> None:
    """One object that the selector EDGE selects, and one that it does not."""
    world.cloud.create("edge", spec={"x": 1}, labels={"tier": "edge"})
    world.cloud.create("other", spec={"x": 1})
