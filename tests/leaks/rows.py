"""Reads what a search of raw bytes cannot see: the rows of our databases, most of which are compressed.

Looked at are the rows of a file, those of each state that its WAL leads to, and what earlier rows have left in free
space, as far as that is whole: a row of several pages is put together only while it is a row.
"""

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from crsyncer.adapters.store import codec
from crsyncer.adapters.store.schema import APPLICATION_ID
from crsyncer.adapters.store.statedir import DATABASE

_SQLITE = b"SQLite format 3\0"
_ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_WAL_HEADER, _FRAME_HEADER = 32, 24
_SMALL = 4 << 20
"""Bytes up to which a database is looked at in each state that its WAL leads to; of a larger one in the last."""


def is_ours(file: Path) -> bool:
    """Whether a file may be a database of an agent, or its WAL, damaged ones and copies included."""
    if not file.name.startswith(DATABASE):
        return False
    main = file.with_name(file.name.removesuffix("-wal"))
    found = [each.read_bytes() for each in (main, main.with_name(main.name + "-wal")) if each.is_file()]
    headers = [content[at : at + 100] for content in found if (at := content.rfind(_SQLITE)) >= 0]
    return not headers or any(int.from_bytes(header[68:72]) == APPLICATION_ID for header in headers)


def unpacked(file: Path) -> Iterator[bytes]:
    """Everything in a file that is compressed, each text once."""
    content, wal = file.read_bytes(), file.with_name(file.name + "-wal")
    seen: set[bytes | str] = set()
    if content.startswith(_SQLITE):
        for image in _states(content, wal.read_bytes() if wal.is_file() else b""):
            for value in _values(image):
                if value not in seen:
                    seen.add(value)
                    yield codec.unpack(value).encode(errors="surrogatepass")
    yield from _streams(content)


def _states(content: bytes, wal: bytes) -> Iterator[bytes]:
    """The database as it is without its WAL, and after each transaction in that."""
    image, changed, size = bytearray(content), False, int.from_bytes(wal[8:12])
    yield bytes(image)
    for start in range(_WAL_HEADER, len(wal) - size - _FRAME_HEADER + 1, size + _FRAME_HEADER):
        number, pages = int.from_bytes(wal[start : start + 4]), int.from_bytes(wal[start + 4 : start + 8])
        if wal[start + 8 : start + 16] != wal[16:24] or not number:
            break  # what follows is left from before the WAL began anew
        end = number * size
        image.extend(bytes(max(0, end - len(image))))
        image[end - size : end] = wal[start + _FRAME_HEADER : start + _FRAME_HEADER + size]
        changed = True
        if pages and len(image) <= _SMALL:
            yield bytes(image)
            changed = False
    if changed:
        yield bytes(image)


def _values(image: bytes) -> Iterator[bytes | str]:
    """All texts and blobs of all tables."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(":memory:")) as connection:
        connection.text_factory = codec.tolerant
        connection.deserialize(image[:18] + b"\1\1" + image[20:])  # in memory there is no WAL
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            with suppress(sqlite3.Error):
                for row in connection.execute(f'SELECT * FROM "{table}"'):
                    yield from (value for value in row if isinstance(value, bytes | str))


def _streams(content: bytes) -> Iterator[bytes]:
    """What is compressed anywhere in the bytes, or begins so."""
    for mark in _ZLIB:
        at = content.find(mark)
        while at >= 0:
            with suppress(zlib.error):
                yield zlib.decompressobj().decompress(content[at : at + (1 << 20)], 4 << 20)
            at = content.find(mark, at + 1)
