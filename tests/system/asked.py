"""Reads a link's log, what the agent asked of one API server, in a test's words; and what one might answer."""

import json
import re
from typing import Any
from urllib.parse import parse_qs

from crsyncer.core.requests import calls
from tests.link.faults import Injection, Request
from tests.link.link import Link
from tests.system.bed import eventually

REPLAY = f"watch=true&resourceVersion=[0-9]+&timeoutSeconds=({'|'.join(map(str, calls.REPLAY_SECONDS))})$"
"""The query of watches that only ask a server to repeat what is known already (S8.2)."""


def _of(request: Request, plural: str) -> bool:
    return request.method == "GET" and request.path.endswith(f"/{plural}")


def watches(link: Link, plural: str = "goals") -> list[Request]:
    """Watches of the kind, those aside that only ask for what is known already."""
    watched = [r for r in link.requests if _of(r, plural) and "watch" in parse_qs(r.query)]
    return [r for r in watched if not replay(r)]


def replay(request: Request) -> bool:
    """Whether a watch only asks a server to repeat what is known already, to prove its history (S8.2)."""
    return re.search(REPLAY, request.target) is not None


def full_list(request: Request, plural: str = "goals") -> bool:
    """Whether a request lists the kind; a list of at most one object only asks for the cluster's revision."""
    query = parse_qs(request.query)
    return _of(request, plural) and "watch" not in query and query.get("limit") != ["1"]


def lists(link: Link, plural: str = "goals") -> list[Request]:
    """Lists of the kind's objects."""
    return [r for r in link.requests if full_list(r, plural)]


def deletes(link: Link) -> list[tuple[str, dict[str, Any]]]:
    """(name, DeleteOptions) of every deletion, in order."""
    return [(r.path.rpartition("/")[2], json.loads(r.body or b"{}")) for r in link.requests if r.method == "DELETE"]


def status_writes(link: Link, name: str = "") -> list[Request]:
    """Writes of a status, of one object or of all, in order."""
    found = [r for r in link.requests if r.method in ("PATCH", "PUT") and r.path.endswith("/status")]
    return [r for r in found if not name or r.path.endswith(f"/{name}/status")]


async def hit(injection: Injection, times: int = 1, *, seconds: float = 60.0) -> None:
    """Wait until an injection has met so many requests."""

    async def check() -> bool:
        return injection.count >= times

    await eventually(check, seconds=seconds, what=f"{times} requests met {injection.pattern.pattern}")
