"""The highest resourceVersion of the objects that are known, without a look at each of them."""

import math
from collections.abc import Mapping
from itertools import islice
from typing import Protocol

from crsyncer.core.model import Key
from crsyncer.core.watching.restore_detection import DISTRUSTED


class Known(Protocol):
    """What a list-watch has to know of an object."""

    @property
    def uid(self) -> str:
        """Its uid."""
        ...

    @property
    def resource_version(self) -> str:
        """The newest version of it that is known; DISTRUSTED: any that comes is newer."""
        ...


def number_of(version: str) -> int:
    """A resourceVersion as a number; 0 for DISTRUSTED, and where it is none."""
    return int(version) if version.isdigit() and version != DISTRUSTED else 0


class Revisions:
    """A bound that no version of a known object exceeds, and the object that has it, if that is still so.

    Whoever keeps the objects tells of each version that becomes known (`saw`), and when all are distrusted (`rewound`).
    All objects are looked at when the bound is first asked for, and when the object that had it is gone or has another
    version. This is rare, for a watch that shows that the newest object is gone shows a higher revision with it.
    """

    __slots__ = ("_key", "_version", "bound")

    def __init__(self) -> None:
        self.bound = math.inf
        """The bound; infinite before it is first asked for, since objects may be known that were not told of."""
        self._key: Key | None = None
        self._version = ""

    def saw(self, key: Key, version: str) -> None:
        """This version of an object is the known one from now on."""
        if (number := number_of(version)) > self.bound:
            self.bound, self._key, self._version = number, key, version

    def rewound(self) -> None:
        """The version of every known object is DISTRUSTED from now on."""
        self.bound, self._key = 0.0, None

    def newest(self, objects: Mapping[Key, Known]) -> Key | None:
        """The object that has the highest version, which is the bound from now on; None: no object has a version."""
        known = None if self._key is None else objects.get(self._key)
        if self.bound and (known is None or known.resource_version != self._version):
            versions = [each.resource_version for each in objects.values()]
            self._version = max(versions, key=number_of, default="")
            self.bound = number_of(self._version)
            self._key = next(islice(objects, versions.index(self._version), None)) if self.bound else None
        return self._key
