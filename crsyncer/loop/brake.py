"""Looks twice before copies are deleted because their upstream vanished (S5.5)."""

import asyncio
from collections.abc import Awaitable, Callable

from crsyncer.core import calls
from crsyncer.core.actions import Hold
from crsyncer.core.guard import Alive, DeletionWindow, are_few, is_mass, kind_alive
from crsyncer.core.model import Key
from crsyncer.core.policy import Policy
from crsyncer.errors import Refused, Unsure
from crsyncer.loop.custody import KIND_MISSING, MASS_DELETION
from crsyncer.loop.shared import Shared
from crsyncer.loop.side import SideLink
from crsyncer.ports import Reply

_SECOND_LOOK_SECONDS = 3.0


class DeletionBrake:
    """Decides whether the deletions of one kind may go on.

    `relisted()` returns after a fresh consistent list, and `present(key)` whether upstream then has the object;
    `copies()` counts the kind's copies.
    """

    def __init__(
        self,
        link: SideLink,
        *,
        policy: Policy,
        copies: Callable[[], int],
        relisted: Callable[[], Awaitable[None]],
        present: Callable[[Key], bool],
    ) -> None:
        self._link = link
        self._policy = policy
        self._copies = copies
        self._present = present
        self._window = DeletionWindow()
        self._alive = Shared(self._ask_alive)
        self._list = Shared(relisted)
        self._baseline = 0
        """Copies there were when the window's first deletion came."""
        self.kind_missing = False
        """Whether discovery said so last, and no list has succeeded since."""

    async def check(self, key: Key) -> Hold | None:
        """None: go on. Raises Unsure when upstream did not answer, Refused when it has the object after all."""
        now = asyncio.get_running_loop().time()
        first = self._window.count(key, now) == 1
        copies = self._baseline = self._copies() if first else max(self._baseline, self._copies())
        alive = await self._alive.answer()
        # What was being deleted a moment ago is unheard of once it is gone.
        self.kind_missing = alive is Alive.NO or (self.kind_missing and alive is Alive.UNHEARD_OF)
        if self.kind_missing:
            return KIND_MISSING
        many = is_mass(self._window.size, copies)
        if alive is Alive.YES and not many:
            return None
        if alive is Alive.UNKNOWN and not many and not are_few(copies):
            return None
        hold = await self._look_again(key, wait=alive is not Alive.YES)
        if alive is Alive.UNHEARD_OF and hold is None and await self._alive.answer() is not alive:
            return KIND_MISSING  # it was not served for a while, so what it serves now is no proof
        return hold

    async def _look_again(self, key: Key, *, wait: bool) -> Hold | None:
        """A mass deletion, or a deletion that discovery does not vouch for: a fresh list must show the object gone."""
        if wait:
            await asyncio.sleep(_SECOND_LOOK_SECONDS)
        try:
            await self._list.answer()
        except Refused:
            return KIND_MISSING
        except Unsure:
            return MASS_DELETION
        if self._present(key):
            raise Refused("upstream has the object after all")
        return None

    async def _ask_alive(self) -> Alive:
        reply: Reply = await self._link.request(calls.discovery(self._policy, self._policy.version))
        if reply.status >= 500 or reply.status == 429:
            raise Unsure(f"discovery answered {reply.status}")
        return kind_alive(reply.status, reply.body, self._policy)
