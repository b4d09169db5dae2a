"""Reads from the primaries which originals they refer to (C5). `demand.py` has what follows for the originals.

Imported and made only where the robot has the CRD of SyncPolicies.
"""

import logging
from functools import partial

from crsyncer.core.actions import HoldReason
from crsyncer.core.facts import HOLD_RULES, Action, Fact
from crsyncer.core.model import Json, Key, Side
from crsyncer.core.project import key_of
from crsyncer.core.relate import (
    RelatedEntry,
    RelatedFailed,
    Selection,
    is_primary,
    related_entries,
    related_failed,
    related_keys,
    related_selection,
)
from crsyncer.core.template import Names
from crsyncer.engine.context import EngineContext
from crsyncer.engine.demand import Demand, Source
from crsyncer.engine.kind import Kind

log = logging.getLogger(__name__)


class Kin:
    """Which originals all primaries refer to, by the kind of the originals."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._demands: dict[str, Demand] = {}
        self._primaries: dict[str, Kind] = {}
        """The kinds of primaries that run, or have run last."""
        self._failures: dict[tuple[str, Key], dict[tuple[str, str], str]] = {}
        """By kind and primary, why the related objects of an entry cannot be told."""

    async def attach(self, kind: Kind) -> None:
        """A kind is about to run: it may have primaries, or be one of related objects."""
        if kind.policy.related:
            self._demand(kind.policy.resource).attach(kind)
        entries = related_entries(kind.policy)
        if not entries:
            return
        self._primaries[kind.policy.resource] = kind
        kind.cache.on_seen = partial(self._seen, kind)
        kind.cache.on_freshness = self._sweep
        for side in {entry.related.origin for entry in entries}:
            known: set[Key] = set()
            for key in list(kind.cache.views[side]):
                known.add(key)
                body = await self._context.store.body(side, kind.policy.resource, key)
                if body is not None:
                    self._seen(kind, side, key, body, at_start=True)
                    continue
                for entry in entries:  # it is damaged, or a Secret, of which no value is stored
                    if entry.related.origin is side:
                        self._demand(entry.resource).unclear.add((entry.id, key))
            for entry in entries:
                if entry.related.origin is side:
                    self._forget_others(entry, known)
        self._sweep()

    def demand(self, resource: str) -> Demand | None:
        """What is wanted of a kind of related objects; None: nothing ever was."""
        return self._demands.get(resource)

    def detach(self, kind: Kind) -> None:
        """A kind does not run any more."""
        for demand in self._demands.values():
            demand.detach(kind)

    def _forget_others(self, entry: RelatedEntry, known: set[Key]) -> None:
        """Primaries that were deleted while their kind did not run refer to nothing."""
        demand = self._demand(entry.resource)
        for source in demand.sources(entry.id):
            if source[1] not in known:
                demand.refer(source, frozenset())

    def _sweep(self) -> None:
        for demand in self._demands.values():
            demand.sweep()

    def _demand(self, resource: str) -> Demand:
        if resource not in self._demands:
            self._demands[resource] = Demand(self._context, is_known=self._is_known, report=self._failed)
        return self._demands[resource]

    def _is_known(self, entry: RelatedEntry) -> bool:
        """Whether all primaries of an entry have been seen, on this connection or before."""
        kind = self._primaries.get(entry.primary)
        if kind is None or entry not in related_entries(kind.policy):
            return False
        return all(each.state.cursor() is not None for each in kind.on(entry.related.origin))

    def _seen(self, kind: Kind, side: Side, key: Key, raw: Json | None, *, at_start: bool = False) -> None:
        """A primary is new, has changed, or (None) is gone."""
        for entry in related_entries(kind.policy):
            if entry.related.origin is side:
                self._refer(kind, entry, key, raw, at_start=at_start)

    def _refer(self, kind: Kind, entry: RelatedEntry, key: Key, raw: Json | None, *, at_start: bool) -> None:
        demand = self._demand(entry.resource)
        namespaced = demand.kind is None or demand.kind.policy.namespaced
        found: frozenset[Key] = frozenset()
        selection: Selection | None = None
        failure = ""
        if raw is not None and is_primary(raw, kind.policy, entry.related.origin):
            own, shape = key_of(raw), kind.policy.shape
            try:
                names = Names(own.namespace, own.name, kind.policy.robot, shape.identity)
                found = related_keys(raw, entry.related, names, namespaced=namespaced)
                selection = related_selection(raw, entry.related, names, namespaced=namespaced)
            except RelatedFailed as error:
                failure = str(error)
        self._report(kind, entry, key, failure)
        if not failure:
            demand.refer((entry.id, key), found, selection)
        elif at_start:  # else what it referred to before stays
            demand.unclear.add((entry.id, key))

    def _failed(self, source: Source, failure: str) -> None:
        """A primary has too many related objects by a selection; empty: it has not."""
        for kind in self._primaries.values():
            for entry in related_entries(kind.policy):
                if entry.id == source[0]:
                    text = failure and f"related object {entry.related.id}: {failure}"
                    self._report(kind, entry, source[1], text)

    def _report(self, kind: Kind, entry: RelatedEntry, key: Key, failure: str) -> None:
        context, resource = self._context, kind.policy.resource
        failures = self._failures.pop((resource, key), {}) | {entry.id: failure}
        failures = {id_: text for id_, text in failures.items() if text}
        if not failures:
            context.holds.clear(resource, key, reason=HoldReason.RELATED_FAILED)
            return
        self._failures[resource, key] = failures
        hold = related_failed("; ".join(failures.values()))
        _, new = context.holds.add(resource, key, hold, now=context.clock())
        if new:
            text = f"{hold.reason}: {hold.message}"
            rule = HOLD_RULES[hold.reason]
            context.recorder.record(Fact(kind.policy.upstream, resource, key, Action.HELD, rule, text))
        context.report_changed()
