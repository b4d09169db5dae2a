"""The part of the script that edits CRDs: schemas, versions and scopes, while objects are there and watched."""

import asyncio
import json
from typing import Any

from crsyncer.core.model import Json
from crsyncer.core.requests.calls import CRDS, JSON_PATCH, Call
from tests.contract.script import PATIENCE, Script
from tests.system.bed import crd


def limited(maximum: int) -> Json:
    """A schema with a limit, defaults on two levels, and no room for what it does not know."""
    inner = {"type": "object", "default": {}, "properties": {"n": {"type": "integer", "default": 7}}}
    number = {"type": "integer", "maximum": maximum}
    spec = {"x": number, "y": {"type": "integer"}, "speed": {"type": "string", "default": "slow"}, "inner": inner}
    spec["any"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec["many"] = {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}
    status = {"n": number, "level": {"type": "string", "default": "low"}}
    return {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "properties": status},
        },
    }


async def kinds(script: Script) -> None:
    """What schemas do to objects, and what becomes of watches and objects when a CRD is edited."""
    path = f"/apis/{script.group}/v1/namespaces/default/limits"
    definition = crd(script.group, plural="limits", source=None, schema=limited(10))
    assert (await script.ask("create", "POST", CRDS, definition)).status == 201
    await script.until(path, 200)
    await _admission(script, path)
    await _ratcheting(script, path)
    await _editing(script, path)


async def _admission(script: Script, path: str) -> None:
    def body(name: str, **fields: Any) -> Json:
        return {**script.typed("limits"), "metadata": {"name": name}, **fields}

    await script.created(path, body("probe"))
    many = [{"name": "a", "unknown": 1}, {}]
    spec = {"x": 1, "unknown": 1, "speed": None, "y": None, "any": {"z": None, "w": [1]}, "many": many}
    await script.say("pruned and completed", "POST", path, body("a", spec=spec, data={"k": 1}))
    await script.say("nothing to complete", "POST", path, body("b"))
    for what, wrong in (("too much", {"x": 11}), ("of another type", {"x": "1"}), ("a truth", {"x": True})):
        await script.say(what, "POST", path, body("c", spec=wrong))
    found = (await script.say("it is stored so", "GET", f"{path}/a")).body
    await script.say("update with too much", "PUT", f"{path}/a", {**found, "spec": {"x": 11}})
    await script.say("update", "PUT", f"{path}/a", {**found, "spec": {"x": 10, "speed": "fast"}})
    for what, status in (("status", {"n": 1, "unknown": 1}), ("status with too much", {"n": 11})):
        patch = [{"op": "add", "path": "/status", "value": status}]
        await script.say(what, "PATCH", f"{path}/a/status", patch, content_type=JSON_PATCH)
    await script.say("after it", "GET", f"{path}/a")


async def _ratcheting(script: Script, path: str) -> None:
    """What is stored and not valid any more may stay, while something else is changed."""
    await _edit(script, lambda spec: spec["versions"][0]["schema"].update(openAPIV3Schema=limited(5)))
    probe = {**script.typed("limits"), "metadata": {"name": "c"}, "spec": {"x": 6}}
    await script.refused(path, probe)
    found = (await script.say("it is still shown", "GET", f"{path}/a")).body
    changed = {**found, "spec": {**found["spec"], "y": 1}}
    await script.say("another field", "PUT", f"{path}/a", changed)
    patch = [{"op": "add", "path": "/status/n", "value": 5}]
    await script.say("the status", "PATCH", f"{path}/a/status", patch, content_type=JSON_PATCH)
    found = (await script.say("it has stayed", "GET", f"{path}/a")).body
    await script.say("the same field", "PUT", f"{path}/a", {**found, "spec": {**found["spec"], "x": 9}})


async def _editing(script: Script, path: str) -> None:
    script.transcript.fact("an annotation ends a watch", await _ends(script, path, _annotate, seconds=10.0))
    script.transcript.fact("a schema ends a watch", await _ends(script, path, _loosen, seconds=PATIENCE))
    scope = await _edit(script, lambda spec: spec.update(scope="Cluster"))
    script.transcript.note("another scope", scope)
    since = await _revision(script, path)
    await _edit(script, _add_version)
    other = path.replace("/v1/", "/v2/")
    await script.until(other, 200)
    await script.say("in another version", "GET", f"{other}/a")
    await _edit(script, lambda spec: spec["versions"][0].update(served=False))
    await script.until(path, 404)
    await script.say("a version that is not served", "GET", path)
    script.transcript.fact("a watch from before", await _first(script, other, since))
    since = await _revision(script, other)
    stored = (await script.ask("get", "GET", f"{other}/a")).body
    await script.ask("update", "PUT", f"{other}/a", {**stored, "spec": {"x": 2}})
    (event,) = await script.events(since, "", until="", count=1, path=other)
    script.transcript.event(event.type, event.raw)


async def _revision(script: Script, path: str) -> str:
    """The present revision; right after an edit, a server may answer that its storage is being initialized (429)."""
    await script.until(path, 200)
    return str((await script.ask("list", "GET", path)).body["metadata"]["resourceVersion"])


async def _edit(script: Script, change: Any) -> Any:
    item = f"{CRDS}/limits.{script.group}"
    while True:
        found = (await script.ask("get", "GET", item)).body
        change(found["spec"])
        reply = await script.ask("update", "PUT", item, found)
        if reply.status != 409:  # the server has written conditions into it meanwhile
            return reply


async def _annotate(script: Script) -> None:
    item = f"{CRDS}/limits.{script.group}"
    patch = [{"op": "add", "path": "/metadata/annotations", "value": {"note": "x"}}]
    assert (await script.ask("patch", "PATCH", item, patch, content_type=JSON_PATCH)).status == 200


async def _loosen(script: Script) -> None:
    await _edit(script, lambda spec: spec["versions"][0]["schema"].update(openAPIV3Schema=limited(20)))


def _add_version(spec: Json) -> None:
    first = spec["versions"][0]
    spec["versions"].append({**first, "name": "v2", "storage": False})


async def _first(script: Script, path: str, since: str) -> tuple[int, str, Any]:
    """How a watch begins: its HTTP status, the type of its first event, and the code where that is an error."""
    async with asyncio.timeout(PATIENCE):
        while True:
            async with script.cluster.watch(_watch(path, since), read_timeout=60) as stream:
                async for line in stream.lines():
                    event = json.loads(line)
                    return stream.status, event["type"], event["object"].get("code")
            if stream.status != 429:  # its storage is being initialized
                return stream.status, "", None
            await asyncio.sleep(0.1)


def _watch(path: str, since: str) -> Call:
    return Call("watch", "GET", path, (("watch", "true"), ("resourceVersion", since), ("timeoutSeconds", "60")))


async def _ends(script: Script, path: str, edit: Any, *, seconds: float) -> bool:
    """Whether an open watch is ended by an edit of its CRD, within so many seconds."""
    since = await _revision(script, path)
    async with script.cluster.watch(_watch(path, since), read_timeout=60) as stream:
        await edit(script)
        try:
            async with asyncio.timeout(seconds):
                async for _ in stream.lines():
                    pass
        except TimeoutError:
            return False
    return True
