"""The pods of the front door: HAProxy, and the upkeep beside it, as confined as Kubernetes can have them."""

from collections.abc import Iterator

from crsyncer.console.confinement.manifest_objects import Manifest, core_object
from crsyncer.console.confinement.workload import MONITORING
from crsyncer.core.model import Json

NAME = "crsyncer-door"
CERTIFICATE_SECRET = NAME
_SHARDS_SECRET = f"{NAME}-shards"
_USER = 65532
_ROBOTS_PORT, _HTTP_PORT = 8443, 9466
_RUN = "/run/crsyncer-door"
_SOCKET, _DIRECTORY = f"{_RUN}/master.sock", f"{_RUN}/haproxy"
_CERTIFICATE, _SHARDS = "/etc/crsyncer-door/certificate", "/etc/crsyncer-door/shards"
_SELECTOR: Json = {"matchLabels": {"app": NAME}}
_CONFINED: Json = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def pod_manifests(image: str, namespace: str) -> Iterator[Manifest]:
    """The Deployment, and who may reach it and evict it. Its namespace and account are made elsewhere."""
    deployment: Json = {
        **_object("apps/v1", "Deployment", NAME, namespace),
        "spec": {
            "replicas": 2,
            "selector": _SELECTOR,
            "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": {"metadata": {"labels": {"app": NAME}}, "spec": _pod(image)},
        },
    }
    yield Manifest("two doors; each serves every robot", deployment)
    budget: Json = {
        **_object("policy/v1", "PodDisruptionBudget", NAME, namespace),
        "spec": {"minAvailable": 1, "selector": _SELECTOR, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
    }
    yield Manifest("a node that is drained leaves one of them", budget)
    robots: Json = {
        **core_object("Service", NAME, namespace),
        "spec": {
            "type": "LoadBalancer",
            "externalTrafficPolicy": "Local",
            "selector": {"app": NAME},
            "ports": [{"name": "robots", "port": 443, "targetPort": "robots"}],
        },
    }
    yield Manifest("where robots connect; their addresses stay as they are, for the audit log", robots)
    scraped = {"prometheus.io/scrape": "true", "prometheus.io/port": str(_HTTP_PORT)}
    metrics: Json = {
        **core_object("Service", f"{NAME}-metrics", namespace, annotations=scraped),
        "spec": {"selector": {"app": NAME}, "ports": [{"name": "http", "port": _HTTP_PORT, "targetPort": "http"}]},
    }
    yield Manifest("metrics of crsyncer door run", metrics)
    yield Manifest(
        f"robots may connect to HAProxy, and pods in namespace {MONITORING} to the metrics; it connects to API servers"
        " alone",
        _policy(namespace),
    )


def _pod(image: str) -> Json:
    """The pod. The Pod Security level `restricted` admits it."""
    own = {"labelSelector": _SELECTOR, "topologyKey": "kubernetes.io/hostname"}
    spread = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": own}]}
    return {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "affinity": {"podAntiAffinity": spread},
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "initContainers": [_upkeep(image)],
        "containers": [_haproxy(image)],
        "volumes": [
            {"name": "run", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
            {"name": "certificate", "secret": {"secretName": CERTIFICATE_SECRET, "defaultMode": 0o440}},
            {"name": "shards", "secret": {"secretName": _SHARDS_SECRET, "optional": True, "defaultMode": 0o440}},
        ],
    }


def _upkeep(image: str) -> Json:
    """`crsyncer door run`, a sidecar: it starts before HAProxy, whose files it makes, and ends after it."""
    return {
        "name": "crsyncer",
        "image": image,
        "args": ["door", "run"],
        "restartPolicy": "Always",
        "env": [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "CRSYNCER_LISTEN", "value": f"$(POD_IP):{_HTTP_PORT}"},
            {"name": "CRSYNCER_LOG_FORMAT", "value": "json"},
            {"name": "CRSYNCER_DOOR_DIRECTORY", "value": _DIRECTORY},
            {"name": "CRSYNCER_DOOR_SOCKET", "value": _SOCKET},
            {"name": "CRSYNCER_DOOR_BIND", "value": f":{_ROBOTS_PORT}"},
            {"name": "CRSYNCER_DOOR_CERTIFICATE", "value": f"{_CERTIFICATE}/tls-combined.pem"},
        ],
        "ports": [{"name": "http", "containerPort": _HTTP_PORT}],
        "startupProbe": {"httpGet": _path("/configured"), "periodSeconds": 1, "failureThreshold": 600},
        "livenessProbe": {"httpGet": _path("/livez"), "periodSeconds": 20, "timeoutSeconds": 5},
        "readinessProbe": {"httpGet": _path("/readyz"), "timeoutSeconds": 5},
        "resources": {
            "requests": {"cpu": "50m", "memory": "64Mi", "ephemeral-storage": "16Mi"},
            "limits": {"memory": "256Mi"},
        },
        "securityContext": _CONFINED,
        "volumeMounts": [
            {"name": "run", "mountPath": _RUN},
            {"name": "certificate", "mountPath": _CERTIFICATE, "readOnly": True},
            {"name": "shards", "mountPath": _SHARDS, "readOnly": True},
        ],
    }


def _haproxy(image: str) -> Json:
    """HAProxy, which has no credential but the door's key. A stream takes 52 KB (measured)."""
    return {
        "name": "haproxy",
        "image": image,
        "command": ["haproxy", "-W", "-S", _SOCKET, "-f", f"{_DIRECTORY}/haproxy.cfg"],
        "ports": [{"name": "robots", "containerPort": _ROBOTS_PORT}],
        "readinessProbe": {"tcpSocket": {"port": "robots"}},
        "resources": {
            "requests": {"cpu": "250m", "memory": "256Mi", "ephemeral-storage": "16Mi"},
            "limits": {"memory": "1Gi"},
        },
        "securityContext": _CONFINED,
        "volumeMounts": [{"name": "run", "mountPath": _RUN}],
    }


def _path(path: str) -> Json:
    return {"path": path, "port": "http"}


def _policy(namespace: str) -> Json:
    ports = [(53, "UDP"), (53, "TCP"), (443, "TCP"), (6443, "TCP")]
    monitoring = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": MONITORING}}}
    return {
        **_object("networking.k8s.io/v1", "NetworkPolicy", NAME, namespace),
        "spec": {
            "podSelector": _SELECTOR,
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {"ports": [{"port": _ROBOTS_PORT, "protocol": "TCP"}]},
                {"from": [monitoring], "ports": [{"port": _HTTP_PORT, "protocol": "TCP"}]},
            ],
            "egress": [{"ports": [{"port": port, "protocol": protocol} for port, protocol in ports]}],
        },
    }


def _object(api_version: str, kind: str, name: str, namespace: str) -> Json:
    return core_object(kind, name, namespace) | {"apiVersion": api_version}
