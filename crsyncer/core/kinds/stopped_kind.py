"""What is remembered of a kind that is synced, so that its end is never silent (S1.8)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches

from crsyncer.core.content.annotations import (
    COPY_OF,
    COPY_OF_CLUSTER,
    COPY_OF_NAMESPACE,
    OURS,
    PROPAGATION,
    ROBOT_LABEL,
    SETTINGS,
    SYNCER,
)
from crsyncer.core.content.object_content import APPLIED, LAST_DESIRED, ROBOT, UPSTREAM_UID
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Json, Loaded, Side
from crsyncer.core.pair.compose import UPSTREAM_PATH
from crsyncer.core.pair.object_calls import collection
from crsyncer.core.requests.calls import Collection

_COPY_OF = (UPSTREAM_PATH, COPY_OF_CLUSTER, COPY_OF_NAMESPACE, COPY_OF)
_MARKS = (UPSTREAM_UID, ROBOT, APPLIED, LAST_DESIRED, *_COPY_OF)
_KNOWN = frozenset({*SETTINGS, *_MARKS, PROPAGATION, SYNCER + "remote-resource-version"})
"""Annotations under our prefixes that mean something; the last one is of the Go cr-syncer."""


@dataclass(frozen=True, slots=True)
class SyncedKind:
    """A kind that is synced, or was when it stopped."""

    upstream: Side
    robot: str
    """In the cloud only copies with this robot's name are this agent's (S5.3)."""
    has_crd: bool
    """On the robot."""
    copies: tuple[Collection, ...]
    """The collections that its copies are in."""
    since: float = 0.0
    """When it stopped, Unix time in seconds; 0: it is synced."""
    missing: bool = False
    """Whether it stopped because its CRD is gone from the robot."""
    hold_id: str = ""
    """Of the hold that tells of the missing CRD."""
    policy: str = ""
    """The SyncPolicy by which it is synced; empty: by annotations."""
    uids: tuple[str, ...] = ()
    """Of a former name of the robot: those of the copies, for another robot may have that name by now."""
    statuses: int = 0
    """Of a former name: how many statuses waited for upstream when the name changed."""

    @property
    def downstream(self) -> Side:
        """The side that the copies are on."""
        return self.upstream.other

    @property
    def is_filtered(self) -> bool:
        """Whether only objects with the robot's label are synced (S2.1)."""
        return self.copies[0].selector.startswith(f"{ROBOT_LABEL}={self.robot}")

    @property
    def goes_by_name(self) -> bool:
        """Whether the robot's name says which copies are its own: in the cloud always (S5.3)."""
        return self.downstream is Side.CLOUD or self.is_filtered

    def is_former(self, now: "SyncedKind") -> bool:
        """Whether copies that were made as this belong to a former name of the robot, now that the kind is another."""
        by_name = self.goes_by_name and now.goes_by_name
        return by_name and self.upstream is now.upstream and self.robot != now.robot

    def is_copy(self, raw: Json) -> bool:
        """Whether an object downstream, of which only metadata is shown, is a copy that this agent made."""
        annotations = raw["metadata"].get("annotations") or {}
        own = self.downstream is Side.ROBOT or annotations.get(ROBOT) == self.robot
        return own and bool(annotations.get(UPSTREAM_UID))


def remembered(policy: KindPolicy) -> SyncedKind:
    """What is remembered of a kind as it is synced."""
    side = policy.downstream
    copies = tuple(collection(policy, side, namespace) for namespace in policy.places_on(side))
    name = "" if policy.sync_policy is None else policy.sync_policy.name
    return SyncedKind(policy.upstream, policy.robot, policy.has_crd, copies, policy=name)


def former_name(kind: SyncedKind, loaded: Loaded) -> SyncedKind:
    """What is remembered of a kind as the robot's name changes; `loaded` is what is known of its objects by then."""
    in_cloud = kind.downstream is Side.CLOUD
    uids = tuple(
        view.uid
        for view in loaded.views[kind.downstream].values()
        if (stamp := view.stamp) is not None and (stamp.robot == kind.robot or not in_cloud)
    )
    statuses = len(loaded.pending) if kind.is_filtered else 0
    return SyncedKind(kind.upstream, kind.robot, False, kind.copies, uids=uids, statuses=statuses)


def to_store(kinds: Mapping[str, SyncedKind]) -> Json:
    """Kinds by name, as JSON."""
    return {name: asdict(kind) for name, kind in kinds.items()}


def from_store(stored: Json) -> dict[str, SyncedKind]:
    """The inverse of `to_store`."""
    return {
        name: SyncedKind(
            **{
                **fields,
                "upstream": Side(fields["upstream"]),
                "copies": tuple(Collection(**each) for each in fields["copies"]),
                "uids": tuple(fields.get("uids", ())),  # an earlier version knew none
            }
        )
        for name, fields in stored.items()
    }


def unknown_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    """The annotations of a CRD under our prefixes that mean nothing, each with the setting that is meant ("": none)."""
    unknown = (name for name in annotations if name.startswith((SYNCER, OURS)) and name not in _KNOWN)
    return {name: _meant(name.partition("/")[2].casefold()) for name in sorted(unknown)}


def _meant(name: str) -> str:
    settings = {setting.partition("/")[2]: setting for setting in SETTINGS}
    return next((settings[close] for close in get_close_matches(name, settings, n=1)), "")
