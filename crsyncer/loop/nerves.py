"""All nerves of one agent, joined: given the hands, who hears, decides, writes and answers orders."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from crsyncer.core.calls import Call
from crsyncer.core.guard import Holds
from crsyncer.core.model import Side
from crsyncer.core.twins import Twins
from crsyncer.loop.catalog import Catalog
from crsyncer.loop.custody import ISSUED
from crsyncer.loop.dispatch import Dispatcher, Job
from crsyncer.loop.fence import Fence
from crsyncer.loop.orders import Orders
from crsyncer.loop.side import SideLink
from crsyncer.loop.worker import Surroundings
from crsyncer.ports import Cluster, Observer, Store


class Nerves:
    """The same wherever the hands lead: to two API servers and a disk, or to a world that was made up.

    `clock` is Unix time in seconds, `watch_timeout` and `audit_interval` are in seconds; `noticed` is called when there
    is news for `status`; `boot` names this boot of the robot, "" where it is not known; `name` is the agent's, as API
    servers note it.
    """

    def __init__(
        self,
        clusters: Mapping[Side, Cluster],
        *,
        store: Store,
        observer: Observer,
        robot: str,
        namespaces: Sequence[str],
        watch_timeout: int,
        audit_interval: float,
        clock: Callable[[], float],
        noticed: Callable[[], None],
        boot: str = "",
        name: str = "crsyncer",
    ) -> None:
        self.holds = Holds(store.get_meta(ISSUED) or 0)
        self.twins = Twins(name)
        self.links = {
            side: SideLink(
                side,
                cluster=clusters[side],
                store=store,
                observer=observer,
                probe=partial(self._probe, side),
                crds=self._crds,
                clock=clock,
                boot=boot if side is Side.ROBOT else "",
            )
            for side in Side
        }
        fences = {side: Fence(link, store=store) for side, link in self.links.items()}
        self.dispatchers = {side: Dispatcher(link, self._work) for side, link in self.links.items()}
        around = Surroundings(
            links=self.links,
            fences=fences,
            dispatchers=self.dispatchers,
            store=store,
            observer=observer,
            holds=self.holds,
            twins=self.twins,
            clock=clock,
            watch_timeout=watch_timeout,
            audit_interval=audit_interval,
            noticed=noticed,
        )
        self.catalog = Catalog(around, robot=robot, namespaces=namespaces)
        self.orders = Orders(self.catalog, around)

    async def run(self) -> None:
        """Keep both sides in agreement, forever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.catalog.run())
            for side in Side:
                tasks.create_task(self.links[side].run())
                tasks.create_task(self.dispatchers[side].run())

    def _probe(self, side: Side) -> Sequence[Call]:
        return self.catalog.probe(side)

    def _crds(self) -> Collection[str]:
        return self.catalog.rows

    async def _work(self, job: Job) -> None:
        await self.catalog.work(job)
