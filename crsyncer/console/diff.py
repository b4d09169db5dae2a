"""Compares the objects of a kind on both sides once, page by page, without an agent."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from crsyncer.console.differences import Difference, difference
from crsyncer.console.lister import objects
from crsyncer.console.reasons import kind_hint
from crsyncer.core import object_calls
from crsyncer.core.model import Json, Key, Side
from crsyncer.core.policy import Policy
from crsyncer.core.project import key_of, objection
from crsyncer.engine.negotiation import Ask, Disagreement, negotiate
from crsyncer.errors import NotAllowed, Refused, SyncError


@dataclass(slots=True)
class Comparison:
    """The result for one kind."""

    resource: str
    version: str = ""
    objects: dict[Side, int] = field(default_factory=lambda: dict.fromkeys(Side, 0))
    differences: list[Difference] = field(default_factory=list)
    trouble: SyncError | None = None
    """The reason why the kind could not be compared completely."""


async def compare(policy: Policy, asks: Mapping[Side, Ask], *, namespaces: Sequence[str]) -> Comparison:
    """Compare one kind; an error of this kind alone becomes its `trouble`. `asks` sends requests to a side."""
    found = Comparison(policy.resource)
    if policy.problem:
        found.trouble = SyncError(policy.problem, hint=kind_hint("misconfigured"))
        return found
    try:
        terms = await negotiate(policy, asks[Side.CLOUD])
    except SyncError as error:
        found.trouble = error
        return found
    if isinstance(terms, Disagreement):
        found.trouble = SyncError(terms.message, hint=kind_hint(terms.state))
        return found
    found.version = terms.version
    kinds = _Pairs(terms, found)
    try:
        async with asyncio.TaskGroup() as tasks:
            for side in Side:
                for namespace in (namespaces if terms.namespaced else ()) or ("",):
                    tasks.create_task(_read(kinds, side, asks[side], namespace=namespace))
    except* SyncError as group:
        found.trouble = next(error for error in group.exceptions if isinstance(error, SyncError))
    else:
        kinds.finish()
    found.differences.sort(key=lambda each: each.key)
    return found


async def _read(kinds: "_Pairs", side: Side, ask: Ask, *, namespace: str) -> None:
    policy = kinds.policy
    try:
        async for raw in objects(ask, object_calls.collection(policy, namespace)):
            kinds.take(side, raw, namespace)
    except Refused as error:
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

    def __init__(self, policy: Policy, found: Comparison) -> None:
        self.policy = policy
        self._found = found
        self._alone: dict[Side, dict[Key, Json]] = {side: {} for side in Side}

    def take(self, side: Side, raw: Json, namespace: str) -> None:
        """Take one object of a list. An object that the agent would not sync is ignored."""
        raw.setdefault("apiVersion", self.policy.api_version)
        raw.setdefault("kind", self.policy.kind)
        if objection(raw, self.policy, namespace):
            return
        raw["metadata"].pop("managedFields", None)
        self._found.objects[side] += 1
        key = key_of(raw)
        other = self._alone[side.other].pop(key, None)
        if other is None:
            self._alone[side][key] = raw
        else:
            self._judge({side: raw, side.other: other})

    def finish(self) -> None:
        """Judge the objects without a counterpart, when both lists are complete."""
        for side, alone in self._alone.items():
            for raw in alone.values():
                self._judge({side: raw})

    def _judge(self, pair: Mapping[Side, Json]) -> None:
        found = difference(pair.get(self.policy.upstream), pair.get(self.policy.downstream), self.policy)
        if found is not None:
            self._found.differences.append(found)
