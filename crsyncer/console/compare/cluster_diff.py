"""Compares the objects of a kind on both sides once, page by page, without an agent."""

import secrets
from collections.abc import Mapping
from dataclasses import replace

from crsyncer.console.compare.differences import difference
from crsyncer.console.compare.lister import objects
from crsyncer.console.compare.originals import Originals, read_originals
from crsyncer.console.screens.reasons import hold_hint, kind_hint
from crsyncer.core.content.object_content import key_of
from crsyncer.core.content.shape import MutationFailed
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.naming import NoOriginal, original_of
from crsyncer.core.model import Json, Key, Side
from crsyncer.core.pair import object_calls
from crsyncer.core.pair.actions import duplicate
from crsyncer.core.pair.project import objection, without_values
from crsyncer.engine.kinds.negotiation import Disagreement, negotiate
from crsyncer.errors import Conflict, NotAllowed, SyncError
from crsyncer.ports import Send
from crsyncer.runtime.event_loop import all_of

NO_KINDS: Mapping[str, KindPolicy] = {}


async def compare(
    policy: KindPolicy, senders: Mapping[Side, Send], *, kinds: Mapping[str, KindPolicy] = NO_KINDS
) -> Json:
    """Compare one kind: its row in the document of `crsyncer diff`. `senders` send requests to a side.

    `kinds` are all that are synced, by name: related objects are those that objects of others refer to.

    The row's `error` is the reason why the kind could not be compared completely; None: it was.
    """
    row = bare_row(policy.resource)
    try:
        await _fill(row, policy, senders, kinds)
    except SyncError as error:
        row |= {"error": str(error), "hint": error.hint}
    row["differences"].sort(key=lambda each: (each["namespace"], each["name"]))
    return row


def bare_row(resource: str, error: str | None = None, hint: str | None = None) -> Json:
    """The row of a kind of which nothing has been compared; `error`: why not."""
    return {
        "resource": resource,
        "version": None,
        "objects": {side.value: 0 for side in Side},
        "namespaces": [],
        "error": error,
        "hint": hint,
        "differences": [],
    }


async def _fill(row: Json, policy: KindPolicy, senders: Mapping[Side, Send], kinds: Mapping[str, KindPolicy]) -> None:
    if policy.problem:
        raise SyncError(policy.problem, hint=kind_hint("misconfigured"))
    agreed = await negotiate(policy, senders[Side.CLOUD])
    if isinstance(agreed, Disagreement):
        raise SyncError(agreed.message, hint=kind_hint(agreed.state))
    if agreed.sensitive:
        agreed = replace(agreed, digest_key=secrets.token_bytes(16))  # of this comparison alone: the agent's is its own
    row["version"] = agreed.version
    originals = await read_originals(agreed, senders, kinds=kinds) if agreed.related else None
    pairs = _Pairs(agreed, row, originals)
    await all_of(
        _read(pairs, side, senders[side], namespace=namespace) for side in Side for namespace in agreed.places_on(side)
    )
    pairs.finish()
    if originals is not None and (objection := originals.objection()):
        raise SyncError(objection, hint=hold_hint("RelatedFailed", ""))


async def _read(pairs: "_Pairs", side: Side, send: Send, *, namespace: str) -> None:
    collection = object_calls.collection(pairs.policy, side, namespace)
    try:
        async for raw in objects(send, collection):
            pairs.take(side, raw, collection.namespace)
    except Conflict as error:
        message = f"the {side} does not serve it ({error})"
        raise SyncError(message, hint=kind_hint("kind-missing")) from None
    except NotAllowed as error:
        raise SyncError(f"the {side} forbids to list it ({error})", hint=kind_hint("forbidden")) from None
    except SyncError as error:
        raise SyncError(f"the list of the {side} is incomplete: {error}", hint=error.hint or "try again") from None


class _Pairs:
    """Joins two lists while they arrive. Pairs that agree are dropped at once, so memory holds only the differences.

    Both servers list in the order of the keys, so few objects wait for their counterpart.
    """

    def __init__(self, policy: KindPolicy, row: Json, originals: Originals | None) -> None:
        self.policy = policy
        self._row = row
        self._originals = originals
        """Of a kind of related objects: those that primaries refer to; the others are not synced (C5.1)."""
        self._alone: dict[Side, dict[Key, Json]] = {side: {} for side in Side}
        self._seen: dict[str, Key] = {}
        """Upstream's objects by uid, where marks say whose copy an object is."""
        self._undecided: list[Json] = []
        self._copied: set[Key] = set()
        """The keys of copies, where marks say whose they are."""
        self._copied_twice: set[Key] = set()
        self._namespaces: set[str] = set()

    def take(self, side: Side, raw: Json, namespace: str) -> None:
        """Take one object of a list. An object that the agent would not sync is ignored."""
        self.policy.endpoint(side).complete(raw)
        if objection(raw, self.policy, side, namespace=namespace):
            return
        if side is self.policy.upstream and self._originals is not None and not self._originals.wants(raw):
            return
        raw["metadata"].pop("managedFields", None)
        raw = without_values(raw, self.policy, side)
        key = self._key_of(side, raw, listed=False)
        if key is NoOriginal.UNDECIDED:
            self._undecided.append(raw)
        elif isinstance(key, Key):
            self._pair(key, side, raw)

    def _key_of(self, side: Side, raw: Json, *, listed: bool) -> Key | NoOriginal | None:
        """The key of the pair that an object belongs to (C2.2), or why there is none; `listed`: so is upstream."""
        own = self.policy.key_of(side, key_of(raw))
        if self.policy.shape.marks is None:
            return own
        if side is self.policy.upstream:
            if own is not None:
                self._seen[raw["metadata"]["uid"]] = own
            return own
        found = original_of(
            raw,
            stored=None,
            seen=self._seen,
            unnamed=own,
            identity=self.policy.shape.identity,
            listed=listed,
            namespaced=self.policy.namespaced,
        )
        return own if found is NoOriginal.LOCAL and not self.policy.names_copies else found

    def _pair(self, key: Key, side: Side, raw: Json) -> None:
        self._row["objects"][side.value] += 1
        self._namespaces.add(key.namespace)
        if side is self.policy.downstream and self.policy.shape.marks is not None:
            if key in self._copied:
                self._copied_twice.add(key)
                return
            self._copied.add(key)
        other = self._alone[side.other].pop(key, None)
        if other is None:
            self._alone[side][key] = raw
        else:
            self._judge(key, {side: raw, side.other: other})

    def finish(self) -> None:
        """Judge the objects without a counterpart, when both lists are complete."""
        for raw in self._undecided:
            key = self._key_of(self.policy.downstream, raw, listed=True)
            if isinstance(key, Key):
                self._pair(key, self.policy.downstream, raw)
        for side, alone in self._alone.items():
            for key, raw in alone.items():
                if side is self.policy.upstream or self._is_compared(key, raw):
                    self._judge(key, {side: raw})
        self._row["namespaces"] = sorted(self._namespaces)
        for key in sorted(self._copied_twice):  # which of its copies the agent holds is known to the agent alone (C2.6)
            name = {"namespace": key.namespace, "name": key.name}
            found = self._row["differences"]
            self._row["differences"] = [each for each in found if not name.items() <= each.items()]
            self._row |= {"error": f"{key} cannot be compared: it has two copies", "hint": duplicate(key).hint}

    def _is_compared(self, key: Key, copy: Json) -> bool:
        """Whether a copy without its original is: one that nothing refers to is about to go, or stays (C5.4)."""
        original = self.policy.key_on(self.policy.upstream, key)
        return self._originals is None or self._originals.may_name(original, copy["metadata"].get("labels") or {})

    def _judge(self, key: Key, pair: Mapping[Side, Json]) -> None:
        try:
            shown = difference(pair.get(self.policy.upstream), pair.get(self.policy.downstream), self.policy, key=key)
        except MutationFailed as error:
            why = error.where if self.policy.sensitive else error  # the rest may quote a Secret (C5.6)
            self._row |= {"error": f"{key} cannot be compared: {why}", "hint": hold_hint("MutationFailed", "")}
            return
        if shown is not None:
            sides = {side.value: shown[side] for side in Side}
            self._row["differences"].append({"namespace": key.namespace, "name": key.name, **sides})
