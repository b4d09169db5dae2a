"""`conflict: keepLocal`: upstream's changes are merged into a copy, whose other fields stay (C3.2).

The patch is that of RFC 7386: a list is one value, and null means absent.
"""

from typing import Any

from crsyncer.core.content.object_content import digest
from crsyncer.core.model import Json


def keep_local(last_applied: Json | None, desired: Json, live: Json) -> Json:
    """The copy with what upstream has changed since it was last applied.

    Without a last applied version, upstream's fields are set and all others stay (C3.3).
    """
    patch = merge_patch(last_applied or {}, desired)
    return merged(live, patch) if patch else live


def merge_patch(old: Json, new: Json) -> Json:
    """What turns one object into the other; empty where they mean the same."""
    old, new = _present(old), _present(new)
    patch: Json = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            if inner := merge_patch(before, value):
                patch[key] = inner
        elif key not in old or digest(before) != digest(value):
            patch[key] = value
    return patch


def merged(target: Any, patch: Json) -> Json:
    """The target after a merge patch; both stay as they are."""
    result = _present(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value) if isinstance(value, dict) else value
    return result


def _present(value: Json) -> Json:
    """The object without fields that are null. What is in lists stays: a list is one value."""
    return {key: _present(item) if isinstance(item, dict) else item for key, item in value.items() if item is not None}
