"""What is stored of a fleet: the cloud's objects, with those of a file put over them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from crsyncer.adapters.config import FleetSettings
from crsyncer.cli.documents import read_sent
from crsyncer.console.compare import lister
from crsyncer.console.confinement.manifests import BUILT_IN
from crsyncer.core.apis.revise import KIND as CRD
from crsyncer.core.content.fields import Text, fields_at, wrong
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.kinds.sync_policy import KIND as SYNC_POLICY
from crsyncer.core.model import Json
from crsyncer.core.requests.answers import judge
from crsyncer.core.requests.calls import CRD_COLLECTION, CRDS, SYNC_POLICIES, Call, Collection
from crsyncer.errors import ConfigError, NotServed, SyncError
from crsyncer.fleet.domain.read_objects import kind_in_discovery, kind_of
from crsyncer.fleet.domain.values import GROUP, PROPERTIES_NAMESPACE, PlacedKind, Placement, Verdict
from crsyncer.ports import Send
from crsyncer.runtime.discovery import discover

LARGEST = 16 << 20
"""Bytes of a file with objects."""
_NAME = Text(317, 1)
_ANY = Text(317)
_ABSENT: Json = {"metadata": {"uid": "", "creationTimestamp": "9999-12-31T23:59:59Z"}}
"""For an object that is not stored yet: it is younger than everything."""
_SERVERS = ("uid", "resourceVersion", "creationTimestamp", "generation", "deletionTimestamp", "finalizers")
_PLACEMENTS = Collection(GROUP, "v1alpha1", "robotplacements")
_STRIPS = Collection(GROUP, "v1alpha1", "fieldstrips")
_PROPERTIES = Collection("", "v1", "configmaps", PROPERTIES_NAMESPACE)
_ESTABLISHED: Json = {"conditions": [{"type": "Established", "status": "True"}]}


@dataclass(frozen=True, slots=True)
class Objects:
    """Objects that count as stored, each kind by its group and kind."""

    settings: FleetSettings
    send: Send | None = None
    """None: no server is asked."""
    given: tuple[Json, ...] = ()
    """The objects of the file."""
    _kinds: dict[str, PlacedKind] = field(default_factory=dict)
    _policies: dict[str, Json] = field(default_factory=dict)

    async def placements(self, namespace: str) -> list[Json]:
        """The RobotPlacements of a namespace."""
        return await self._stored(replace(_PLACEMENTS, namespace=namespace), "RobotPlacement")

    async def strips(self) -> list[Json]:
        """All FieldStrips."""
        return await self._stored(_STRIPS, "FieldStrip")

    async def robot(self, name: str) -> Json | None:
        """A Robot of the inventory."""
        plural, _, group = self.settings.robots.partition(".")
        given = [each for each in self.given if _group(each) == group and _is_plural(plural, each["kind"])]
        place = Collection(group, "", plural, self.settings.robots_namespace, name=name)
        if self.send is not None:
            crd = await self._crd(self.settings.robots)
            if crd is None:
                raise SyncError(
                    f"the cloud has no kind {self.settings.robots}", hint="crsyncer fleet crds --inventory prints one"
                )
            place = replace(place, version=kind_of(crd, {}).version)
        return next(iter(await self._with(place, given)), None)

    async def properties(self, robot: str) -> Json | None:
        """The ConfigMap with a robot's properties."""
        place = replace(_PROPERTIES, name=robot)
        return next(iter(await self._stored(place, "ConfigMap")), None)

    async def sources(self, kind: PlacedKind, placement: Placement) -> list[Json]:
        """The objects of a kind that a placement may select: by their names where all its entries have some."""
        place = Collection(kind.group, kind.version, kind.plural, placement.namespace if kind.namespaced else "")
        entries = [entry for entry in placement.entries if entry.resource == kind.resource]
        if not all(entry.names for entry in entries):
            return await self._stored(place, kind.kind)
        names = sorted({name for entry in entries for name in entry.names})
        return [raw for name in names for raw in await self._stored(replace(place, name=name), kind.kind)]

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
        crd = next((each for each in self.given if _is_crd(each) and each["metadata"]["name"] == name), None)
        if crd is not None:
            return _from_crd({**crd, "status": _ESTABLISHED}, policies)
        if self.send is not None:
            if resource.group and (crd := await self._crd(name)) is not None:
                return _from_crd(crd, policies)
            return kind_in_discovery(name, await discover(resource, self.send), policies)
        if name in BUILT_IN:
            return PlacedKind(name, "", name, BUILT_IN[name], "v1", namespaced=True, sensitive=name == "secrets")
        for each in (*self.given, *manifests):
            if _group(each) == resource.group and _is_plural(resource.resource, str(each.get("kind"))):
                version = str(each["apiVersion"]).rpartition("/")[2]
                return PlacedKind(name, resource.group, resource.resource, each["kind"], version, namespaced=True)
        return PlacedKind(
            name, resource.group, resource.resource, "", "", namespaced=True,
            verdict=Verdict.NOT_SERVED,
            message="without a server the file must have its CRD",
        )  # fmt: skip

    async def _sync_policies(self) -> Mapping[str, Json]:
        """The specs of the cloud's SyncPolicies, by the name of their kind."""
        if not self._policies:
            try:
                found = await self._stored(SYNC_POLICIES, SYNC_POLICY)
            except NotServed:  # a cloud need not have any
                found = [each for each in self.given if _is(each, SYNC_POLICIES.group, SYNC_POLICY)]
            self._policies.update(map(_policy, found))
        return self._policies

    async def _crd(self, name: str) -> Json | None:
        """A CRD of the cloud; None: there is none. Raises SyncError."""
        assert self.send is not None  # noqa: S101 asked by callers
        reply = await self.send(Call("get", "GET", f"{CRDS}/{name}"))
        if reply.status == 404:
            return None
        if (error := judge(reply.status, reply.body, text=reply.text)) is not None:
            raise error
        return reply.body

    async def _stored(self, place: Collection, kind: str) -> list[Json]:
        return await self._with(place, [each for each in self.given if _is(each, place.group, kind)])

    async def _with(self, place: Collection, given: Iterable[Json]) -> list[Json]:
        """The objects of a collection as the server has them, and those of the file over them."""
        found: dict[str, Json] = {}
        if self.send is not None:
            found = {raw["metadata"]["name"]: raw async for raw in lister.objects(self.send, place)}
        for raw in given:
            metadata = {**raw["metadata"]}
            namespace, name = metadata.pop("namespace"), metadata["name"]
            if place.namespace in ("", namespace) and place.name in ("", name):
                stored = found.get(name, _ABSENT)["metadata"]
                metadata |= {"namespace": place.namespace} if place.namespace else {}
                found[name] = {
                    **raw,
                    "metadata": {**metadata, **{key: stored[key] for key in _SERVERS if key in stored}},
                }
        return [found[name] for name in sorted(found)]


def read_objects(path: Path, settings: FleetSettings, namespace: str) -> tuple[Json, ...]:
    """The objects of a file, checked as far as all objects are alike. Raises ConfigError, one line.

    `namespace` is that of objects without one; Robots are in theirs.
    """
    robots = settings.robots.partition(".")[2]
    found = []
    for raw in read_sent(path, largest=LARGEST):
        try:
            _check(raw)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}", hint=error.hint) from None
        own = settings.robots_namespace if _group(raw) == robots else namespace
        found.append({**raw, "metadata": {"namespace": own, **raw["metadata"]}})
    return tuple(found)


def _check(raw: Json) -> None:
    """Raise ConfigError for what no API server takes of any object."""
    fields = fields_at("", raw, ())
    fields.text("apiVersion", _NAME)
    fields.text("kind", _NAME)
    metadata = fields.inner("metadata")
    metadata.text("name", _NAME)
    metadata.text_or("namespace", _NAME, "")
    for name in ("labels", "annotations"):
        texts = metadata.content.get(name) or {}
        if not isinstance(texts, dict) or not all(isinstance(each, str) for each in texts.values()):
            raise wrong(metadata.at(name), texts, "texts by key")
    if raw["kind"] == "ConfigMap" and not isinstance(raw.get("data") or {}, dict):
        raise wrong("data", raw["data"], "texts by key")


def _group(raw: Json) -> str:
    return str(raw.get("apiVersion", "")).rpartition("/")[0]


def _is(raw: Json, group: str, kind: str) -> bool:
    return (_group(raw), raw["kind"]) == (group, kind)


def _is_crd(raw: Json) -> bool:
    return _is(raw, CRD_COLLECTION.group, CRD)


def _is_plural(plural: str, kind: str) -> bool:
    """Whether a plural is the regular one of a kind."""
    name = kind.lower()
    return plural in (name, f"{name}s", f"{name}es", f"{name[:-1]}ies")


def _policy(raw: Json) -> tuple[str, Json]:
    """The kind that a SyncPolicy is for, and its spec. Raises ConfigError."""
    spec = fields_at("spec", raw.get("spec"), ())
    resource = spec.inner("resource")
    return f"{resource.text('resource', _NAME)}.{resource.text('group', _ANY)}".rstrip("."), spec.content


def _from_crd(crd: Json, policies: Mapping[str, Json]) -> PlacedKind:
    try:
        return kind_of(crd, policies)
    except (KeyError, TypeError, AttributeError, StopIteration):
        raise ConfigError(
            f"the CRD {crd['metadata']['name']} is incomplete", hint="one that an API server accepts"
        ) from None
