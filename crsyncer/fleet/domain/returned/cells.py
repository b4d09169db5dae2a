"""The typed cells of a CombinedStatus: as they are kept, sorted and shown (F7.3)."""

import json
import math
from sys import intern
from typing import Any, NewType

from crsyncer.core.content.fields import json_problem
from crsyncer.core.model import Json

Cell = NewType("Cell", str)
"""A value as one text, which takes the least memory: the initial of its type, then the value, of objects its JSON."""
Number = int | float
NULL = Cell("0")
MOST_CELL_BYTES = 1 << 10
_TYPES = {"0": "Null", "b": "Bool", "n": "Number", "s": "String", "a": "Array", "o": "Object"}
"""In the order in which cells of different types are sorted."""
_RANKS = {initial: rank for rank, initial in enumerate(_TYPES)}
_INTERNED = 64
"""Characters of the longest cell that is kept once: phases and names come back, positions and messages do not."""
_WHOLE = 2**53


def cell_of(value: Any, *, cuts: bool = True) -> Cell:
    """The cell of a result. Raises ValueError for what JSON does not have, and for a large object.

    A large text is cut, or raises as well: groups are not to become one because their texts begin alike.
    """
    match value:
        case None:
            return NULL
        case bool():
            return Cell("btrue" if value else "bfalse")
        case int() | float():
            return _kept("n" + number_text(value))
        case str() if cuts:
            return text_cell(value)
        case str():
            _check_size(value)
            return text_cell(value)
    if problem := json_problem(value, "the result"):
        raise ValueError(problem)
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    _check_size(text)
    return _kept(("a" if isinstance(value, list) else "o") + text)


def _check_size(text: str) -> None:
    if (size := len(text.encode(errors="replace"))) > MOST_CELL_BYTES:
        raise ValueError(f"the result has {size} bytes; allowed: {MOST_CELL_BYTES}")


def text_cell(text: str) -> Cell:
    """The cell of a text. One of more than 1 KiB is cut and ends in three dots."""
    return _kept("s" + cut(text, MOST_CELL_BYTES))


def cut(text: str, most: int) -> str:
    """A text of at most so many bytes."""
    encoded = text.encode(errors="replace")
    return text if len(encoded) <= most else encoded[: most - 3].decode(errors="ignore") + "..."


def _kept(text: str) -> Cell:
    return Cell(intern(text) if len(text) <= _INTERNED else text)


def number_text(value: Number) -> str:
    """A number as CombinedStatuses show it: `+Inf`, `-Inf` and `NaN` among them, which JSON does not have."""
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "+Inf" if value > 0 else "-Inf"
        return str(int(value)) if value.is_integer() and abs(value) < _WHOLE else repr(value)
    return str(value)


def order(cell: Cell) -> tuple[int, float, str]:
    """What cells are sorted by: their type, numbers by value with NaN first, all else by text."""
    kind, text = cell[0], cell[1:]
    if kind != "n":
        return _RANKS[kind], 0.0, text
    return (_RANKS[kind], -math.inf, "") if text == "NaN" else (_RANKS[kind], float(text), text)


def shown(cell: Cell) -> Json:
    """A cell as it is in the object: its type and, unless it is null, its value. Numbers are texts."""
    kind, text = cell[0], cell[1:]
    match kind:
        case "0":
            return {"type": _TYPES[kind]}
        case "s" | "n":
            return {"type": _TYPES[kind], "value": text}
    return {"type": _TYPES[kind], "value": json.loads(text)}
