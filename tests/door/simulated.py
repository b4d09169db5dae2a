"""What `crsyncer door split` asks simulated API servers: also which groups there are."""

from crsyncer.core.requests.calls import Call
from crsyncer.ports import Reply
from tests.model.simulation.api_server import ApiServer


def answered(server: ApiServer, call: Call) -> Reply:
    """The answer of a server, which knows no list of groups itself."""
    if call.path != "/apis":
        return server.answer(call)
    groups = sorted({kind.group for kind in server.kinds() if kind.group})
    found = [{"name": name, **server.answer(Call("x", "GET", f"/apis/{name}")).body} for name in groups]
    return Reply(200, {"groups": found})
