"""Kinds without a CRD on the robot: what discovery shows of them, as a CRD would say it (C1.4)."""

from collections.abc import Mapping

from crsyncer.core.kinds.kind_name import Resource, version_priority
from crsyncer.core.model import Json

CORE: Json = {"versions": [{"version": "v1"}]}
"""What the core group serves; it has no list of versions like that of other groups."""
CRD_TO_COME = "the robot has no CRD of this kind yet"
"""The sentence for a kind whose CRD a SyncPolicy brings to the robot (C8)."""
_VERBS = frozenset({"create", "list", "watch"})
"""Without them a kind cannot be synced; one that is being deleted lacks the first."""


def version_names(group: Json) -> list[str]:
    """The versions in what discovery says of a group."""
    return [str(each.get("version", "")) for each in group.get("versions") or []]


def read_resource(resource: Resource, group: Json, shown: Mapping[str, Json]) -> Json | None:
    """The kind as a CRD would describe it; None: it is not served, or cannot be listed, watched and created.

    `group` is what discovery says of the group, `shown` of each version.
    """
    found = {name: entry for name, body in shown.items() if (entry := _entry(resource.resource, body)) is not None}
    if not found:
        return None
    preferred = (group.get("preferredVersion") or {}).get("version")
    best = preferred if preferred in found else min(found, key=version_priority)
    entry = found[best]
    described = unknown(resource)
    described["spec"] |= {
        "names": {
            "plural": resource.resource,
            "kind": entry["kind"],
            "singular": entry.get("singularName"),
            "shortNames": entry.get("shortNames"),
        },
        "scope": "Namespaced" if entry.get("namespaced") else "Cluster",
        "versions": [
            {
                "name": name,
                "served": True,
                "storage": name == best,
                "subresources": _subresources(resource, shown[name]),
            }
            for name in sorted(found, key=version_priority)
        ],
    }
    return described


def unknown(resource: Resource) -> Json:
    """A kind of which nothing is known, as a CRD would describe it: without a uid and versions."""
    return {
        "metadata": {"name": resource.full_name, "uid": "", "annotations": {}},
        "spec": {
            "group": resource.group,
            "names": {"plural": resource.resource, "kind": ""},
            "scope": "Namespaced",
            "versions": [],
        },
    }


def not_served(resource: Resource) -> str:
    """The sentence for a kind that the robot does not serve."""
    return f"the robot has no CRD of {resource.full_name}, and serves no such kind"


def _entry(plural: str, body: Json) -> Json | None:
    entries = (each for each in body.get("resources") or [] if each.get("name") == plural)
    return next((each for each in entries if _VERBS.issubset(each.get("verbs") or []) and each.get("kind")), None)


def _subresources(resource: Resource, body: Json) -> Json:
    status = f"{resource.resource}/status"
    return {"status": {}} if any(each.get("name") == status for each in body.get("resources") or []) else {}
