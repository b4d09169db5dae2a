"""What adapters find out about a set-up for `crsyncer doctor`: logins, disk, store. Facts only, no judgement."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Validity:
    """From when to when something is valid, in Unix time; None: it does not show that."""

    name: str
    """ca, server-certificate, client-certificate or token."""
    starts: float | None
    ends: float | None
    renewed: bool = False
    """Something renews it by itself."""
    objection: str = ""
    """Why we do not trust it, for another reason than its dates; empty: we do."""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class LoginFacts:
    """What a login shows of itself, without its secrets."""

    server: str
    means: str
    """By what it identifies us, in words."""
    verified: bool
    """Whether the server's certificate is."""
    validities: tuple[Validity, ...] = ()
    exposed: tuple[str, ...] = ()
    """Files of the login that others may read or write, with their modes."""


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """Where the state lives, or will: the directory, or what there is of its path. Sizes are in bytes."""

    path: str
    writable: bool | None
    """None: it belongs to another user, and only that user could find out."""
    free: int
    kind: str
    """The file system's name; empty: unknown."""
    objection: str = ""
    """Why the agent would not use the directory."""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class StoreFindings:
    """What the doctor finds of a store that no agent uses: missing, ok, older, broken, unreadable."""

    path: str
    state: str
    bytes: int = 0
    schema: int = 0
    message: str = ""
