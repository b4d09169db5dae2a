"""Structural schemas, as far as CRDs under test use them: what an API server prunes, fills in and refuses.

Tried against real servers by tests/contract. Source: kubernetes.io, "Extend the Kubernetes API with
CustomResourceDefinitions", sections on pruning, defaulting, nulls and ratcheting.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from crsyncer.core.model import Json
from tests.model.simulation.storage import copied

Schema = Mapping[str, Any]
_KEEP = "x-kubernetes-preserve-unknown-fields"
_ALWAYS = ("apiVersion", "kind", "metadata")
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def admitted(schema: Schema, obj: Json) -> Json:
    """An object without what its schema does not know, and with its defaults."""
    if schema.get(_KEEP) and "properties" not in schema:
        return obj
    own = {k: v for k, v in obj.items() if k in _ALWAYS}
    rest: Json = _admitted(schema, {k: v for k, v in copied(obj).items() if k not in _ALWAYS})
    return own | rest


def violations(schema: Schema, new: Json, old: Json | None) -> list[Json]:
    """What a schema has against an object, as causes; what `old` had already is let pass."""
    return [{"reason": "FieldValueInvalid", "field": field, "message": why} for field, why in _wrong(schema, new, old)]


def _admitted(schema: Schema, value: Any) -> Any:
    if isinstance(value, list):
        return [_admitted(schema.get("items", {}), item) for item in value]
    if not isinstance(value, dict):
        return value
    known, more, result = schema.get("properties", {}), schema.get("additionalProperties"), {}
    for name, item in value.items():
        inner = known.get(name, more if isinstance(more, dict) else None)
        if inner is None:
            if schema.get(_KEEP) or more is True:
                result[name] = item
        elif item is not None or inner.get("nullable"):
            result[name] = _admitted(inner, item)
    for name, inner in known.items():
        if name not in result and "default" in inner:
            result[name] = _admitted(inner, copied(inner["default"]))
    return result


def _wrong(schema: Schema, new: Any, old: Any, at: str = "") -> Iterator[tuple[str, str]]:
    if new == old or (new is None and schema.get("nullable")):
        return
    kind = schema.get("type", "")
    if kind in _TYPES and (not isinstance(new, _TYPES[kind]) or (isinstance(new, bool) and kind != "boolean")):
        yield at, f"{at} in body must be of type {kind}"
        return
    if "enum" in schema and new not in schema["enum"]:
        yield at, f"{at}: unsupported value"
    if "pattern" in schema and isinstance(new, str) and not re.search(schema["pattern"], new):
        yield at, f"{at} in body should match '{schema['pattern']}'"
    if "maximum" in schema and isinstance(new, int | float) and new > schema["maximum"]:
        yield at, f"{at} in body should be less than or equal to {schema['maximum']}"
    if "minimum" in schema and isinstance(new, int | float) and new < schema["minimum"]:
        yield at, f"{at} in body should be greater than or equal to {schema['minimum']}"
    if isinstance(new, dict):
        before = old if isinstance(old, dict) else {}
        for name in schema.get("required", []):
            if name not in new:
                yield f"{at}.{name}".lstrip("."), "Required value"
        for name, inner in schema.get("properties", {}).items():
            if name in new:
                yield from _wrong(inner, new[name], before.get(name), f"{at}.{name}".lstrip("."))
    if isinstance(new, list) and "items" in schema:
        for number, item in enumerate(new):
            yield from _wrong(schema["items"], item, None, f"{at}[{number}]")
