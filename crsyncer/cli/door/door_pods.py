"""The pods of the front door: HAProxy, and the upkeep beside it, as confined as Kubernetes can have them."""

from collections.abc import Iterator

from crsyncer.console.confinement.manifest_objects import Manifest, core_object
from crsyncer.console.confinement.workload import MONITORING
from crsyncer.core.model import Json

NAME = "crsyncer-door"
CERTIFICATE_SECRET = NAME
_SHARDS_SECRET = f"{NAME}-shards"
_USER = 65532
_ROBOTS_PORT, _HTTP_PORT, _EXPORTER_PORT = 8443, 9466, 8404
_GRACE_SECONDS, _DRAIN_SECONDS, _LAST_SECONDS = 5, 30, 25
"""Until robots are led elsewhere, while they leave one after the other, and what is left for both programs to end."""
_RUN = "/run/crsyncer-door"
_SOCKET, _DIRECTORY = f"{_RUN}/master.sock", f"{_RUN}/haproxy"
_CERTIFICATE, _SHARDS = "/etc/crsyncer-door/certificate", "/etc/crsyncer-door/shards"
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_POD_IP: Json = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
_PLACES: tuple[Json, ...] = (
    {"name": "CRSYNCER_DOOR_DIRECTORY", "value": _DIRECTORY},
    {"name": "CRSYNCER_DOOR_SOCKET", "value": _SOCKET},
)
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
    yield _metrics("metrics of crsyncer door run", f"{NAME}-metrics", namespace, ("http", _HTTP_PORT))
    yield _metrics("metrics of HAProxy", f"{NAME}-haproxy-metrics", namespace, ("exporter", _EXPORTER_PORT))
    yield Manifest(
        f"robots may connect to HAProxy, and pods in namespace {MONITORING} to the metrics; it connects to API servers"
        " alone",
        _policy(namespace),
    )


def _metrics(about: str, name: str, namespace: str, port: tuple[str, int]) -> Manifest:
    """A Service that Prometheus finds."""
    scraped = {"prometheus.io/scrape": "true", "prometheus.io/port": str(port[1])}
    ports = [{"name": port[0], "port": port[1], "targetPort": port[0]}]
    service: Json = {
        **core_object("Service", name, namespace, annotations=scraped),
        "spec": {"selector": {"app": NAME}, "ports": ports},
    }
    return Manifest(about, service)


def _pod(image: str) -> Json:
    """The pod. The Pod Security level `restricted` admits it."""
    own = {"labelSelector": _SELECTOR, "topologyKey": "kubernetes.io/hostname"}
    spread = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": own}]}
    return {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": False,
        "affinity": {"podAntiAffinity": spread},
        "terminationGracePeriodSeconds": _GRACE_SECONDS + _DRAIN_SECONDS + _LAST_SECONDS,
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
            {"name": "account", "projected": {"sources": _account_files(), "defaultMode": 0o440}},
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
            _POD_IP,
            {"name": "CRSYNCER_LISTEN", "value": f"$(POD_IP):{_HTTP_PORT}"},
            {"name": "CRSYNCER_LOG_FORMAT", "value": "json"},
            *_PLACES,
            {"name": "CRSYNCER_DOOR_BIND", "value": f":{_ROBOTS_PORT}"},
            {"name": "CRSYNCER_DOOR_EXPORTER", "value": f"$(POD_IP):{_EXPORTER_PORT}"},
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
            {"name": "account", "mountPath": _ACCOUNT, "readOnly": True},
            {"name": "certificate", "mountPath": _CERTIFICATE, "readOnly": True},
            {"name": "shards", "mountPath": _SHARDS, "readOnly": True},
        ],
    }


def _account_files() -> list[Json]:
    """The account as Kubernetes mounts it, for the sidecar alone: automounting would give it to HAProxy, too."""
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    return [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": authority},
        {"downwardAPI": {"items": [namespace]}},
    ]


def _haproxy(image: str) -> Json:
    """HAProxy, which has no credential but the door's key. A stream takes 52 KB (measured).

    Before it gets SIGTERM its streams are ended one after the other: HAProxy itself would end all at one moment.
    """
    drain = ["crsyncer", "door", "drain", "--grace", str(_GRACE_SECONDS), "--seconds", str(_DRAIN_SECONDS)]
    return {
        "name": "haproxy",
        "image": image,
        "command": ["haproxy", "-W", "-S", _SOCKET, "-f", f"{_DIRECTORY}/haproxy.cfg"],
        "env": list(_PLACES),
        "lifecycle": {"preStop": {"exec": {"command": drain}}},
        "ports": [
            {"name": "robots", "containerPort": _ROBOTS_PORT},
            {"name": "exporter", "containerPort": _EXPORTER_PORT},
        ],
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
    metrics = (_HTTP_PORT, _EXPORTER_PORT)
    monitoring = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": MONITORING}}}
    return {
        **_object("networking.k8s.io/v1", "NetworkPolicy", NAME, namespace),
        "spec": {
            "podSelector": _SELECTOR,
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {"ports": [{"port": _ROBOTS_PORT, "protocol": "TCP"}]},
                {"from": [monitoring], "ports": [{"port": each, "protocol": "TCP"} for each in metrics]},
            ],
            "egress": [{"ports": [{"port": port, "protocol": protocol} for port, protocol in ports]}],
        },
    }


def _object(api_version: str, kind: str, name: str, namespace: str) -> Json:
    return core_object(kind, name, namespace) | {"apiVersion": api_version}
