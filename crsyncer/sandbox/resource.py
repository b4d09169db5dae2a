"""Kinds and their addresses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of objects and where the API server serves it. The core group is ""."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @classmethod
    def of_crd(cls, crd: Mapping[str, Any]) -> "Resource":
        """The kind that a CRD defines, in its storage version."""
        spec = crd["spec"]
        return cls(
            group=spec["group"],
            version=next(version["name"] for version in spec["versions"] if version["storage"]),
            plural=spec["names"]["plural"],
            kind=spec["names"]["kind"],
            namespaced=spec["scope"] == "Namespaced",
        )

    @classmethod
    def of_object(cls, obj: Mapping[str, Any]) -> "Resource":
        """The kind of an object; its plural is formed by the rule that all kinds of Kubernetes here follow."""
        group, _, version = obj["apiVersion"].rpartition("/")
        kind = obj["kind"]
        plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
        return cls(group, version, plural.lower(), kind, namespaced="namespace" in obj["metadata"])

    @property
    def api_version(self) -> str:
        """As in an object's `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, *, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        """The URL's path: of the collection, of one object, of its subresource."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inside = f"namespaces/{namespace}" if self.namespaced and namespace else ""
        return "/".join(part for part in (root, inside, self.plural, name, subresource) if part)

    def object(
        self,
        name: str,
        *,
        namespace: str = "default",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """An object of this kind: `Resource(...).object("a", spec={"x": 1})`. Enough to address one, too."""
        metadata: dict[str, Any] = {"name": name}
        if self.namespaced:
            metadata["namespace"] = namespace
        if labels:
            metadata["labels"] = dict(labels)
        if annotations:
            metadata["annotations"] = dict(annotations)
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, **fields}


NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SERVICE_ACCOUNT = Resource("", "v1", "serviceaccounts", "ServiceAccount")
CONFIG_MAP = Resource("", "v1", "configmaps", "ConfigMap")
CRD = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
_RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLE = Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDING = Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
