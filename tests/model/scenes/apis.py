"""CRDs that travel in the made-up world: the kinds of this section, and what is there of them."""

from dataclasses import replace
from typing import Any

import yaml

from crsyncer.cli.crds import APIS
from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import API_REVISIONS, API_SETS, CRDS, Call
from tests.model.scenes.policies import apply_policy, serve_policies
from tests.model.simulation.api_server import ANYTHING
from tests.model.simulation.life import ROBOT, AgentSettings
from tests.model.simulation.plane import GROUP, Plane
from tests.model.simulation.world import World
from tests.system.bed import crd

GOALS = f"goals.{GROUP}"
CRD_RESOURCE = "customresourcedefinitions.apiextensions.k8s.io"


def serve_apis(plane: Plane) -> None:
    """A cluster has the kinds of this section, with schemas that refuse nothing."""
    for each in yaml.safe_load_all(APIS.read_text()):
        each["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": ANYTHING}
        plane.apply(each)


def goals(*fields: str, versions: tuple[str, ...] = ("v1",), **keywords: Any) -> Json:
    """A CRD of goals whose objects have these text fields in spec."""
    properties = {name: {"type": "string"} for name in fields}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    return crd(GROUP, source=None, versions=versions, schema=schema, **keywords)


def change_crd(world: World, *fields: str, seconds: float, **keywords: Any) -> None:
    """The cloud's CRD of goals comes to have these text fields, and the agent goes on for so long."""
    world.cloud.apply(goals(*fields, **keywords))
    world.pass_time(seconds)


def travelling(
    source: str = "cloud", *, spec_source: str = "cloud", fields: tuple[str, ...] = ("x",), robot: str = ROBOT
) -> World:
    """A world where only the source has goals, and a policy has their CRD travel; the agent does not run yet."""
    world = World(kinds={"tasks": {}}, settings=AgentSettings(robot=robot))
    serve_policies(world.robot)
    serve_apis(world.planes[Side(source).other])
    world.planes[Side(source)].apply(goals(*fields))
    ask(world, source, spec_source=spec_source)
    return world


def ask(world: World, source: str = "cloud", *, spec_source: str = "cloud", **api: Any) -> None:
    """The policy of goals has the field `api`."""
    apply_policy(world.robot, specSource=spec_source, api={"source": source, **api})


def crd_on(world: World, side: str, name: str = GOALS) -> Json | None:
    """A CRD on a side."""
    return world.servers[Side(side)].storage.of(CRD_RESOURCE).get(("", name))


def fields_on(world: World, side: str, version: str = "v1") -> set[str] | None:
    """The fields of spec that a side's CRD of goals has; None: there is no such CRD."""
    found = crd_on(world, side)
    if found is None:
        return None
    schemas = {each["name"]: each["schema"]["openAPIV3Schema"] for each in found["spec"]["versions"]}
    return set(schemas[version]["properties"]["spec"]["properties"])


def revisions_on(world: World, side: str) -> list[str]:
    """The names of a side's APIRevisions, in the order in which they were made."""
    found = world.servers[Side(side)].storage.of(API_REVISIONS.resource).values()
    return [
        each["metadata"]["name"] for each in sorted(found, key=lambda each: int(each["metadata"]["resourceVersion"]))
    ]


def api_set(world: World, side: str, name: str = "crsyncer") -> Json | None:
    """An APISet."""
    return world.servers[Side(side)].storage.of(API_SETS.resource).get(("", name))


def entries(world: World, side: str, name: str = "crsyncer") -> dict[str, str]:
    """What an APISet names, by plural."""
    found = api_set(world, side, name)
    return {} if found is None else {each["resource"]: each["revision"] for each in found["spec"]["apis"]}


def choose(world: World, side: str, revision: Any, *, name: str = "crsyncer") -> None:
    """Somebody edits the entry of goals."""
    found = api_set(world, side, name)
    assert found is not None
    apis = [each for each in found["spec"]["apis"] if each["resource"] != "goals"]
    entry = {"group": GROUP, "resource": "goals", "revision": revision}
    metadata = {"name": name, "resourceVersion": found["metadata"]["resourceVersion"]}
    put(world, side, {"metadata": metadata, "spec": {"apis": [*apis, entry]}})


def put(world: World, side: str, body: Json) -> None:
    """Somebody writes an APISet."""
    path = f"{API_SETS.path}/{body['metadata']['name']}"
    _ask(world, side, Call("update", "PUT", path, body=body))


def delete(world: World, side: str, path: str) -> None:
    """Somebody deletes what is at a path."""
    _ask(world, side, Call("delete", "DELETE", path))


def drop_crd(world: World, side: str) -> None:
    """Somebody deletes the CRD of goals on a side."""
    delete(world, side, f"{CRDS}/{GOALS}")
    world.pass_time(1)
    assert world.planes[Side(side)].sweep()


def drop_short_names(world: World, side: str) -> None:
    """A server keeps no short names of CRDs: it is of another version than the one that they come from."""
    names = {name: {"type": "string"} for name in ("plural", "kind", "singular", "listKind")}
    spec = {**ANYTHING, "properties": {"names": {"type": "object", "properties": names}}}
    server = world.servers[Side(side)]
    schema = {**ANYTHING, "properties": {"spec": spec}}
    server.built_in = [
        replace(kind, schema=schema) if kind.resource == CRD_RESOURCE else kind for kind in server.built_in
    ]


def stores(world: World, side: str, *versions: str) -> None:
    """A side's objects of goals may be stored in these versions, as its CRD says."""
    body = [{"op": "add", "path": "/status", "value": {"storedVersions": list(versions)}}]
    _ask(world, side, Call("patch", "PATCH", f"{CRDS}/{GOALS}/status", body=body))


def api_row(world: World) -> tuple[str | None, str, str | None]:
    """What `status` says of the CRD of goals: revision, state and message."""
    row = next(row for row in world.status()["kinds"] if row["resource"] == GOALS)
    assert row["api"] is not None
    return row["api"]["revision"], row["api"]["state"], row["api"]["message"]


def crd_writes(world: World, side: str) -> list[str]:
    """How the agent has changed the CRD of goals so far, each time."""
    return [
        write.verb
        for write in world.writes
        if (write.side, write.resource, write.name) == (Side(side), CRD_RESOURCE, GOALS) and write.before != write.after
    ]


def _ask(world: World, side: str, call: Call) -> None:
    plane = world.planes[Side(side)]
    reply = plane.server.answer(call)
    assert reply.status < 300, reply.body
    plane.signal.ring()
