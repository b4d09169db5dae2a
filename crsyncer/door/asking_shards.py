"""Asks each shard whether it is alive, on a connection that stays open: a new one is late where a server lacks CPU."""

import asyncio
from collections.abc import Mapping

import aiohttp

from crsyncer.adapters.kube import KubeCluster
from crsyncer.door.domain.lost_shards import Silence

_PAUSE_SECONDS = 2.0
_PATIENCE_SECONDS = 10.0
"""For an answer, with the connection where there is none. It counts twice: after half of it nothing is begun anew."""
_KEPT_SECONDS = 60.0
_MOST_BYTES = 65536


async def ask_shards(clusters: Mapping[str, KubeCluster], silence: Silence) -> None:
    """Ask all of them, for ever, without a credential: a 401 or a 500 is an answer, too."""
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_SECONDS, resolver=aiohttp.ThreadedResolver())
    async with (
        aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session,
        asyncio.TaskGroup() as tasks,
    ):
        for name, cluster in clusters.items():
            tasks.create_task(_ask(session, name, cluster, silence))


async def _ask(session: aiohttp.ClientSession, name: str, cluster: KubeCluster, silence: Silence) -> None:
    while True:
        try:
            await _ask_once(session, cluster)
            silence.answered(name)
        except TimeoutError:
            silence.missed(name, times=2)
        except (aiohttp.ClientError, OSError, UnicodeError):
            silence.missed(name)
        await asyncio.sleep(_PAUSE_SECONDS)


async def _ask_once(session: aiohttp.ClientSession, cluster: KubeCluster) -> None:
    """Return when an answer has come. Raises TimeoutError, OSError, and aiohttp's errors."""
    login = cluster.credentials.login  # files may have changed
    async with (
        asyncio.timeout(_PATIENCE_SECONDS),
        session.get(
            f"{cluster.server}/readyz",
            ssl=login.tls,
            server_hostname=login.server_name,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as reply,
    ):
        size = 0
        while size < _MOST_BYTES and (more := await reply.content.readany()):  # to its end, or the connection is closed
            size += len(more)
