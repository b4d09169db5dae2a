"""TLS as strict as kubectl's, and its sessions: a link that flaps pays for certificates only once."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from crsyncer.errors import ConfigError

_MOST_OFFERS = 8


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """Text that never shows: not in a repr, a log line or an error."""

    text: str

    def __repr__(self) -> str:
        return "Secret(…)"


@dataclass(frozen=True, slots=True)
class Identity:
    """The trust anchors and the client certificate. Certificates and key are PEM."""

    ca: str
    """Empty: the machine's roots."""
    verify: bool
    certificate: str
    """Empty, and the key too: none."""
    key: Secret


def tls_context(identity: Identity) -> ssl.SSLContext:
    """TLS >= 1.2 that trusts exactly the CA, or the machine's roots without one; raises ConfigError."""
    context = ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if identity.ca:
            context.load_verify_locations(cadata=identity.ca)
        else:
            context.load_default_certs()
    except (ssl.SSLError, ValueError):
        raise ConfigError("certificate-authority is no PEM certificate", hint="check the kubeconfig's CA") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # As Go does, and so kubectl: any certificate of the bundle is an anchor, and the key identifiers that
    # Python 3.13 began to insist on (many clusters' CAs have none) are not required.
    context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
    if not identity.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if identity.certificate:
        with _secret_file(f"{identity.certificate}\n{identity.key.text}\n") as path:
            try:
                # Without the callback an encrypted key would ask on the terminal.
                context.load_cert_chain(path, password=lambda: "")
            except (ssl.SSLError, OSError, ValueError):
                message = "client certificate and client key are no PEM pair that belongs together"
                raise ConfigError(message, hint="an encrypted key cannot be used") from None
    return context


@contextmanager
def _secret_file(text: str) -> Iterator[str]:
    """A path to `text` in memory, for a library that reads nothing but files."""
    with open(os.memfd_create("crsyncer", os.MFD_CLOEXEC), "w") as file:
        file.write(text)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


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
    and a signature less of the server. A server that resumes a session has the keys of the one that was verified when
    it began; for any other server there is a full handshake. Sessions end with the context, so with the credentials.

    A subclass, because asyncio has no sessions, but asks the context itself for each connection.
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
        # A ticket comes after the handshake, with the first answer: it is looked for when the next connection begins.
        found = past.newest.session if past.newest is not None and past.newest.version() is not None else None
        if found is not None and found.has_ticket:
            past.session, past.offers = found, 0
        elif past.offers >= _MOST_OFFERS:
            past.session = None  # something on the way may choke on it, instead of asking for a full handshake
        past.offers += 1
        past.newest = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session or past.session)
        return past.newest
