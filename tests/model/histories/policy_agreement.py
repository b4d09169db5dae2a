"""What both sides have in common under a SyncPolicy, once nothing stands between them any more (C2 to C6)."""

from typing import TYPE_CHECKING

from crsyncer.core.model import Json, Side
from tests.model.histories.policy_history import PARTS
from tests.model.histories.policy_references import GOALS, objects_of
from tests.model.scenes.blocking import MINE
from tests.model.scenes.policies import policies
from tests.model.simulation.check import is_marked, is_named
from tests.model.simulation.judge import stamp

if TYPE_CHECKING:
    from tests.model.histories.policy_machine import PolicyMachine


def open_ends(machine: "PolicyMachine") -> list[str]:
    """What the two sides disagree on."""
    found = [*machine.apis.open_ends(), *machine.checker.deletions.open_ends(), *_of_primaries(machine)]
    found += machine.checker.projections.open_ends()
    for name, policy in policies(machine.world.robot).items():
        if not (policy.get("status") or {}).get("conditions"):
            found.append(f"policy {name} does not show whether it is followed")
    for resource in machine.checker.references.origins:
        found += _of_related(machine, resource)
    return found


def generations(machine: "PolicyMachine") -> list[str]:
    """Statuses that show another generation than upstream's, once controllers have seen what the copies are (S4.7)."""
    copies = {stamp(copy): copy for copy in objects_of(machine.down, GOALS).values() if stamp(copy)}
    found = []
    for (_, name), original in objects_of(machine.up, GOALS).items():
        copy, metadata = copies.get(original["metadata"]["uid"]), original["metadata"]
        if copy is None or not machine.checker.is_synced(original, machine.up.side):
            continue
        shown = (original.get("status") or {}).get("observedGeneration")
        if shown != metadata["generation"]:
            found.append(f"{name} shows the generation {shown}, and it is {metadata['generation']} (S4.7)")
    return found


def _of_primaries(machine: "PolicyMachine") -> list[str]:
    checker, found = machine.checker, []
    originals, copies = objects_of(machine.up, GOALS), objects_of(machine.down, GOALS)
    by_uid: dict[str, list[Json]] = {}
    for copy in copies.values():
        if stamp(copy):
            by_uid.setdefault(stamp(copy), []).append(copy)
    for (_, name), original in originals.items():
        uid = original["metadata"]["uid"]
        synced = checker.is_synced(original, machine.up.side)
        has, wanted = MINE in (original["metadata"].get("finalizers") or []), checker.deletions.rule.blocking and synced
        unknown = checker.forgot and not synced  # it is out of sight, and there need not be a copy that tells of it
        if "deletionTimestamp" in original["metadata"] and not unknown:
            found.append(f"{name} is not released")
        if has is not wanted and not (has and unknown):
            found.append(f"{name}: the finalizer is {'not ' * wanted}there")
        own = by_uid.pop(uid, [])
        if synced and not own:
            taken = copies.get(checker.new_name(name, machine.naming))
            found += [f"{name} has no copy"] if taken is None or not _may_be_taken(machine, taken) else []
        elif not synced and own and uid not in checker.twins and not _is_of_nobody(machine, own[0]):
            found.append(f"{name} is not synced, and has a copy")
        if len(own) > 1 and uid not in checker.twins:
            found.append(f"{name} has two copies")
        if synced and own and not any(_agrees(machine, original, copy) for copy in own):
            found.append(f"{name}: {original} and {own}")
    if machine.setup.orphans == "delete" and machine.down.side is Side.ROBOT:
        local = [copy for copy in copies.values() if not stamp(copy) and checker.is_selected(copy)]
        found += [f"{copy['metadata']['name']} is an orphan" for copy in local]
    left = [uid for uid in by_uid if uid not in checker.twins and not _is_of_nobody(machine, by_uid[uid][0])]
    return found + [f"the copy of nothing: {by_uid[uid][0]['metadata']['name']}" for uid in left]


def _is_of_nobody(machine: "PolicyMachine", copy: Json) -> bool:
    """Whether nothing tells whose copy one is, so that it is local (C2.2): its marks are torn, and no store has it.

    Its object, which might tell, is gone, or (of related ones) nothing refers to it, so that it is not read either.
    """
    return machine.checker.is_unknown(copy) and not is_named(copy)


def _may_be_taken(machine: "PolicyMachine", taken: Json) -> bool:
    """Whether the name of a copy is somebody else's, so that there is none."""
    if stamp(taken):
        return True  # the earlier of two originals with one name has it
    return bool(machine.setup.namings) or machine.down.side is Side.CLOUD or not machine.checker.is_selected(taken)


def _is_taken(machine: "PolicyMachine", resource: str, found: Json) -> bool:
    """Whether an object is somebody else's, so that a related copy of its name has no place."""
    references = machine.checker.references
    if stamp(found) or machine.setup.namings or any("naming" in each for each in references.of(resource)):
        return True
    in_cloud = references.origins[resource] is Side.ROBOT
    return in_cloud or resource == "secrets" or not machine.checker.is_mine(found)


def _agrees(machine: "PolicyMachine", original: Json, copy: Json) -> bool:
    desired = original["spec"] | ({"mode": "m"} if machine.setup.steps else {})
    spec = copy["spec"]
    if machine.setup.keep_local:
        spec = {key: value for key, value in spec.items() if key not in ("local", "maps", "mode") or key in desired}
        spec, desired = ({k: v for k, v in each.items() if k in ("x", "n")} for each in (spec, desired))
    status, shown = (each.get("status") for each in (copy, original))
    if status and shown and machine.setup.up:
        status = status | {"word": f"{original['metadata']['name']} {status['n']}"}
    if status and shown and machine.setup.maps_generation:  # which it shows is judged at last
        status, shown = ({k: v for k, v in each.items() if k != "observedGeneration"} for each in (status, shown))
    uid, key = original["metadata"]["uid"], machine.subtree.key
    if key:
        status, shown = ((each or {}).get(key) for each in (status, shown))
    elif uid in machine.subtree.rivalled:
        return bool(spec == desired)
    if uid in machine.checker.overtaken:
        return bool(spec == desired)  # downstream's status wins at its next change, or at the audit (S4.8)
    is_formers = status and status.get("of", uid) != uid  # the copy was adopted with it (S4.1)
    if status is None and shown is not None and _lacks(machine, copy):
        return False
    return spec == desired and (status is None or is_formers or status == shown)


def _lacks(machine: "PolicyMachine", copy: Json) -> bool:
    """Whether a copy without a status that upstream has is to get it: the agent made it, and knows that (S4.4)."""
    checker, setup, born = machine.checker, machine.setup, machine.checker.born(copy)
    killed = checker.was_killed(after=born - 120.0, before=born + 120.0)
    forgot = checker.forgot or setup.edits_subtree or setup.edits_projection
    return not (killed or forgot or checker.was_made_by_hand(copy))


def _uncopied(machine: "PolicyMachine") -> set[str]:
    """The primaries (uids) that are to have a copy, and have none: their related copies wait with them (C5.4)."""
    copied = {stamp(copy) for copy in objects_of(machine.down, GOALS).values()}
    primaries = [
        each for each in objects_of(machine.up, GOALS).values() if machine.checker.is_synced(each, machine.up.side)
    ]
    return {each["metadata"]["uid"] for each in primaries} - copied


def _of_related(machine: "PolicyMachine", resource: str) -> list[str]:
    checker, references, found = machine.checker, machine.checker.references, []
    side = references.origins[resource]
    originals = objects_of(machine.world.planes[side], resource)
    copies = objects_of(machine.world.planes[side.other], resource)
    wanted = references.wanted(resource, references.entries, copied=True)
    by_uid = {stamp(copy): copy for copy in copies.values() if stamp(copy)}
    for where, places in sorted(wanted.items()):
        original = originals.get(where)
        if original is None or not checker.sees(original, side):
            continue
        copy = by_uid.pop(original["metadata"]["uid"], None)
        if copy is not None:
            if side is Side.ROBOT and not is_marked(copy):
                continue  # in the cloud the agent does not read what it cannot see: that is `NameTaken` (C2.5)
            if copy["data"] != original["data"]:
                found.append(f"{resource} {where}: {original['data']} and {copy['data']}")
            found += machine.statuses.open_ends(original, copy) if resource == PARTS else []
        elif not any(place in copies and _is_taken(machine, resource, copies[place]) for place in places):
            found.append(f"{resource} {where} has no copy")
    cleanup = {each["cleanup"] for each in references.of(resource)}
    wanted = references.wanted(resource, references.entries)
    waiting = _uncopied(machine)
    needed = {
        each["metadata"]["uid"]
        for where, each in originals.items()
        if where in wanted or not waiting.isdisjoint(references.users[resource, where])
    }
    for uid, copy in by_uid.items():
        changed = [time for time in references.changed if time > checker.born(copy) - 60]
        # One that lost its labels is out of sight, and not deleted (C5.3); nor is what nothing tells whose copy it is.
        excused = bool(changed) or uid in needed or uid in checker.twins or not is_marked(copy)
        excused |= _is_of_nobody(machine, copy)
        if cleanup == {"delete"} and not excused:
            found.append(f"{resource} {copy['metadata']['name']} is the copy of what nothing refers to")
    return found
