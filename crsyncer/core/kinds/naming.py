"""How a new copy is called, and whose copy an object is (C2.2, C2.3). Its marks are in `marks`."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from crsyncer.core.content.marks import UPSTREAM_CLUSTER, UPSTREAM_NAME, UPSTREAM_NAMESPACE, Marks
from crsyncer.core.content.object_content import NAME, NAMESPACE, UPSTREAM_UID
from crsyncer.core.content.template import Names, Template, read_template
from crsyncer.core.model import Json, Key
from crsyncer.errors import Never

LONGEST_NAME = 253
LONGEST_NAMESPACE = 63
_DIGITS = 10
_MARKS = (UPSTREAM_CLUSTER, UPSTREAM_NAMESPACE, UPSTREAM_NAME)


@dataclass(frozen=True, slots=True)
class Naming:
    """How copies are called."""

    namespace: Template
    name: Template

    def new_name(self, original: Key, *, robot: str, identity: str, namespaced: bool) -> Key:
        """What a new copy is called. Raises Never where that is no valid name.

        `robot` is the robot's name, `identity` that of upstream's cluster; `namespaced`: copies are in namespaces.
        """
        names = Names(original.namespace, original.name, robot=robot, identity=identity)
        try:
            namespace = cut(self.namespace.render(names), LONGEST_NAMESPACE) if namespaced else ""
            made = Key(namespace, cut(self.name.render(names), LONGEST_NAME))
        except ValueError as error:
            raise Never(f"the copy has no name: {error}") from None
        if namespaced and not NAMESPACE.fullmatch(made.namespace):
            raise Never(f'the namespace "{made.namespace}", which spec.naming makes for the copy, is not valid')
        if not NAME.fullmatch(made.name):
            raise Never(f'the name "{made.name}", which spec.naming makes for the copy, is not valid')
        return made


SAME_NAMESPACE = read_template("{namespace}", paths=False)
SAME_NAME = read_template("{name}", paths=False)


class NoOriginal(StrEnum):
    """Why an object is the copy of none of our originals. None of these is ever deleted or written."""

    UNDECIDED = "it is not known yet whose copy it is: upstream has to be listed"
    LOCAL = "it is no copy"
    FOREIGN = "it is a copy of another upstream cluster"
    DUPLICATE = "its original has another copy"


def cut(name: str, longest: int) -> str:
    """The name, or what is left of one that is too long, with digits that tell it from others.

    No label of a DNS name ends in a hyphen, and none is empty: what would precede the digits so is cut, too.
    """
    if len(name) <= longest:
        return name
    digits = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{name[: longest - _DIGITS - 1].rstrip('-.')}-{digits}"


def original_in(copy: Json) -> Key | None:
    """The original that the annotations of a copy name; None: they name none."""
    annotations = copy["metadata"].get("annotations") or {}
    if not all(key in annotations for key in _MARKS):
        return None
    return Key(annotations[UPSTREAM_NAMESPACE], annotations[UPSTREAM_NAME])


def original_of(
    copy: Json,
    *,
    stored: Key | None,
    seen: Mapping[str, Key],
    unnamed: Key | None,
    identity: str,
    listed: bool,
    namespaced: bool,
) -> Key | NoOriginal:
    """Whose copy an object is: the first of these that gives an answer decides (C2.2).

    `stored` is the answer of the store, by the copy's uid; `seen` has the keys of upstream's objects by uid; `unnamed`
    is the upstream key for the copy's own name; `identity` is that of upstream's cluster, "": not known; `listed`: so
    is upstream; `namespaced`: its objects are in namespaces. What bears nothing of ours is local, whatever upstream
    has.
    """
    metadata = copy["metadata"]
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    uid = annotations.get(UPSTREAM_UID, "")
    marked = any(key in annotations or key in labels for key in _MARKS)
    if stored is not None:
        return stored
    if uid in seen:
        return seen[uid]
    found = original_in(copy)
    if found is not None:
        if identity and annotations[UPSTREAM_CLUSTER] != identity:
            return NoOriginal.FOREIGN
        if bool(found.namespace) is namespaced:
            return found
    elif all(key in labels for key in _MARKS):
        if identity and labels[UPSTREAM_CLUSTER] != Marks(Key("", ""), identity).labels[UPSTREAM_CLUSTER]:
            return NoOriginal.FOREIGN
        names = {key: labels[key] for key in (UPSTREAM_NAMESPACE, UPSTREAM_NAME)}
        for key in seen.values():
            if names.items() <= Marks(key, identity).labels.items():
                return key
    elif uid and not marked and listed and unnamed is not None:
        return unnamed
    return NoOriginal.UNDECIDED if (uid or marked) and not listed else NoOriginal.LOCAL
