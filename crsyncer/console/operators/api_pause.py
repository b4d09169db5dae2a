"""Pauses CRDs that travel, in the SyncPolicies on the robot: what `crsyncer api pause` does (C8.4)."""

from collections.abc import Sequence

from crsyncer.console.compare import lister
from crsyncer.core.content.object_content import stamp_of
from crsyncer.core.kinds.sync_policy import API_VERSION, KIND, read_sync_policy
from crsyncer.core.model import Json
from crsyncer.core.requests.calls import MERGE_PATCH, PARTIAL, SYNC_POLICIES, Call
from crsyncer.errors import ConfigError, SyncError
from crsyncer.ports import Send


async def pause(send: Send, resource: str, *, paused: bool) -> Json:
    """Have the CRD of a kind pause, or (not `paused`) go on; the policy that says so now. Raises SyncError.

    `resource` is the name of the CRD, or its plural where that is unambiguous.
    """
    found = [(name, raw) async for raw in lister.objects(send, SYNC_POLICIES) if (name := _travelling(raw))]
    full_name, raw = _chosen(found, resource)
    metadata = raw["metadata"]
    if stamp_of(raw) is not None:
        raise SyncError(f"SyncPolicy {metadata['name']} is a copy", hint="set spec.api.paused in the cloud")
    guard = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    body = {"metadata": guard, "spec": {"api": {"paused": paused}}}
    path = f"{SYNC_POLICIES.path}/{metadata['name']}"
    (await send(Call("patch", "PATCH", path, body=body, content_type=MERGE_PATCH, accept=PARTIAL))).happened()
    return {"resource": full_name, "policy": metadata["name"], "paused": paused}


def _travelling(raw: Json) -> str:
    """The kind whose CRD travels by a SyncPolicy; empty: none does, or the policy cannot be followed."""
    try:
        policy = read_sync_policy({"apiVersion": API_VERSION, "kind": KIND, **raw})
    except ConfigError:
        return ""
    return policy.resource.full_name if policy.api is not None else ""


def _chosen(found: Sequence[tuple[str, Json]], resource: str) -> tuple[str, Json]:
    """The policy for the kind that is meant, with its full name; raises SyncError where that is none, or several."""
    meant = [each for each in found if resource in (each[0], each[0].partition(".")[0])]
    meant = [each for each in meant if each[0] == resource] or meant
    if len(meant) != 1:
        names = ", ".join(sorted(name for name, _ in found)) or "none"
        problem = f"several SyncPolicies have api for {resource}" if meant else f"no SyncPolicy has api for {resource}"
        raise SyncError(problem, hint=f"CRDs that travel: {names}")
    return meant[0]
