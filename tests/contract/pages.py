"""The part of the script in which the history is compacted between two pages of a list."""

import asyncio
from collections.abc import Awaitable, Callable

from crsyncer.core.requests.calls import CRDS
from crsyncer.ports import Reply
from tests.contract.script import PATIENCE, Script
from tests.system.bed import crd


async def pages(script: Script, compact: Callable[[], Awaitable[object]]) -> None:
    """What a list answers whose continue token has expired, and what the token does that it offers instead."""
    path = f"/apis/{script.group}/v1/namespaces/default/parts"
    assert (await script.ask("create", "POST", CRDS, crd(script.group, plural="parts", source=None))).status == 201
    await script.until(path, 200)
    for name in ("probe", "a", "b", "c", "d"):
        body = {**script.typed("parts"), "metadata": {"name": name}}
        await (script.created(path, body) if name == "probe" else script.ask("create", "POST", path, body))
    first = await script.say("the first page", "GET", path, query=(("limit", "2"),))
    token = first.body["metadata"]["continue"]
    await script.ask("delete", "DELETE", f"{path}/d")
    await script.ask("create", "POST", path, {**script.typed("parts"), "metadata": {"name": "e"}})
    await compact()
    await script.until(path, 200)  # a server that has just started answers 404 or 429 for a moment
    expired = await _expired(script, path, token)
    script.transcript.note("the second page, of a history that is forgotten", expired)
    offered = expired.body["metadata"]["continue"]
    script.transcript.fact("another token is offered", offered not in ("", token))
    rest = await script.say("what is there now from the second page on", "GET", path, query=(("continue", offered),))
    versions = [int(reply.body["metadata"]["resourceVersion"]) for reply in (first, rest)]
    script.transcript.fact("it is of a newer revision", versions[1] > versions[0])
    script.transcript.note("the first token is as expired as before", await _expired(script, path, token))


async def _expired(script: Script, path: str, token: str) -> Reply:
    """The answer to a continue token, as soon as the server has noticed that its history is forgotten."""
    query = (("limit", "2"), ("continue", token))
    async with asyncio.timeout(PATIENCE):
        while (reply := await script.ask("list", "GET", path, query=query)).status != 410:  # noqa: ASYNC110 - only the server knows
            await asyncio.sleep(0.5)
    return reply
