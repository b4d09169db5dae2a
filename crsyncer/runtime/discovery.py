"""Asks a server's discovery for a kind that has no CRD (C1.4), for commands, too: it needs no event loop of its own."""

from http import HTTPStatus

from crsyncer.core.kinds import built_in_kind
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.model import Json
from crsyncer.core.requests import calls
from crsyncer.core.requests.answers import is_discovery, is_inconclusive
from crsyncer.errors import Unsure
from crsyncer.ports import Reply, Send


async def discover(resource: Resource, send: Send) -> Json | None:
    """A kind as its CRD would describe it, by a server's discovery; None: the server does not serve it.

    Raises Unsure when the server did not answer.
    """
    served = built_in_kind.CORE
    if resource.group:
        reply = await ask(calls.group_versions(resource.group), send)
        served = reply.body if reply.status == 200 else {}
    names = built_in_kind.version_names(served)
    shown = {name: (await ask(calls.discovery(resource.group, name), send)).body for name in names}
    return built_in_kind.read_resource(resource, served, shown)


async def ask(call: calls.Call, send: Send) -> Reply:
    """The answer of discovery to a request. Raises Unsure when there was none that says anything."""
    reply = await send(call)
    if is_inconclusive(reply.status) or (reply.status == HTTPStatus.OK and not is_discovery(reply.body)):
        raise Unsure(f"discovery answered {reply.status}")
    return reply
