"""The content of an object as anybody sees it: digests, what travels, how two differ (S3). Knows no policy.

Digests are of meaning, not of text: key order and number spelling do not count (S3.7).
"""

import hashlib
import json
import re
from sys import intern
from typing import Any

from crsyncer.core.content.annotations import OURS, SYNCER
from crsyncer.core.model import Json, Key, Stamp

UPSTREAM_UID = OURS + "upstream-uid"
ROBOT = OURS + "robot"
APPLIED = OURS + "applied"
LAST_DESIRED = OURS + "last-applied"
"""The synced fields that upstream's object called for when the copy was written last, with keepLocal only (C3.3)."""
TOO_LARGE = "large"
"""In `APPLIED`: these fields are too large to be kept."""
OF_SECRET = "secret:"  # noqa: S105 - no password
"""In `APPLIED`, how the digest of sensitive content begins: copies keep it when their kind is no Secret any more."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_STAYING = (OURS, SYNCER, "kcp.io/")
_KCPS = ".kcp.io/"
_NOT_CONTENT = frozenset({"apiVersion", "kind", "metadata", "status"})
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_WHOLE_FLOAT = re.compile(r"\d(\.0(?!\d)|e\+)")
"""How Python writes a float that is a whole number: 1.0, 1e+16, 1.5e+300. Texts may look the same."""
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
PROPAGATIONS = ("background", "foreground", "orphan")
"""What may become of the dependents of an object that is deleted."""

Known = dict[Any, Any]
"""Texts and stamps, each by itself: `setdefault` returns the one that is kept already, where there is one."""


def json_size(value: Any) -> int:
    """The bytes of a value as an API server is sent it."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="replace"))


def digest(value: Any, key: bytes = b"") -> str:
    """96 bits that are equal for values of equal meaning: 1 and 1.0 are, 1 and true and "1" are not.

    Without its key nobody can tell whether a guess is the value of which a digest is.
    """
    text = _CANONICAL.encode(value)
    if _WHOLE_FLOAT.search(text):
        text = _CANONICAL.encode(whole_numbers(value))
    return hashlib.blake2b(text.encode(), digest_size=12, key=key).hexdigest()


def whole_numbers(value: Any) -> Any:
    """The value with every float that is a whole number turned into that integer."""
    if isinstance(value, dict):
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def is_name(text: str) -> bool:
    """Whether an object may have this name."""
    return NAME.fullmatch(text) is not None


def key_of(raw: Json) -> Key:
    """The key of an object that an API server sent."""
    metadata = raw["metadata"]
    return Key(intern(metadata.get("namespace") or ""), metadata["name"])  # many objects are in few namespaces


def has_sound_texts(raw: Json) -> bool:
    """Whether an object's labels and annotations are texts."""
    found = (raw["metadata"].get(name) for name in ("labels", "annotations"))
    return all(
        texts is None or (isinstance(texts, dict) and all(isinstance(text, str) for text in texts.values()))
        for texts in found
    )


def is_deeper_than(raw: Any, levels: int) -> bool:
    """Whether a value is nested more deeply. Without recursion: a deep object would overflow the stack."""
    layer: list[Any] = [raw]
    for _ in range(levels):
        layer = [
            item
            for value in layer
            for item in (value.values() if isinstance(value, dict) else value)
            if isinstance(item, (dict, list))
        ]
        if not layer:
            return False
    return True


def synced_annotations(raw: Json) -> dict[str, str]:
    """An object's annotations without those that never travel: ours, kubectl's and those of kcp (C2.1)."""
    annotations = raw["metadata"].get("annotations") or {}
    return {k: v for k, v in annotations.items() if not k.startswith(_STAYING) and _KCPS not in k and k != LAST_APPLIED}


def synced_labels(raw: Json) -> dict[str, str]:
    """An object's labels without those that never travel: ours and those of kcp (C2.1)."""
    return {k: v for k, v in labels(raw).items() if not k.startswith(_STAYING) and _KCPS not in k}


def labels(raw: Json) -> dict[str, str]:
    """An object's labels."""
    return raw["metadata"].get("labels") or {}


def stamp_of(raw: Json, known: Known | None = None) -> Stamp | None:
    """What our annotations on a copy say; None when it is not a copy of ours. Texts that are `known` are kept once."""
    annotations = raw["metadata"].get("annotations") or {}
    uid = annotations.get(UPSTREAM_UID)
    if not uid:
        return None
    same = ({} if known is None else known).setdefault
    robot = annotations.get(ROBOT, "")
    try:
        applied = json.loads(annotations.get(APPLIED, ""))
        content = str(applied["digest"])
        return Stamp(
            upstream_uid=same(uid, uid),
            robot=same(robot, robot),
            digest=same(content, content),
            labels=tuple(map(str, applied["labels"])),
            annotations=tuple(map(str, applied["annotations"])),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        # Somebody edited the annotation: the uid still says whose copy it is, and the content is written again.
        return Stamp(upstream_uid=uid, robot=robot, bare=APPLIED not in annotations)


def concealed(value: Any, key: bytes) -> Any:
    """The value with a digest in place of each text, number and boolean in it (C5.6)."""
    match value:
        case dict():
            return {name: concealed(each, key) for name, each in value.items()}
        case list():
            return [concealed(each, key) for each in value]
        case None:
            return None
    return f"digest {digest(value, key)}"


def content_of(raw: Json) -> Json:
    """The part of an object that upstream owns, labels and annotations aside (S3.1)."""
    return {k: v for k, v in raw.items() if k not in _NOT_CONTENT}


def touched(known: Json, answered: Json) -> bool:
    """Whether more than the status has changed between two versions of an object, of whose metadata these are.

    A change of anything but metadata and status raises the generation. Where the status is no subresource, a change of
    it does so as well, and the two cannot be told apart. Some built-in kinds have no generation: nothing is known then.
    """
    return "generation" not in known or any(
        known.get(name) != answered.get(name) for name in {*known, *answered} - {"resourceVersion", "managedFields"}
    )


def synced_fields(raw: Json) -> Json:
    """The content, labels and synced annotations of an object."""
    return content_of(raw) | {"metadata": {"labels": synced_labels(raw), "annotations": synced_annotations(raw)}}


def differences(wanted: Json, found: Json) -> list[str]:
    """The paths at which an object is not as wanted: of content, labels and synced annotations."""
    return [path for path, _, _ in leaf_differences(synced_fields(wanted), synced_fields(found))]


def leaf_differences(one: Any, other: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """The fields in which two values differ: the path, and the value of each."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted(one.keys() | other.keys())
        return [leaf for key in keys for leaf in leaf_differences(one.get(key), other.get(key), f"{path}.{key}")]
    return [] if digest(one) == digest(other) else [(path.removeprefix("."), one, other)]


def map_generation(value: Any, generations: tuple[tuple[int, int], ...]) -> Any:
    """The status with `observedGeneration` translated to upstream's numbers; 0 when not known (S4.7)."""
    observed = _observed(value)
    return value if observed is None else {**value, "observedGeneration": dict(generations).get(observed, 0)}


def note_observed(value: Any, generations: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """The generations with a place for the one that a status observed: 0, where it is not known, and only of the last.

    It becomes known when the write that made it is answered, and then the status has to go up again (S4.7).
    """
    known = tuple(pair for pair in generations if pair[1])
    observed = _observed(value)
    return known if observed is None or observed in dict(known) else (*known, (observed, 0))


def _observed(value: Any) -> int | None:
    observed = value.get("observedGeneration") if isinstance(value, dict) else None
    return observed if isinstance(observed, int) and not isinstance(observed, bool) else None
