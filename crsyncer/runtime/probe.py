"""Finds out in few requests whether a server is there, and its present resourceVersion (S8.2, S9.5)."""

from collections.abc import Sequence

from crsyncer.core.requests.answers import is_inconclusive, judge
from crsyncer.core.requests.calls import Call
from crsyncer.errors import NotAllowed, SyncError, Unsure
from crsyncer.ports import Reply, Send

_KINDS = 3
"""Maximum number of kinds that one probe lists; the next probe lists others."""


class Probe:
    """Chooses the requests of a probe. `send` sends one of them.

    One kind can fail alone: its storage is made anew after an edit of its CRD (429), its conversion webhook is down
    (500), its CRD is gone (404), its list hangs. So where the list of a kind fails, the general request shows whether
    the server answers at all, and the list of another kind shows its resourceVersion.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._turn = 0
        """Which kind is listed first: the one that answered last time."""
        self._kinds_fail = False
        """Whether kinds failed lately: then the general request comes first, and alone while it fails too."""

    async def send(self, calls: Sequence[Call]) -> tuple[Reply, bool]:
        """The best answer, and whether it shows all that the server can show at present.

        The last of the calls is the general one, which every server answers; each of the others lists a kind.
        Raises NotAllowed when the credential is not accepted, Throttled when the server asks for a pause, Unsure when
        it does not answer, or only with errors.
        """
        *kinds, general = calls
        first = self._turn % len(kinds) if kinds else 0
        turns = (kinds[first:] + kinds[:first])[:_KINDS]
        order = [general, *turns] if self._kinds_fail or not turns else [turns[0], general, *turns[1:]]
        answer: Reply | None = None
        failed: Reply | None = None
        for call in order:
            of_a_kind = call is not general
            self._turn += of_a_kind  # the next probe begins with another kind, also if this one gets no answer
            reply = await self._send(call)
            if reply.status == 401:
                raise no_answer(reply)
            if reply.status == 200 and (of_a_kind or not kinds or _has_revision(reply)):
                self._turn -= of_a_kind
                self._kinds_fail = False
                return reply, True
            self._kinds_fail = True
            if is_inconclusive(reply.status):
                if not of_a_kind:
                    raise no_answer(reply)
                failed = failed or reply
            elif of_a_kind or not kinds or reply.status == 200:
                answer = answer or reply
        if answer is None:
            raise no_answer(failed or reply)
        return answer, failed is None


def no_answer(reply: Reply) -> SyncError:
    """The error for an answer that shows nothing. A server that answers 503 is down, also with a Retry-After."""
    if reply.status == 401:
        return NotAllowed("the credential is refused (401)", status=401, hint="renew the token or certificate")
    error = judge(reply.status, reply.body, text=reply.text)
    return error if isinstance(error, Unsure) else Unsure(str(error))


def _has_revision(reply: Reply) -> bool:
    return bool((reply.body.get("metadata") or {}).get("resourceVersion"))
