"""What a sandbox needs of Kubernetes' controller manager: rules of aggregated ClusterRoles, usage of ResourceQuotas.

An API server alone leaves a ClusterRole with an aggregation rule empty, and refuses to create what a ResourceQuota
counts as long as the quota shows no usage.
Source: Kubernetes documentation, "Using RBAC Authorization" and "Resource Quotas".
"""

import http.client
import json
import ssl
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
_PAUSE_SECONDS = 1.0
_COUNT = "count/"


class Controllers:
    """Both controllers of one API server, as its administrator."""

    def __init__(self, port: int, token: str, ca_file: Path) -> None:
        context = ssl.create_default_context(cafile=str(ca_file))
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def step(self) -> None:
        """Put right what differs. Raises OSError, HTTPException or ValueError where the server does not answer."""
        roles = self._ask("GET", _ROLES)["items"]
        for role in aggregated(roles):
            self._ask("PUT", f"{_ROLES}/{role['metadata']['name']}", role)
        for quota in self._ask("GET", "/api/v1/resourcequotas")["items"]:
            namespace, name = quota["metadata"]["namespace"], quota["metadata"]["name"]
            hard = quota["spec"].get("hard") or {}
            status = {"hard": hard, "used": {key: str(self._used(key, namespace)) for key in hard}}
            if status != quota.get("status"):
                path = f"/api/v1/namespaces/{namespace}/resourcequotas/{name}/status"
                self._ask("PUT", path, {**quota, "status": status})

    def close(self) -> None:
        """Close the connection; the next step opens another one."""
        self._connection.close()

    def _used(self, counted: str, namespace: str) -> int:
        """How many objects there are of `count/PLURAL.GROUP`; 0 where nothing is served."""
        plural, _, group = counted.removeprefix(_COUNT).partition(".")
        versions = self._ask("GET", f"/apis/{group}").get("versions") if group else [{"groupVersion": "v1"}]
        if not versions:
            return 0
        root = f"/apis/{versions[0]['groupVersion']}" if group else "/api/v1"
        page = self._ask("GET", f"{root}/namespaces/{namespace}/{plural}?limit=1")
        return len(page.get("items") or ()) + (page.get("metadata", {}).get("remainingItemCount") or 0)

    def _ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body)
        self._connection.request(method, path, data, self._headers)
        found = json.loads(self._connection.getresponse().read())
        return found if isinstance(found, dict) else {}


def aggregated(roles: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The ClusterRoles that lack rules of the roles they gather, or have others, with the rules that they need."""
    found = []
    for role in roles:
        selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
        wanted = [each["matchLabels"].items() for each in selectors if each.get("matchLabels")]
        rules = [
            rule
            for each in roles
            if any(labels <= (each["metadata"].get("labels") or {}).items() for labels in wanted)
            for rule in each.get("rules") or ()
        ]
        if wanted and rules != (role.get("rules") or []):
            found.append({**role, "rules": rules})
    return found


def main(directory: Path) -> None:
    """Control the plane in a directory; never returns."""
    settings = json.loads((directory / "plane.json").read_text())
    certificate = directory / "certs" / "apiserver.crt"
    while not certificate.exists():
        time.sleep(_PAUSE_SECONDS)
    controllers = Controllers(settings["port"], settings["admin_token"], certificate)
    while True:
        try:
            controllers.step()
        except (OSError, http.client.HTTPException, ValueError, LookupError):  # it is down, or starts
            controllers.close()
        time.sleep(_PAUSE_SECONDS)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
