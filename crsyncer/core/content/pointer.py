"""JSON Pointers (RFC 6901) into objects. A segment `*` means each item of a list, or each value of an object.

Null and absent are one and the same, `None`, as for an API server.
"""

from collections.abc import Callable, Iterator
from typing import Any

Pointer = tuple[str, ...]
"""The segments of a path, unescaped."""

EACH = "*"
_END = "-"
PATH = "(/([^~/]|~[01])+)+"
"""What a path looks like; at most `LONGEST` characters."""
LONGEST = 256


def parse(path: str) -> Pointer:
    """The segments of a path that looks like `PATH`."""
    return tuple(segment.replace("~1", "/").replace("~0", "~") for segment in path.split("/")[1:])


def get(value: Any, pointer: Pointer) -> Any:
    """What is at a pointer without `*`; None where nothing is."""
    for segment in pointer:
        if isinstance(value, list):
            index = _index(segment, value)
            value = None if index is None else value[index]
        else:
            value = value.get(segment) if isinstance(value, dict) else None
    return value


def find(value: Any, pointer: Pointer) -> Iterator[Any]:
    """Everything at a pointer."""
    if value is None or not pointer:
        yield from () if value is None else (value,)
    elif pointer[0] == EACH and isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from find(item, pointer[1:])
    else:
        yield from find(get(value, pointer[:1]), pointer[1:])


def changed(value: Any, pointer: Pointer, change: Callable[[Any], Any], *, create: bool) -> Any:
    """The value after a change of what is at the pointer; the old value stays as it is, and both share the rest.

    `change` gets what is there, or None, and returns what shall be there; None removes it. With `create`, missing
    parents are made, and `-` appends to a list. Without it, what is absent stays absent and `change` is not called.
    Raises ValueError where `create` is asked for below a text, number or boolean, or at an item that a list lacks.
    """
    if not pointer:
        return change(value) if create or value is not None else None
    segment, rest = pointer[0], pointer[1:]

    def below(child: Any) -> Any:
        return changed(child, rest, change, create=create)

    match value:
        case dict():
            return _changed_object(value, [*value] if segment == EACH else [segment], below)
        case list() if segment == _END:
            new = below(None)
            return value if new is None else [*value, new]
        case list():
            index = _index(segment, value)
            if segment == EACH or index is not None:
                return _changed_list(value, range(len(value)) if index is None else [index], below)
            if create:
                raise ValueError(f"there is no item {segment} in a list of {len(value)}")
            return value
        case None if segment == EACH:
            return None
        case None:
            new = below(None)
            return None if new is None else [new] if segment == _END else {segment: new}
        case _ if create:
            raise ValueError(f"the value before /{segment} is neither an object nor a list")
    return value


def _changed_object(value: dict[str, Any], keys: list[str], below: Callable[[Any], Any]) -> dict[str, Any]:
    news = {key: below(value.get(key)) for key in keys}
    news = {key: new for key, new in news.items() if new is not value.get(key)}
    return {key: each for key, each in {**value, **news}.items() if key not in news or each is not None}


def _changed_list(value: list[Any], indexes: range | list[int], below: Callable[[Any], Any]) -> list[Any]:
    news = [below(item) if index in indexes else item for index, item in enumerate(value)]
    return [new for new, old in zip(news, value, strict=True) if new is not None or old is None]


def _index(segment: str, items: list[Any]) -> int | None:
    """The place of an item, None where the list has none there."""
    if not segment.isdecimal() or not segment.isascii() or (segment[0] == "0" and segment != "0"):
        return None
    index = int(segment)
    return index if index < len(items) else None
