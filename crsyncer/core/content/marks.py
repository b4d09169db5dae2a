"""The marks of a copy, which say whose copy it is (C2.1)."""

import hashlib
from dataclasses import dataclass

from crsyncer.core.content.annotations import COPY_OF, COPY_OF_CLUSTER, COPY_OF_NAMESPACE
from crsyncer.core.model import Json, Key

UPSTREAM_CLUSTER = COPY_OF_CLUSTER
UPSTREAM_NAMESPACE = COPY_OF_NAMESPACE
UPSTREAM_NAME = COPY_OF
_LABEL_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Marks:
    """Whose copy an object is. Its annotation with upstream's uid is there without a policy, too."""

    original: Key
    """Upstream's name of the original."""
    cluster: str
    """The identity of upstream's cluster (S8.1)."""

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of the copy: the plain values."""
        namespace, name = self.original.namespace, self.original.name
        return {UPSTREAM_CLUSTER: self.cluster, UPSTREAM_NAMESPACE: namespace, UPSTREAM_NAME: name}

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the copy. A label holds 63 characters of few sorts, so it has digests."""
        return {key: _sha256(value)[:_LABEL_DIGITS] for key, value in self.annotations.items()}

    @property
    def selector(self) -> str:
        """The label selector of all copies of upstream's cluster."""
        return f"{UPSTREAM_CLUSTER}={self.labels[UPSTREAM_CLUSTER]}"

    def wrong_on(self, copy: Json) -> list[str]:
        """The paths at which a copy has none of them, or a wrong one."""
        wanted = {"annotations": self.annotations, "labels": self.labels}
        return [
            f"metadata.{field}.{key}"
            for field, marks in wanted.items()
            for key, value in marks.items()
            if (copy["metadata"].get(field) or {}).get(key) != value
        ]

    def are_foreign_to(self, found: Json) -> bool:
        """Whether an object is somebody else's, so that no copy may take its place (C2.5, C2.6)."""
        metadata = found["metadata"]
        cluster = (metadata.get("annotations") or {}).get(UPSTREAM_CLUSTER, self.cluster)
        return cluster != self.cluster or any(each.get("controller") for each in metadata.get("ownerReferences") or ())

    def put_on(self, copy: Json) -> Json:
        """The copy with them, and with all else as it is."""
        metadata = dict(copy["metadata"])
        metadata["annotations"] = (metadata.get("annotations") or {}) | self.annotations
        metadata["labels"] = (metadata.get("labels") or {}) | self.labels
        return copy | {"metadata": metadata}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
