"""One script of calls for any API server."""

import asyncio
from typing import Any

from crsyncer.core.model import Json
from crsyncer.core.requests.calls import CRDS, JSON, JSON_PATCH, PARTIAL, PARTIAL_LIST, Call
from crsyncer.core.watching.watch import Emit, read_line
from crsyncer.ports import Cluster, Reply
from tests.contract.transcript import Transcript
from tests.system.bed import crd

PATIENCE = 60.0
_NO_SUCH = "nothing-has-this-uid"


class Script:
    """Asks one server. `group` is the API group that the kinds of the script are in."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        self.transcript = Transcript()
        self.cluster = cluster
        self.group = group
        self.goals = f"/apis/{group}/v1/namespaces/default/goals"

    async def run(self) -> None:
        """Ask about objects, their statuses, lists and watches, and a kind that is deleted."""
        await self._define("goals", status=True)
        await self._define("plains", status=False)
        for part in (
            self._reading,
            self._writing,
            self._statuses,
            self._finalizing,
            self._deleting,
            self._listing,
            self._watching,
            self._without_subresource,
            self._dying_namespace,
            self._dying_kind,
        ):
            self.transcript.fact("part", part.__name__)
            await part()

    async def _define(self, plural: str, *, status: bool) -> None:
        body = crd(self.group, plural=plural, source=None, status=status)
        assert (await self.ask("create", "POST", CRDS, body)).status == 201
        path = f"/apis/{self.group}/v1/namespaces/default/{plural}"
        probe = {"metadata": {"name": "probe"}}
        await self.until(path, 200)
        await self._discovered(plural)
        await self.created(path, {**self.typed(plural), **probe})

    async def _reading(self) -> None:
        await self.say("a kind that is not served", "GET", "/apis/nowhere.example.com/v1/goals")
        await self.say("a group that is not served", "GET", "/apis/nowhere.example.com/v1")
        versions = await self.ask("discover", "GET", f"/apis/{self.group}")
        self.transcript.fact("versions", [v["version"] for v in versions.body["versions"]])
        await self._discovery()
        await self.say("an object that is not there", "GET", f"{self.goals}/none")
        namespace = await self.ask("get", "GET", "/api/v1/namespaces/kube-system", accept=PARTIAL)
        self.transcript.fact(
            "namespace", (namespace.status, namespace.body["kind"], sorted(namespace.body["metadata"])[-1])
        )

    async def _writing(self) -> None:
        first = await self.say("create", "POST", self.goals, self.goal("a", spec={"x": 1}, status={"n": 1}))
        metadata = first.body["metadata"]
        await self.say("create again", "POST", self.goals, self.goal("a"))
        await self.say("create with a version", "POST", self.goals, self.goal("v", metadata={"resourceVersion": "1"}))
        elsewhere = self.goals.replace("/default/", "/elsewhere/")
        await self.say("create in no namespace", "POST", elsewhere, self.goal("a", namespace="elsewhere"))
        item = f"{self.goals}/a"
        for what, change in (
            ("update without a version", {"resourceVersion": None}),
            ("update of another uid", {"uid": _NO_SUCH}),
            ("update of an old version", {"resourceVersion": "1"}),
            ("update", {}),
        ):
            await self.say(what, "PUT", item, self.goal("a", metadata=metadata | change, spec={"x": 2}))
        found = (await self.say("get", "GET", item)).body
        await self.say("update of nothing", "PUT", item, found)
        await self.say("update with a status", "PUT", item, {**found, "status": {"n": 2}})
        labelled = {**found, "metadata": {**found["metadata"], "labels": {"example.com/l": "1"}}}
        await self.say("update of labels", "PUT", item, labelled)
        await self.say(
            "update of an object that is not there",
            "PUT",
            f"{self.goals}/b",
            self.goal("b", metadata={**metadata, "name": "b"}),
        )

    async def _statuses(self) -> None:
        item, status = f"{self.goals}/a", f"{self.goals}/a/status"
        found = (await self.ask("get", "GET", item)).body
        guards = {k: found["metadata"][k] for k in ("name", "namespace", "uid", "resourceVersion")}
        for what, change in (
            ("status without a version", {"resourceVersion": None}),
            ("status of another uid", {"uid": _NO_SUCH}),
            ("status of an old version", {"resourceVersion": "1"}),
            ("status", {"labels": {"l": "2"}}),
        ):
            body = self.goal("a", metadata=guards | change, status={"n": 1})
            await self.say(what, "PUT", status, body, accept=PARTIAL)
        await self.say("after it", "GET", item)
        test = {"op": "test", "path": "/metadata/uid", "value": guards["uid"]}
        old = {"op": "test", "path": "/metadata/resourceVersion", "value": guards["resourceVersion"]}
        remove = {"op": "remove", "path": "/status"}
        for what, operations in (
            ("patch", [test, _add("/status", {"n": 2})]),
            ("the same patch", [test, _add("/status", {"n": 2})]),
            ("patch of another uid", [{**test, "value": _NO_SUCH}, _add("/status", {"n": 3})]),
            ("patch of an object with a label", [test, _labelled("l", "1"), _add("/status", {"n": 4})]),
            ("patch of an object with another label", [test, _labelled("l", "2"), _add("/status", {"n": 3})]),
            ("patch of an object without the label", [test, _labelled("m", "1"), _add("/status", {"n": 3})]),
            ("patch of an old version", [test, old, _add("/status", {"n": 3})]),
            ("patch of a part", [test, _add("/status/k", {"n": 3})]),
            ("removal of a part", [test, {"op": "remove", "path": "/status/k"}]),
            ("removal of what is not there", [test, {"op": "remove", "path": "/status/k"}]),
            ("removal", [test, remove]),
            ("removal again", [test, remove]),
            ("patch of a part of nothing", [test, _add("/status/k", {"n": 3})]),
        ):
            await self.say(what, "PATCH", status, operations, accept=PARTIAL, content_type=JSON_PATCH)
            await self.say("after it", "GET", item)
        await self.say("patch of no object", "PATCH", f"{self.goals}/none/status", [test], content_type=JSON_PATCH)

    async def _finalizing(self) -> None:
        """Patches of finalizers (C6.2)."""
        item, path = f"{self.goals}/a", "/metadata/finalizers"
        metadata = (await self.ask("get", "GET", item)).body["metadata"]
        test = {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]}
        version = {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}
        end = _add(f"{path}/-", "example.com/two")
        for what, operations in (
            ("first finalizer", [test, version, _add(path, ["example.com/one"])]),
            ("finalizer in an old version", [test, version, end]),
            ("second finalizer", [test, end]),
            ("the same finalizer again", [test, end]),
            ("finalizer of another uid", [{**test, "value": _NO_SUCH}, end]),
            ("is it this uid", [test]),
            ("is it another uid", [{**test, "value": _NO_SUCH}]),
            ("removal from a wrong place", [test, *_removal(0, "example.com/two")]),
            ("removal from no place", [test, *_removal(7, "example.com/two")]),
            ("removal from its places", [test, *_removal(2, "example.com/two"), *_removal(1, "example.com/two")]),
            ("removal of the last one", [test, *_removal(0, "example.com/one")]),
            ("removal where there is none", [test, *_removal(0, "example.com/one")]),
        ):
            await self.say(what, "PATCH", item, operations, accept=PARTIAL, content_type=JSON_PATCH)
            await self.say("after it", "GET", item)

    async def _deleting(self) -> None:
        item = f"{self.goals}/a"
        await self.say("delete another uid", "DELETE", item, _preconditions(_NO_SUCH))
        found = (await self.ask("get", "GET", item)).body
        kept = {**found, "metadata": {**found["metadata"], "finalizers": ["example.com/wait"]}}
        kept = (await self.say("finalizer", "PUT", item, kept)).body
        await self.say("delete what is kept", "DELETE", item, _preconditions(found["metadata"]["uid"]))
        await self.say("delete it again", "DELETE", item)
        dying = (await self.say("it is dying", "GET", item)).body
        dying = (await self.say("update of it", "PUT", item, {**dying, "spec": {"x": 3}})).body
        freed = {**dying, "metadata": {**dying["metadata"], "finalizers": []}}
        await self.say("let it go", "PUT", item, freed)
        await self.say("it is gone", "GET", item)
        await self.say("delete what is not there", "DELETE", item)
        made = await self.say("the name is free", "POST", self.goals, self.goal("a"))
        metadata = made.body["metadata"]
        await self.say("delete another version", "DELETE", item, _preconditions(metadata["uid"], "1"))
        await self.say("delete", "DELETE", item, _preconditions(metadata["uid"], metadata["resourceVersion"]))

    async def _listing(self) -> None:
        for name, label in (("a", "1"), ("b", "2"), ("c", "1")):
            await self.ask(
                "create", "POST", self.goals, self.goal(name, metadata={"name": name, "labels": {"l": label}})
            )
        await self.say("list", "GET", self.goals)
        await self.say("list of a label", "GET", self.goals, query=(("labelSelector", "l=1"),))
        await self.say(
            "list of nothing", "GET", self.goals, query=(("labelSelector", "l=3"), ("limit", "1")), accept=PARTIAL_LIST
        )
        await self.say("list of all namespaces", "GET", f"/apis/{self.group}/v1/goals", accept=PARTIAL_LIST)
        page = await self.say("page", "GET", self.goals, query=(("limit", "2"),))
        await self.ask("delete", "DELETE", f"{self.goals}/c")
        token = page.body["metadata"]["continue"]
        rest = await self.say("rest", "GET", self.goals, query=(("limit", "2"), ("continue", token)))
        same = page.body["metadata"]["resourceVersion"] == rest.body["metadata"]["resourceVersion"]
        self.transcript.fact("both pages are of one revision", same)
        newest = max(int(item["metadata"]["resourceVersion"]) for item in rest.body["items"])
        self.transcript.fact(
            "and it is not older than what they show", int(rest.body["metadata"]["resourceVersion"]) >= newest
        )

    async def _watching(self) -> None:
        """Two watches from one revision: of all, and of a label that is won and lost."""
        since = (await self.ask("list", "GET", self.goals)).body["metadata"]["resourceVersion"]
        await self._relabel("a", "3")
        await self._relabel("b", "1")
        found = (await self.ask("get", "GET", f"{self.goals}/b")).body
        await self.ask("update", "PUT", f"{self.goals}/b", {**found, "spec": {"x": 9}})
        patch = [_add("/status", {"n": 7})]
        await self.ask("patch", "PATCH", f"{self.goals}/b/status", patch, content_type=JSON_PATCH)
        found = (await self.ask("get", "GET", f"{self.goals}/b")).body
        kept = {**found, "metadata": {**found["metadata"], "finalizers": ["example.com/wait"]}}
        await self.ask("update", "PUT", f"{self.goals}/b", kept)
        await self.ask("delete", "DELETE", f"{self.goals}/b")
        found = (await self.ask("get", "GET", f"{self.goals}/b")).body
        freed = {**found, "metadata": {**found["metadata"], "finalizers": []}}
        await self.ask("update", "PUT", f"{self.goals}/b", freed)
        await self.ask("create", "POST", self.goals, self.goal("b"))
        await self.ask("delete", "DELETE", f"{self.goals}/b")
        end = await self.ask(
            "create", "POST", self.goals, self.goal("end", metadata={"name": "end", "labels": {"l": "1"}})
        )
        for selector in ("", "l=1"):
            self.transcript.fact("watch of", selector)
            await self._watch(since, selector, until=end.body["metadata"]["resourceVersion"])
        await self.ask("delete", "DELETE", f"{self.goals}/end")

    async def _without_subresource(self) -> None:
        path = f"/apis/{self.group}/v1/namespaces/default/plains"
        body = {**self.typed("plains"), "metadata": {"name": "a"}, "spec": {"x": 1}, "status": {"n": 1}}
        made = (await self.say("create with a status", "POST", path, body)).body
        item = f"{path}/a"
        made = (await self.say("update of the status", "PUT", item, {**made, "status": {"n": 2}}, accept=JSON)).body
        test = {"op": "test", "path": "/metadata/uid", "value": made["metadata"]["uid"]}
        await self.say(
            "patch", "PATCH", item, [test, _add("/status", {"n": 3})], accept=PARTIAL, content_type=JSON_PATCH
        )
        labelled = [test, _labelled("l", "1"), _add("/status", {"n": 4})]
        await self.say("patch of an object without labels", "PATCH", item, labelled, content_type=JSON_PATCH)
        await self.say("no subresource", "PATCH", f"{item}/status", [test], content_type=JSON_PATCH)
        await self.say("after it", "GET", item)

    async def _dying_namespace(self) -> None:
        name, namespaces = f"dying-{self.group.partition('.')[0]}", "/api/v1/namespaces"
        goals, made = self.goals.replace("/default/", f"/{name}/"), {"metadata": {"name": name}}
        self.transcript.fact("namespace", (await self.ask("create", "POST", namespaces, made)).status)
        await self.ask("create", "POST", goals, self.goal("a", namespace=name, spec={"x": 1}))
        gone = await self.ask("delete", "DELETE", f"{namespaces}/{name}")
        self.transcript.fact("namespace deleted", (gone.status, "deletionTimestamp" in gone.body["metadata"]))
        await self.say("create in a namespace that is being deleted", "POST", goals, self.goal("b", namespace=name))
        await self.say("create what is there", "POST", goals, self.goal("a", namespace=name))
        await self.say("create the namespace again", "POST", namespaces, made)
        change = [_add("/spec/x", 2)]
        await self.say("patch there", "PATCH", f"{goals}/a", change, accept=PARTIAL, content_type=JSON_PATCH)
        await self.say("delete there", "DELETE", f"{goals}/a")

    async def _dying_kind(self) -> None:
        goals = await self.ask("list", "GET", self.goals)
        for name, finalizers in (("kept", ["example.com/wait"]), ("lost", [])):
            await self.ask(
                "create", "POST", self.goals, self.goal(name, metadata={"name": name, "finalizers": finalizers})
            )
        await self.ask("delete", "DELETE", f"{CRDS}/goals.{self.group}")
        async with asyncio.timeout(PATIENCE):
            while "create" in (await self._verbs())["goals"][0]:  # noqa: ASYNC110 - only the server knows
                await asyncio.sleep(0.02)
        await self._discovery()
        await self.say("create", "POST", self.goals, self.goal("new"))
        async with asyncio.timeout(PATIENCE):
            while True:
                items = (await self.ask("list", "GET", self.goals)).body.get("items", [])
                if [i["metadata"]["name"] for i in items] == ["kept"] and "deletionTimestamp" in items[0]["metadata"]:
                    break
                await asyncio.sleep(0.1)
        kept = items[0]
        self.transcript.fact("objects left", len(items))
        events = await self.events(goals.body["metadata"]["resourceVersion"], "", until="", count=5)
        self.transcript.fact("of those", sorted(f"{e.type} {e.raw['metadata']['name']}" for e in events))
        freed = {**self.typed("goals"), **kept, "metadata": {**kept["metadata"], "finalizers": []}}
        await self.ask("update", "PUT", f"{self.goals}/kept", freed)
        await self.until(self.goals, 404)
        await self.say("the kind is gone", "GET", self.goals)

    # Asking

    async def ask(self, verb: str, method: str, path: str, body: Any = None, **more: Any) -> Reply:
        return await self.cluster.request(Call(verb, method, path, body=body, **more))

    async def say(self, what: str, method: str, path: str, body: Any = None, **more: Any) -> Reply:
        return self.transcript.note(what, await self.ask(method.lower(), method, path, body, **more))

    async def _discovered(self, plural: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                reply = await self.ask("discover", "GET", f"/apis/{self.group}/v1")
                if reply.status == 200 and plural in [each["name"] for each in reply.body["resources"]]:
                    return
                await asyncio.sleep(0.1)

    async def until(self, path: str, status: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while (await self.ask("list", "GET", path)).status != status:  # noqa: ASYNC110 - only the server knows
                await asyncio.sleep(0.1)

    async def created(self, path: str, probe: Json) -> None:
        """Return when a kind takes objects: this one is made, and deleted."""
        await self._answered(path, probe, 201)
        assert (await self.ask("delete", "DELETE", f"{path}/{probe['metadata']['name']}")).status == 200

    async def refused(self, path: str, probe: Json) -> None:
        """Return when a kind refuses an object."""
        await self._answered(path, probe, 422)

    async def _answered(self, path: str, probe: Json, status: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while (reply := await self.ask("create", "POST", path, probe)).status != status:
                if reply.status == 201:
                    await self.ask("delete", "DELETE", f"{path}/{probe['metadata']['name']}")
                await asyncio.sleep(0.1)

    async def _discovery(self) -> None:
        self.transcript.fact("discovery", await self._verbs())

    async def _verbs(self) -> dict[str, tuple[list[str], bool]]:
        reply = await self.ask("discover", "GET", f"/apis/{self.group}/v1")
        return {
            r["name"]: (sorted(r["verbs"]), r["namespaced"]) for r in reply.body["resources"] if "goals" in r["name"]
        }

    async def _watch(self, since: str, selector: str, *, until: str) -> None:
        for event in await self.events(since, selector, until=until):
            self.transcript.event(event.type, event.raw)

    async def events(self, since: str, selector: str, *, until: str, count: int = 0, path: str = "") -> list[Emit]:
        query = [("watch", "true"), ("resourceVersion", since), ("timeoutSeconds", "60")]
        if selector:
            query.insert(0, ("labelSelector", selector))
        events: list[Emit] = []
        async with asyncio.timeout(PATIENCE):
            async with self.cluster.watch(
                Call("watch", "GET", path or self.goals, tuple(query)), read_timeout=60
            ) as stream:
                async for line in stream.lines():
                    event = read_line(line)
                    assert isinstance(event, Emit)
                    events.append(event)
                    if event.resource_version == until or len(events) == count:
                        break
        return events

    async def _relabel(self, name: str, label: str) -> None:
        found = (await self.ask("get", "GET", f"{self.goals}/{name}")).body
        body = {**found, "metadata": {**found["metadata"], "labels": {"l": label}}}
        await self.ask("update", "PUT", f"{self.goals}/{name}", body)

    def typed(self, plural: str) -> Json:
        return {"apiVersion": f"{self.group}/v1", "kind": plural.removesuffix("s").capitalize()}

    def goal(self, name: str, *, namespace: str = "default", metadata: Json | None = None, **fields: Any) -> Json:
        asked = {k: v for k, v in (metadata or {}).items() if v is not None}
        return {**self.typed("goals"), "metadata": {"name": name, "namespace": namespace, **asked}, **fields}


def _add(path: str, value: Any) -> Json:
    return {"op": "add", "path": path, "value": value}


def _labelled(name: str, value: str) -> Json:
    return {"op": "test", "path": f"/metadata/labels/example.com~1{name}", "value": value}


def _removal(place: int, name: str) -> list[Json]:
    path = f"/metadata/finalizers/{place}"
    return [{"op": "test", "path": path, "value": name}, {"op": "remove", "path": path}]


def _preconditions(uid: str, version: str = "") -> Json:
    conditions = {"uid": uid, **({"resourceVersion": version} if version else {})}
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions}
