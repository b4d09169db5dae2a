"""Times, numbers and servers' answers in the operator's words."""

import re
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice

NOT_YET_VALID = "the server's certificate is not yet valid"
"""The usual TLS error where our clock is behind, as after a boot without a real-time clock."""
NOT_TRUSTED = (
    NOT_YET_VALID,
    EXPIRED := "the server's certificate has expired",
    OTHER_HOST := "the server's certificate is not for this host name",
    OTHER_ADDRESS := "the server's certificate is not for this IP address",
    OTHER_CA := "the server's certificate is not signed by a CA that the kubeconfig trusts",
    NOT_TAKEN := "the server does not accept the client certificate",
)
"""Errors of TLS that do not heal by themselves: a file or a clock has to be corrected."""

_BRIEF_CHARACTERS = 200
_SECRETS = re.compile(
    r"""(?ix) (?P<keep> \b bearer \s+ | \b basic \s+ | \b (?:access_|id_|refresh_)? token ["']? \s* [=:] \s* ["']? )
        [^\s"',;&]+ | \b eyJ [\w-]{5,} (?: \.[\w-]* )*"""
)
_VALUE = re.compile(r"\b((?:Invalid|Unsupported|Duplicate) value|Not found): .*", re.DOTALL)
"""How API servers quote the content of an object (apimachinery, field.Error)."""


@lru_cache(maxsize=1024)
def rfc3339(time: float | None) -> str | None:
    """A Unix time in UTC, to the second."""
    return None if time is None else datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def unix(time: str) -> float:
    """The Unix time, in seconds, of what `rfc3339` wrote."""
    return datetime.fromisoformat(time).timestamp()


def duration(seconds: float) -> str:
    """A span of time for people: the two largest units."""
    whole = max(0, int(seconds))
    for size, unit, small, small_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {unit}" + (f" {rest} {small_unit}" if rest else "")
    return f"{whole} s"


def count(number: int, thing: str) -> str:
    """A number of things: `1 status`, `2 statuses`, `2 copies`."""
    if number != 1:
        thing = f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}{'es' if thing.endswith('s') else 's'}"
    return f"{number} {thing}"


def some(texts: Collection[str], most: int = 5, *, separator: str = ", ", longest: int = 300) -> str:
    """The first of several texts, each cut to a length, and how many more there are: `a, b, c and 4 more`."""
    shown = [text if len(text) <= longest else f"{text[: longest - 3]}..." for text in islice(texts, most)]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return f"{separator.join(shown)}{more}"


def pointer_segment(name: str) -> str:
    """A field's name as it is written in a JSON Pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def plain(text: str) -> str:
    """A text for a terminal: servers' words among it bring no escape sequences, and no extra lines."""
    return "".join(character if character.isprintable() else " " for character in text)


def redact(text: str) -> str:
    """A text without anything that looks like a token. A safeguard: no code logs one on purpose."""
    return _SECRETS.sub(lambda match: f"{match['keep'] or ''}[redacted]", text)


def brief(text: str) -> str:
    """A server's answer in one short line, without the content of objects that it quotes and without tokens."""
    short = _VALUE.sub(r"\1", plain(redact(text)))
    return short if len(short) <= _BRIEF_CHARACTERS else f"{short[: _BRIEF_CHARACTERS - 3]}..."


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence that suggests the nearest known word; empty where none is near."""
    close = get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""
