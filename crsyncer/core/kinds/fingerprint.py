"""What is seen of which objects of a kind, as a value whose parts can be compared (S6.2, C1.7)."""

import re
from dataclasses import dataclass

from crsyncer.core.content.annotations import ROBOT_LABEL

_TEXT = re.compile(
    rf"(?P<named>named )?(?:{re.escape(ROBOT_LABEL)}=(?P<robot>[^,;]*),?)?(?P<selector>[^;]*);spec=(?P<upstream>\w+)"
    r"(?:,(?P<resource>[^,;]*),(?P<kind>[^,;]*),(?P<scope>[^,;]*))?;status=(?P<status>.*)",
    re.DOTALL,
)
RELATED = ";"
"""How the status of related objects begins in a fingerprint."""


@dataclass(frozen=True, slots=True)
class CloudKind:
    """What the cloud calls a kind that a policy projects (C7)."""

    resource: str
    kind: str
    scope: str


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """All that decides what is seen of which objects of a kind. Cursors hold it as a text."""

    robot: str
    """The robot whose objects they are; empty: every robot's."""
    selector: str
    """The label selector of the policy; empty: it has none."""
    upstream: str
    """The side that owns the spec."""
    in_cloud: CloudKind | None
    """None: the cloud has the robot's names and scope."""
    status: str
    """The subtree of the status that moves, "*": all of it; of related objects RELATED and their copies' selector."""
    names_copies: bool = False
    """Templates make the names of copies."""

    @property
    def text(self) -> str:
        """The fingerprint as a cursor has it."""
        cloud = self.in_cloud
        projected = "" if cloud is None else f",{cloud.resource},{cloud.kind},{cloud.scope}"
        named = "named " if self.names_copies else ""
        selector = ",".join(filter(None, (self.robot and f"{ROBOT_LABEL}={self.robot}", self.selector)))
        return f"{named}{selector};spec={self.upstream}{projected};status={self.status}"

    @staticmethod
    def parse(text: str) -> "Fingerprint | None":
        """The fingerprint again; None where the text is none."""
        found = _TEXT.fullmatch(text)
        if found is None:
            return None
        cloud = found["resource"] and CloudKind(found["resource"], found["kind"], found["scope"])
        return Fingerprint(
            found["robot"] or "",
            found["selector"],
            found["upstream"],
            cloud or None,
            found["status"],
            names_copies=bool(found["named"]),
        )

    @property
    def is_of_related(self) -> bool:
        """Whether it is about related objects (C5)."""
        return self.status.startswith(RELATED)

    def moves_the_same_status(self, other: "Fingerprint") -> bool:
        """Whether statuses that were queued under the other one still have to go upstream.

        Each names the uid of its object: so they wait also where other objects are selected (C1.7).
        """
        return (self.upstream, self.status) == (other.upstream, other.status)

    def is_in_the_same_places(self, other: "Fingerprint") -> bool:
        """Whether originals and copies are objects of the same kinds."""
        return (self.upstream, self.in_cloud) == (other.upstream, other.in_cloud)

    def selects_the_same_objects(self, other: "Fingerprint") -> bool:
        """Whether it is about the same objects; other parts of their status may move."""
        same = (self.robot, self.selector) == (other.robot, other.selector) and self.names_copies == other.names_copies
        return same and self.is_in_the_same_places(other)

    def leaves_copies_behind(self, other: "Fingerprint") -> bool:
        """Whether copies that were made under the other one may have no selected original any more (C1.7)."""
        same = (self.robot, self.selector, self.is_of_related) == (other.robot, other.selector, other.is_of_related)
        return self.knows_the_copies(other) and not (same and self.is_in_the_same_places(other))

    def knows_the_copies(self, other: "Fingerprint") -> bool:
        """Whether copies that were made under the other one are ours: not of another direction, or robot."""
        is_renamed = bool(self.robot and other.robot) and self.robot != other.robot
        return self.upstream == other.upstream and not is_renamed
