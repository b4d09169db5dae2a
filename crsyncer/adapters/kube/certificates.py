"""When certificates and tokens begin and end: a reader of just that much, since the standard library has none."""

import base64
import json
import re
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime

from crsyncer.core.model import Json

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_VERSION, _UTC_TIME = 0xA0, 0x17

Span = tuple[float | None, float | None]
"""The beginning and the end, in Unix time; None: unknown."""


def spans(pem: str) -> list[Span]:
    """Of every certificate in a text."""
    return [span(ssl.PEM_cert_to_DER_cert(found)) for found in _PEM.findall(pem)]


def span(der: bytes) -> Span:
    """Of one certificate (RFC 5280, 4.1: the validity is the fourth field of what is signed, after an optional one)."""
    try:
        _, certificate, _ = next(_parts(der))
        _, signed, _ = next(_parts(certificate))
        fields = [part for part in _parts(signed) if part[0] != _VERSION]
        starts, ends = (_time(tag, content) for tag, content, _ in _parts(fields[3][1]))
    except (ValueError, IndexError, StopIteration):
        return None, None
    return starts, ends


def token_span(token: str) -> Span | None:
    """Of a JSON web token, by its own words: its signature is the server's matter. None: it is no such token."""
    claims = _claims(token)
    if claims is None:
        return None
    starts, ends = (value if isinstance(value, int | float) else None for value in map(claims.get, ("nbf", "exp")))
    return starts, ends


def token_subject(token: str) -> str:
    """Whose a JSON web token is, by its own words; empty where it does not say."""
    return str((_claims(token) or {}).get("sub") or "")


def _claims(token: str) -> Json | None:
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None


def _parts(der: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Tag, content and end of each element in a sequence (X.690, definite lengths)."""
    at = 0
    while at < len(der):
        tag, length, at = der[at], der[at + 1], at + 2
        if length & 0x80:
            digits = length & 0x7F
            length, at = int.from_bytes(der[at : at + digits]), at + digits
        yield tag, der[at : at + length], at + length
        at += length


def _time(tag: int, content: bytes) -> float:
    """A UTCTime, whose two digits of the year are of 1950 to 2049, or a GeneralizedTime (RFC 5280, 4.1.2.5)."""
    text = content.decode("ascii")
    if tag == _UTC_TIME:
        text = ("19" if text >= "50" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
