"""Writes to a copy while upstream moves on, with a real store and a real connection."""

import asyncio
import time
from pathlib import Path

import pytest

from crsyncer.core.actions import Update, Why
from crsyncer.core.calls import VERSION
from crsyncer.core.model import Key, Side
from crsyncer.edges.metrics import Metrics
from crsyncer.edges.store.store import SqliteStore
from crsyncer.errors import Refused
from crsyncer.loop.execute import Executor
from crsyncer.loop.mirror import Mirror
from crsyncer.loop.side import SideLink
from tests.core.builders import copy_of, goal, policy
from tests.edges.kube_server import Reach, always, answer


async def test_S3_2_a_body_is_never_written_under_the_digest_of_another_one(reach: Reach, tmp_path: Path) -> None:
    kind, key = policy(), Key("default", "a")
    store = await SqliteStore.open(tmp_path)
    mirror = Mirror(kind, store=store, loaded=await store.load(kind.resource), clock=time.time)
    mirror.saw(Side.CLOUD, key, goal(version="1", spec={"x": 1}))
    mirror.saw(Side.ROBOT, key, copy_of(goal(version="1", spec={"x": 1}), kind))
    copy = mirror.views[Side.ROBOT][key]
    await store.close()
    store = await SqliteStore.open(tmp_path)  # after a start bodies come from the disk, which takes a moment
    mirror = Mirror(kind, store=store, loaded=await store.load(kind.resource), clock=time.time)
    async with reach(always(answer())) as (cluster, server):
        link = SideLink(
            Side.ROBOT,
            cluster=cluster,
            store=store,
            observer=Metrics(),
            probe=lambda: [VERSION],
            crds=tuple,
            clock=time.time,
        )
        executor = Executor(link, policy=kind, mirror=mirror, store=store)
        writing = asyncio.ensure_future(executor.perform(key, Update(copy.uid, copy.resource_version, Why.CHANGED)))
        await asyncio.sleep(0)  # it has begun to read upstream's body
        mirror.saw(Side.CLOUD, key, goal(version="2", spec={"x": 2}))
        with pytest.raises(Refused, match="changed since"):
            await writing
        assert server.requests == []
    await store.close()
