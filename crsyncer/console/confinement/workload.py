"""Two pods of crsyncer in the cloud, of which one works and one stands by, as confined as Kubernetes can have them."""

from collections.abc import Iterator
from dataclasses import dataclass

from crsyncer.console.confinement.manifest_objects import Manifest, core_object
from crsyncer.core.model import Json

MONITORING = "monitoring"
"""The namespace whose pods may connect, for metrics and the page."""
_USER = 65532
_PRIORITY = 1_000_000_000
"""The highest that is not reserved for the system's own, which some providers allow in kube-system alone."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What runs in the pods: `crsyncer` with these arguments, serving health and metrics on a port."""

    name: str
    """Of everything: the Deployment, its account, the Service and so on."""
    namespace: str
    image: str
    arguments: tuple[str, ...]
    port: int
    memory: tuple[str, str]
    """What it asks for, and its limit."""


def workload_manifests(workload: Workload) -> Iterator[Manifest]:
    """The Deployment, and who may reach it and evict it. Its namespace and account are made elsewhere."""
    name, namespace = workload.name, workload.namespace
    selector: Json = {"matchLabels": {"app": name}}
    priority: Json = {
        **_object("scheduling.k8s.io/v1", "PriorityClass", name),
        "value": _PRIORITY,
        "description": "crsyncer: without it nothing that somebody changes reaches a robot",
    }
    yield Manifest("the last pods that a full cluster gives up", priority)
    deployment: Json = {
        **_object("apps/v1", "Deployment", name, namespace),
        "spec": {
            "replicas": 2,
            "selector": selector,
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec(workload)},
        },
    }
    yield Manifest("two pods, of which one leads and one stands by", deployment)
    budget: Json = {
        **_object("policy/v1", "PodDisruptionBudget", name, namespace),
        "spec": {"minAvailable": 1, "selector": selector, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
    }
    yield Manifest("a node that is drained leaves one of them", budget)
    scraped = {"prometheus.io/scrape": "true", "prometheus.io/port": str(workload.port)}
    service: Json = {
        **core_object("Service", name, namespace, annotations=scraped),
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": workload.port, "targetPort": "http"}]},
    }
    yield Manifest("metrics, and the page for people", service)
    yield Manifest(
        f"only pods in namespace {MONITORING} may connect; it connects to API servers alone", _policy(workload)
    )


def pod_spec(workload: Workload) -> Json:
    """The pod. The Pod Security level `restricted` admits it."""
    own = {"labelSelector": {"matchLabels": {"app": workload.name}}, "topologyKey": "kubernetes.io/hostname"}
    spread = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": own}]}
    return {
        "serviceAccountName": workload.name,
        "automountServiceAccountToken": True,
        "priorityClassName": workload.name,
        "affinity": {"podAntiAffinity": spread},
        "terminationGracePeriodSeconds": 15,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(workload)],
    }


def _container(workload: Workload) -> Json:
    requested, limit = workload.memory
    probe = {"timeoutSeconds": 5}
    return {
        "name": "crsyncer",
        "image": workload.image,
        "args": list(workload.arguments),
        "env": [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "CRSYNCER_LISTEN", "value": f"$(POD_IP):{workload.port}"},
            {"name": "CRSYNCER_LOG_FORMAT", "value": "json"},
        ],
        "ports": [{"name": "http", "containerPort": workload.port}],
        "startupProbe": {"httpGet": _path("/livez"), "periodSeconds": 5, "failureThreshold": 60},
        "livenessProbe": {"httpGet": _path("/livez"), "periodSeconds": 20, **probe},
        "readinessProbe": {"httpGet": _path("/readyz"), **probe},
        "resources": {
            "requests": {"cpu": "100m", "memory": requested, "ephemeral-storage": "64Mi"},
            "limits": {"memory": limit},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _path(path: str) -> Json:
    return {"path": path, "port": "http"}


def _policy(workload: Workload) -> Json:
    ports = [(53, "UDP"), (53, "TCP"), (443, "TCP"), (6443, "TCP")]
    source = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": MONITORING}}}
    return {
        **_object("networking.k8s.io/v1", "NetworkPolicy", workload.name, workload.namespace),
        "spec": {
            "podSelector": {"matchLabels": {"app": workload.name}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [source], "ports": [{"port": workload.port, "protocol": "TCP"}]}],
            "egress": [{"ports": [{"port": port, "protocol": protocol} for port, protocol in ports]}],
        },
    }


def _object(api_version: str, kind: str, name: str, namespace: str = "") -> Json:
    return core_object(kind, name, namespace) | {"apiVersion": api_version}
