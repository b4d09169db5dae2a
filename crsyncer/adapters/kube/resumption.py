"""Goes on from the TLS session of an earlier connection: a link that flaps pays for certificates only once."""

import ssl
from dataclasses import dataclass

_MOST_OFFERS = 8


@dataclass(slots=True)
class _Past:
    """What is known of the connections to one host name."""

    newest: ssl.SSLObject | None = None
    session: ssl.SSLSession | None = None
    offers: int = 0
    """How often the session was offered since it was last known to be good."""


class ResumingContext(ssl.SSLContext):
    """A client's TLS context that offers the newest session of a host name to the next connection there.

    A handshake then takes 2.2 KB less of the link (measured with a plane's certificate; more where a chain is sent),
    and a signature less of the server. Whoever takes a session up has the keys of the server that was verified when
    it began; one that does not know it is verified anew. Sessions end with the context, so with the credentials.

    A subclass, because asyncio knows no sessions, but asks the context itself for each connection.
    """

    def __init__(self, _protocol: int) -> None:  # which __new__ has taken care of
        super().__init__()
        self._pasts: dict[str, _Past] = {}

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """A TLS connection to be."""
        past = self._pasts.setdefault(str(server_hostname), _Past())
        # A ticket comes after the handshake, with the first answer: it is looked for when somebody has use for it.
        found = past.newest.session if past.newest is not None and past.newest.version() is not None else None
        if found is not None and found.has_ticket:
            past.session, past.offers = found, 0
        elif past.offers >= _MOST_OFFERS:
            past.session = None  # something on the way may choke on it, instead of asking for a full handshake
        past.offers += 1
        past.newest = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session or past.session)
        return past.newest
