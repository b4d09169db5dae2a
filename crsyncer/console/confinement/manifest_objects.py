"""The objects that manifests are made of: accounts, roles and bindings."""

from collections.abc import Sequence
from dataclasses import dataclass

from crsyncer.core.model import Json

RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object to apply, and in a line what it is for."""

    purpose: str
    content: Json


def core_object(kind: str, name: str, namespace: str = "", **metadata: Json) -> Json:
    """An object of the core group that has nothing but its metadata."""
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **where, **metadata}}


def rbac_object(kind: str, name: str, *, namespace: str = "", **metadata: Json) -> Json:
    """A role or binding that has nothing but its metadata."""
    return core_object(kind, name, namespace, **metadata) | {"apiVersion": f"{RBAC}/v1"}


def rule(group: str, resources: Sequence[str], verbs: Sequence[str], *, names: Sequence[str] = ()) -> Json:
    """A rule of a role: verbs for resources of a group, or (with `names`) for some of their objects."""
    found: Json = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    return found | {"resourceNames": list(names)} if names else found


def role_binding(role: str, namespace: str, kind: str, subject: Json) -> Json:
    """Who has a role of this kind, in a namespace or (empty) everywhere. It is called like the role."""
    content = rbac_object("RoleBinding" if namespace else "ClusterRoleBinding", role, namespace=namespace)
    return content | {"roleRef": {"apiGroup": RBAC, "kind": kind, "name": role}, "subjects": [subject]}


def account_subject(account: str, namespace: str) -> Json:
    """A service account, as bindings name it."""
    return {"kind": "ServiceAccount", "name": account, "namespace": namespace}


def account_object(name: str, namespace: str) -> Json:
    """A service account whose token is in no pod that does not ask for it."""
    return core_object("ServiceAccount", name, namespace) | {"automountServiceAccountToken": False}
