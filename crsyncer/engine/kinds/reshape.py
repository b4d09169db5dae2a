"""Applies other steps, or another rule for copies, to what the store has of a kind (C4.1). Nothing is listed for it."""

from dataclasses import replace

from crsyncer.agent_ports import Store
from crsyncer.core.content.shape import bare, signature_name
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Key, Loaded, Record, Side
from crsyncer.core.pair.project import view_of

_UNDER_WAY = "under way"
"""Some of the views may be of the new shape: also the former one has to be applied to all of them."""


async def reshape(loaded: Loaded, policy: KindPolicy, store: Store) -> None:
    """Have all views of a kind be of the policy's shape, those in `loaded` and those in the store.

    The store is told before the first view changes and after the last one, in the same order as the views. So after a
    crash the next start begins anew.
    """
    name = signature_name(policy.resource)
    former, wanted = store.get_meta(name) or "", policy.shape.signature
    if former == wanted:
        return
    store.put_meta(name, _UNDER_WAY)
    _remember_applied(loaded, policy, store)
    for side in Side:
        for key in loaded.views[side]:
            await _reshape(side, key, loaded, policy=policy, store=store)
    store.put_meta(name, wanted)


def _remember_applied(loaded: Loaded, policy: KindPolicy, store: Store) -> None:
    """Note in the records what the copies have of the former shape, for their upstream objects will not show it.

    A pair that was found in agreement needs no record until then.
    """
    for key, copy in loaded.views[policy.downstream].items():
        own, record = loaded.views[policy.upstream].get(key), loaded.records.get(key, Record())
        if own is None or copy.stamp is None or (copy.stamp.upstream_uid, copy.stamp.digest) != (own.uid, own.content):
            continue
        if record.upstream_uid != own.uid:
            record = Record(upstream_uid=own.uid)
        if record.applied != own.content:
            loaded.records[key] = record = replace(record, applied=own.content, admitted="")
            store.put_record(policy.resource, key, record)


async def _reshape(side: Side, key: Key, loaded: Loaded, *, policy: KindPolicy, store: Store) -> None:
    body = await store.body(side, policy.resource, key)
    if body is None or "uid" not in body["metadata"]:
        return  # damaged, or of a Secret (C5.6): what is written has to wait until the object is seen anyway
    view = view_of(body, policy, side, key=key)
    if view != loaded.views[side][key]:
        loaded.views[side][key] = view
        store.put_copy(side, policy.resource, key, view, body)
    row = loaded.pending.get(key)
    shows = side is policy.downstream and row is not None and row.digest == view.status
    if shows and row is not None and policy.shape.up is not None and not row.raw and row.digest:
        # It was queued when there were no steps: have it be sent with all that steps may use.
        row = loaded.pending[key] = replace(row, value=bare(body), raw=True)
        store.put_pending(policy.resource, key, row)
