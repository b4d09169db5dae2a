"""Finds out in few requests whether a server is there and which resourceVersion it is at (S8.2, S9.5)."""

from collections.abc import Awaitable, Callable, Sequence

from crsyncer.core.answers import judge, says_nothing
from crsyncer.core.calls import Call
from crsyncer.errors import NotAllowed, SyncError, Unsure
from crsyncer.ports import Reply

_KINDS = 3
"""How many kinds one probe asks at most; the next probe asks others."""


class Probe:
    """Chooses what a probe asks. `ask` sends one question; it raises Unsure when there was no answer.

    One kind can fail alone: its storage is made anew after an edit of its CRD (429), its conversion webhook is down
    (500), its CRD is gone (404), its list hangs. So where a kind does not tell, the general question says whether
    anybody is there, and another kind where that is.
    """

    def __init__(self, ask: Callable[[Call], Awaitable[Reply]]) -> None:
        self._ask = ask
        self._turn = 0
        """Which kind is asked first: the one that answered last time."""
        self._kinds_fail = False
        """Whether kinds failed lately: then the general request comes first, and alone while it fails too."""

    async def put(self, questions: Sequence[Call]) -> tuple[Reply, bool]:
        """What the side answers, and whether it is all that it can tell at present.

        The last of the questions is the general one, which everybody is answered; the others are of a kind each.
        Raises NotAllowed when the credential is refused, Throttled when the side asks for patience, Unsure when it does
        not answer, or not well.
        """
        *kinds, general = questions
        first = self._turn % len(kinds) if kinds else 0
        turns = (kinds[first:] + kinds[:first])[:_KINDS]
        order = [general, *turns] if self._kinds_fail or not turns else [turns[0], general, *turns[1:]]
        met: Reply | None = None
        failed: Reply | None = None
        for call in order:
            of_a_kind = call is not general
            self._turn += of_a_kind  # also after silence the next one is asked
            reply = await self._ask(call)
            if reply.status == 401:
                raise refusal(reply)
            if reply.status == 200 and (of_a_kind or not kinds or _tells(reply)):
                self._turn -= of_a_kind
                self._kinds_fail = False
                return reply, True
            self._kinds_fail = True
            if says_nothing(reply.status):
                if not of_a_kind:
                    raise refusal(reply)
                failed = failed or reply
            elif of_a_kind or not kinds or reply.status == 200:
                met = met or reply
        if met is None:
            raise refusal(failed or reply)
        return met, failed is None


def refusal(reply: Reply) -> SyncError:
    """An answer that says nothing, as an error. A server that answers 503 is down, whatever patience it asks for."""
    if reply.status == 401:
        return NotAllowed("the credential is refused (401)", status=401, hint="renew the token or certificate")
    error = judge(reply.status, reply.body, text=reply.text)
    return error if isinstance(error, Unsure) else Unsure(str(error))


def _tells(reply: Reply) -> bool:
    return bool((reply.body.get("metadata") or {}).get("resourceVersion"))
