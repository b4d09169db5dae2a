"""A cloud with three robots, confined by what `crsyncer cloud-manifests` prints, and requests in their names."""

import copy
import http.client
import itertools
import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from crsyncer.adapters.retries import until
from crsyncer.console.confinement.manifests import Plan, Profile, confinable, manifests
from crsyncer.core.content.object_content import ROBOT
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.sync_policy import API_VERSION, KIND, read_sync_policy
from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.resource import CRD, Resource
from tests.system.bed import LABEL, SECONDS, crd

GROUP = "confined.example.com"
NUMBERS = itertools.count(1)
"""One for each object on a worker's planes, whichever module makes it."""
ROBOTS = ("r1", "r2", "r3")
SHARED = "shared-objects"
KINDS = {
    "goals": crd(GROUP, plural="goals", filtered="true"),
    "errands": crd(GROUP, plural="errands", filtered="true", status=False),
    "carts": crd(GROUP, plural="carts", filtered="true", subtree="robot"),
    "findings": crd(GROUP, plural="findings", source="robot"),
    "areas": crd(GROUP, plural="areas", filtered="true", cluster=True),
}
BLOCKING = {
    "parcels": {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "parcels"},
        "spec": {"resource": {"group": GROUP, "resource": "parcels"}, "deletion": {"mode": "blocking"}},
    }
}
"""The SyncPolicies of kinds whose deletion is blocking."""
EVERY = {**KINDS, "parcels": crd(GROUP, plural="parcels", filtered="true")}
"""All kinds of this cloud; the CRDs of KINDS say all about them."""
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ResourceQuota": "/api/v1/namespaces/{}/resourcequotas",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the status code, and the body, decoded where it is JSON."""

    status: int
    body: Any

    @property
    def message(self) -> str:
        """The Status object's message."""
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else str(self.body)


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody with a token. Requests are sent byte by byte as they are given: no path is put right."""

    plane: Plane
    token: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One request, again while the server asks for patience (429)."""
        context = ssl.create_default_context(cafile=str(self.plane.ca_file))
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **self.headers, **headers}
        while True:
            connection = http.client.HTTPSConnection("127.0.0.1", self.plane.port, timeout=60, context=context)
            try:
                connection.request(method, path, None if body is None else json.dumps(body), sent)
                reply = connection.getresponse()
                text = reply.read().decode()
            finally:
                connection.close()
            if reply.status != 429:
                return Answer(reply.status, decoded(text))
            time.sleep(0.1)

    def patch(self, path: str, *operations: Mapping[str, Any]) -> Answer:
        """A JSON Patch."""
        return self.ask("PATCH", path, list(operations), **JSON_PATCH)


def decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def at(plural: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """The path of a collection, object or subresource of the kinds here."""
    path = Resource(GROUP, "v1", plural, "").path(namespace=namespace, name=name, subresource=subresource)
    assert path.startswith("/apis/")
    return path


def thing(plural: str, namespace: str, name: str, robot: str = "", **fields: Any) -> dict[str, Any]:
    """An object of a robot, labelled for it, or signed by it where robots own the kind."""
    metadata: dict[str, Any] = {"name": name, "labels": {LABEL: robot}}
    if namespace:
        metadata["namespace"] = namespace
    if plural == "findings":
        metadata["annotations"] = {ROBOT: robot}
    kind = EVERY[plural]["spec"]["names"]["kind"]
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "spec": {"secret": "apple"}, **fields}


class Confined:
    """The cloud of these tests. Made once; each test makes objects of its own."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self.admin = Caller(plane, plane.admin_token)
        for each in EVERY.values():
            self._make(CRD.path(), each)
        self._make("/api/v1/namespaces", {"metadata": {"name": SHARED}})
        for profile in Profile:
            kinds = [each for each in EVERY.values() if profile is Profile.SHARED or each["spec"]["scope"] != "Cluster"]
            policies = tuple(policy_of(each, profile) for each in kinds)
            self.apply(Plan(ROBOTS, policies, profile=profile, namespaces=(SHARED,)))
        self.robots = {robot: self.caller(f"robot-{robot}", "crsyncer") for robot in ROBOTS}
        self.sharing = {robot: self.caller("crsyncer-robots", robot) for robot in ROBOTS}
        self._until_in_force()

    def apply(self, plan: Plan) -> None:
        """As `kubectl apply` does with what the command prints, in its order."""
        for each in manifests(plan):
            content = each.content
            self._make(_PATHS[content["kind"]].format(content["metadata"].get("namespace")), content)

    def create(self, plural: str, robot: str, *, shared: bool = False, **fields: Any) -> dict[str, Any]:
        """A new object of a robot, made by the administrator: in its namespace, or where all robots' are."""
        cluster = EVERY[plural]["spec"]["scope"] == "Cluster"
        namespace = "" if cluster else SHARED if shared else f"robot-{robot}"
        made = self.admin.ask(
            "POST", at(plural, namespace), thing(plural, namespace, f"o{next(NUMBERS)}", robot, **fields)
        )
        assert made.status == 201, made
        return dict(made.body)

    def now(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        """An object as it is."""
        found = self.admin.ask("GET", where(obj))
        assert found.status == 200, found
        return dict(found.body)

    def _make(self, path: str, obj: Any) -> None:
        answer = self.admin.ask("POST", path, obj)
        assert answer.status in (201, 409), answer

    def caller(self, namespace: str, name: str) -> Caller:
        """Somebody with a token of a service account."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        answer = self.admin.ask("POST", path, {"spec": {"expirationSeconds": 3600}})
        assert answer.status == 201, answer
        return Caller(self.plane, answer.body["status"]["token"])

    def _until_in_force(self) -> None:
        """A server hears of roles and policies by watch: wait until each kind's answers are those that it will give."""

        def settled() -> bool:
            for plural in EVERY:
                cluster = EVERY[plural]["spec"]["scope"] == "Cluster"
                for robot in ROBOTS:
                    if not cluster and self.robots[robot].ask("GET", at(plural, f"robot-{robot}")).status != 200:
                        return False
                    if self.sharing[robot].ask("GET", at(plural, "" if cluster else SHARED)).status != 200:
                        return False
                # Refused by admission, in whichever of its objects: a policy that is not there refuses nobody.
                probe = self._probe(plural)
                if probe.status != 403 or "crsyncer: " not in probe.message:
                    return False
            wrong = self.admin.ask(
                "POST", f"{at('goals', 'robot-r1')}?dryRun=All", thing("goals", "robot-r1", "x", "r2")
            )
            another = "/api/v1/namespaces/crsyncer-robots/serviceaccounts/r2/token"
            token = self.sharing["r1"].ask("POST", another, {"spec": {"expirationSeconds": 600}})
            return (wrong.status, token.status) == (422, 403)

        assert until(settled, seconds=SECONDS)

    def _probe(self, plural: str) -> Answer:
        namespace = "" if EVERY[plural]["spec"]["scope"] == "Cluster" else SHARED
        path = f"{at(plural, namespace)}?dryRun=All"
        who = {"Impersonate-User": "robot:", "Impersonate-Group": "system:masters"}
        return self.admin.ask("POST", path, thing(plural, namespace, "probe", "r1"), **who)


def policy_of(raw: dict[str, Any], profile: Profile) -> KindPolicy:
    """What a robot can be confined to of a kind, with its SyncPolicy."""
    policy = confinable(raw, profile, place="-")
    own = BLOCKING.get(policy.in_cloud.plural)
    return policy if own is None else replace(policy, sync_policy=read_sync_policy(own))


def where(obj: Mapping[str, Any], subresource: str = "") -> str:
    """The path of an object."""
    metadata = obj["metadata"]
    plural = next(key for key, each in EVERY.items() if each["spec"]["names"]["kind"] == obj["kind"])
    return at(plural, metadata.get("namespace", ""), metadata["name"], subresource)


def changed(obj: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A copy with other top-level fields; those that are None are left out."""
    merged = copy.deepcopy(obj) | fields
    return {key: value for key, value in merged.items() if value is not None}


def meta(obj: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A copy with other metadata."""
    return changed(obj, metadata=obj["metadata"] | fields)
