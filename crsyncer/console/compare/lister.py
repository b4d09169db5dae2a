"""Lists the objects of a cluster once, for commands that read the clusters without the agent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from crsyncer.core.content.mutation import Expressions
from crsyncer.core.kinds.built_in_kind import CRD_TO_COME, not_served
from crsyncer.core.kinds.configured import configured_kind, without_crd
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.merge_settings import PolicyObject, read_object, travelling_api
from crsyncer.core.kinds.namespaces import EVERYWHERE, Namespaces
from crsyncer.core.kinds.read_kind import is_annotated
from crsyncer.core.kinds.related_entry import RelatedEntry
from crsyncer.core.kinds.sync_policy import Api
from crsyncer.core.model import Json
from crsyncer.core.related.relate import related_entries
from crsyncer.core.requests import calls
from crsyncer.core.requests.answers import is_inconclusive
from crsyncer.core.requests.calls import SYNC_POLICIES
from crsyncer.ports import Reply, Send
from crsyncer.runtime.discovery import discover
from crsyncer.runtime.list_objects import objects as objects
from crsyncer.runtime.probe import no_answer


async def crds(send: Send) -> list[Json]:
    """The CRDs that are not being deleted, by name and without their schemas; raises SyncError."""
    found = []
    async for raw in objects(send, calls.CRD_COLLECTION, page=calls.CRD_PAGE):
        if "deletionTimestamp" not in raw["metadata"]:
            for version in raw["spec"]["versions"]:
                version.pop("schema", None)
            found.append(raw)
    return sorted(found, key=lambda crd: str(crd["metadata"]["name"]))


@dataclass(frozen=True, slots=True)
class Configuration:
    """What configures the kinds of a robot: its CRDs, and its SyncPolicies where it has any."""

    crds: tuple[Json, ...]
    policies: tuple[PolicyObject, ...] = ()
    built_in: tuple[Json, ...] = ()
    """The kinds that SyncPolicies name and that have no CRD, as a CRD would describe them (C1.4)."""
    unserved: Mapping[str, str] = field(default_factory=dict)
    """The kinds that SyncPolicies name and that the robot does not serve, each with the sentence for it."""

    @property
    def has_policies(self) -> bool:
        """Whether the robot has the CRD of SyncPolicies."""
        return any(crd["metadata"]["name"] == SYNC_POLICIES.resource for crd in self.crds)

    def policies_for(self, resource: str) -> tuple[PolicyObject, ...]:
        """The SyncPolicies for a kind."""
        return tuple(each for each in self.policies if each.is_for(resource))

    def apis(self) -> dict[str, Api]:
        """By the name of each CRD that travels, how it does (C8)."""
        found = {each.resource: travelling_api(self.policies_for(each.resource)) for each in self.policies}
        return {resource: api for resource, api in found.items() if api is not None}

    def kinds(self, robot: str, namespaces: Namespaces = EVERYWHERE) -> dict[str, KindPolicy]:
        """By name the kinds that are to be synced, also misconfigured ones, and those of related objects (C5)."""
        alone = self._configured(robot, namespaces, ())
        entries = [entry for kind in alone.values() for entry in related_entries(kind)]
        return self._configured(robot, namespaces, entries) if entries else alone

    def _configured(self, robot: str, namespaces: Namespaces, entries: Sequence[RelatedEntry]) -> dict[str, KindPolicy]:
        annotated = {crd["metadata"]["name"]: is_annotated(crd) for crd in self.crds}
        found = {}
        for crd in (*self.crds, *self.built_in):
            kind = configured_kind(
                crd,
                robot,
                namespaces=namespaces,
                objects=self.policies_for,
                annotated=annotated.get,
                policies=self.policies,
                entries=entries,
            )
            if kind is not None:
                found[kind.resource] = kind
        return found


async def configuration(
    send: Send, expressions: Callable[[], Expressions], trust: tuple[str, ...] = ()
) -> Configuration:
    """What configures the kinds of the robot; raises SyncError. `expressions` and `trust` are as of `read_object`."""
    found = Configuration(tuple(await crds(send)))
    if not found.has_policies:
        return found
    policies = [read_object(raw, expressions, trust) async for raw in objects(send, SYNC_POLICIES)]
    missing = without_crd(policies, {crd["metadata"]["name"] for crd in found.crds})
    described = {name: await discover(resource, send) for name, resource in sorted(missing.built_in.items())}
    unserved = {name: not_served(missing.built_in[name]) for name, each in described.items() if each is None}
    return replace(
        found,
        policies=tuple(sorted(policies, key=lambda each: each.name)),
        built_in=tuple(each for each in described.values() if each is not None),
        unserved=unserved | dict.fromkeys(missing.to_come, CRD_TO_COME),
    )


async def first_answer(send: Send) -> Reply:
    """The answer to a first small request; raises SyncError where the side cannot be used. A 403 is an answer."""
    reply = await send(calls.VERSION)
    if is_inconclusive(reply.status):
        raise no_answer(reply)
    return reply
