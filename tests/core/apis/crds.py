"""CRDs for the tests of revisions."""

from copy import deepcopy
from typing import Any

from crsyncer.core.model import Json


def schema(**spec: Any) -> Json:
    """The schema of an object with these fields of `spec`."""
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}


def version(name: str = "v1", *, served: bool = True, storage: bool = True, **spec: Any) -> Json:
    """A version of a CRD."""
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema(**spec)}}


def crd(*versions: Json, scope: str = "Namespaced", stored: tuple[str, ...] = (), **spec: Any) -> Json:
    """A CRD with these versions, as a server shows it."""
    names = {"plural": "goals", "kind": "Goal", "singular": "goal", "listKind": "GoalList"}
    return deepcopy(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "goals.lab.example.com", "uid": "u1", "annotations": {"a": "b"}},
            "spec": {"group": "lab.example.com", "names": names, "scope": scope, "versions": [*versions], **spec},
            "status": {"storedVersions": [*stored]},
        }
    )
