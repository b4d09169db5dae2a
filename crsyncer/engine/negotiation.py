"""Negotiation with the cloud: in which version a kind is synced, and where its status is written (S1.5, S1.7)."""

from dataclasses import dataclass, replace

from crsyncer.core import object_calls
from crsyncer.core.answers import is_inconclusive
from crsyncer.core.kind_policy import KindPolicy, choose_version
from crsyncer.core.model import Json, Side
from crsyncer.errors import Unsure
from crsyncer.ports import Send


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Why a negotiation failed: the state of the kind for `status`, and the sentence."""

    state: str
    message: str


def to_store(policy: KindPolicy) -> Json:
    """What the store remembers of a negotiation."""
    return {"version": policy.version, "cloudStatus": policy.status_endpoint[Side.CLOUD], "offer": offer(policy)}


def offer(policy: KindPolicy) -> Json:
    """The versions of the robot's CRD that the choice was made from."""
    return {v.name: [v.served, v.storage] for v in policy.versions}


def in_version(policy: KindPolicy, version: str, *, cloud_status: bool | None) -> KindPolicy:
    """The policy in a version; `cloud_status` says whether the cloud has `/status` (None: as the robot has)."""
    robot_status = next(v.status for v in policy.versions if v.name == version)
    endpoints = {Side.ROBOT: robot_status, Side.CLOUD: robot_status if cloud_status is None else cloud_status}
    return replace(policy, version=version, status_endpoint=endpoints)


def robots_version(policy: KindPolicy) -> KindPolicy:
    """The policy in the robot's storage version."""
    return in_version(policy, choose_version(policy, None) or "", cloud_status=None)


def guessed_version(policy: KindPolicy) -> KindPolicy:
    """The policy in the robot's storage version, as long as the cloud has not shown which versions it serves."""
    return replace(robots_version(policy), version_is_guess=True)


async def negotiate(policy: KindPolicy, send: Send) -> KindPolicy | Disagreement:
    """Ask the cloud. Where it forbids discovery, or does not serve the kind, the robot's storage version is tried.

    Raises Unsure when the cloud did not answer.
    """
    reply = await send(object_calls.group_versions(policy))
    _raise_if_unavailable(reply.status)
    if reply.status == 404:
        return robots_version(policy)
    if reply.status != 200:
        return guessed_version(policy)
    found: dict[str, Json] = {}
    for version in [str(v.get("version", "")) for v in reply.body.get("versions") or []]:
        entries = await _resources(policy, version, send)
        if policy.plural in entries:
            found[version] = entries
    if not found:
        return robots_version(policy)
    version_name = choose_version(policy, frozenset(found))
    if version_name is None:
        robot = ", ".join(sorted(v.name for v in policy.versions if v.served))
        return Disagreement(
            "version-mismatch", f"the robot serves {robot}; the cloud serves {', '.join(sorted(found))}"
        )
    entries = found[version_name]
    namespaced = bool(entries[policy.plural].get("namespaced"))
    if namespaced != policy.namespaced:
        scopes = {True: "Namespaced", False: "Cluster"}
        return Disagreement(
            "misconfigured", f"scope is {scopes[policy.namespaced]} on the robot, but {scopes[namespaced]} in the cloud"
        )
    return in_version(policy, version_name, cloud_status=f"{policy.plural}/status" in entries)


async def _resources(policy: KindPolicy, version: str, send: Send) -> dict[str, Json]:
    reply = await send(object_calls.discovery(policy, version))
    _raise_if_unavailable(reply.status)
    return {str(r.get("name", "")): r for r in reply.body.get("resources") or []}


def _raise_if_unavailable(status: int) -> None:
    if is_inconclusive(status):
        raise Unsure(f"discovery answered {status}")
