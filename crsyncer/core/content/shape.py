"""What becomes of the objects of one kind on their way: the steps of its policy, and how they meet a copy (C3, C4).

Knows no step and no language: `core/content/mutation.py` makes shapes.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from crsyncer.core.content.marks import Marks
from crsyncer.core.model import Json, Key
from crsyncer.errors import SyncError

Change = Callable[[Json, Key, str, str], Json]
"""From an object as received, its key (upstream's), the robot's name and the identity of upstream's cluster to the
changed object. The received object stays as it is. Raises MutationFailed.
"""

_ONLY_MARKS = "marks of "


class MutationFailed(SyncError):
    """A step cannot be carried out on an object. The message names the step and its path (C4.4), as `where` does.

    It may quote the object, which `where` never does.
    """

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where = where


@dataclass(frozen=True, slots=True)
class Shape:
    """How objects are changed on their way. Equal shapes make the same of the same object; the default: nothing."""

    steps: str = ""
    """The steps of both ways, as a text; empty: there are none."""
    keep_local: bool = False
    """Upstream's changes are merged into a copy, whose other fields stay (C3.2)."""
    identity: str = ""
    """The identity of upstream's cluster (S8.1), where copies have marks; empty: not known yet."""
    robot: str = ""
    """The robot's name, where there are steps."""
    marks: Callable[[Key, str], Marks] | None = None
    """The marks of the copy of an original, from its key (upstream's) and the identity; None: copies have none."""
    path: Callable[[], str] | None = field(default=None, compare=False)
    """The path of upstream's logical cluster, "" where it cannot be read (C9.1); None: upstream is none of kcp's."""
    down: Change | None = field(default=None, compare=False)
    """The steps for content; None: there are none."""
    up: Change | None = field(default=None, compare=False)
    """The steps for a status."""

    @property
    def signature(self) -> str:
        """A text about all that decides what an object becomes; empty where objects stay as they are."""
        if not self.steps and not self.keep_local:
            return "" if self.marks is None else _ONLY_MARKS + self.identity
        text = f"{self.keep_local} {self.marks is not None} {self.robot} {self.identity} {self.steps}"
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def desired(self, raw: Json) -> Json:
        """Upstream's object as its copy is to be. Raises MutationFailed."""
        if self.down is None:
            return raw
        metadata = raw["metadata"]
        return self.down(bare(raw), Key(metadata.get("namespace", ""), metadata["name"]), self.robot, self.identity)

    def marks_of(self, original: Key) -> Marks | None:
        """The marks that the copy of an original has to have; None: none (C2.1)."""
        return self.marks(original, self.identity) if self.marks is not None and self.identity else None

    def sent(self, copy: Json, key: Key) -> Json:
        """A copy with the status that goes upstream; `key` is upstream's. Raises MutationFailed."""
        return copy if self.up is None else self.up(bare(copy), key, self.robot, self.identity)


def bare(raw: Json) -> Json:
    """An object as the store has it, so that steps make the same of it whenever they run (C4.3)."""
    return raw | {"metadata": {name: value for name, value in raw["metadata"].items() if name != "managedFields"}}


AS_RECEIVED = Shape()
"""The shape without a policy."""


def changes_content(signature: str) -> bool:
    """Whether copies by this signature may differ from their originals in more than marks."""
    return bool(signature) and not signature.startswith(_ONLY_MARKS)


def signature_name(resource: str) -> str:
    """Under which name the store keeps the signature of the shape that a kind's views are of."""
    return f"shape:{resource}"
