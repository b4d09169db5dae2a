"""The Lease by which one of several controllers leads: when a standby may take it, and what is written (F1.2).

The times inside a Lease are for people. What counts is the monotonic clock of each process, in seconds: a leader writes
nothing later than `LEADS_SECONDS` after it sent its last renewal, and such a write ends in `TIMEOUT_SECONDS`; a standby
takes the Lease `DURATION_SECONDS` after it saw the Lease change, which is never earlier than that.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType

from crsyncer.core.model import Json
from crsyncer.core.requests.calls import Call, Collection
from crsyncer.fleet.domain.values import F

LEASE = "crsyncer-fleet"
UNLISTED = F + "unlisted"
"""The annotation by which a leader says what it waits for: until that is listed, it writes nothing (F1.1)."""
REFUSED = F + "refused"
"""The annotation by which a leader says which writes of its own objects the API server refuses."""
_OWN = (UNLISTED, REFUSED)
DURATION_SECONDS = 15
RENEW_SECONDS = 5.0
LEADS_SECONDS = 10.0
"""No write begins later than this after the last renewal was sent."""
TIMEOUT_SECONDS = 5.0
"""How long any write of a leader may take."""
RENEWAL_TIMEOUT_SECONDS = 2.0
"""How long an answer to a renewal is waited for: a lost one leaves time for another."""


@dataclass(frozen=True, slots=True)
class ObservedLease:
    """The Lease as it was read last."""

    lease: Json | None
    """None: there is none."""
    since: float
    """When it was first read like this; -inf: there was none when it was read for the first time."""


def leases(namespace: str) -> Collection:
    """The Leases of the controller's namespace."""
    return Collection("coordination.k8s.io", "v1", "leases", namespace)


def observe(before: ObservedLease | None, lease: Json | None, *, now: float) -> ObservedLease:
    """Note what a read showed. Only who holds the Lease and when it was renewed is a change, not a label of it."""
    if before is None:
        return ObservedLease(lease, -math.inf if lease is None else now)
    return ObservedLease(lease, before.since if _state(before.lease) == _state(lease) else now)


def holder(lease: Json | None) -> str:
    """The identity of who holds the Lease; "": nobody does."""
    return str(_spec(lease).get("holderIdentity") or "")


def is_claimed(lease: Json | None, claim: Json | None) -> bool:
    """Whether the Lease is as this process wrote it (`claim`: the object that it sent last), though no answer came.

    An identity alone proves nothing: another process may have been started with the same one.
    """
    if claim is None:
        return False
    return all(_spec(lease).get(name) == claim["spec"][name] for name in ("holderIdentity", "renewTime"))


def free_at(observed: ObservedLease, claim: Json | None) -> float:
    """From when on this process may take the Lease; -inf: at once, because nobody holds it, or this process does.

    A Lease that has vanished counts as held: its holder may not know yet. One that never was is made at once.
    """
    lease = observed.lease
    if lease is not None and (not holder(lease) or is_claimed(lease, claim)):
        return -math.inf
    return observed.since + DURATION_SECONDS


def take(namespace: str, lease: Json | None, *, identity: str, unix: float) -> Call:
    """The request that makes this process the holder; `lease` is what it replaces, None: it is made."""
    now, spec = micro_time(unix), _spec(lease)
    same = holder(lease) == identity
    transitions = 0 if lease is None else int(spec.get("leaseTransitions") or 0) + (not same)
    acquired = spec.get("acquireTime") if same else None
    new = spec | {
        "holderIdentity": identity,
        "leaseDurationSeconds": DURATION_SECONDS,
        "acquireTime": acquired or now,
        "renewTime": now,
        "leaseTransitions": transitions,
    }
    if lease is not None:
        return _put(namespace, lease, new)
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": LEASE, "namespace": namespace},
        "spec": new,
    }
    return Call("create", "POST", leases(namespace).path, body=body, timeout=TIMEOUT_SECONDS)


def renew(namespace: str, lease: Json, *, unix: float, annotations: Mapping[str, str] = MappingProxyType({})) -> Call:
    """The request by which its holder keeps the Lease, with annotations of its own; one without a text is removed."""
    metadata = lease["metadata"]
    others = {name: text for name, text in (metadata.get("annotations") or {}).items() if name not in _OWN}
    own = {name: text for name, text in annotations.items() if text}
    renewed = lease | {"metadata": metadata | {"annotations": others | own}}
    return _put(namespace, renewed, _spec(lease) | {"renewTime": micro_time(unix)}, timeout=RENEWAL_TIMEOUT_SECONDS)


def give_back(namespace: str, lease: Json, *, unix: float) -> Call:
    """The request after which nobody holds the Lease; written as client-go does (leaderelection.go, release)."""
    now = micro_time(unix)
    nobody = {"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": now, "renewTime": now}
    return _put(namespace, lease, _spec(lease) | nobody, timeout=RENEWAL_TIMEOUT_SECONDS)


def read(namespace: str) -> Call:
    """The request for the Lease."""
    return Call("get", "GET", f"{leases(namespace).path}/{LEASE}", timeout=TIMEOUT_SECONDS)


def micro_time(unix: float) -> str:
    """A Unix time as Kubernetes writes a MicroTime."""
    return datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _put(namespace: str, lease: Json, spec: Json, *, timeout: float = TIMEOUT_SECONDS) -> Call:
    """A replacement, which the object's resourceVersion and uid guard."""
    return Call("update", "PUT", f"{leases(namespace).path}/{LEASE}", body=lease | {"spec": spec}, timeout=timeout)


def _spec(lease: Json | None) -> Json:
    return {} if lease is None else lease.get("spec") or {}


def _state(lease: Json | None) -> tuple[str, Json] | None:
    return None if lease is None else (lease["metadata"]["uid"], _spec(lease))
