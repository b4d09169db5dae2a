"""Empties HAProxy before it is stopped: robots go elsewhere one after the other, and not all at once.

HAProxy itself cuts every watch at one moment: `close-spread-time` spreads idle connections only, and after
`hard-stop-after` all 200 of 200 watches ended within the same second (measured with 2.6.12).
"""

import asyncio
import logging
import math
from collections.abc import Sequence

from crsyncer.door.domain.haproxy_answers import Stream, Worker
from crsyncer.door.domain.upkeep_plan import turn
from crsyncer.door.master_socket import MasterSocket
from crsyncer.errors import Unsure

log = logging.getLogger(__name__)

_ROUND_SECONDS = 0.5


async def drain(haproxy: MasterSocket, *, grace: float, seconds: float) -> int:
    """Close the door and end its streams, spread over so many seconds; how many there were.

    New robots are let in for `grace` seconds more, until whoever leads them here has noticed. Raises Unsure where
    HAProxy does not answer.
    """
    loop = asyncio.get_running_loop()
    await haproxy.workers()
    await asyncio.sleep(grace)
    for worker in await haproxy.workers():
        if not worker.is_old:
            await haproxy.close_frontend(worker.pid)
    ended, began = 0, loop.time()
    known: dict[int, Sequence[Stream]] = {}
    while True:
        at = loop.time()
        rounds = max(1, math.ceil((began + seconds - at) / _ROUND_SECONDS))
        left = 0
        for worker in await haproxy.workers():
            now, known[worker.pid] = await _end_some(haproxy, worker, known.get(worker.pid, ()), rounds)
            ended, left = ended + now, left + len(known[worker.pid])
        if not left or rounds == 1:
            break
        await asyncio.sleep(max(0.0, at + _ROUND_SECONDS - loop.time()))
    log.info("ended %d streams within %.0f s", ended, loop.time() - began)
    return ended


async def _end_some(
    haproxy: MasterSocket, worker: Worker, known: Sequence[Stream], rounds: int
) -> tuple[int, Sequence[Stream]]:
    """End a worker's share of this round: how many ended, and which wait."""
    try:
        now, later = turn(known, await haproxy.streams(worker.pid), rounds)
        return (await haproxy.end_streams(worker.pid, now) if now else 0), later
    except Unsure:
        if not worker.is_old:
            raise
        return 0, ()  # an old one ends when its last stream has
