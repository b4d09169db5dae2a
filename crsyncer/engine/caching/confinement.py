"""What a kind knows when it starts with other namespaces, or with another map of them, than before."""

from dataclasses import replace

from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.namespaces import meta_name
from crsyncer.core.model import Loaded, Side
from crsyncer.engine.caching.cache import Cache
from crsyncer.ports import MetaStore


def is_remapped(policy: KindPolicy, loaded: Loaded, store: MetaStore) -> bool:
    """Whether copies are known that were made by another namespace map. The map of now is remembered."""
    name, wanted = meta_name(policy.resource), policy.namespaces.written
    if not policy.namespaced or (store.get_meta(name) or []) == wanted:
        return False
    store.put_meta(name, wanted)
    return any((*loaded.views.values(), loaded.records, loaded.cursors))


def confine(cache: Cache, *, now: float) -> None:
    """Forget the objects of namespaces that are not synced, where no status waits: no event shows them any more.

    The cursors of other namespaces are forgotten, too: they would be older than the objects seen from now on.
    """
    policy, places = cache.policy, cache.policy.places
    for side, namespace in [place for place in cache.cursors if place[1] not in policy.places_on(place[0])]:
        cache.set_cursor(side, namespace, None)
    if "" in places:
        return
    for key, row in list(cache.finalizers.items()):
        if key.namespace not in places and not row.since:
            cache.set_finalizer(key, replace(row, since=now))  # nobody is to wait for us there
    for side in Side:
        for key in [key for key in cache.views[side] if key.namespace not in places and key not in cache.pending]:
            cache.forget(side, key)
