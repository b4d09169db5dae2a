"""The kinds that may be placed, as the cloud and the CRDs and SyncPolicies of a file say (F2.3)."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from crsyncer.cli.fleet.given import group_of, is_crd, is_of, is_plural
from crsyncer.console.compare import lister
from crsyncer.console.confinement.manifests import BUILT_IN
from crsyncer.core.content.fields import Text, fields_at
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.kinds.sync_policy import KIND as SYNC_POLICY
from crsyncer.core.model import Json
from crsyncer.core.requests.calls import CRDS, SYNC_POLICIES, Call
from crsyncer.errors import ConfigError, NotServed
from crsyncer.fleet.domain.read_objects import kind_in_discovery, kind_of
from crsyncer.fleet.domain.values import PlacedKind, Verdict
from crsyncer.ports import Send
from crsyncer.runtime.discovery import discover

_NAME = Text(317, 1)
_ANY = Text(317)
_ESTABLISHED: Json = {"conditions": [{"type": "Established", "status": "True"}]}


class PlacedKinds:
    """Asks for each kind once. Without a server (None) the file is all there is. `inventory`: the Robots' kind."""

    def __init__(self, send: Send | None, given: Sequence[Json], *, inventory: str) -> None:
        self._send = send
        self._given = given
        self._inventory = inventory
        self._kinds: dict[str, PlacedKind] = {}
        self._policies: dict[str, Json] | None = None

    async def all(self, named: Iterable[Resource]) -> dict[str, PlacedKind]:
        """By name every kind of the cloud that may be placed, in whatever mode, and those that are named."""
        assert self._send is not None  # noqa: S101 asked by callers
        policies, listed = await self._sync_policies(), await lister.crds(self._send)
        crds = {crd["metadata"]["name"]: crd for crd in (*listed, *filter(is_crd, self._given))}
        for name, crd in crds.items():
            kind = self._from_crd({**crd, "status": crd.get("status") or _ESTABLISHED}, policies)
            if kind.verdict is Verdict.PLACEABLE:
                self._kinds[name] = kind
        chosen = [*named]
        for each in (*map(_resource, policies), *chosen):
            await self.kind(each.group, each.resource)
        names = {each.full_name for each in chosen}
        found = self._kinds.items()
        return {name: kind for name, kind in found if kind.verdict is Verdict.PLACEABLE or name in names}

    async def kind(self, group: str, plural: str, manifests: Sequence[Json] = ()) -> PlacedKind:
        """A kind that is named in a placement. Raises SyncError.

        Without a server it is as a CRD in the file says, else as the objects of the file and the `manifests` show it.
        """
        resource = f"{plural}.{group}".rstrip(".")
        if resource not in self._kinds:
            self._kinds[resource] = await self._read_kind(Resource(group, plural), manifests)
        return self._kinds[resource]

    async def _read_kind(self, resource: Resource, manifests: Sequence[Json]) -> PlacedKind:
        policies, name = await self._sync_policies(), resource.full_name
        crd = next((each for each in self._given if is_crd(each) and each["metadata"]["name"] == name), None)
        if crd is not None:
            return self._from_crd({**crd, "status": _ESTABLISHED}, policies)
        if self._send is not None:
            if resource.group and (crd := await read_crd(self._send, name)) is not None:
                return self._from_crd(crd, policies)
            described = await discover(resource, self._send)
            return kind_in_discovery(name, described, policies, inventory=self._inventory)
        if name in BUILT_IN:
            return PlacedKind(name, "", name, BUILT_IN[name], "v1", namespaced=True, sensitive=name == "secrets")
        for each in (*self._given, *manifests):
            if group_of(each) == resource.group and is_plural(resource.resource, str(each.get("kind"))):
                version = str(each["apiVersion"]).rpartition("/")[2]
                return PlacedKind(name, resource.group, resource.resource, each["kind"], version, namespaced=True)
        return PlacedKind(
            name, resource.group, resource.resource, "", "", namespaced=True,
            verdict=Verdict.NOT_SERVED,
            message="without a server the file must have its CRD",
        )  # fmt: skip

    async def _sync_policies(self) -> Mapping[str, Json]:
        """The specs of the cloud's SyncPolicies, by the name of their kind."""
        if self._policies is None:
            found = dict[str, tuple[str, Json]]()
            if self._send is not None:
                with suppress(NotServed):  # a cloud need not have any
                    async for raw in lister.objects(self._send, SYNC_POLICIES):
                        with suppress(ConfigError):  # one without a kind is for none
                            found[raw["metadata"]["name"]] = _policy(raw)
            for raw in self._given:
                if is_of(raw, SYNC_POLICIES.group, SYNC_POLICY):
                    found[raw["metadata"]["name"]] = _policy(raw)
            self._policies = dict(found.values())
        return self._policies

    def _from_crd(self, crd: Json, policies: Mapping[str, Json]) -> PlacedKind:
        try:
            return kind_of(crd, policies, inventory=self._inventory)
        except (KeyError, TypeError, AttributeError, StopIteration):
            raise ConfigError(
                f"the CRD {crd['metadata']['name']} is incomplete", hint="one that an API server accepts"
            ) from None


async def read_crd(send: Send, name: str) -> Json | None:
    """A CRD of the cloud; None: there is none. Raises SyncError."""
    reply = await send(Call("get", "GET", f"{CRDS}/{name}"))
    return None if reply.status == 404 else reply.shown()


def _policy(raw: Json) -> tuple[str, Json]:
    """The kind that a SyncPolicy is for, and its spec. Raises ConfigError."""
    spec = fields_at("spec", raw.get("spec"), ())
    resource = spec.inner("resource")
    return f"{resource.text('resource', _NAME)}.{resource.text('group', _ANY)}".rstrip("."), spec.content


def _resource(name: str) -> Resource:
    plural, _, group = name.partition(".")
    return Resource(group, plural)
