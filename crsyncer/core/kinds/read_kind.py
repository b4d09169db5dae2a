"""From a robot's CRD and its annotations to how its kind is synced (S1)."""

from collections.abc import Mapping

from crsyncer.core.content.annotations import (
    DRIFT,
    FILTER,
    OBSERVED_GENERATION,
    ORPHANS,
    OURS,
    SPEC_SOURCE,
    SUBTREE,
    SYNCER,
)
from crsyncer.core.kinds.endpoint import Endpoint
from crsyncer.core.kinds.kind_policy import KindPolicy, Version
from crsyncer.core.kinds.namespaces import EVERYWHERE, Namespaces
from crsyncer.core.model import Json, Side

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
NO_PLACES: Mapping[str, str] = {}
_CRD_METADATA = ("name", "uid", "generation", "deletionTimestamp")
_CRD_VERSION = ("name", "served", "storage", "subresources")


def read_flag(text: str) -> bool | None:
    """What an annotation's text says that is true or false; None: neither (S1.3)."""
    return True if text in _TRUE else False if text in _FALSE else None


def read_policy(crd: Json, robot: str, *, namespaces: Namespaces = EVERYWHERE) -> KindPolicy | None:
    """The policy that a robot's CRD asks for; None when it is not ours (S1.2)."""
    annotations = crd.get("metadata", {}).get("annotations") or {}
    return policy_by(annotations, crd, robot, namespaces=namespaces) if is_annotated(crd) else None


def is_annotated(crd: Json) -> bool:
    """Whether a CRD's annotations say that its kind is synced (S1.2)."""
    return bool((crd.get("metadata", {}).get("annotations") or {}).get(SPEC_SOURCE))


def is_terminating(crd: Json) -> bool:
    """Whether a CRD is being deleted: its kind stops at once (S1.8)."""
    return "deletionTimestamp" in crd["metadata"]


def policy_by(
    annotations: Json, crd: Json, robot: str, *, namespaces: Namespaces, places: Mapping[str, str] = NO_PLACES
) -> KindPolicy:
    """The policy that these annotations make of a robot's CRD.

    A wrong annotation never fails open: the policy then has a `problem` and nothing may be synced (S1.3).
    `places` says where a setting is that is here as an annotation, and is none.
    """
    source = annotations.get(SPEC_SOURCE) or ""
    spec = crd["spec"]
    problems: list[tuple[str, str]] = []
    """The rule that is broken, and how."""
    if source not in (Side.CLOUD, Side.ROBOT):
        problems.append(("S1.2", f'{SPEC_SOURCE} is "{source}"; allowed: cloud, robot'))

    filter_text = annotations.get(FILTER, "false")
    filtered = read_flag(filter_text)
    if filtered is None:
        problems.append(("S1.3", f'{FILTER} is "{filter_text}"; allowed: true, false'))
    if filtered and not robot:
        place = places.get(FILTER, FILTER)
        problems.append(("S1.3", f"{place} is true, but this agent has no robot name; set --robot-name"))
    if source == Side.ROBOT and not robot:
        place = places.get(SPEC_SOURCE, SPEC_SOURCE)
        text = f"{place} is robot, but this agent has no robot name to sign copies with; set --robot-name"
        problems.append(("S1.2", text))

    subtree = annotations.get(SUBTREE)
    if subtree is not None and (not subtree.strip() or "." in subtree):
        problems.append(("S1.4", f'{SUBTREE} is "{subtree}"; allowed: one top-level key of .status'))

    def one_of(key: str, default: str, other: str, *, rule: str) -> bool:
        text = annotations.get(key, default)
        if text not in (default, other):
            problems.append((rule, f'{key} is "{text}"; allowed: {default}, {other}'))
        return bool(text == other)

    endpoint = Endpoint(
        group=spec["group"],
        plural=spec["names"]["plural"],
        kind=spec["names"]["kind"],
        namespaced=spec["scope"] == "Namespaced",
    )
    return KindPolicy(
        on_robot=endpoint,
        in_cloud=endpoint,
        versions=tuple(
            Version(v["name"], v["served"], v["storage"], "status" in (v.get("subresources") or {}))
            for v in spec["versions"]
        ),
        upstream=Side.ROBOT if source == Side.ROBOT else Side.CLOUD,
        filtered=bool(filtered),
        robot=robot,
        subtree=subtree,
        map_generation=one_of(OBSERVED_GENERATION, "copy", "map", rule="S4.7"),
        keep_drift=one_of(DRIFT, "revert", "keep", rule="S3.5"),
        keep_orphans=one_of(ORPHANS, "delete", "keep", rule="S5.3"),
        problem="; ".join(text for _, text in problems),
        rule=next((rule for rule, _ in problems), ""),
        has_crd=crd.get("metadata", {}).get("uid") != "",
        namespaces=namespaces,
        aliases=_aliases(spec["names"]),
    )


def reduced_crd(crd: Json) -> Json:
    """A CRD as far as it decides how its kind is synced: schemas and foreign annotations are large."""
    metadata, spec = crd["metadata"], crd["spec"]
    annotations = metadata.get("annotations") or {}
    return {
        "metadata": {
            **{key: value for key, value in metadata.items() if key in _CRD_METADATA},
            "annotations": {key: text for key, text in annotations.items() if key.startswith((SYNCER, OURS))},
        },
        "spec": {
            **{key: spec[key] for key in ("group", "names", "scope")},
            "versions": [{key: each.get(key) for key in _CRD_VERSION} for each in spec["versions"]],
        },
    }


def _aliases(names: Json) -> tuple[str, ...]:
    """The names that kubectl takes for a kind besides its plural."""
    found = (names.get("singular"), names["kind"], *(names.get("shortNames") or ()))
    return tuple(dict.fromkeys(str(name) for name in found if name))
