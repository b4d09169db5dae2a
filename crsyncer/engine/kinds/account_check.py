"""Asks the cloud whether an account may do more than a robot should, and keeps the agent from using one that may."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from crsyncer.core.accounts.forbidden_acts import EVERYTHING, ForbiddenAct, forbidden_acts
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.pair.object_calls import access_review
from crsyncer.errors import NotAllowed, Unsure
from crsyncer.ports import Send
from crsyncer.runtime.connection import Connection
from crsyncer.runtime.event_loop import all_of

_AGAIN_SECONDS = 86_400.0
"""A check counts for so long: somebody may grant the account more meanwhile."""
_LOOK_SECONDS = 10.0
"""How soon a new kind is noticed."""
_AT_ONCE = 8
"""Maximum number of reviews at a time: a slow link is not for them alone."""


@dataclass(frozen=True, slots=True)
class Excess:
    """The forbidden acts that an account may do, and those that the server answers no review of."""

    found: tuple[ForbiddenAct, ...] = ()
    unknown: tuple[ForbiddenAct, ...] = ()
    asked: int = 0


async def find_excess(send: Send, acts: Iterable[ForbiddenAct]) -> Excess:
    """Review each act, in their order; of an administrator nothing but that. Raises Unsure without an answer."""
    if await _allowed(send, EVERYTHING):
        return Excess((EVERYTHING,), asked=1)
    asked, gate = tuple(acts), asyncio.Semaphore(_AT_ONCE)

    async def review(forbidden: ForbiddenAct) -> bool | None:
        async with gate:
            return await _allowed(send, forbidden)

    answered = list(zip(asked, await all_of(map(review, asked)), strict=True))
    return Excess(
        tuple(forbidden for forbidden, answer in answered if answer),
        tuple(forbidden for forbidden, answer in answered if answer is None),
        len(asked) + 1,
    )


async def _allowed(send: Send, forbidden: ForbiddenAct) -> bool | None:
    """Whether the account may do it; None where the server answers no reviews. Raises Unsure, and NotAllowed (401)."""
    trial = forbidden.trial
    reply = await send(access_review(forbidden.act, forbidden.namespace) if trial is None else trial.call)
    if reply.status == 201:
        return trial is not None or bool((reply.body.get("status") or {}).get("allowed"))
    error = reply.error()
    if error is not None and (isinstance(error, Unsure) or reply.status == 401):
        raise error
    return None if trial is None else False


class AccountCheck:
    """Keeps the agent from using an account of the cloud that may do more than a robot should.

    The proof is due when a connection is made, for kinds that are new, after `expire`, and again after a day.
    """

    def __init__(self, policies: Callable[[], Iterable[KindPolicy]], *, robot: str, namespaces: Sequence[str]) -> None:
        self._policies = policies
        self._robot = robot
        self._namespaces = tuple(namespaces)
        self._exceeded: tuple[ForbiddenAct, ...] = ()
        """The forbidden acts that the last check found: they are reviewed first, and mostly nothing else then."""
        self._proven: frozenset[KindPolicy] = frozenset()
        self._proven_until = 0.0

    def expire(self) -> None:
        """The credential may be another one now."""
        self._proven_until = 0.0

    def is_due(self) -> bool:
        """Whether the account is not proven to be confined, for the kinds of the moment."""
        now = asyncio.get_running_loop().time()
        return now >= self._proven_until or not self._proven.issuperset(self._policies())

    async def check(self, send: Send) -> None:
        """Raise NotAllowed where the account may do too much, or the server answers no reviews. Raises Unsure."""
        if not self.is_due():
            return
        policies = frozenset(self._policies())
        acts = forbidden_acts(policies, robot=self._robot, namespaces=self._namespaces)
        # Trials are for check-access. An agent that made them could be updated neither before the policies nor after.
        reviewed = tuple(forbidden for forbidden in acts if forbidden.trial is None)
        for asked in filter(None, (self._exceeded, reviewed)):
            excess = await find_excess(send, asked)
            self._exceeded = excess.found
            if excess.found or excess.unknown:
                raise not_confined(excess)
        self._proven, self._proven_until = policies, asyncio.get_running_loop().time() + _AGAIN_SECONDS

    async def keep(self, connection: Connection) -> None:
        """Have the connection probed, and so checked, whenever a proof is due; never returns."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if connection.up.is_set() and self.is_due():
                connection.probe_soon("the rights of the account have to be proven")


def not_confined(excess: Excess) -> NotAllowed:
    """Why the account is not used."""
    if not excess.found:
        message = "what the account may do cannot be proven: the server answers no access reviews"
        return NotAllowed(message, status=403, hint="confine it in another way, and leave --require-confinement out")
    more = f", and {len(excess.found) - 1} more" if len(excess.found) > 1 else ""
    message = f"the account is not confined (see crsyncer check-access): it {excess.found[0]}{more}"
    return NotAllowed(message, status=403, hint=excess.found[0].remedy)
