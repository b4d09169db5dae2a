"""Writes to a copy while upstream moves on, with a real store and a real connection."""

import asyncio
import time
from pathlib import Path

import pytest

from crsyncer.adapters.metrics import Metrics
from crsyncer.adapters.store.store import SqliteStore
from crsyncer.core.model import Key, Side
from crsyncer.core.pair.actions import Update, Why
from crsyncer.core.requests.calls import VERSION
from crsyncer.engine.caching.cache import Cache
from crsyncer.engine.pairs.writer import Writer
from crsyncer.errors import Conflict
from crsyncer.runtime.connection import Connection
from tests.adapters.kube_server import Reach, always, answer
from tests.core.builders import copy_of, goal, policy


async def test_S3_2_a_body_is_never_written_under_the_digest_of_another_one(reach: Reach, tmp_path: Path) -> None:
    kind, key = policy(), Key("default", "a")
    store = await SqliteStore.open(tmp_path)
    cache = Cache(kind, store=store, loaded=await store.load(kind.resource), clock=time.time)
    cache.saw(Side.CLOUD, key, goal(version="1", spec={"x": 1}))
    cache.saw(Side.ROBOT, key, copy_of(goal(version="1", spec={"x": 1}), kind))
    copy = cache.views[Side.ROBOT][key]
    await store.close()
    store = await SqliteStore.open(tmp_path)  # after a start bodies come from the disk, which takes a moment
    cache = Cache(kind, store=store, loaded=await store.load(kind.resource), clock=time.time)
    async with reach(always(answer())) as (cluster, server):
        connection = Connection(
            Side.ROBOT,
            cluster=cluster,
            store=store,
            observer=Metrics(),
            probe_calls=lambda: [VERSION],
            crds=dict,
            clock=time.time,
        )
        writer = Writer(connection, policy=kind, cache=cache, store=store, still_planned=lambda *_: None)
        writing = asyncio.ensure_future(writer.write(key, Update(copy.uid, copy.resource_version, Why.CHANGED)))
        await asyncio.sleep(0)  # it has begun to read upstream's body
        cache.saw(Side.CLOUD, key, goal(version="2", spec={"x": 2}))
        with pytest.raises(Conflict, match="changed since"):
            await writing
        assert server.requests == []
    await store.close()
