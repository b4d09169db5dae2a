"""An entry of spec.related in a SyncPolicy that is followed (C5)."""

from dataclasses import dataclass

from crsyncer.core.content.object_content import digest
from crsyncer.core.kinds.naming import Naming
from crsyncer.core.kinds.sync_policy import Related
from crsyncer.core.model import EntryId


@dataclass(frozen=True, slots=True)
class RelatedEntry:
    """One entry of `spec.related`, in a policy that is followed."""

    policy: str
    """The SyncPolicy's name."""
    primary: str
    """The kind of the primaries."""
    related: Related
    filtered: bool
    """Originals in the cloud need the robot's label, and copies in the cloud get it (C5.3)."""
    named: bool
    """The policy has templates for names: no other object becomes a copy (C2.5)."""
    naming: Naming | None
    """What the copies are called; None: as their originals (C5.2)."""
    sensitive: bool = False
    """The primaries are Secrets on a side: what is read from them is not told (C5.6)."""

    @property
    def resource(self) -> str:
        """The kind of the related objects."""
        return self.related.resource.full_name

    @property
    def id(self) -> EntryId:
        """What names the entry."""
        return self.policy, self.related.id

    @property
    def text(self) -> str:
        """A digest of what says to which originals a primary refers: another one may say others."""
        return digest([repr(self.related.objects), repr(self.related.namespace)])
