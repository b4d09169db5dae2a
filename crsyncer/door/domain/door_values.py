"""The values of the front door: shards, keys, and what HAProxy's configuration is made of."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shard:
    """An API server behind the door."""

    name: str
    host: str
    """A name or an address, IPv6 without brackets."""
    port: int
    server_name: str
    """The name that its certificate is compared with."""
    authority: str = ""
    """The certificates that are trusted for it, PEM; empty: those of this machine."""
    is_verified: bool = True


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key that signs tokens of service accounts."""

    kid: str
    pem: str
    """The public key."""


@dataclass(frozen=True, slots=True)
class FrontDoor:
    """What HAProxy's configuration is made of."""

    directory: str
    """Where its files are."""
    bind: tuple[str, int]
    """Host, "*" for all of IPv4, and port."""
    certificate: str
    """The door's certificate and key, PEM."""
    shards: tuple[Shard, ...]
    keys: tuple[SigningKey, ...]
    exporter: tuple[str, int] | None = None
    """Where HAProxy serves its own metrics; None: nowhere."""
