"""The outcomes of one kind's jobs: counts and reports them, and decides how each is tried again (S10).

Unless it chooses a wait, the dispatcher takes the usual one of `core/watching/backoff.py`.
"""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus

from crsyncer.core.model import Key, Side
from crsyncer.core.reports.facts import Action, Fact
from crsyncer.core.requests.answers import TRIES_BEFORE_DEAD, lasting
from crsyncer.core.watching.backoff import CONFLICT, TAKEN
from crsyncer.engine.caching.cache import Cache
from crsyncer.engine.context import EngineContext
from crsyncer.engine.pairs.outbox import Outbox
from crsyncer.errors import Conflict, Never, NoStatus, NotAllowed, NotReturned, StatusRejected, SyncError, Throttled
from crsyncer.runtime.dispatcher import Dispatcher, Job

CONTENT, STATUS, VERIFY, FINALIZER = "content", "status", "verify", "finalizer"
_DEAD_RETRY_SECONDS = 3600.0
_DEAD_RULES = {STATUS: "S10", FINALIZER: "C6.2"}


@dataclass(frozen=True, slots=True)
class Rejection:
    """Downstream's answer to some upstream content, or status; tried again at `until` (event loop time, seconds)."""

    content: str
    message: str
    until: float


class Outcomes:
    """The latest outcome of each job of one kind. `Dispatcher` keeps the time of the next try."""

    def __init__(self, *, cache: Cache, outbox: Outbox, context: EngineContext) -> None:
        self.rejected: dict[Key, Rejection] = {}
        """Copies that downstream rejects for good (S3.6)."""
        self.unfinalized: dict[Key, Rejection] = {}
        """Upstream objects that cannot get our finalizer, and so get no copy (C6.2)."""
        self.denied: dict[Job[Key], str] = {}
        """Writes that the credential does not allow, until it does, or nothing is left to be written."""
        self.errors: dict[Job[Key], str] = {}
        """Why the last try of a job failed that is tried again, until one succeeds."""
        self.suspicions = 0
        """How often downstream answered that a copy has no `/status`: its CRD may have changed."""
        self._without_status: tuple[Key, str] | None = None
        """The copy, by its key and uid, of which downstream answers that it has no `/status`."""
        self._policy = cache.policy
        self._cache = cache
        self._outbox = outbox
        self._context = context
        self._arrived: dict[Job[Key], float] = {}
        """When the event of a job arrived, in event loop time, seconds."""

    def dispatcher(self, job: Job[Key]) -> Dispatcher[Key]:
        """The dispatcher of the side that a job writes to."""
        return self._context.dispatchers[self._policy.downstream if job.work == CONTENT else self._policy.upstream]

    @property
    def lacks_status(self) -> bool:
        """Whether downstream answers that it has no `/status`: it is not asked again (S4.4, C5.5).

        It answers the same of a copy that is gone, so that shows nothing once the copy has gone.
        """
        return self._without_status is not None and self._without_status == self._copy(self._without_status[0])

    def is_restless(self, key: Key) -> bool:
        """Whether a copy's write has met so many conflicts in a row that its deletion has to do without a version."""
        job = Job(self._policy.resource, CONTENT, key)
        return self.dispatcher(job).failures(job) >= TRIES_BEFORE_DEAD

    def event_arrived(self, job: Job[Key]) -> None:
        """An event has arrived: the latency of its write counts from now, or from the event before it."""
        self._arrived.setdefault(job, asyncio.get_running_loop().time())

    def done(self, job: Job[Key], verb: str | None) -> None:
        """The object was reconciled, by a write with this verb; None: no write was needed."""
        self.dispatcher(job).succeeded(job)
        self.errors.pop(job, None)
        if self.denied.pop(job, None) is not None:
            self._context.report_changed()
        arrived = self._arrived.pop(job, None)
        if verb is None:
            self._context.observer.noop()
            return
        self._count(job, verb, "done")
        if arrived is not None:
            seconds = asyncio.get_running_loop().time() - arrived
            self._context.observer.latency("spec" if job.work == CONTENT else "status", seconds)

    def name_taken(self, job: Job[Key]) -> None:
        """The copy's name is another object's: try again when an event shows a change, and after a back-off."""
        self.errors.pop(job, None)
        self._context.observer.noop()
        self.dispatcher(job).back_off(job, TAKEN)

    def failed(self, job: Job[Key], error: SyncError) -> None:
        """It did not happen, or may not have (S10): report it once, and decide when to try again."""
        dispatcher = self.dispatcher(job)
        error = lasting(error, tries=dispatcher.failures(job) + 1)
        # "refused" is the label of a conflict in the metric.
        is_never = isinstance(error, Never)
        result = "refused" if isinstance(error, Conflict) else "never" if is_never else type(error).__name__.lower()
        side = self._count(job, job.work if job.work in (STATUS, FINALIZER) else "content", result)
        action = Action.FAILED
        self.errors[job] = str(error)
        if isinstance(error, NoStatus):
            self.suspicions += 1
            self._context.report_changed()
        match error:
            case Never():
                action = Action.DEAD_LETTER
                self._dead(job, error)
                dispatcher.later(job, _DEAD_RETRY_SECONDS)
            case Throttled(retry_after=seconds):
                dispatcher.slow_down(seconds)
                dispatcher.later(job, seconds)
            case NotAllowed(status=status):
                action = Action.REFUSED
                self._denied(job, str(error) if status == HTTPStatus.FORBIDDEN else None)
                dispatcher.back_off(job)
            case NotReturned(retry_after=seconds):
                self._context.report_changed()
                dispatcher.later(job, seconds)
            case NoStatus() if dispatcher.failures(job) + 1 >= TRIES_BEFORE_DEAD:
                self._without_status, action = self._copy(job.key), Action.GIVEN_UP
                dispatcher.later(job, 0.0)
            case Conflict():
                action = Action.CONFLICT
                dispatcher.back_off(job, CONFLICT)
            case _:
                dispatcher.back_off(job)
        rule = _DEAD_RULES.get(job.work, "S3.6") if isinstance(error, Never) else "S10"
        rule = ("C5.5" if self._policy.related else "S4.4") if isinstance(error, NoStatus) else rule
        self._context.recorder.record(Fact(side, self._policy.resource, job.key, action, rule, str(error)))
        if job.work == STATUS and not isinstance(error, Never):
            self._outbox.tried(job.key, error)

    def rejected_content(self, key: Key) -> str:
        """What downstream has rejected of upstream, and what is not to be tried again yet (S3.6); "": nothing."""
        return self.rejected[key].content if key in self.rejected and self.retry_in(key) > 0 else ""

    def revive(self, key: Key | None = None) -> None:
        """Try what was refused for good again at once: of an object, or (None) of all."""
        if key is None:
            self.server_has_changed()
            self.unfinalized.clear()
        else:
            self.rejected.pop(key, None)
            self.unfinalized.pop(key, None)

    def server_has_changed(self) -> None:
        """Downstream may accept what it has rejected."""
        self.rejected.clear()
        self._without_status = None

    @property
    def dead(self) -> int:
        """How many copies and finalizers were refused for good."""
        return len(self.rejected) + len(self.unfinalized)

    def refinalize_in(self, key: Key) -> float:
        """In how many seconds our finalizer, which upstream has refused for good, is tried again; 0: now (C6.2)."""
        rejection = self.unfinalized.get(key)
        return 0.0 if rejection is None else max(0.0, rejection.until - asyncio.get_running_loop().time())

    def retry_in(self, key: Key) -> float:
        """In how many seconds rejected content is tried again."""
        return self.rejected[key].until - asyncio.get_running_loop().time()

    def _copy(self, key: Key) -> tuple[Key, str] | None:
        copy = self._cache.views[self._policy.downstream].get(key)
        return None if copy is None else (key, copy.uid)

    def _count(self, job: Job[Key], verb: str, result: str) -> Side:
        side = self._policy.downstream if job.work == CONTENT else self._policy.upstream
        self._context.observer.write(side, self._policy.resource, verb, result)
        return side

    def _dead(self, job: Job[Key], error: SyncError) -> None:
        if job.work == STATUS:
            self._outbox.mark_dead(job.key, error)
            return
        upstream = self._cache.views[self._policy.upstream].get(job.key)
        until = asyncio.get_running_loop().time() + _DEAD_RETRY_SECONDS
        rejections = self.unfinalized if job.work == FINALIZER else self.rejected
        what = "" if upstream is None else upstream.status if isinstance(error, StatusRejected) else upstream.content
        rejections[job.key] = Rejection(what, str(error), until)
        self._context.report_changed()

    def _denied(self, job: Job[Key], message: str | None) -> None:
        if message is not None and self.denied.get(job) != message:
            self.denied[job] = message
            self._context.report_changed()
        elif message is None and self.denied.pop(job, None) is not None:
            self._context.report_changed()
