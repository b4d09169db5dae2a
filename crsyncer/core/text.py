"""Times and numbers in the operator's words."""

from datetime import UTC, datetime

NOT_YET_VALID = "the server's certificate is not yet valid"
"""What is nearly always said of a clock that is behind: a robot that has booted in 1970, say."""


def rfc3339(time: float | None) -> str | None:
    """A Unix time in UTC, to the second."""
    return None if time is None else datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def unix(time: str) -> float:
    """The Unix time, in seconds, of what `rfc3339` wrote."""
    return datetime.fromisoformat(time).timestamp()


def duration(seconds: float) -> str:
    """A span as people say it: the two largest units."""
    whole = max(0, int(seconds))
    for size, unit, small, small_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {unit}" + (f" {rest} {small_unit}" if rest else "")
    return f"{whole} s"


def count(number: int, thing: str) -> str:
    """A number of things: `1 status`, `2 statuses`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}{'es' if thing.endswith('s') else 's'}"


def plain(text: str) -> str:
    """A text for a terminal: servers' words among it bring no escape sequences, and no extra lines."""
    return "".join(character if character.isprintable() else " " for character in text)
