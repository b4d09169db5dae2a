"""POLICIES.md: its policies, and its reference, a table of every field of the schema."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Schema = dict[str, Any]

_ROOT = Path(__file__).parents[2]
PAGE = _ROOT / "POLICIES.md"
_CRD = _ROOT / "crsyncer/cli/syncpolicy.yaml"
_WHOLE = frozenset({"selector", "value"})
"""Fields whose parts are not listed: everybody knows a LabelSelector, and a value is any JSON."""


def policies() -> dict[str, str]:
    """The policy below each title."""
    parts = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    found = {part.partition("\n")[0]: re.findall(r"```yaml\n(.*?)```", part, re.DOTALL) for part in parts}
    return {title: policy for title, blocks in found.items() for policy in blocks}


def schema() -> Schema:
    """The schema of a SyncPolicy's spec."""
    crd = yaml.safe_load(_CRD.read_text())
    spec: Schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec


def table() -> str:
    """The table, as Markdown."""
    rows = [f"| {field} | {takes} | {meaning} |" for field, takes, meaning in _rows("", schema(), {})]
    return "\n".join(["| field of `spec` | takes | meaning |", "|---|---|---|", *rows])


def _rows(path: str, parent: Schema, listed: dict[int, str]) -> Iterator[tuple[str, str, str]]:
    """Of each field its name, what it takes and what it means; `listed` has the fields whose parts came before."""
    for name, field in parent["properties"].items():
        where = f"{path}{name}"
        inner, parts = (f"{where}[].", field["items"]) if "items" in field else (f"{where}.", field)
        properties = parts.get("properties") if name not in _WHOLE else None
        former = listed.setdefault(id(properties), where) if properties else where
        meaning = field.get("description", "").replace("|", "or")
        yield (
            f"`{where}`",
            _takes(field) + (", required" if name in parent.get("required", ()) else ""),
            meaning if former == where else f"{meaning} Its fields are those of `{former}`.",
        )
        if properties and former == where:
            yield from _rows(inner, parts, listed)


def _takes(field: Schema) -> str:
    """What a field may have."""
    if "enum" in field and field["type"] != "boolean":
        words = ", ".join(f"`{each}`" for each in field["enum"])
        return f"{words}; default `{field['default']}`" if "default" in field else words
    match field.get("type"):
        case "string":
            most = f" of at most {field['maxLength']} characters" if "maxLength" in field else ""
            return f"text{most}" + (f"; default `{field['default']}`" if "default" in field else "")
        case "array":
            most = f" of at most {field['maxItems']}" if "maxItems" in field else ""
            return f"list{most}"
        case "boolean":
            return "`true`" if field.get("enum") == [True] else "`true`, `false`"
        case "object":
            return "object"
    return "any JSON but null"
