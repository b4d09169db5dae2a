"""Lists the objects of a collection once, for whoever does not watch them."""

from collections.abc import AsyncIterator

from crsyncer.core.model import Json
from crsyncer.core.requests import calls
from crsyncer.core.requests.calls import Collection
from crsyncer.core.watching.pages import FIRST, PageLimit
from crsyncer.core.watching.watch import listed_at
from crsyncer.errors import TooLarge, Unsure
from crsyncer.ports import Reply, Send


async def objects(
    send: Send, collection: Collection, *, page: int = FIRST, accept: str = calls.JSON
) -> AsyncIterator[Json]:
    """Every object of a collection, page by page; raises the SyncError that the answer means."""
    resume, limit = "", PageLimit(page)
    while True:
        try:
            reply = await send(calls.list_page(collection, limit=limit.limit, resume=resume, accept=accept))
        except TooLarge:
            if not limit.halve():
                raise
            continue
        if reply.status == 410:
            raise Unsure(
                "the list expired between two pages", hint="the connection is slow, or the cluster busy: try again"
            )
        items = listed(reply)
        limit.arrived(len(items), reply.size, 0.0)
        for raw in items:
            yield raw
        resume = reply.body["metadata"].get("continue") or ""
        if not resume:
            return


def listed(reply: Reply) -> list[Json]:
    """The objects that an answer lists. Raises the SyncError that it means: only a list shows what is not there."""
    if not listed_at(reply.happened().body):
        raise Unsure("the answer to a list request is not a list", hint="check which server is at this address")
    return reply.body["items"] or []
