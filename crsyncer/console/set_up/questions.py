"""Collects the facts about both sides for `crsyncer doctor`, at the same time and within a deadline."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from crsyncer.console.compare import lister
from crsyncer.console.screens.reason_texts import TLS_HINT
from crsyncer.console.screens.reasons import kind_hint
from crsyncer.console.set_up.doctor_admission import BINDINGS, POLICIES, judge_admission
from crsyncer.console.set_up.doctor_report import (
    Check,
    Mark,
    judge_access,
    judge_annotations,
    judge_clock,
    judge_exposed,
    judge_kind,
    judge_policies,
    judge_validity,
)
from crsyncer.core.accounts.access import OWN_NEEDS, POLICY_NEEDS, Need, needs
from crsyncer.core.apis.api_plan import api_needs
from crsyncer.core.content.mutation import Expressions
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.namespaces import Namespaces
from crsyncer.core.model import Side
from crsyncer.core.pair import object_calls
from crsyncer.core.reports.findings import LoginFacts, Validity
from crsyncer.core.requests.calls import Call
from crsyncer.engine.kinds.negotiation import Disagreement, negotiate, robots_version
from crsyncer.errors import ConfigError, NotAllowed, NotTrusted, SyncError, Unsure
from crsyncer.ports import Reply, Send

_LOGIN_SECONDS = 10.0
_ANSWER_SECONDS = 4.0

Result = TypeVar("Result")


class LoadedLogin(Protocol):
    """One side whose login is loaded."""

    facts: LoginFacts

    async def resolve(self) -> None:
        """Look the server's name up; raises Unsure where it has no address."""
        ...

    async def certificate(self) -> Validity | None:
        """The server's certificate; None where it cannot be read. Raises Unsure."""
        ...

    async def request(self, call: Call) -> Reply:
        """Send one request; raises Unsure."""
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...


LoadLogin = Callable[[], Awaitable[LoadedLogin]]
"""Loads the login of a side; raises ConfigError."""


@dataclass(frozen=True, slots=True)
class SetUp:
    """The robot whose set-up is checked. `clock` is Unix time, in seconds; `expressions` is called for policies with
    steps.
    """

    robot: str
    namespaces: Namespaces
    clock: Callable[[], float]
    expressions: Callable[[], Expressions]
    trust: tuple[str, ...] = ()
    """What SyncPolicies that are copies may ask for (C1.6)."""
    configuration: "asyncio.Future[lister.Configuration | None]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """The robot's CRDs and SyncPolicies: the robot's checks read them, the cloud's wait for them; None: they could not
    be read.
    """


async def examine(logins: Mapping[Side, LoadLogin], set_up: SetUp, *, seconds: float) -> list[Check]:
    """Every check of both sides, the cloud's first; a side that is slow or offline does not delay the other.

    Changes nothing. Ends within `seconds`; checks without an answer by then are left out.
    """
    deadline = asyncio.get_running_loop().time() + seconds
    checks: dict[Side, list[Check]] = {side: [] for side in Side}
    async with asyncio.TaskGroup() as tasks:
        for side, load in logins.items():
            tasks.create_task(_SideChecks(side, set_up, checks=checks[side]).run(load, deadline))
    return [check for side in Side for check in checks[side]]


async def examine_server(load: LoadLogin, set_up: SetUp, *, seconds: float) -> list[Check]:
    """The checks of the cloud's login, certificates and clock alone, within `seconds`."""
    checks: list[Check] = []
    cloud = _SideChecks(Side.CLOUD, set_up, checks=checks)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            if (login := await cloud.login(load)) is not None:
                async with aclosing(login):
                    await cloud.server(login)
    return checks


class _SideChecks:
    """Asks one side and adds the results to `checks`."""

    def __init__(self, side: Side, set_up: SetUp, *, checks: list[Check]) -> None:
        self._side = side
        self._set_up = set_up
        self._checks = checks
        self._request: Send

    async def run(self, load: LoadLogin, deadline: float) -> None:
        """Make every check for which there is an answer until the deadline, in event loop time."""
        try:
            async with asyncio.timeout_at(deadline):
                login = await self.login(load)
                if login is not None:
                    async with aclosing(login):
                        if await self.server(login):
                            await self._kinds()
        except TimeoutError:
            self._add("time", Mark.UNKNOWN, "some checks had no answer in time", "the side is slow: try again")
        finally:
            if self._side is Side.ROBOT and not self._set_up.configuration.done():
                self._set_up.configuration.set_result(None)

    def _add(self, name: str, state: Mark, message: str, hint: str = "", *, health: str = "") -> None:
        self._checks.append(Check(name, state, message, hint, self._side, health=health))

    async def login(self, load: LoadLogin) -> LoadedLogin | None:
        """Load the login and check it; None where it cannot be used."""
        try:
            async with asyncio.timeout(_LOGIN_SECONDS):
                login = await load()
        except ConfigError as error:
            self._add("login", Mark.FAIL, str(error), error.hint)
            return None
        except TimeoutError:
            message = f"its exec plug-in or auth-provider had no result within {_LOGIN_SECONDS:g} s"
            self._add("login", Mark.FAIL, message, "run it by hand")
            return None
        facts = login.facts
        message = f"{facts.server}, by {facts.means}"
        if facts.verified:
            self._add("login", Mark.OK, message)
        else:
            self._add("login", Mark.WARN, f"{message}: anybody can impersonate the server", TLS_HINT)
        self._checks += [judge_exposed(file, self._side) for file in facts.exposed]
        self._request = login.request
        return login

    async def server(self, login: LoadedLogin) -> bool:
        """Whether the server answers; also checks the dates of all certificates, a usual cause of failure."""
        certificate: Validity | BaseException | None = None
        answer: Reply | BaseException
        before = self._set_up.clock()
        try:
            await _within(login.resolve())
            certificate, answer = await asyncio.gather(
                _within(login.certificate()), lister.first_answer(self._ask), return_exceptions=True
            )
        except Unsure as error:
            answer = error
        now = self._set_up.clock()
        validities = [*login.facts.validities, *([certificate] if isinstance(certificate, Validity) else [])]
        self._checks += [judge_validity(each, self._side, now) for each in validities]
        match answer:
            case NotAllowed() | NotTrusted():
                self._add("server", Mark.FAIL, str(answer), answer.hint)
                return False
            case SyncError():
                # A connection may be down for hours, and the agent waits for it: this is no fault of the set-up.
                health = "offline" if self._side is Side.CLOUD else "degraded"
                self._add("server", Mark.FAIL, f"does not answer: {answer}", answer.hint, health=health)
                return False
            case BaseException():
                raise answer
        version = answer.body.get("gitVersion") if answer.status == 200 else None
        message = f"Kubernetes {version}" if version else f"answers; its version is not readable ({answer.status})"
        self._add("server", Mark.OK, message)
        self._checks.append(judge_clock(_ahead(answer, (before + now) / 2), self._side))
        return True

    async def _kinds(self) -> None:
        """Check the annotations of the robot's CRDs, its SyncPolicies, and each kind on this side."""
        try:
            if self._side is Side.ROBOT:
                set_up = self._set_up
                answer = await lister.configuration(self._ask, set_up.expressions, set_up.trust)
                set_up.configuration.set_result(answer)
            configuration = await asyncio.shield(self._set_up.configuration)
        except SyncError as error:
            self._add("annotations", Mark.FAIL, f"the CRDs or SyncPolicies cannot be listed: {error}", error.hint)
            return
        if configuration is None:
            self._add(
                "kind", Mark.UNKNOWN, "the kinds are not known without the robot's CRDs", "see the robot's checks"
            )
            return
        robot, namespaces = self._set_up.robot, self._set_up.namespaces
        kinds = [kind for kind in configuration.kinds(robot, namespaces).values() if not kind.problem]
        work = [self._kind(kind) for kind in kinds]
        if self._side is Side.ROBOT:
            self._checks += [*judge_annotations(configuration, robot), *judge_policies(configuration, robot)]
            work.insert(0, self._access((*OWN_NEEDS, *(POLICY_NEEDS if configuration.has_policies else ()))))
        for resource, api in configuration.apis().items():
            if needed := api_needs(api, self._side, resource=resource, robot=robot):
                work.append(self._access(needed, resource=resource))
        if self._side is Side.CLOUD:
            work.append(self._confinement(kinds))
        for found in await asyncio.gather(*work):
            self._checks += found

    async def _confinement(self, kinds: Sequence[KindPolicy]) -> list[Check]:
        """Check the admission policies where the account may read them, as an administrator's may."""
        try:
            policies, bindings = [[raw async for raw in lister.objects(self._ask, of)] for of in (POLICIES, BINDINGS)]
        except SyncError:
            return []
        return judge_admission(policies, bindings, kinds)

    async def _kind(self, policy: KindPolicy) -> list[Check]:
        try:
            agreed = await negotiate(policy, self._ask) if self._side is Side.CLOUD else robots_version(policy)
            if isinstance(agreed, Disagreement):
                hint = kind_hint(agreed.state)
                return [Check("kind", Mark.FAIL, agreed.message, hint, self._side, policy.resource)]
            reply = await self._ask(object_calls.revision(agreed, self._side))
            while reply.status == 429:  # such as right after a CRD has changed: wait (S9.1)
                await asyncio.sleep(reply.retry_after or 1.0)
                reply = await self._ask(object_calls.revision(agreed, self._side))
        except SyncError as error:
            return [Check("kind", Mark.UNKNOWN, str(error), error.hint or "try again", self._side, policy.resource)]
        message = str(reply.body.get("message") or reply.text)[:200]
        kind = judge_kind(agreed, self._side, status=reply.status, message=message)
        if reply.status == 404:
            return [kind]
        return [kind, *await self._access(needs(agreed, self._side), resource=policy.resource)]

    async def _access(self, needed: Sequence[Need], *, resource: str = "") -> list[Check]:
        answers = await asyncio.gather(*(self._allowed(need) for need in needed))
        asks_for_all = self._side is Side.CLOUD and not self._set_up.namespaces.on(Side.CLOUD)
        robot = self._set_up.robot if asks_for_all and not needed[0].acts[0].cluster else ""
        return [judge_access(dict(zip(needed, answers, strict=True)), self._side, resource=resource, robot=robot)]

    async def _allowed(self, need: Need) -> bool | None:
        """Whether one of the acts is allowed wherever it is needed; None: not known."""
        answers: list[bool | None] = []
        for act in need.acts:
            places = self._set_up.namespaces.on(self._side) or ("",)
            everywhere = [await self._review(object_calls.access_review(act, place)) for place in places]
            if all(everywhere):
                return True
            answers.append(None if None in everywhere else False)
        return None if None in answers else False

    async def _review(self, call: Call) -> bool | None:
        try:
            reply = await self._ask(call)
        except SyncError:
            return None
        status = reply.body.get("status") or {}
        return bool(status.get("allowed")) if reply.status == 201 else None

    async def _ask(self, call: Call) -> Reply:
        return await self._request(replace(call, timeout=_ANSWER_SECONDS))


async def _within(work: Coroutine[Any, Any, Result]) -> Result:
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            return await work
    except TimeoutError:
        raise Unsure(
            f"no answer within {_ANSWER_SECONDS:g} s", hint="packets or DNS answers are lost on the way"
        ) from None


def _ahead(reply: Reply, now: float) -> float | None:
    """The seconds by which this clock is ahead of the server's, whose Date header has whole seconds."""
    return None if reply.date is None else now - (reply.date + 0.5)
