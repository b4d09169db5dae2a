"""What an operator may order of a running agent: a request from the control socket in, an answer out."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

from crsyncer.core.explain import ObjectFacts, Refused, explain
from crsyncer.core.model import Json, Key, Side
from crsyncer.core.report import kind_row
from crsyncer.core.target import find_key, find_resource
from crsyncer.core.words import rfc3339
from crsyncer.errors import SyncError
from crsyncer.loop.catalog import Catalog, Row
from crsyncer.loop.custody import DELETION_HOLDS
from crsyncer.loop.dispatch import Job
from crsyncer.loop.pair import Pair
from crsyncer.loop.side import SideLink, SideState
from crsyncer.loop.survey import group_facts, kind_facts
from crsyncer.loop.worker import CONTENT, STATUS, Surroundings

_CHANGES = ("hold", "release", "retry", "drop")
_LIST = "crsyncer pending list shows what is"
_RESYNC_SECONDS = 600.0
_LAST_WRITES_SECONDS = 10.0
_POLL_SECONDS = 0.05


@dataclass(slots=True)
class _Resync:
    """A resync that was ordered, for whoever asks how far it is."""

    pairs: dict[str, Pair]
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)


class Orders:
    """Answers requests such as `{"command": "release", "id": "h1"}`."""

    def __init__(self, catalog: Catalog, around: Surroundings) -> None:
        self._catalog = catalog
        self._links = around.links
        self._dispatchers = around.dispatchers
        self._holds = around.holds
        self._store = around.store
        self._clock = around.clock
        self._resyncs: list[_Resync] = []

    async def answer(self, request: Json) -> Json:
        """Carry an order out, durably. Raises SyncError for what cannot be done, or is not known."""
        given = {name: str(value) for name, value in request.items() if isinstance(value, str | int)}
        resource, name = given.get("resource", ""), given.get("name", "")
        match given.get("command"):
            case "hold":
                answer = self._hold(resource)
            case "release":
                answer = self._release(given.get("id", ""))
            case "pending":
                answer = {"pending": list(self._pending())}
            case "retry":
                answer = self._retry(resource, name)
            case "drop":
                answer = self._drop(resource, name, confirmed=request.get("confirmed") is True)
            case "resync":
                answer = self._resync(resource)
            case "progress":
                answer = self._progress(given.get("resync", ""))
            case "explain":
                answer = await self._explain(resource, name)
            case unknown:
                raise SyncError(f"the agent does not know the command {unknown!r}", hint="is it of another version?")
        if given["command"] in _CHANGES:
            await self._store.durable()
        return answer

    # Holds

    def _hold(self, resource: str) -> Json:
        pair = self._pair(resource)
        pair.hold_all()
        group = next(g for g in self._holds.groups(pair.policy.resource) if g.standing)
        return {"id": group.id, "resource": group.resource, "reason": group.reason}

    def _release(self, hold_id: str) -> Json:
        if hold_id in list(Side):
            return self._accept(self._links[Side(hold_id)])
        group = next((g for g in self._holds.groups() if g.id == hold_id), None)
        if group is None:
            raise SyncError(f"there is no hold {hold_id}", hint="crsyncer holds list shows those there are")
        if group.reason not in DELETION_HOLDS:
            raise SyncError(
                f"{hold_id} ({group.reason}) cannot be released: {group.message}",
                hint=f"it ends by itself: {group_facts(group).hint}",
            )
        pair = self._pair(group.resource)
        self._holds.release(hold_id)
        pair.release(group.reason, group.keys)
        return {"id": hold_id, "resource": group.resource, "reason": group.reason, "objects": len(group.keys)}

    def _accept(self, link: SideLink) -> Json:
        if link.state is not SideState.IDENTITY_CHANGED:
            raise SyncError(
                f"nothing of the {link.side} is held: it is {link.state}", hint="crsyncer holds list shows what is"
            )
        link.accept_identity()
        return {"id": str(link.side), "resource": "", "reason": "IdentityChanged", "objects": 0}

    # The outbox

    def _pending(self) -> Iterator[Json]:
        for pair in self._pairs(""):
            policy = pair.policy
            for key, row in pair.mirror.pending.items():
                yield {
                    **_named(policy.resource, key, what="status", to=policy.upstream),
                    "since": rfc3339(row.since),
                    "attempts": row.attempts,
                    "error": row.error or None,
                    "dead": row.dead,
                    "nextTry": rfc3339(self._next_try(pair, STATUS, key)),
                }
            for key, refusal in pair.worker.refused.items():
                yield {
                    **_named(policy.resource, key, what="content", to=policy.downstream),
                    "since": None,
                    "attempts": None,
                    "error": refusal.message,
                    "dead": True,
                    "nextTry": rfc3339(self._next_try(pair, CONTENT, key)),
                }

    def _retry(self, resource: str, name: str) -> Json:
        revived = []
        for pair in self._pairs(resource):
            rows = pair.mirror.pending
            letters = {*pair.worker.refused, *(key for key, row in rows.items() if row.dead or name)}
            for key in [find_key(name, letters)] if name else sorted(letters):
                if key not in letters:
                    raise SyncError(f"nothing of {key} of {pair.policy.resource} is pending", hint=_LIST)
                pair.retry(key)
                revived.append(_named(pair.policy.resource, key))
        return {"revived": revived}

    def _drop(self, resource: str, name: str, *, confirmed: bool) -> Json:
        pair = self._pair(resource)
        key = find_key(name, {*pair.mirror.pending, *pair.worker.refused})
        row = pair.mirror.pending.get(key)
        if row is None and key in pair.worker.refused:
            raise SyncError(
                f"the {pair.policy.downstream} refuses the content of {key}, and that is nothing to be dropped",
                hint=f"correct or delete the object in the {pair.policy.upstream}",
            )
        if row is None or not row.dead:
            raise SyncError(f"{key} of {pair.policy.resource} is no dead letter", hint=_LIST)
        if confirmed:
            pair.worker.outbox.drop(key)
            pair.worker.look(key)
        lost = {"status": row.value, "since": rfc3339(row.since), "refusal": row.error, "to": str(pair.policy.upstream)}
        return {**_named(pair.policy.resource, key), "dropped": confirmed, **lost}

    # Resync

    def _resync(self, resource: str) -> Json:
        pairs = {pair.policy.resource: pair for pair in self._pairs(resource)}
        run = _Resync(pairs)
        for name, pair in pairs.items():
            run.tasks[name] = asyncio.ensure_future(self._run_resync(pair))
        self._resyncs.append(run)
        return self._progress(str(len(self._resyncs) - 1))

    async def _run_resync(self, pair: Pair) -> None:
        async with asyncio.timeout(_RESYNC_SECONDS):
            await pair.relist("resync", *Side)
            pair.verify()
            # What differs is also written by the time that it is done, unless other things keep the kind busy.
            patience = _LAST_WRITES_SECONDS
            while pair.worker.unverified or (patience > 0 and self._busy(pair)):
                await asyncio.sleep(_POLL_SECONDS)
                patience -= 0 if pair.worker.unverified else _POLL_SECONDS

    def _busy(self, pair: Pair) -> bool:
        return any(dispatcher.active(pair.policy.resource) for dispatcher in self._dispatchers.values())

    def _progress(self, number: str) -> Json:
        if not number.isdigit() or int(number) >= len(self._resyncs):
            raise SyncError("the agent has started over since: everything is listed anew anyway")
        run = self._resyncs[int(number)]
        return {"resync": int(number), "kinds": [self._kind_progress(name, run) for name in sorted(run.pairs)]}

    def _kind_progress(self, resource: str, run: _Resync) -> Json:
        pair, task = run.pairs[resource], run.tasks[resource]
        objects = {side.value: len(pair.mirror.views[side]) for side in Side}
        content = {"resource": resource, "state": "listing", "message": None, "objects": objects, "left": None}
        row = self._catalog.rows.get(resource)
        trouble = None
        if not task.done():
            down = [link for link in self._links.values() if link.state is not SideState.CONNECTED]
            if row is None or row.pair is not pair:
                trouble = "the kind has started over since, and is listed anew anyway"
            elif down:
                trouble = f"the {down[0].side} is {down[0].state}"
            if trouble is not None:
                task.cancel()
        elif task.cancelled():
            trouble = "it was given up"
        elif (error := task.exception()) is not None:
            trouble = str(error) or "it took too long"
        if trouble is not None:
            return content | {"state": "failed", "message": trouble}
        if task.done():
            return content | {"state": "done", "left": 0}
        return content | ({"state": "comparing", "left": len(pair.worker.unverified)} if pair.worker.unverified else {})

    # Explain

    async def _explain(self, resource: str, name: str) -> Json:
        rows = self._catalog.rows
        resource = find_resource(resource, rows)
        row = rows.get(resource)
        if row is None or row.pair is None:
            key = find_key(name, ())
            kind = None if row is None else self._kind(row)
            return explain(ObjectFacts(resource, key, kind=kind, known=tuple(sorted(rows))))
        pair, mirror = row.pair, row.pair.mirror
        key = find_key(name, mirror.known_keys(), namespaced=pair.policy.namespaced)
        bodies = {side: await self._store.body(side, resource, key) for side in Side}
        refusal = pair.worker.refused.get(key)
        facts = ObjectFacts(
            resource,
            key,
            kind=self._kind(row),
            policy=pair.policy,
            namespaces=self._catalog.namespaces,
            links={side: link.state.value for side, link in self._links.items()},
            sights={side: mirror.sight(side, key) for side in Side},
            bodies={side: body for side, body in bodies.items() if body is not None},
            plan=pair.worker.plan(key),
            record=mirror.record(key),
            pending=mirror.pending.get(key),
            tombstone=mirror.tombstones.get(key),
            holds=tuple(group_facts(group) for group in self._holds.groups(resource) if key in group.keys),
            content=Refused(refusal.message, self._next_try(pair, CONTENT, key)) if refusal is not None else Refused(),
            next_status=self._next_try(pair, STATUS, key),
        )
        return explain(facts)

    # What an order is about

    def _kind(self, row: Row) -> Json:
        return kind_row(kind_facts(row, links=self._links, dispatchers=self._dispatchers, holds=self._holds))

    def _pair(self, resource: str) -> Pair:
        rows = self._catalog.rows
        row = rows.get(find_resource(resource, rows))
        if row is None:
            raise SyncError(
                f"{resource} is not synced: no CRD of that name on the robot is annotated",
                hint=f"synced are: {', '.join(sorted(rows)) or 'none'}",
            )
        if row.pair is None:
            state = row.trouble.state if row.trouble is not None else "starting"
            raise SyncError(f"{resource} is not synced at the moment: {state}", hint="crsyncer status says why")
        return row.pair

    def _pairs(self, resource: str) -> list[Pair]:
        """One kind, or ("") all that are synced."""
        if resource:
            return [self._pair(resource)]
        return [row.pair for row in self._catalog.rows.values() if row.pair is not None]

    def _next_try(self, pair: Pair, half: str, key: Key) -> float | None:
        side = pair.policy.downstream if half == CONTENT else pair.policy.upstream
        seconds = self._dispatchers[side].next_try(Job(pair.policy.resource, half, key))
        return None if seconds is None else self._clock() + seconds


def _named(resource: str, key: Key, **more: str) -> Json:
    return {"resource": resource, "namespace": key.namespace, "name": key.name, **more}
