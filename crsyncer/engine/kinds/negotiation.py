"""Negotiation with the cloud: in which version a kind is synced, and where its status is written (S1.5, S1.7)."""

from dataclasses import dataclass, replace

from crsyncer.agent_ports import Store
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.projection import discovered
from crsyncer.core.kinds.version_choice import choose_version
from crsyncer.core.model import Json
from crsyncer.core.requests import calls
from crsyncer.ports import Reply, Send
from crsyncer.runtime.discovery import ask

UNKNOWN = "waiting"
"""The state of a kind of which the cloud has not been asked yet."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Why a kind is not synced, such as that a negotiation failed: its state for `status`, and the sentence."""

    state: str
    message: str
    rule: str = ""
    """The rule that a setting breaks; empty: the state has a rule of its own."""


def to_store(policy: KindPolicy) -> Json:
    """What the store remembers of a negotiation."""
    cloud = policy.in_cloud
    known: Json = {"version": policy.version, "cloudStatus": cloud.status, "offer": offer(policy)}
    known["namespaced"] = policy.on_robot.namespaced
    if policy.projected is None:
        return known
    return known | {"cloud": [cloud.resource, cloud.version, cloud.kind, cloud.namespaced]}


def offer(policy: KindPolicy) -> Json:
    """The versions of the robot's CRD that the choice was made from."""
    return {v.name: [v.served, v.storage] for v in policy.versions}


def in_version(policy: KindPolicy, version: str, *, cloud_status: bool | None) -> KindPolicy:
    """The policy in a version; `cloud_status` says whether the cloud has `/status` (None: as the robot has)."""
    robot_status = next(v.status for v in policy.versions if v.name == version)
    on_robot = replace(policy.on_robot, version=version, status=robot_status)
    in_cloud = replace(
        policy.in_cloud,
        version=policy.cloud_version(version),
        status=robot_status if cloud_status is None else cloud_status,
    )
    return replace(policy, on_robot=on_robot, in_cloud=in_cloud)


def robots_version(policy: KindPolicy) -> KindPolicy:
    """The policy in the robot's storage version."""
    return in_version(policy, choose_version(policy, None) or "", cloud_status=None)


def guessed_version(policy: KindPolicy) -> KindPolicy:
    """The policy in the robot's storage version, as long as the cloud has not shown which versions it serves."""
    return replace(robots_version(policy), version_is_guess=True)


def stored_negotiation(policy: KindPolicy, store: Store) -> tuple[KindPolicy | Disagreement, bool]:
    """The last result, if the robot still serves that version, and whether it served the same versions then.

    With a projection, also whether the cloud was asked for just this version of just this resource. A CRD that was made
    anew in another scope is waited with: what is known of the cloud is about objects that can have no copy (S1.7).
    """
    known = store.get_meta(f"negotiated:{policy.resource}") or {}
    resource, version, kind, namespaced = known.get("cloud") or ("", "", "", False)
    if resource != ("" if policy.projected is None else policy.in_cloud.resource):
        known = {}  # it is about other objects
    given = policy.projected
    if given is not None and known:
        remembered = _served_as(policy, {"kind": kind, "namespaced": namespaced})
        if isinstance(remembered, Disagreement):
            return remembered, False
        policy = remembered
    elif given is not None and (not given.kind or given.namespaced is None):
        return Disagreement(UNKNOWN, f"the cloud has not shown yet how it serves {policy.in_cloud.resource}"), False
    elif given is None and known.get("namespaced", policy.on_robot.namespaced) != policy.on_robot.namespaced:
        return Disagreement(
            UNKNOWN, f"the cloud has not shown yet that it serves it {policy.on_robot.scope}, too"
        ), False
    if known.get("version") not in [v.name for v in policy.versions if v.served]:
        return guessed_version(policy), False
    negotiated = in_version(policy, known["version"], cloud_status=known["cloudStatus"])
    return negotiated, known.get("offer") == offer(policy) and version in ("", negotiated.in_cloud.version)


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
        wanted = "" if policy.projected is None else policy.projected.version
        own = f"{robot}, projected to {wanted}" if wanted else robot
        return Disagreement("version-mismatch", f"the robot serves {own}; the cloud serves {', '.join(sorted(found))}")
    entries = found[policy.cloud_version(version_name)]
    served = _served_as(policy, entries[plural])
    if isinstance(served, Disagreement):
        return served
    return in_version(served, version_name, cloud_status=f"{plural}/status" in entries)


def _served_as(policy: KindPolicy, entry: Json) -> KindPolicy | Disagreement:
    """The policy with what the cloud's discovery shows of the kind."""
    if policy.projected is not None:
        found = discovered(policy, kind=str(entry.get("kind")), namespaced=bool(entry.get("namespaced")))
        return Disagreement("misconfigured", found, policy.rule) if isinstance(found, str) else found
    in_cloud = replace(policy.in_cloud, namespaced=bool(entry.get("namespaced")))
    if in_cloud == policy.in_cloud:
        return policy
    text = f"scope is {policy.on_robot.scope} on the robot, but {in_cloud.scope} in the cloud"
    if policy.sync_policy is not None:
        text += "; allowed with spec.projection: {}"
    return Disagreement("misconfigured", text, policy.rule or "S1.7")


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
