"""What `explain` says of related objects and of a CRD that travels: rules C5 and C8, from rows of documents."""

from collections.abc import Iterator, Sequence

from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Json, Key, Record, Side, View
from crsyncer.core.reports.text import some

ON = {Side.CLOUD: "in the cloud", Side.ROBOT: "on the robot"}
"""A side, as a sentence has it."""

Step = tuple[str, bool | None, str]
"""A rule, whether it is fulfilled (None: not yet), and the sentence."""
SEEDS: dict[bool, Step] = {
    False: ("S4.4", None, "the new copy must be given upstream's status, once"),
    True: ("C5.5", None, "the copy must be given the original's status"),
}
"""What is said of a status that is to be written to a copy, by whether it follows upstream's."""


def api_step(api: Json) -> Step:
    """What becomes of the kind's CRD, from its row in the status document. Objects are synced in any case (C8.3)."""
    follows = f"the CRD follows {api['revision']}" if api["revision"] else "the CRD follows no revision yet"
    match api["state"]:
        case "current":
            return "C8.2", True, follows
        case "paused":
            return "C8.4", True, f"{follows}; it is paused, so no new one comes"
        case "held":
            return "C8.3", True, f"{follows}; it is held, and objects are synced on: {api['message']}"
        case _:
            return "C8.4", True, f"{follows}: {api['message'] or 'the source has not been read yet'}"


def related_steps(rows: Sequence[Json]) -> Iterator[Step]:
    """Which objects go with an object, and where their copies are; a row for each entry of `spec.related`."""
    for row in rows:
        here, there = Side(row["origin"]), Side(row["origin"]).other
        about = f"related {row['id']}"
        objects = row["objects"]
        if not objects:
            yield "C5.1", True, f"{about}: it refers to no {row['resource']}"
            continue
        if not row["synced"]:
            yield "C5.3", None, f"{about}: {row['resource']} is not synced; crsyncer status says why"
            continue
        if row["statusCopied"] is False:
            yield "C5.5", True, f"{about}: {_no_status(there)}"
        groups: dict[tuple[str, str], list[Json]] = {}
        for each in objects:
            groups.setdefault((each["original"], each["copy"]["state"] if each["copy"] else "absent"), []).append(each)
        for (original, copy), each in sorted(groups.items()):
            named = f"{row['resource']} {_names(each)}"
            if original == "absent":
                yield "C5.1", True, f"{about}: {ON[here]} there is no {named}"
            elif original == "unseen":
                yield "C5.3", None, f"{about}: it is not known whether the {here} has {named}"
            elif copy == "seen":
                yield "C5.3", True, f"{about}: {named}: copied, {ON[there]}"
            else:
                yield "C5.3", None, f"{about}: {named}: not yet {ON[there]}"


def status_steps(
    policy: KindPolicy, original: View, copy: View, record: Record, *, lacks_status: bool, waits: bool
) -> Iterator[Step]:
    """What becomes of the status of a related object; `waits`: something is to be written to the copy, or is held."""
    if not any(each.related.status for each in policy.related):
        return
    if not policy.copies_status or lacks_status:
        yield "C5.5", True, _no_status(policy.downstream)
    elif original.odd_status:
        yield "C5.5", True, "the original's status is not an object, and is not copied"
    elif record.upstream_uid == original.uid and record.upstream_status == original.status:
        changed = copy.status != original.status
        what = "the original's status was copied" if original.status else "the original has no status to copy"
        why = "its schema or another writer there has changed it"
        yield "C5.5", True, what + (f"; the copy has another: {why}" if changed else "")
    elif not original.status:
        yield "C5.5", True, "the original has no status to copy"
    elif waits:
        yield "C5.5", None, "the original's status has not been copied yet"


def _no_status(side: Side) -> str:
    return f"the {side} has no /status of the kind, so the original's status is not copied"


def primary_steps(policy: KindPolicy, primaries: Sequence[Json] | None) -> Iterator[Step]:
    """Which objects a related object goes with; None: they are not all known."""
    if primaries:
        for resource in sorted({each["resource"] for each in primaries}):
            own = [each for each in primaries if each["resource"] == resource]
            entries = ", ".join(sorted({f"{each['id']} of SyncPolicy {each['policy']}" for each in own}))
            yield "C5.1", True, f"{resource} {_names(own)} refers to it ({entries})"
        return
    kinds = " or ".join(sorted({each.primary for each in policy.related}))
    if primaries is None:
        yield "C5.1", None, f"it is not known yet whether an object of {kinds} refers to it"
    elif policy.keep_copies:
        yield "C5.4", False, f"no object of {kinds} refers to it, so it is not synced; its copy stays (cleanup: keep)"
    else:
        yield "C5.4", False, f"no object of {kinds} refers to it, so it is not synced"


def _names(rows: Sequence[Json]) -> str:
    return some([str(Key(each["namespace"], each["name"])) for each in rows])
