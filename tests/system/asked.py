"""Reads a link's log, what the agent asked of one API server, in a test's words."""

import json
from typing import Any
from urllib.parse import parse_qs

from tests.link.faults import Request
from tests.link.link import Link


def _of(request: Request, plural: str) -> bool:
    return request.method == "GET" and request.path.endswith(f"/{plural}")


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
