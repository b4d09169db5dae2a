"""One CRD that travels to the other side, by its revision and its entry in the APISet there (C8).

What is to be done is decided in `core/apis/api_plan.py`.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from functools import partial
from typing import Any

from crsyncer.core.apis.api_plan import (
    ApiPlan,
    ApiState,
    Memory,
    Observed,
    admission,
    api_set_name,
    name_problem,
    names_to_read,
    plan_api,
    revision_object,
    shown_before,
)
from crsyncer.core.apis.revise import Revision, shown_crd, sound_revision
from crsyncer.core.apis.travel_names import name_on, revision_of
from crsyncer.core.kinds.sync_policy import Api
from crsyncer.core.model import Json, Key, Side
from crsyncer.core.pair.actions import Hold, HoldReason
from crsyncer.core.pair.revert_limit import RevertLimit
from crsyncer.core.reports.facts import HOLD_RULES, Action, Fact
from crsyncer.core.requests.calls import API_REVISIONS, API_SETS, CRD_COLLECTION, Call, Collection, write
from crsyncer.core.watching.backoff import CONFLICT, RETRY, UNSERVED, Backoff
from crsyncer.engine.context import EngineContext
from crsyncer.errors import ConfigError, Conflict, Never, NotAllowed, NotServed, SyncError, Throttled, Unsure
from crsyncer.runtime.listwatch import ListWatch, Phase
from crsyncer.runtime.object_informer import ObjectInformer
from crsyncer.runtime.waits import first_of

log = logging.getLogger(__name__)

_REFUSED_SECONDS = 3600.0
"""How long to wait before a server is asked again for what it refused: an hour, as of a dead letter."""
_CONTESTED = "somebody keeps changing the CRD or its entry, which are put right once a minute"
_NO_CHOICE = "correct what the message names; the hold then ends"


class TravellingCrd:
    """The CRD of one kind, on its way from the source to the other side, the target.

    `changed()` is called when there is another `problem`: why the kind's policy cannot be followed, empty: it can.
    """

    def __init__(
        self, resource: str, api: Api, *, context: EngineContext, robot: str, changed: Callable[[], None]
    ) -> None:
        self.api = api
        self.problem = name_problem(api, robot)
        self._resource = resource
        self._there = name_on(api.source.other, resource, api)
        self._robot = robot
        self._context = context
        self._changed = changed
        self._target = context.connections[api.source.other]
        self._due = asyncio.Event()
        """The target may have to be changed."""
        self._source: Json | None = None
        self._source_listed = False
        self._reverts = RevertLimit()
        self._written_for = ""
        """The source's revision that something was last written for."""
        self._known: dict[str, Any] = {}
        """What the last look left of the watched objects of the target: their specs, by plural."""
        stored = context.store.get_meta(self._store_name) or {}
        known = {each.name for each in fields(Memory)}  # a newer version may have stored more
        self._memory = Memory(**{name: value for name, value in stored.get("memory", {}).items() if name in known})
        if self._memory.entry.partition(".")[2] not in ("", self._there):
            self._memory = Memory()  # it is about the CRD that another projection means
        self._hold: tuple[str, float] | None = tuple(stored["hold"]) if stored.get("hold") else None
        """Id and time of the hold, as long as there is one."""
        self.state, self.revision, self.message = shown_before(api, self._memory)
        self._watches = [
            self._watch(
                (api.source, CRD_COLLECTION, name_on(api.source, resource, api)),
                shown=self._source_shown,
                gone=self._source_gone,
                listed=self._source_known,
                phase_changed=self._source_phase_changed,
            ),
            *(
                self._watch(
                    (api.source.other, collection, name),
                    shown=partial(self._target_shown, collection.plural),
                    gone=partial(self._target_gone, collection.plural),
                )
                for collection, name in (
                    (CRD_COLLECTION, self._there),
                    (API_SETS, api_set_name(api.source.other, robot)),
                )
            ),
        ]
        self._keep_hold()

    @property
    def listwatches(self) -> list[ListWatch]:
        """Those of the CRD on both sides, and of the APISet."""
        return [each.listwatch for each in self._watches]

    @property
    def row(self) -> Json:
        """What `kinds[].api` shows."""
        return {"revision": self.revision or None, "state": self.state.value, "message": self.message or None}

    async def run(self) -> None:
        """Have the target follow the source, forever."""
        if self.problem:
            return
        self._due.set()
        async with asyncio.TaskGroup() as tasks:
            for listwatch in self.listwatches:
                tasks.create_task(listwatch.run())
            tasks.create_task(self._keep_up())

    def change(self, api: Api) -> None:
        """The policy has changed, but not the source."""
        self.api = api
        self._due.set()

    def release(self, *, dry_run: bool) -> str:
        """An operator lets the revision pass that is held; its name. Raises SyncError where a release is no help."""
        revision = self._memory.held_revision
        if not revision:
            raise SyncError(f"the CRD {self._resource} cannot be released: {self._memory.held}", hint=_NO_CHOICE)
        if not dry_run:
            self._remember(replace(self._memory, released=revision))
            self._record(Action.RELEASED, HOLD_RULES[HoldReason.API_HELD], f"an operator lets {revision} pass")
            self._due.set()
        return revision

    def forget(self) -> None:
        """The CRD does not travel any more; what is there stays."""
        self._remember(replace(self._memory, held="", held_revision="", released=""))
        self._keep_hold()

    # What is watched

    def _watch(
        self,
        what: tuple[Side, Collection, str],
        *,
        shown: Callable[[Key, Json], None],
        gone: Callable[[Key], None],
        listed: Callable[[], None] = lambda: None,
        phase_changed: Callable[[], None] = lambda: None,
    ) -> ObjectInformer:
        side, collection, name = what
        return ObjectInformer(
            self._context.connections[side],
            replace(collection, name=name),
            page=1,
            watch_timeout=self._context.watch_timeout,
            shown=shown,
            gone=gone,
            listed=listed,
            phase_changed=phase_changed,
        )

    def _source_shown(self, key: Key, raw: Json) -> None:  # noqa: ARG002
        if self._source is None or self._source.get("spec") != raw.get("spec"):
            self._due.set()
        self._source = raw

    def _source_gone(self, key: Key) -> None:  # noqa: ARG002
        self._source = None
        self._due.set()

    def _source_known(self) -> None:
        if not self._source_listed:
            self._source_listed = True
            self._due.set()

    def _source_phase_changed(self) -> None:
        if not self._source_listed and self._watches[0].listwatch.phase is Phase.FORBIDDEN:
            self._due.set()

    def _target_shown(self, plural: str, key: Key, raw: Json) -> None:  # noqa: ARG002
        if plural not in self._known or self._known[plural] != raw.get("spec"):
            self._due.set()

    def _target_gone(self, plural: str, key: Key) -> None:  # noqa: ARG002
        if self._known.get(plural) is not None:
            self._due.set()

    # What is done

    async def _keep_up(self) -> None:
        failures = 0
        while True:
            await self._due.wait()
            await self._target.up.wait()
            self._due.clear()
            try:
                wait = await self._look()
            except ConfigError as error:
                failures = 0
                self._show(ApiState.UNREADABLE, str(error))
                self._tell(str(error))
            except Never as error:
                failures = 0
                held = f"the {self._target.name} refuses what is to be written: {error}"
                self._remember(replace(self._memory, held=held, held_revision=""))
                self._show(ApiState.HELD, held)
                await first_of(self._target.waits.sleep(_REFUSED_SECONDS), self._due)
                self._due.set()
            except SyncError as error:
                failures += 1
                await self._after(error, failures)
                self._due.set()
            else:
                failures = 0
                if wait:
                    await self._target.waits.sleep(wait)
                    self._due.set()

    async def _after(self, error: SyncError, failures: int) -> None:
        backoff: Backoff = RETRY
        match error:
            case NotServed():
                backoff = UNSERVED
                self._show(ApiState.UNREADABLE, f"the {self._target.name} does not serve APIRevisions and APISets")
            case Conflict():
                backoff = CONFLICT
            case NotAllowed():
                backoff = UNSERVED
                self._show(ApiState.UNREADABLE, f"the {self._target.name} refuses: {error}")
            case Throttled(retry_after=seconds):
                await self._target.waits.sleep(seconds)
        await self._target.waits.back_off(failures - 1, backoff)

    async def _look(self) -> float:
        """Read what there is, and write what is missing; in how many seconds to look again, 0: when there is news.

        Raises SyncError, also ConfigError for a wrong policy.
        """
        own = self._own()
        target = self.api.source.other
        api_set = await self._find(API_SETS, api_set_name(target, self._robot))
        names = names_to_read(own, api_set, self._there, self._memory)
        revisions = {name: raw for name in names if (raw := await self._find(API_REVISIONS, name)) is not None}
        seen = Observed(
            own,
            self._source_listed and self._source is None,
            _crd(await self._find(CRD_COLLECTION, self._there)),
            api_set,
            {name: sound_revision(raw) for name, raw in revisions.items()},
        )
        plan = plan_api(seen, self.api, resource=self._resource, robot=self._robot, memory=self._memory)
        wait = self._slowed_down(plan, own)
        if wait:
            self._show(plan.state, _CONTESTED)
            return wait
        memory = await self._carry_out(plan, seen)
        self._tell("")
        self._remember(memory)
        source = self._watches[0].listwatch
        if self._source is None and source.phase is Phase.FORBIDDEN:
            self._show(ApiState.UNREADABLE, f"the {self.api.source}: {source.message}", plan.revision)
        else:
            self._show(plan.state, plan.message, plan.revision)
        return 0.0

    def _slowed_down(self, plan: ApiPlan, own: Revision | None) -> float:
        """Seconds until this may be written; 0: now. Somebody may change the same thing again and again (S3.5)."""
        if plan.api_set is None and plan.crd is None:
            return 0.0
        now, key = asyncio.get_running_loop().time(), Key("", self._resource)
        if own is not None and own.name != self._written_for:
            self._written_for = own.name
            return 0.0
        wait = self._reverts.wait(key, now)
        if not wait:
            self._reverts.reverted(key, now)
        return wait

    def _own(self) -> Revision | None:
        """The revision of the source's CRD; None where it is not known. Raises ConfigError."""
        if self._source is not None:
            return revision_of(shown_crd(self._source), self._resource, self.api)
        return None

    async def _carry_out(self, plan: ApiPlan, seen: Observed) -> Memory:
        """Write what a plan asks for, in this order; what is to be remembered then. Raises SyncError."""
        self._note(API_SETS, seen.api_set)
        self._note(CRD_COLLECTION, seen.target)
        if plan.new_revision is not None:
            await self._write(API_REVISIONS, revision_object(plan.new_revision))
            self._record(Action.CREATED, "C8.1", f"revision {plan.new_revision.name}")
        if plan.api_set is not None:
            self._note(API_SETS, await self._write(API_SETS, plan.api_set))
        if plan.crd is None:
            return plan.memory
        crd = await self._write(CRD_COLLECTION, plan.crd)
        self._note(CRD_COLLECTION, crd)
        made = Action.CREATED if seen.target is None else Action.UPDATED
        self._record(made, "C8.2", f"the CRD follows {plan.revision}")
        same = crd["spec"] == plan.crd["spec"]
        return replace(plan.memory, admitted="" if same else admission(plan.revision, crd["spec"]))

    def _note(self, collection: Collection, found: Json | None) -> None:
        """The target has this object now, so its own event is no news."""
        self._known[collection.plural] = None if found is None else found.get("spec")

    async def _find(self, collection: Collection, name: str) -> Json | None:
        """An object of the target; None: there is none. Raises SyncError."""
        try:
            return await self._ask(Call("get", "GET", collection.item(Key("", name))))
        except NotServed:
            raise
        except Conflict:
            return None

    async def _write(self, collection: Collection, body: Json) -> Json:
        return await self._ask(write(collection, body))

    async def _ask(self, call: Call) -> Json:
        return (await self._target.request(call)).shown()

    # What is shown

    def _tell(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self._changed()

    def _show(self, state: ApiState, message: str, revision: str | None = None) -> None:
        revision = self.revision if revision is None else revision
        if (state, revision, message) == (self.state, self.revision, self.message):
            return
        self.state, self.revision, self.message = state, revision, message
        if message:
            action = Action.HELD if state is ApiState.HELD else Action.REFUSED
            self._record(action, HOLD_RULES[HoldReason.API_HELD] if action is Action.HELD else "C8.4", message)
        self._keep_hold()
        self._context.report_changed()

    def _record(self, action: Action, rule: str, message: str) -> None:
        self._context.recorder.record(Fact(self.api.source.other, self._resource, None, action, rule, message))

    def _keep_hold(self) -> None:
        """Have the register of holds show whether the CRD is held; ids outlive the agent."""
        found = None
        if held := self._memory.held:
            hold_id, since = self._hold or ("", self._context.clock())
            hold = Hold(HoldReason.API_HELD, held, "" if self._memory.held_revision else _NO_CHOICE)
            group = self._context.hold_kind(self._resource, hold, since=since, hold_id=hold_id)
            found = (group.id, group.since)
        else:
            self._context.holds.clear(self._resource, reason=HoldReason.API_HELD)
        if found != self._hold:
            self._hold = found
            self._save()

    @property
    def _store_name(self) -> str:
        return f"api:{self.api.source}:{self._resource}"

    def _remember(self, memory: Memory) -> None:
        if memory != self._memory:
            self._memory = memory
            self._save()

    def _save(self) -> None:
        self._context.store.put_meta(
            self._store_name, {"memory": asdict(self._memory), "hold": self._hold and list(self._hold)}
        )


def _crd(raw: Json | None) -> Json | None:
    """The CRD that a server showed; Unsure where it is none."""
    try:
        return None if raw is None else shown_crd(raw)
    except ConfigError as error:
        raise Unsure(f"what is shown is no CRD: {error}") from None
