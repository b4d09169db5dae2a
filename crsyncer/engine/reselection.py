"""What is kept of the store when the objects of a kind are selected in another way than before."""

from crsyncer.core.kind_policy import KindPolicy
from crsyncer.core.model import FinalizerRow, Key, Loaded
from crsyncer.engine.context import EngineContext


def reselect(policy: KindPolicy, loaded: Loaded, context: EngineContext) -> Loaded:
    """What the store has of a kind, as far as it means anything under this policy; the rest is forgotten.

    Where objects are selected in another way, or are others in the cloud (C7), what is stored could show wrong
    absences. Statuses that wait are dropped only with another direction, subtree or projection; held deletions stay
    held, and with another subtree alone what was deleted stays deleted: its related copies go first (C6.3). A restore
    is noticed by how far the clusters had come.
    """
    name = f"selection:{policy.resource}"
    selected_last = context.store.get_meta(name)
    others = {cursor.fingerprint for cursor in loaded.cursors.values()} | ({selected_last} if selected_last else set())
    others.discard(policy.fingerprint)
    if not others:
        return loaded
    context.store.put_meta(name, policy.fingerprint)  # the next edit may come before there is a cursor
    kept = all(map(policy.moves_the_same_status, others))
    same = all(map(policy.has_the_same_upstream, others))
    all_stay = all(map(policy.selects_the_same_objects, others))
    tombstones = {key: each for key, each in loaded.tombstones.items() if all_stay or (each.held and same)}
    context.store.forget_kind(policy.resource, keep_outbox=kept)
    for key, tombstone in tombstones.items():
        context.store.put_tombstone(policy.resource, key, tombstone)
    for (side, _), cursor in loaded.cursors.items():
        connection = context.connections[side]
        connection.history.remember(cursor, connection.history_identity)
    finalizers = _keep_finalizers(policy, loaded.finalizers, context) if loaded.finalizers else {}
    return Loaded(pending=loaded.pending if kept else {}, tombstones=tombstones, finalizers=finalizers)


def _keep_finalizers(
    policy: KindPolicy, rows: dict[Key, FinalizerRow], context: EngineContext
) -> dict[Key, FinalizerRow]:
    """Put the rows of finalizers back: objects may be out of sight from now on (C6.3)."""
    from crsyncer.engine.unseen_finalizers import hand_over  # loaded only where there are finalizers

    own = {key: row for key, row in rows.items() if not hand_over(policy, key, row, context.store)}
    for key, row in own.items():
        context.store.put_finalizer(policy.resource, key, row)
    return own
