"""Reports to a fleet in the cloud that the robot is there, and which of its replicas it has (F9)."""

import asyncio
import logging
from collections.abc import Callable, Iterator

from crsyncer import __version__
from crsyncer.core.accounts.robot_account import is_robot_name
from crsyncer.core.kinds.namespaces import Namespaces
from crsyncer.core.model import Freshness, Json, Key, Side
from crsyncer.core.reports import robot_report
from crsyncer.core.reports.robot_report import Acknowledgement, acknowledgements, applied_map
from crsyncer.core.requests.answers import shown
from crsyncer.core.requests.calls import Call
from crsyncer.core.watching.backoff import Backoff
from crsyncer.engine.engine import Engine
from crsyncer.engine.kinds.kind_entry import KindEntry
from crsyncer.engine.kinds.negotiation import UNKNOWN
from crsyncer.errors import Conflict, Never, NotAllowed, NotServed, SyncError, Throttled
from crsyncer.ports import Reply
from crsyncer.runtime.listwatch import Phase
from crsyncer.runtime.waits import chance

log = logging.getLogger(__name__)

_PACE_SECONDS = 10.0
"""The least time between two writes, and how often the report is compared with the one that was written last."""
_BEAT_SECONDS = (240.0, 360.0)
"""An unchanged report is written again after so long: the fleet takes the robot for offline 660 s after a beat."""
_REFUSED_SECONDS = 3600.0
_REFUSED_ONCE_SECONDS = 120.0
_LISTING_SECONDS = 1.0
_FAILED = Backoff(_PACE_SECONDS, 300.0)
_VERSION_CHARACTERS = 64
_PLACE = "report"
"""Under which name the store keeps the namespace that the report is in."""
_NO_LISTS = (Phase.MISSING, Phase.FORBIDDEN)


class RobotReporter:
    """Keeps the robot's RobotSyncState in the cloud; an agent without a fleet asks one question an hour.

    `report_namespace` is where the report is unless the settings name the robot's own namespace; None: the agent
    deletes its report. `health` is called for what `status` shows.

    Its requests bypass the connection, so they count as no traffic of the sync: an answer, or the lack of one, does
    not change what the agent does.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        robot: str,
        namespaces: Namespaces,
        report_namespace: str | None,
        health: Callable[[], str],
    ) -> None:
        self._kinds = engine.kinds
        self._cloud = engine.connections[Side.CLOUD]
        self._store = engine.context.store
        self._clock = engine.context.clock
        self._robot = robot
        self._place = robot_report.report_place(robot, namespaces, report_namespace)
        self._home = robot_report.report_place(robot, namespaces, "default")
        self._health = health
        self._history = ""
        """The cluster, and its history, that all of the following is about."""
        self._served = self._settled = False
        """Whether the fleet's kind is served, and whether no report is left where it was before."""
        self._found: Json | None = None
        """The metadata of the report as it is; None: it has to be looked for."""
        self._written: Json | None = None
        """What was written last, without its beat."""
        self._beat = 0
        self._due = 0.0
        """When the next beat has to be written, in event loop time."""
        self._listed = False
        self._acknowledged: dict[str, dict[Key, Acknowledgement]] = {}
        """What each kind has applied, by the keys of pairs: what is being replaced counts until it is."""

    async def run(self) -> None:
        """Report until the agent ends; return at once where no fleet can have such a robot."""
        failures = 0
        while is_robot_name(self._robot):
            await self._cloud.up.wait()
            try:
                await asyncio.sleep(await self._step())
                failures = 0
            except (NotAllowed, NotServed, Never) as error:
                log.log(logging.INFO if self._served else logging.DEBUG, "nothing is reported to a fleet: %s", error)
                # What was taken before may be refused for a moment, by a server that has just started.
                seconds = _REFUSED_SECONDS if self._written is None else _REFUSED_ONCE_SECONDS
                self._served, self._found, self._written = False, None, None
                await self._cloud.waits.sleep(seconds if _is_final(error) else _PACE_SECONDS)
            except SyncError as error:
                log.debug("the report to the fleet is written later: %s", error)
                pause = error.retry_after if isinstance(error, Throttled) else 0.0
                self._found, failures = None, failures + 1
                await asyncio.sleep(pause + _FAILED.wait(failures - 1, chance()))
            except MemoryError:
                raise
            except Exception:
                log.exception("the report to the fleet could not be made")
                await asyncio.sleep(_REFUSED_SECONDS)

    async def _step(self) -> float:
        """Report if there is news, or a beat is due; for how long nothing has to be done. Raises SyncError."""
        if self._history != self._cloud.history_identity:
            self._history, self._served, self._settled = self._cloud.history_identity, False, False
            self._found = self._written = None
        if not self._served:
            if not robot_report.is_served((await self._ask(robot_report.DISCOVERY)).body):
                raise NotServed("the cloud has no fleet")
            self._served = True
        if not self._settled:
            await self._leave_former_place()
        if self._place is None:
            return _REFUSED_SECONDS
        self._listed = self._listed or (self._kinds.has_synced and all(map(_is_listed, self._replicated())))
        if not self._listed:
            return _LISTING_SECONDS
        now = asyncio.get_running_loop().time()
        content = self._content()
        if content == self._written and now < self._due:
            return min(_PACE_SECONDS, self._due - now)
        await self._write(self._place, content)
        first, last = _BEAT_SECONDS
        self._written, self._due = content, now + first + (last - first) * chance()
        return _PACE_SECONDS

    def _replicated(self) -> Iterator[KindEntry]:
        """The kinds whose objects may be replicas."""
        return (entry for entry in self._kinds.entries.values() if entry.policy.takes_replicas)

    # What is in the report

    def _content(self) -> Json:
        self._acknowledged = {each.policy.resource: self._applied(each) for each in self._replicated()}
        return {
            "robot": self._robot,
            "agentVersion": __version__[:_VERSION_CHARACTERS],
            "health": self._health(),
            "applied": applied_map(one for each in self._acknowledged.values() for one in each.values()),
        }

    def _applied(self, entry: KindEntry) -> dict[Key, Acknowledgement]:
        """What a kind has applied; of one that starts or has stopped, what it had."""
        before = self._acknowledged.get(entry.policy.resource, {})
        if entry.kind is None:
            return before
        cache = entry.kind.cache
        return acknowledgements(cache.views[Side.CLOUD], cache.views[Side.ROBOT], cache.records, before=before)

    # Requests

    async def _write(self, place: str, content: Json) -> None:
        """Write the report, once more where it was not as it was known. Raises SyncError."""
        try:
            await self._write_once(place, content)
        except NotServed:
            raise
        except Conflict:
            self._found = None
            await self._write_once(place, content)

    async def _write_once(self, place: str, content: Json) -> None:
        found = self._found or await self._find(place)
        beat = max(self._beat + 1, int(self._clock()))  # also after a report that nobody remembers
        reply = await self._cloud.cluster.request(
            robot_report.write_report(self._robot, place, content | {"beat": beat}, metadata=found)
        )
        if reply.status == 404 and found is None and reply.body:
            raise Never(f"the cloud has no namespace {place}")
        self._found, self._beat = shown(reply.happened().body), beat

    async def _find(self, place: str) -> Json | None:
        """The metadata of the report in a namespace; None: there is none. Its beat is raised from then on."""
        body = (await self._ask(robot_report.list_reports(self._robot, place))).body
        report = robot_report.own_report(body, self._robot)
        if report is None:
            return None
        if robot_report.is_foreign(report):
            raise Never(f"the report {place}/{self._robot} is the copy of an object on the robot")
        self._beat = max(self._beat, robot_report.beat_of(report))
        metadata: Json = report["metadata"]
        return metadata

    async def _leave_former_place(self) -> None:
        """Delete the report that is where it shall not be any more. Raises Unsure."""
        former = self._store.get_meta(_PLACE) or (self._home if self._place is None else None)
        if former is not None and former != self._place:
            try:
                metadata = await self._find(former)
                if metadata is not None:
                    await self._ask(robot_report.delete_report(self._robot, former, metadata["uid"]))
                    log.info("the report %s/%s is deleted", former, self._robot)
            except (NotAllowed, NotServed, Never, Conflict) as error:
                log.info("the report %s/%s stays: %s", former, self._robot, error)
        if self._store.get_meta(_PLACE) != self._place:
            self._store.put_meta(_PLACE, self._place)
        self._settled = True

    async def _ask(self, call: Call) -> Reply:
        reply = await self._cloud.cluster.request(call)
        if reply.status == 404:
            raise NotServed("the cloud has no fleet")
        return reply.happened()


def _is_listed(entry: KindEntry) -> bool:
    """Whether a kind shows all that it has; one that cannot be synced now does not keep others from being reported."""
    if entry.kind is None:
        return entry.error is not None and entry.error.state != UNKNOWN
    cache, lists = entry.kind.cache, entry.kind.informers
    return all(
        each.listwatch.phase in _NO_LISTS or cache.freshness(each.side, each.namespace) is not Freshness.STORED
        for each in lists
    )


def _is_final(error: SyncError) -> bool:
    """Whether asking again soon does not help: a credential that is not accepted is renewed soon, or by a human."""
    return not isinstance(error, NotAllowed) or error.status == 403
