"""Asks each `crsyncer door run` which robots are at the two shards of a split."""

import asyncio
from collections.abc import Sequence

from crsyncer.core.model import Json
from crsyncer.door.domain.split_plan import AskedDoor
from crsyncer.door.look import ask_run
from crsyncer.errors import Unsure

_TRIES = 3
_AGAIN_SECONDS = 0.5
"""A door may miss an answer while HAProxy ends an old process."""


async def ask_doors(listens: Sequence[tuple[str, int]], shards: Sequence[str]) -> tuple[AskedDoor, ...]:
    """What each door says; one that does not answer says why."""
    return tuple(await asyncio.gather(*(_ask_door(listen, shards) for listen in listens)))


async def _ask_door(listen: tuple[str, int], shards: Sequence[str]) -> AskedDoor:
    address, error = f"{listen[0]}:{listen[1]}", ""
    for attempt in range(_TRIES):
        await asyncio.sleep(_AGAIN_SECONDS if attempt else 0.0)
        try:
            found = {shard: await ask_run(listen, f"/streams?shard={shard}") for shard in shards}
            return AskedDoor(
                address,
                streams={shard: _names(content, "robots") for shard, content in found.items()},
                routed={shard: _names(content, "routed") for shard, content in found.items()},
                down=frozenset(shard for shard, content in found.items() if content["up"] is False),
            )
        except Unsure as caught:
            error = str(caught)
        except (KeyError, TypeError):
            error = f"no crsyncer door run of this version answers at {address}"
    return AskedDoor(address, error)


def _names(content: Json, name: str) -> frozenset[str]:
    return frozenset(map(str, content[name]))
