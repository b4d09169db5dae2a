"""What a power cut leaves of files: only what was synced is sure, of the rest anything may be there."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.disk import SYNCS, Change

SECTOR = 512
"""Bytes that are written as a whole or not at all."""

Survives = Callable[[], bool]


@dataclass(eq=False, slots=True)
class _File:
    """One file, whatever it is called."""

    synced: bytes = b""
    changes: list[Change] = field(default_factory=list)
    """Since it was synced, in order."""

    def content(self, survives: Survives, *, sectors: bool = False) -> bytes:
        """The file with those changes that survive; `sectors`: each sector of a write on its own."""
        data = bytearray(self.synced)
        for change in self.changes:
            pieces = list(_sectors(change)) if sectors and change.call == "write" else [change]
            for piece in pieces:
                if survives():
                    _carry_out(data, piece)
        return bytes(data)


def _sectors(change: Change) -> Iterable[Change]:
    begin, end = change.offset, change.offset + len(change.data)
    while begin < end:
        until = min(end, (begin // SECTOR + 1) * SECTOR)
        yield Change("write", change.path, begin, change.data[begin - change.offset : until - change.offset])
        begin = until


def _carry_out(data: bytearray, change: Change) -> None:
    if change.call == "truncate":
        del data[change.offset :]
        data.extend(bytes(change.offset - len(data)))
    else:
        data.extend(bytes(max(0, change.offset - len(data))))
        data[change.offset : change.offset + len(change.data)] = change.data


Names = dict[Path, _File | None]
"""What is called what; a directory is None."""


class Platter:
    """The files below a directory, as a trace of changes goes over them; begins with what is there now, synced.

    More hostile than file systems are: names last only once their directory is synced, of what was not synced any
    part may be there without any other, down to sectors; only one call on names happens as a whole or not at all.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._names: Names = {path: None if path.is_dir() else _File(path.read_bytes()) for path in root.rglob("*")}
        self._synced: Names = dict(self._names)
        self._renamed: list[tuple[Change, _File | None]] = []
        """Changes of names since they were synced; of a new file, the file."""

    def apply(self, change: Change) -> None:
        """Go one change further."""
        match change.call:
            case "open" | "mkdir" | "unlink" | "rename":
                new = _File() if change.call == "open" else None
                self._renamed.append((change, new))
                _rename(self._names, change, new)
            case "write" | "truncate":
                file = self._names.get(change.path)
                if file is not None:  # else it has been removed
                    file.changes.append(change)
            case _ if change.call in SYNCS:
                self._sync(change.path)

    def live(self) -> dict[Path, bytes]:
        """The files as programs see them."""
        return {path: file.content(lambda: True) for path, file in self._names.items() if file is not None}

    def cut(self, seeded: random.Random) -> dict[Path, bytes]:
        """The files after a power cut."""
        names = dict(self._synced)
        survives = _survivors(seeded)
        for change, new in self._renamed:
            if survives():
                _rename(names, change, new)
        found = {}
        for path, file in names.items():
            above = path.parents[: len(path.relative_to(self.root).parts) - 1]
            if file is not None and all(folder in names for folder in above):
                found[path] = file.content(_survivors(seeded), sectors=seeded.random() < 0.5)
        return found

    def _sync(self, path: Path) -> None:
        file = self._names.get(path)
        if file is not None:
            file.synced, file.changes = file.content(lambda: True), []
            return
        kept = []
        for change, new in self._renamed:
            if change.path.parent == path:
                _rename(self._synced, change, new)
            else:
                kept.append((change, new))
        self._renamed = kept


def _rename(names: Names, change: Change, new: _File | None) -> None:
    if change.call == "unlink":
        names.pop(change.path, None)
    elif change.call == "rename":
        if change.source in names:
            names[change.path] = names.pop(change.source)
    else:
        names[change.path] = new


def _survivors(seeded: random.Random) -> Survives:
    """Who survives, asked in order: nobody, everybody, those up to some moment, or each by chance."""
    match seeded.randrange(4):
        case 0:
            return lambda: False
        case 1:
            return lambda: True
        case 2:
            left = iter(range(seeded.randrange(1, 20)))
            return lambda: next(left, None) is not None
    chance = seeded.random()
    return lambda: seeded.random() < chance
