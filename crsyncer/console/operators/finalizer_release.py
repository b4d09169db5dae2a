"""Removes a lost robot's finalizers in the cloud, by the cloud's API server alone (C6.4)."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

from crsyncer.console.compare import lister
from crsyncer.console.explained.target import find_key, find_resource
from crsyncer.core.kinds.projection import cloud_resource
from crsyncer.core.kinds.sync_policy import API_VERSION, KIND, read_sync_policy
from crsyncer.core.model import Json
from crsyncer.core.pair.finalizer_calls import KeptObject, finalizer, kept_object, remove_finalizer
from crsyncer.core.reports.text import rfc3339
from crsyncer.core.requests import calls
from crsyncer.core.requests.calls import PARTIAL_LIST, SYNC_POLICIES, Call, Collection
from crsyncer.errors import ConfigError, Conflict, NotAllowed, SyncError, Unsure
from crsyncer.ports import Reply, Send

_SCHEMA = "crsyncer.robot-release/v1"
_SAME_NAMES: Mapping[str, str] = {}
_TRIES = 5
"""How often an object is looked at again whose finalizers others change at the same time."""


class Outcome(StrEnum):
    """What became of an object."""

    KEPT = "kept"
    """Nothing was tried."""
    RELEASED = "released"
    GONE = "gone"
    """Somebody else removed the finalizer or the object first."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Wish:
    """Which objects an operator wants to release, as the command line names them."""

    robot: str
    resource: str
    """The kind by the robot's name, or by the cloud's where the robot's is not known here (C7)."""
    name: str = ""
    """[NAMESPACE/]NAME; empty: all."""
    namespace: str = ""
    older_than: float = 0.0
    """Seconds since an object was deleted."""
    living: bool = False
    """Objects that nobody has deleted, too."""


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A kind as a server serves it."""

    collection: Collection
    namespaced: bool
    aliases: tuple[str, ...]


async def release_objects(
    send: Send,
    wish: Wish,
    *,
    clock: Callable[[], float],
    dry_run: bool,
    in_cloud: Mapping[str, str] = _SAME_NAMES,
) -> Json:
    """Remove the robot's finalizer from the objects, or in a dry run only list them; the document that says so.

    `in_cloud` is what is known of the robot: by the robot's name of a kind, what the cloud calls it. Else SyncPolicies
    in the cloud say so, which are there for a fleet (C1.6). Ages are by the server's clock, by ours (`clock`, Unix time
    in seconds) where it shows none. Raises ConfigError for a robot's name that is none, and SyncError.
    """
    name = finalizer(wish.robot)
    date = (await lister.first_answer(send)).date
    now = clock() if date is None else date
    names = {**await _projected(send), **in_cloud}
    resource = find_resource(wish.resource, dict.fromkeys(names, ()))
    kind = await find_kind(send, names.get(resource, wish.resource))
    kept = await _list_kept(send, kind, wish, name)
    due = [each for each in kept if each.is_due(older_than=wish.older_than, now=now, living=wish.living)]
    left = [each.deleted_at for each in kept if each not in due]
    rows = [_row(each) for each in due] if dry_run else await _release_all(send, kind.collection, due, name)
    return {
        "schema": _SCHEMA,
        "robot": wish.robot,
        "resource": resource if resource in names else kind.collection.resource,
        "cloudResource": kind.collection.resource,
        "finalizer": name,
        "time": rfc3339(now),
        "dryRun": dry_run,
        "objects": rows,
        "recent": len(left) - left.count(None),
        "living": left.count(None),
    }


async def _projected(send: Send) -> dict[str, str]:
    """What SyncPolicies in the cloud say: by the robot's name of each kind that the cloud calls otherwise, its name."""
    found = {}
    try:
        async for raw in lister.objects(send, SYNC_POLICIES):
            with suppress(ConfigError):  # of a policy that no robot follows
                policy = read_sync_policy({"apiVersion": API_VERSION, "kind": KIND, **raw})
                found[policy.resource.full_name] = cloud_resource(policy)
    except (Conflict, NotAllowed):
        return {}  # the cloud has no such kind, or does not show it
    return {name: in_cloud for name, in_cloud in found.items() if in_cloud != name}


async def find_kind(send: Send, text: str) -> ServedKind:
    """The kind that an operator means, in any spelling that kubectl takes; raises SyncError."""
    _, is_full, group = text.partition(".")
    kinds: dict[str, ServedKind] = {}
    for name in [group] if is_full else ["", *await _groups(send)]:
        try:
            kinds |= {kind.collection.resource: kind for kind in await _kinds(send, name)}
        except Unsure:
            if is_full:
                raise
            # The server of this group is down (an APIService), and the kind may well be of another one.
    resource = find_resource(text, {name: kind.aliases for name, kind in kinds.items()})
    if resource not in kinds:
        raise SyncError(f"the cloud serves no {text}", hint="kubectl api-resources lists what it serves")
    return kinds[resource]


async def _groups(send: Send) -> list[str]:
    return [group["name"] for group in (await _discover(send, "/apis")).get("groups") or ()]


async def _kinds(send: Send, group: str) -> list[ServedKind]:
    """The kinds of a group ("": the core group), in the version that the server prefers."""
    root, version = "/api", "v1"
    if group:
        root = f"/apis/{group}"
        version = ((await _discover(send, root)).get("preferredVersion") or {}).get("version", "")
    found = (await _discover(send, f"{root}/{version}")).get("resources") or () if version else ()
    return [_served(group, version, resource) for resource in found if "/" not in resource["name"]]


def _served(group: str, version: str, resource: Json) -> ServedKind:
    aliases = (resource.get("singularName") or "", resource["kind"], *(resource.get("shortNames") or ()))
    return ServedKind(Collection(group, version, resource["name"]), bool(resource.get("namespaced")), aliases)


async def _discover(send: Send, path: str) -> Json:
    """What discovery shows at a path, nothing where the server has nothing there; raises SyncError."""
    reply = await send(Call("discover", "GET", path, timeout=10.0))
    if reply.status not in (200, 404):
        raise _refusal(reply)
    return reply.body if reply.status == 200 else {}


async def _list_kept(send: Send, kind: ServedKind, wish: Wish, name: str) -> list[KeptObject]:
    """The objects with a finalizer among those that are meant; raises SyncError."""
    given, slash, _ = wish.name.rpartition("/")
    namespace = given if slash else wish.namespace
    if namespace and not kind.namespaced:
        raise SyncError(f"{kind.collection.resource} are in no namespace", hint="leave the namespace out")
    listed = lister.objects(send, replace(kind.collection, namespace=namespace), accept=PARTIAL_LIST)
    found = [kept async for raw in listed if (kept := kept_object(raw, name)) is not None]
    if not wish.name:
        return found
    key = find_key(wish.name, [kept.key for kept in found], namespaced=kind.namespaced)
    return [kept for kept in found if kept.key == key]


async def _release_all(send: Send, collection: Collection, due: Sequence[KeptObject], name: str) -> list[Json]:
    """Release objects, one after another. A server that does not answer is not asked for the rest."""
    rows: list[Json] = []
    answers = True
    for kept in due:
        try:
            rows.append(_row(kept, await _release(send, collection, kept, name) if answers else Outcome.KEPT))
        except SyncError as error:
            answers = not isinstance(error, Unsure)
            rows.append(_row(kept, Outcome.FAILED, str(error)))
    return rows


async def _release(send: Send, collection: Collection, kept: KeptObject, name: str) -> Outcome:
    """Release an object, looked at again whenever its finalizers have changed; raises SyncError."""
    seen: KeptObject | None = kept
    for _ in range(_TRIES):
        if seen is None:
            return Outcome.GONE
        reply = await send(remove_finalizer(collection, seen, name))
        error = reply.error(patch=True)
        if error is None:
            return Outcome.RELEASED
        if not isinstance(error, Conflict):
            raise error
        seen = await _again(send, collection, kept, name)
    raise SyncError("its finalizers keep changing")


def _row(kept: KeptObject, outcome: Outcome = Outcome.KEPT, error: str = "") -> Json:
    return {
        "namespace": kept.key.namespace,
        "name": kept.key.name,
        "uid": kept.uid,
        "deletionTimestamp": rfc3339(kept.deleted_at),
        "state": str(outcome),
        "error": error or None,
    }


async def _again(send: Send, collection: Collection, kept: KeptObject, name: str) -> KeptObject | None:
    """The same object as it is now; None where it is gone, or does not have the finalizer any more."""
    reply = await send(replace(calls.list_one(collection, kept.key), accept=PARTIAL_LIST))
    if reply.status != 200:
        raise _refusal(reply)
    for raw in reply.body.get("items") or ():
        found = kept_object(raw, name)
        if found is not None and found.uid == kept.uid:
            return found
    return None


def _refusal(reply: Reply) -> SyncError:
    return reply.error() or Unsure("the answer is not what was asked for")
