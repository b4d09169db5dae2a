"""Which kinds may be placed: the cloud's CRDs, its SyncPolicies, and discovery for kinds without a CRD (F2.3)."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.model import Json
from crsyncer.core.watching.backoff import UNSERVED
from crsyncer.errors import SyncError
from crsyncer.fleet.domain.read_objects import kind_in_discovery, kind_of
from crsyncer.fleet.domain.values import PlacedKind, Verdict
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.discovery import discover

_KEPT = ("group", "scope", "names")


class Kinds:
    """Reads kinds from what a shard shows. `shown(kind)` is called for each that is new or different.

    `gone(resource)` is called for a CRD. `inventory` is the kind of the Robots.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        inventory: str,
        shown: Callable[[PlacedKind], None],
        gone: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._inventory = inventory
        self._shown = shown
        self._gone = gone
        self._crds: dict[str, Json] = {}
        """Without their schemas."""
        self._policies: dict[str, tuple[str, Json]] = {}
        """By the name of the SyncPolicy: the kind that it is for, and its spec."""
        self._without_crd: dict[str, Json | None] = {}
        """Kinds that discovery was asked for: as a CRD would describe them; None: not served."""
        self._named: set[str] = set()
        """The kinds that placements name."""
        self._changed = asyncio.Event()
        self.are_listed = False
        """Whether the CRDs are."""

    def crd_shown(self, raw: Json) -> None:
        """A CRD was added or changed."""
        self._crds[raw["metadata"]["name"]] = _without_schema(raw)
        self._tell(raw["metadata"]["name"])

    def crds_listed(self) -> None:
        """The CRDs are known: a kind that is not among them has none."""
        self.are_listed = True
        self._changed.set()

    def crd_gone(self, name: str) -> None:
        """A CRD is gone: its kind is not served, and its objects went with it."""
        del self._crds[name]
        self._gone(name)
        self._changed.set()

    def policy_shown(self, raw: Json) -> None:
        """A SyncPolicy was added or changed. One without a kind is none."""
        self.policy_gone(raw["metadata"]["name"])
        spec = raw.get("spec")
        named = spec.get("resource") if isinstance(spec, dict) else None
        if isinstance(spec, dict) and isinstance(named, dict) and isinstance(named.get("resource"), str):
            resource = f"{named['resource']}.{named.get('group') or ''}".rstrip(".")
            self._policies[raw["metadata"]["name"]] = (resource, spec)
            self._tell(resource)

    def policy_gone(self, name: str) -> None:
        """A SyncPolicy is gone."""
        resource, _ = self._policies.pop(name, ("", None))
        if resource:
            self._tell(resource)

    def named(self, resources: set[str]) -> None:
        """These are the kinds that placements name."""
        if resources != self._named:
            self._named = resources
            self._changed.set()

    async def run(self) -> None:
        """Ask discovery for the kinds without a CRD that are named, forever: also again for those not served."""
        failures = 0
        while True:
            await self._connection.up.wait()
            self._changed.clear()
            asked = [each for each in self._needed() if self._without_crd.get(each) is None]
            for resource in asked:
                await self._discover(resource)
            if all(self._without_crd.get(each) is not None for each in asked):
                failures = 0
                await self._changed.wait()
                continue
            failures += 1
            wait = asyncio.ensure_future(self._changed.wait())
            try:
                await asyncio.wait([wait], timeout=UNSERVED.wait(failures - 1, 0.5))
            finally:
                wait.cancel()

    async def _discover(self, resource: str) -> None:
        plural, _, group = resource.partition(".")
        try:
            found = await discover(Resource(group, plural), self._connection.request)
        except SyncError:
            return  # it is asked again
        self._without_crd[resource] = found
        self._tell(resource)

    def _needed(self) -> Iterable[str]:
        if not self.are_listed:
            return []
        wanted = self._named | {resource for resource, _ in self._policies.values()}
        return sorted(wanted - self._crds.keys())

    def _tell(self, resource: str) -> None:
        policies = dict(self._policies.values())
        if resource in self._crds:
            self._shown(kind_of(self._crds[resource], policies, inventory=self._inventory))
        elif resource in self._without_crd:
            described = self._without_crd[resource]
            self._shown(kind_in_discovery(resource, described, policies, inventory=self._inventory))
        else:
            self._changed.set()


def _without_schema(raw: Json) -> Json:
    """What is read of a CRD: its schemas may have hundreds of kilobytes."""
    spec, metadata = raw["spec"], raw["metadata"]
    kept = ("name", "served", "storage", "subresources")
    versions: list[Any] = [{key: each[key] for key in kept if key in each} for each in spec["versions"]]
    names = ("name", "annotations", "deletionTimestamp")
    return {
        "metadata": {key: metadata[key] for key in names if key in metadata},
        "spec": {key: spec[key] for key in _KEPT} | {"versions": versions},
        "status": {"conditions": (raw.get("status") or {}).get("conditions")},
    }


def is_watched(kind: PlacedKind, *, named: bool) -> bool:
    """Whether the objects of a kind are watched: those that may be placed, and those that placements name."""
    return kind.version != "" and (
        kind.verdict is Verdict.PLACEABLE or (kind.verdict is Verdict.NOT_PLACEABLE and named)
    )
