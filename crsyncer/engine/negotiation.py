"""Negotiation with the cloud: in which version a kind is synced, and where its status is written (S1.5, S1.7)."""

from dataclasses import dataclass, replace

from crsyncer.core import calls
from crsyncer.core.answers import is_inconclusive
from crsyncer.core.kind_policy import KindPolicy, choose_version
from crsyncer.core.model import Json
from crsyncer.errors import Unsure
from crsyncer.ports import Reply, Send, Store


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Why a negotiation failed: the state of the kind for `status`, and the sentence."""

    state: str
    message: str


def to_store(policy: KindPolicy) -> Json:
    """What the store remembers of a negotiation."""
    return {"version": policy.version, "cloudStatus": policy.in_cloud.status, "offer": offer(policy)}


def offer(policy: KindPolicy) -> Json:
    """The versions of the robot's CRD that the choice was made from."""
    return {v.name: [v.served, v.storage] for v in policy.versions}


def in_version(policy: KindPolicy, version: str, *, cloud_status: bool | None) -> KindPolicy:
    """The policy in a version; `cloud_status` says whether the cloud has `/status` (None: as the robot has)."""
    robot_status = next(v.status for v in policy.versions if v.name == version)
    on_robot = replace(policy.on_robot, version=version, status=robot_status)
    in_cloud = replace(policy.in_cloud, version=version, status=robot_status if cloud_status is None else cloud_status)
    return replace(policy, on_robot=on_robot, in_cloud=in_cloud)


def robots_version(policy: KindPolicy) -> KindPolicy:
    """The policy in the robot's storage version."""
    return in_version(policy, choose_version(policy, None) or "", cloud_status=None)


def guessed_version(policy: KindPolicy) -> KindPolicy:
    """The policy in the robot's storage version, as long as the cloud has not shown which versions it serves."""
    return replace(robots_version(policy), version_is_guess=True)


def stored_negotiation(policy: KindPolicy, store: Store) -> tuple[KindPolicy, bool]:
    """The last result, if the robot still serves that version, and whether it served the same versions then."""
    known = store.get_meta(f"negotiated:{policy.resource}")
    if not known or known["version"] not in [v.name for v in policy.versions if v.served]:
        return guessed_version(policy), False
    negotiated = in_version(policy, known["version"], cloud_status=known["cloudStatus"])
    return negotiated, known.get("offer") == offer(policy)


async def negotiate(policy: KindPolicy, send: Send) -> KindPolicy | Disagreement:
    """Ask the cloud. Where it forbids discovery, or does not serve the kind, the robot's storage version is tried.

    Raises Unsure when the cloud did not answer.
    """
    shown = await _versions(policy, send)
    if isinstance(shown, int):
        return robots_version(policy) if shown == 404 else guessed_version(policy)
    plural = policy.in_cloud.plural
    found = {version: entries for version, entries in shown.items() if plural in entries}
    if not found:
        return robots_version(policy)
    version_name = choose_version(policy, frozenset(found))
    if version_name is None:
        robot = ", ".join(sorted(v.name for v in policy.versions if v.served))
        return Disagreement(
            "version-mismatch", f"the robot serves {robot}; the cloud serves {', '.join(sorted(found))}"
        )
    entries = found[version_name]
    in_cloud = replace(policy.in_cloud, namespaced=bool(entries[plural].get("namespaced")))
    if in_cloud != policy.in_cloud:
        text = f"scope is {policy.on_robot.scope} on the robot, but {in_cloud.scope} in the cloud"
        return Disagreement("misconfigured", text)
    return in_version(policy, version_name, cloud_status=f"{plural}/status" in entries)


async def _versions(policy: KindPolicy, send: Send) -> dict[str, dict[str, Json]] | int:
    """What the cloud serves of the kind's group, by version and name; the status code where it does not say."""
    group = policy.in_cloud.group
    if not group:  # the core group has one version, and no list of them like that of other groups
        reply = await ask(calls.discovery("", "v1"), send)
        return {"v1": _by_name(reply)} if reply.status == 200 else reply.status
    reply = await ask(calls.group_versions(group), send)
    if reply.status != 200:
        return reply.status
    versions = [str(each.get("version", "")) for each in reply.body.get("versions") or []]
    return {name: _by_name(await ask(calls.discovery(group, name), send)) for name in versions}


def _by_name(reply: Reply) -> dict[str, Json]:
    return {str(each.get("name", "")): each for each in reply.body.get("resources") or []}


async def ask(call: calls.Call, send: Send) -> Reply:
    """The answer to a request of a negotiation. Raises Unsure when there was none that says anything."""
    reply = await send(call)
    _raise_if_unavailable(reply.status)
    return reply


def _raise_if_unavailable(status: int) -> None:
    if is_inconclusive(status):
        raise Unsure(f"discovery answered {status}")
