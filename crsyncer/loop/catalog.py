"""Watches the robot's CRDs and keeps one pair running for each kind that they ask for (S1)."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Sequence
from dataclasses import replace

from crsyncer.core import calls
from crsyncer.core.model import Edition, Json, Side
from crsyncer.core.policy import SPEC_SOURCE, Policy, read_policy
from crsyncer.core.queue import backoff
from crsyncer.core.watch import Anchor, EventType
from crsyncer.errors import Unsure
from crsyncer.loop.dispatch import Job
from crsyncer.loop.listwatch import ListWatch, Phase
from crsyncer.loop.pair import Pair
from crsyncer.loop.sink import Coverage
from crsyncer.loop.terms import Disagreement, negotiate, provisional, with_terms
from crsyncer.loop.worker import Surroundings

log = logging.getLogger(__name__)

_SCHEMA_SECONDS = 3.0
_FIRST_RETRY_SECONDS = 1.0
_LAST_RETRY_SECONDS = 60.0
_LOST = (Phase.MISSING, Phase.FORBIDDEN)


class Row:
    """One annotated CRD, also a wrongly annotated one."""

    def __init__(self, policy: Policy, schema: object, *, source: str, uid: str) -> None:
        self.policy = policy
        """As annotated; `pair.policy` has the version that was agreed on."""
        self.uid = uid
        self.source = source
        """The annotation's text, whatever it is."""
        self.schema = schema
        self.pair: Pair | None = None
        self.trouble: Disagreement | None = Disagreement("misconfigured", policy.problem) if policy.problem else None
        self.task: asyncio.Task[None] | None = None
        self.poke = asyncio.Event()


class Catalog:
    """The kinds that are synced. A change of a CRD restarts only that kind, and only when it matters (S1.1)."""

    def __init__(self, around: Surroundings, *, robot: str, namespaces: Sequence[str]) -> None:
        self.rows: dict[str, Row] = {}
        self.begun = False
        """Whether the robot's CRDs have been listed, and what is stored of their kinds has been read."""
        self._around = replace(around, noticed=self._noticed)
        self._notice = around.noticed
        self._robot = robot
        self.namespaces = tuple(namespaces)
        self._listed: set[str] = set()
        self._known = False
        self._versions: dict[str, tuple[int, str]] = {}
        """resourceVersion and uid of every CRD, annotated or not."""
        self._version: str | None = None
        self._identity: str | None = None
        self._tasks = asyncio.TaskGroup()
        self._listwatch = ListWatch(
            around.links[Side.ROBOT],
            self,
            fence=around.fences[Side.ROBOT],
            path=calls.CRDS,
            selector="",
            page=calls.CRD_PAGE,
            single=None,
            watch_timeout=around.watch_timeout,
        )

    async def run(self) -> None:
        """Watch CRDs and keep their kinds running, forever."""
        async with self._tasks:
            self._tasks.create_task(self._listwatch.run())

    async def work(self, job: Job) -> None:
        """Have a kind look at one of its objects."""
        row = self.rows.get(job.resource)
        if row is not None and row.pair is not None:
            await row.pair.worker.work(job)

    def probe(self, side: Side) -> list[calls.Call]:
        """What tells most of a side for least: the lists of kinds with something to resume, then what all may ask.

        Kinds that were missing or forbidden are asked for only where there are no others: one may be back by now.
        """
        pairs = [row.pair for row in self.rows.values() if row.pair is not None]
        known = [pair for pair in pairs if all(r.cursor() is not None for r in pair.on(side))]
        well = [pair for pair in known if all(r.listwatch.phase not in _LOST for r in pair.on(side))]
        namespace = next(iter(self.namespaces), "")
        lists = [calls.revision(pair.policy, namespace if pair.policy.namespaced else "") for pair in well or known]
        return [*lists, calls.VERSION if side is Side.CLOUD else calls.CRD_REVISION]

    # The sink of the CRDs' list-watch

    def cursor(self) -> str | None:
        """Kept in memory only: the CRDs are few, and on the robot itself."""
        return self._version if self._identity == self._around.links[Side.ROBOT].known_as else None

    def newest(self) -> int:
        """CRDs are never written."""
        return 0

    def moved(self, resource_version: str | None) -> None:
        """Remember up to where the CRDs are known."""
        self._version = resource_version
        self._identity = self._around.links[Side.ROBOT].known_as

    def anchor(self) -> Anchor | None:
        """The newest CRD: they are all remembered by their versions."""
        newest = max(self._versions.values(), default=None)
        return Anchor(calls.CRDS, "", newest[1], str(newest[0])) if newest is not None else None

    def copies(self) -> int:
        """None is kept."""
        return 0

    def relisted(self, reason: str) -> None:
        """Not counted: `status` counts the kinds' lists."""

    def listing(self) -> None:
        """Remember from here on what the list shows."""
        self._listed = set()
        self._versions.clear()

    def has(self, edition: Edition, listed_at: str) -> bool:  # noqa: ARG002
        """Never asked: nothing is kept."""
        return False

    def item(self, raw: Json, listed_at: str) -> None:  # noqa: ARG002
        """A CRD, new or known."""
        name = str(raw["metadata"]["name"])
        self._listed.add(name)
        self._note(name, raw)
        self._show(name, raw)

    def listed(self, resource_version: str) -> None:  # noqa: ARG002
        """CRDs that the list does not show are gone."""
        for name in [n for n in self.rows if n not in self._listed]:
            self._remove(name)
        self._known = True
        self._tell()

    def event(self, event_type: EventType, raw: Json) -> None:
        """A CRD has changed."""
        name = str(raw["metadata"]["name"])
        if event_type is EventType.DELETED:
            self._versions.pop(name, None)
            self._remove(name)
        else:
            self._note(name, raw)
            self._show(name, raw)

    def resumed(self) -> None:
        """Nothing to count: `status` counts the kinds' watches."""

    def covers(self, coverage: Coverage) -> None:
        """Kinds stay as they are while the CRDs are out of sight."""

    def went_back(self) -> None:
        """The list that follows shows every CRD as it is now."""

    def rebooted(self) -> bool:
        """The cursor is of this process, and so of this boot."""
        return False

    def noticed(self) -> None:
        """The phase of this watch is not shown."""

    # The kinds

    def _note(self, name: str, raw: Json) -> None:
        version = str(raw["metadata"]["resourceVersion"])
        if version.isdigit():
            self._versions[name] = int(version), str(raw["metadata"]["uid"])

    def _show(self, name: str, raw: Json) -> None:
        dying = "deletionTimestamp" in raw["metadata"]
        policy = None if dying else read_policy(raw, self._robot)
        row = self.rows.get(name)
        if policy is None:
            if row is not None:
                self._remove(name)
            return
        schema = raw["metadata"].get("generation")
        if row is not None and row.policy == policy:
            if row.schema != schema and row.pair is not None:
                row.pair.revive()
                # The API server itself hears of the new schema only now: what it still refused by the old one.
                asyncio.get_running_loop().call_later(_SCHEMA_SECONDS, row.pair.revive)
            row.schema = schema
            return
        old = row.task if row is not None else None
        if old is not None:
            old.cancel()
        source = raw["metadata"]["annotations"][SPEC_SOURCE]
        row = self.rows[name] = Row(policy, schema, source=source, uid=str(raw["metadata"]["uid"]))
        if row.trouble is not None:
            log.warning("%s is not synced: %s", name, row.trouble.message)
            self._around.holds.clear(name)
        else:
            row.task = self._tasks.create_task(self._live(row, after=old))
        self._tell()

    def _remove(self, name: str) -> None:
        """The kind stops; its copies stay as they are (S1.8)."""
        row = self.rows.pop(name, None)
        if row is not None:
            log.info("%s is not synced any more", name)
            self._around.holds.clear(name)
            if row.task is not None:
                row.task.cancel()
            self._tell()

    async def _live(self, row: Row, *, after: asyncio.Task[None] | None) -> None:
        """One kind's life: run under the terms that are known, ask the cloud for better ones when there is reason."""
        if after is not None:
            await asyncio.wait([after])
        policy, confirmed = self._stored_terms(row.policy)
        failures = doubts = 0
        renegotiated = False
        running: asyncio.Task[None] | None = None
        try:
            while True:
                if policy is None:
                    policy = provisional(row.policy)
                if running is None and row.trouble is None:
                    running = await self._start(row, policy)
                    if renegotiated and row.pair is not None:
                        row.pair.resend()
                await self._reason_to_ask(row, known=doubts if confirmed else -1)
                await asyncio.sleep(self._patience(failures) if failures else 0)
                doubts = self._doubts(row)
                try:
                    answer = await negotiate(row.policy, self._around.links[Side.CLOUD].request)
                except Unsure:
                    failures += 1
                    confirmed = False
                    continue
                confirmed = True
                failures = failures + 1 if isinstance(answer, Disagreement) or self._missing(row) else 0
                if answer != policy or row.trouble is not None:
                    await self._stop(row, running)
                    running, doubts, renegotiated = None, 0, True
                row.trouble = answer if isinstance(answer, Disagreement) else None
                if isinstance(answer, Disagreement):
                    confirmed = False
                else:
                    policy = answer
                    self._around.store.put_meta(f"terms:{policy.resource}", _terms(policy))
                self._tell()
        finally:
            await self._stop(row, running)

    async def _start(self, row: Row, policy: Policy) -> asyncio.Task[None]:
        loaded = await self._around.store.load(policy.resource)
        row.pair = Pair(policy, namespaces=self.namespaces, around=self._around, loaded=loaded)
        known_as = f"crd:{policy.resource}"
        if policy.upstream is Side.ROBOT and self._around.store.get_meta(known_as) not in (None, row.uid):
            row.pair.vanished()  # made anew: what it lacks went with the CRD before it (S5.5)
        self._around.store.put_meta(known_as, row.uid)
        log.info("%s %s is synced, spec from the %s", policy.resource, policy.version, policy.upstream)
        self._tell()
        return self._tasks.create_task(row.pair.run())

    async def _stop(self, row: Row, running: asyncio.Task[None] | None) -> None:
        await _cancel(running)
        row.pair = None
        for dispatcher in self._around.dispatchers.values():
            dispatcher.forget(row.policy.resource)

    async def _reason_to_ask(self, row: Row, *, known: int) -> None:
        """Return when the cloud is connected, and there are more doubts than are known, or the kind is missing."""
        while True:
            await self._around.links[Side.CLOUD].up.wait()
            if self._doubts(row) > known or self._missing(row):
                return
            row.poke.clear()
            await row.poke.wait()

    def _doubts(self, row: Row) -> int:
        """How often there was reason to think that the cloud's CRD has changed, which nothing tells."""
        if row.pair is None:
            return 0
        outbox = row.pair.worker.outbox.suspicions if row.policy.upstream is Side.CLOUD else 0
        return outbox + sum(r.expiries for r in row.pair.on(Side.CLOUD))

    def _missing(self, row: Row) -> bool:
        watches = row.pair.on(Side.CLOUD) if row.pair is not None else []
        return any(r.listwatch.phase is Phase.MISSING for r in watches)

    def _patience(self, failures: int) -> float:
        return random.uniform(0.5, 1.0) * backoff(failures, first=_FIRST_RETRY_SECONDS, last=_LAST_RETRY_SECONDS)  # noqa: S311

    def _stored_terms(self, policy: Policy) -> tuple[Policy | None, bool]:
        """What was agreed on before, if the robot's CRD still offers it, and whether nothing else was on offer then."""
        known = self._around.store.get_meta(f"terms:{policy.resource}")
        if not known or known["version"] not in [v.name for v in policy.versions if v.served]:
            return None, False
        terms = with_terms(policy, known["version"], cloud_status=known["cloudStatus"])
        return terms, known.get("offer") == _offer(policy)

    def _tell(self) -> None:
        if self._known and all(row.pair is not None or row.trouble is not None for row in self.rows.values()):
            self.begun = True
        self._notice()

    def _noticed(self) -> None:
        for row in self.rows.values():
            row.poke.set()
            for reflector in row.pair.reflectors if row.pair is not None else ():
                upstream = reflector.side is row.policy.upstream
                missing = row.pair is not None and row.pair.kind_missing and upstream
                if missing or reflector.listwatch.phase is Phase.MISSING:
                    self._around.links[reflector.side].witnessed(row.policy.resource)
        self._tell()


def _terms(policy: Policy) -> Json:
    cloud_status = policy.status_endpoint[Side.CLOUD]
    return {"version": policy.version, "cloudStatus": cloud_status, "offer": _offer(policy)}


def _offer(policy: Policy) -> Json:
    """Among which versions of the robot's CRD was chosen."""
    return {v.name: [v.served, v.storage] for v in policy.versions}


async def _cancel(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
