"""What is kept of the store when the objects of a kind are selected in another way than before (C1.7)."""

from collections.abc import Iterator
from dataclasses import replace

from crsyncer.agent_ports import Store
from crsyncer.core.holds.hold_list import DELETION_HOLDS
from crsyncer.core.kinds.endpoint import Endpoint
from crsyncer.core.kinds.fingerprint import Fingerprint
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import ANY_STATUS, Key, Loaded, Pending, Record, Side, View
from crsyncer.core.pair.actions import HoldReason
from crsyncer.core.pair.decide import may_delete
from crsyncer.core.pair.project import view_of
from crsyncer.engine.context import EngineContext
from crsyncer.engine.kinds.former_places import FormerCopy, FormerPlaces, place_in_store, place_to_store
from crsyncer.engine.pairs.hold_driver import another_name, kind_wide_name
from crsyncer.engine.pairs.unseen_finalizers import hand_over


async def reselect(policy: KindPolicy, loaded: Loaded, context: EngineContext) -> Loaded:
    """What the store has of a kind, as far as it means anything under this policy; the rest is forgotten.

    Where objects are selected in another way, or are others in the cloud (C7), what is stored of upstream could show
    wrong absences. Copies stay known: they are deleted like those of objects that are gone, once both sides have been
    listed. What holds them until then is recorded first, and the new selection last: so after a crash the next start
    begins anew.

    Statuses that wait are dropped only with another direction or subtree. Held deletions stay held, and with another
    subtree alone what was deleted stays deleted: its related copies go first (C6.3). A restore is noticed by how far
    the clusters had come.
    """
    store, name, wanted = context.store, f"selection:{policy.resource}", policy.fingerprint
    stored = store.get_meta(name) or ["", None]
    text, place = (stored, None) if isinstance(stored, str) else stored  # an earlier version knew no place
    texts = {text, *(cursor.fingerprint for cursor in loaded.cursors.values())}
    formers = {found for each in texts if (found := Fingerprint.parse(each)) is not None} - {wanted}
    hand_over(policy, loaded.finalizers, store)
    if place is not None and _is_of_another_scope(place_in_store(place), policy, formers):
        loaded = _forget(policy.resource, Loaded(finalizers=loaded.finalizers), store)
    elif formers:
        if not all(map(wanted.is_in_the_same_places, formers)):
            _forget_missing_kind(policy, context)
        leaves = any(map(wanted.leaves_copies_behind, formers)) or _has_left_behind(policy, loaded)
        if leaves:
            hold_id = context.holds.issue() if any(each.is_of_related for each in (wanted, *formers)) else ""
            former = None if place is None else place_in_store(place)
            _leave_behind(policy, loaded, context, former=former, hold_id=hold_id)
        loaded = await _kept(policy, loaded, formers, context)
    now = [wanted.text, place_to_store(policy.endpoint(policy.downstream))]
    if stored != now:
        store.put_meta(name, now)
    return loaded


def _is_of_another_scope(former: Endpoint, policy: KindPolicy, formers: set[Fingerprint]) -> bool:
    """Whether both sides have made the kind anew in another scope, where no object is one of before (S6.2)."""
    place = policy.endpoint(policy.downstream)
    is_same_on_both = not any(each.in_cloud for each in (policy.fingerprint, *formers))
    return is_same_on_both and former.resource == place.resource and former.namespaced != place.namespaced


def _forget(resource: str, kept: Loaded, store: Store, *, keep_outbox: bool = False) -> Loaded:
    """Have the store forget a kind, but for its tombstones and finalizers in `kept`, which it returns."""
    store.forget_kind(resource, keep_outbox=keep_outbox)
    for key, tombstone in kept.tombstones.items():
        store.put_tombstone(resource, key, tombstone)
    for key, row in kept.finalizers.items():
        store.put_finalizer(resource, key, row)
    return kept


def _forget_missing_kind(policy: KindPolicy, context: EngineContext) -> None:
    """Forget whether the kind is missing upstream: that was found out about another kind."""
    store, name = context.store, kind_wide_name(policy.resource)
    if policy.upstream is Side.CLOUD:
        store.put_meta(another_name(policy), True)
    kind_wide = store.get_meta(name) or {}
    if kind_wide.pop(HoldReason.KIND_MISSING.value, None) is not None:
        store.put_meta(name, kind_wide)
    for reason in DELETION_HOLDS.keys() - kind_wide.keys():
        context.holds.clear(policy.resource, reason=reason)


def _leave_behind(
    policy: KindPolicy, loaded: Loaded, context: EngineContext, *, former: Endpoint | None, hold_id: str
) -> None:
    """Hold every deletion until it is known how many copies the edit leaves behind, if there may be any.

    With an id they are held for a human, however few: copies stay when their policy or entry cannot be followed any
    more, or is gone, and their kind is related before or after the edit (C1.3, C5.4).
    """
    store, name, side = context.store, kind_wide_name(policy.resource), policy.downstream
    places, place = FormerPlaces(policy.resource, store), policy.endpoint(side)
    copies = {key: view for key, view in loaded.views[side].items() if _is_ours(view, policy)}
    kind_wide = store.get_meta(name) or {}
    held = HoldReason.SELECTION_CHANGED in kind_wide
    listed = any(each is side and cursor.is_finished for (each, _), cursor in loaded.cursors.items())
    under_way = any(record.called is not None for record in loaded.records.values())
    is_known = listed and not under_way
    if former is not None and former.resource != place.resource:
        known = {view.uid: FormerCopy(_name(policy, key, view, former), key) for key, view in copies.items()}
        places.leave(former, known, to=place, held=held, is_known=is_known)
    if not held and (copies or places.places or not is_known):
        store.put_meta(name, {**kind_wide, HoldReason.SELECTION_CHANGED: [hold_id, context.clock()]})


def _has_left_behind(policy: KindPolicy, loaded: Loaded) -> bool:
    """Whether there are copies that an earlier edit has left behind: what is forgotten now, no watch shows again."""
    return any(view.unselected and _is_ours(view, policy) for view in loaded.views[policy.downstream].values())


def _name(policy: KindPolicy, key: Key, copy: View, place: Endpoint) -> Key:
    """What a copy is called where it is."""
    if copy.called is not None:
        return copy.called
    namespace = policy.namespaces.translate(key.namespace, policy.upstream, policy.downstream)
    return Key((namespace or "") if place.namespaced else "", key.name)


def _is_ours(copy: View, policy: KindPolicy) -> bool:
    """Whether an object is a copy that this robot's agent has made."""
    return copy.stamp is not None and may_delete(copy, policy)


async def _kept(policy: KindPolicy, loaded: Loaded, formers: set[Fingerprint], context: EngineContext) -> Loaded:
    """What is known under the new selection."""
    store, resource, wanted = context.store, policy.resource, policy.fingerprint
    same_status = all(map(wanted.moves_the_same_status, formers))
    same_places = all(map(wanted.is_in_the_same_places, formers))
    same_objects = all(map(wanted.selects_the_same_objects, formers))
    same_copies = not policy.related and all(
        wanted.knows_the_copies(former)
        and (
            former.names_copies == wanted.names_copies
            if former.in_cloud == wanted.in_cloud
            else policy.downstream is Side.ROBOT  # marks with a namespace are of no original that has none (C7)
        )
        for former in formers
    )
    for (side, _), cursor in loaded.cursors.items():
        connection = context.connections[side]
        connection.history.remember(cursor, connection.history_identity)
    tombstones = {key: each for key, each in loaded.tombstones.items() if same_objects or (each.held and same_places)}
    pending = loaded.pending if same_status else {}
    if same_places and not same_objects:
        pending = dict(_reselected(policy, loaded, pending, context))
    kept = Loaded(pending=pending, tombstones=tombstones, finalizers=loaded.finalizers)
    if not same_copies:
        return _forget(resource, kept, store, keep_outbox=same_status)
    if same_places:
        records = _with_propagation(loaded, policy)
        sent = loaded.pending.keys()
        kept.records.update(records if same_status else ((k, _without_status(each, k in sent)) for k, each in records))
    _forget_others(policy, loaded, kept, context)
    await _review_copies(policy, loaded, kept, context)
    if same_places and not same_status:
        _note_statuses(policy, kept, context)
    return kept


def _reselected(
    policy: KindPolicy, loaded: Loaded, pending: dict[Key, Pending], context: EngineContext
) -> Iterator[tuple[Key, Pending]]:
    """The statuses that wait; upstream's objects, as they are known, may be out of sight from now on, and not gone."""
    for key, row in pending.items():
        own = loaded.views[policy.upstream].get(key)
        hidden = own is not None and own.uid == row.upstream_uid and not own.shared
        waiting = replace(row, reselected=row.reselected or hidden)
        context.store.put_pending(policy.resource, key, waiting)
        yield key, waiting


def _with_propagation(loaded: Loaded, policy: KindPolicy) -> Iterator[tuple[Key, Record]]:
    """The records of pairs; upstream's objects may be out of sight from now on (C6.5)."""
    for key in {*loaded.records, *loaded.views[policy.upstream]}:
        record, own = loaded.records.get(key, Record()), loaded.views[policy.upstream].get(key)
        if own is not None and own.propagation and record.upstream_uid in ("", own.uid):
            record = replace(record, upstream_uid=own.uid, propagation=own.propagation)
        yield key, record


def _without_status(record: Record, is_pending: bool) -> Record:
    """The record of a pair of which another part of the status goes up from now on; what was sent may land later."""
    return replace(
        record,
        acknowledged="",
        acknowledged_version="",
        upstream_status="",
        had_status=False,
        seed=False,
        unanswered=(ANY_STATUS,) if is_pending or record.unanswered else (),
    )


def _forget_others(policy: KindPolicy, loaded: Loaded, kept: Loaded, context: EngineContext) -> None:
    """Have the store forget what is not kept, copies aside."""
    store, resource = context.store, policy.resource
    for (side, namespace), cursor in loaded.cursors.items():
        if side is policy.downstream and _is_counting(policy, context):
            # The list for the count follows, but only a watch shows the last status of a copy that is gone (S4.1). The
            # new selector may not match the last event's object, so a watch that does not repeat it proves no restore.
            fingerprint = policy.fingerprint.text
            kept.cursors[side, namespace] = replace(cursor, fingerprint=fingerprint, seen_uid="", seen_version="")
        store.put_cursor(side, resource, namespace, kept.cursors.get((side, namespace)))
    for key in loaded.views[policy.upstream]:
        store.drop_copy(policy.upstream, resource, key)
    for key in loaded.records.keys() | kept.records.keys():
        if loaded.records.get(key) != kept.records.get(key):
            store.put_record(resource, key, kept.records.get(key))
    for key in loaded.pending.keys() - kept.pending.keys():
        store.put_pending(resource, key, None)
    for key in loaded.tombstones.keys() - kept.tombstones.keys():
        store.put_tombstone(resource, key, None)


def _is_counting(policy: KindPolicy, context: EngineContext) -> bool:
    """Whether the copies that edits leave behind are counted once the kind runs, which takes a list of them."""
    return HoldReason.SELECTION_CHANGED in (context.store.get_meta(kind_wide_name(policy.resource)) or {})


async def _review_copies(policy: KindPolicy, loaded: Loaded, kept: Loaded, context: EngineContext) -> None:
    """See the copies under the new selection. What it does not match, and is no copy of ours, is none of the kind's."""
    store, side = context.store, policy.downstream
    for key, known in loaded.views[side].items():
        body = await store.body(side, policy.resource, key)
        if body is not None and "uid" in body["metadata"]:
            view = view_of(body, policy, side, key=key)
            is_local = policy.names_copies and view.stamp is None  # with naming no name makes an object a copy (C2.2)
            if _is_ours(view, policy) or not (view.unselected or is_local):
                kept.views[side][key] = view
                if view != known:
                    store.put_copy(side, policy.resource, key, view, body)
                continue
        store.drop_copy(side, policy.resource, key)


def _note_statuses(policy: KindPolicy, kept: Loaded, context: EngineContext) -> None:
    """Record of which copies it is known that they have the part of the status that goes up from now on.

    That part may be gone when they are seen next: then it was removed, and goes upstream, too (S4.3, S4.5).
    """
    for key, copy in kept.views[policy.downstream].items():
        if copy.stamp is None or not copy.status:
            continue
        record, uid = kept.records.get(key, Record()), copy.stamp.upstream_uid
        record = replace(record if record.upstream_uid == uid else Record(upstream_uid=uid), had_status=True)
        kept.records[key] = record
        context.store.put_record(policy.resource, key, record)
