"""The brakes: what must not be done although a decision says so (S3.5, S5.5). Time, in seconds, is an argument."""

from collections import deque
from collections.abc import Set
from dataclasses import dataclass, field
from enum import Enum

from crsyncer.core.actions import HoldReason
from crsyncer.core.model import Json, Key
from crsyncer.core.policy import Policy

WINDOW_SECONDS = 60.0
_REVERTS_A_WINDOW = 5
_FEW = 5
_SHARE = 0.3


class DriftBrake:
    """Slows down a fight over an object: more than five reverts a minute become one a minute (S3.5).

    A fight is over when there was nothing to revert for a minute after the object might have been reverted again.
    Then it is forgotten, together with the object.
    """

    def __init__(self) -> None:
        self._reverts: dict[Key, deque[float]] = {}
        """The last reverts of each object; who was reverted last comes last."""
        self._fights: set[Key] = set()

    def __len__(self) -> int:
        """Objects that are remembered."""
        return len(self._reverts)

    def wait(self, key: Key, now: float) -> float:
        """Seconds until the object may be reverted again; 0: now."""
        self._forget(now)
        times = self._reverts.get(key)
        if times is None:
            return 0.0
        if len(times) == _REVERTS_A_WINDOW and times[0] > now - WINDOW_SECONDS:
            self._fights.add(key)
        return max(0.0, times[-1] + WINDOW_SECONDS - now) if key in self._fights else 0.0

    def reverted(self, key: Key, now: float) -> None:
        """The object was reverted."""
        times = self._reverts.pop(key, None) or deque(maxlen=_REVERTS_A_WINDOW)
        times.append(now)
        self._reverts[key] = times
        self._forget(now)

    def _forget(self, now: float) -> None:
        while self._reverts:
            key, times = next(iter(self._reverts.items()))
            if times[-1] > now - 2 * WINDOW_SECONDS:
                break
            del self._reverts[key]
            self._fights.discard(key)


class Alive(Enum):
    """Whether a kind is served for real: one that is being deleted still lists and watches (S5.5)."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    """Discovery is forbidden, in whatever words a gateway has for that."""
    UNHEARD_OF = "unheard of"
    """Discovery does not know the group and version: they are gone, or a gateway hides discovery."""
    OTHER = "other"
    """It is, but by another CRD than the one whose objects our copies are of: those went with theirs."""


def kind_alive(status: int, body: Json, policy: Policy) -> Alive:
    """What the answer of `/apis/GROUP/VERSION` says of a kind.

    A CRD that is being deleted loses the verb `create` in discovery at once (measured on API server 1.36).
    One of another scope is not the kind that we mean: none of its objects can have a copy (S1.7).
    """
    if status == 404:
        return Alive.UNHEARD_OF
    if status != 200:
        return Alive.UNKNOWN
    for resource in body.get("resources") or []:
        if resource.get("name") == policy.plural:
            same = bool(resource.get("namespaced")) == policy.namespaced
            return Alive.YES if same and "create" in (resource.get("verbs") or []) else Alive.NO
    return Alive.NO


def crd_alive(status: int, body: Json, uid: str) -> Alive | None:
    """What the answer to a question for a kind's CRD says of the kind; None: nothing.

    `uid` is that of the CRD whose objects our copies are of, "" where it is not known. A CRD that is deleted has a
    deletionTimestamp until the last of its objects is gone; one that is made anew has another uid (measured on API
    server 1.36). That there is none says nothing where there never was one: a kind may be served without.
    """
    if status == 404 and uid and body.get("reason") == "NotFound":
        return Alive.NO
    metadata = body.get("metadata") or {}
    if status != 200 or not metadata.get("uid"):
        return None
    if "deletionTimestamp" in metadata:
        return Alive.NO
    return Alive.YES if uid in ("", metadata["uid"]) else Alive.OTHER


def alive_by(served: Alive, crd: Alive | None) -> Alive:
    """What discovery and the CRD (None: nothing) say together: any no counts, and a yes where nobody else speaks."""
    if crd is None or served is Alive.NO or (crd is Alive.YES and served is not Alive.UNKNOWN):
        return served
    return crd


def is_mass(deletions: int, copies: int) -> bool:
    """Whether so many deletions, of so many copies, within a minute need a second look (S5.5)."""
    return deletions > max(_FEW, _SHARE * copies)


class DeletionWindow:
    """Counts the deletions of one kind over the last minute."""

    def __init__(self) -> None:
        self._times: dict[Key, float] = {}

    def count(self, batch: Set[Key], now: float) -> int:
        """Deletions within the window, those of this batch included; asking twice for a key counts once."""
        for key in batch:
            self._times.pop(key, None)
            self._times[key] = now
        while self._times[oldest := next(iter(self._times))] <= now - WINDOW_SECONDS:
            del self._times[oldest]
        return len(self._times)


@dataclass(slots=True)
class HeldGroup:
    """Objects of one kind that are held back for one reason."""

    id: str
    resource: str
    reason: HoldReason
    since: float
    message: str
    hint: str
    keys: set[Key] = field(default_factory=set)
    standing: bool = False
    """Whatever comes is held too, so it does not end when nothing is held at the moment."""


class Holds:
    """Everything that is held back for a human, by kind and reason. `issued` numbers were given to holds before."""

    def __init__(self, issued: int = 0) -> None:
        self._groups: dict[tuple[str, HoldReason], HeldGroup] = {}
        self.issued = issued

    def add(
        self, resource: str, key: Key, *, reason: HoldReason, now: float, message: str, hint: str, hold_id: str = ""
    ) -> bool:
        """Hold an object back; True when it was not held for this reason before. `now` is Unix time in seconds.

        `hold_id` is the id that the group had before a restart, if it is known.
        """
        group = self._group(resource, reason, now=now, hold_id=hold_id)
        known = key in group.keys
        group.keys.add(key)
        group.message, group.hint = message, hint
        return not known

    def stand(
        self, resource: str, *, reason: HoldReason, now: float, message: str, hint: str, hold_id: str = ""
    ) -> HeldGroup:
        """Hold back whatever comes, until a human releases it; the group is there though nothing has come yet."""
        group = self._group(resource, reason, now=now, hold_id=hold_id)
        group.message, group.hint, group.standing = message, hint, True
        return group

    def _group(self, resource: str, reason: HoldReason, *, now: float, hold_id: str) -> HeldGroup:
        group = self._groups.get((resource, reason))
        if group is None:
            if not hold_id:
                self.issued += 1
                hold_id = f"h{self.issued}"
            group = self._groups[resource, reason] = HeldGroup(hold_id, resource, reason, now, "", "")
        return group

    def group(self, resource: str, reason: HoldReason) -> HeldGroup | None:
        """What of a kind is held for a reason."""
        return self._groups.get((resource, reason))

    def clear(self, resource: str, key: Key | None = None, *, reason: HoldReason | None = None) -> None:
        """What held an object (None: the kind) is over, for one reason or for all."""
        for where, group in list(self._groups.items()):
            if where[0] != resource or (reason is not None and where[1] is not reason):
                continue
            if key is not None:
                group.keys.discard(key)
            if key is None or not (group.keys or group.standing):
                del self._groups[where]

    def held(self, resource: str, key: Key, *reasons: HoldReason) -> bool:
        """Whether an object is held back for one of the reasons."""
        return any(key in group.keys for r in reasons if (group := self._groups.get((resource, r))))

    def groups(self, resource: str | None = None) -> list[HeldGroup]:
        """All groups, or one kind's, oldest first."""
        return [g for g in self._groups.values() if resource is None or g.resource == resource]

    def release(self, hold_id: str) -> HeldGroup | None:
        """A human says go on: the group, which is held no more; None when there is no such hold."""
        for where, group in self._groups.items():
            if group.id == hold_id:
                return self._groups.pop(where)
        return None
