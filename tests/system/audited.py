"""An API server that writes down each write which it carries out, and who asked for it."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.two_planes import Sandbox
from tests.api import USER_AGENT

_WRITES = ["create", "update", "patch", "delete", "deletecollection"]
_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata", "verbs": _WRITES}, {"level": "None"}],
}


class AuditLog:
    """The log of one API server, of which each line is a write that was answered."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def writes(self, group: str) -> Counter[str]:
        """What others than tests have written of a group: VERB NAMESPACE/NAME, and how often."""
        found: Counter[str] = Counter()
        for line in self._file.read_text().splitlines():
            event = json.loads(line)
            ref, is_stored = event.get("objectRef", {}), "dryRun=" not in event["requestURI"]
            is_ours = event.get("userAgent", "").startswith(USER_AGENT)
            if is_stored and not is_ours and ref.get("apiGroup") == group and event["responseStatus"]["code"] < 300:
                found[f"{event['verb']} {ref.get('namespace')}/{ref.get('name')}"] += 1
        return found


@contextmanager
def audited_plane(home: Path, sandbox: Sandbox) -> Iterator[tuple[Plane, AuditLog]]:
    """A cloud of one's own. The log is written before a write is answered (`blocking-strict`)."""
    policy, log = home / "policy.json", home / "audit.log"
    policy.write_text(json.dumps(_POLICY))
    log.touch()
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-mode=blocking-strict")
    programs = sandbox.programs
    plane = Plane("audited", home / "plane", apiserver=programs.kube_apiserver, datastore=programs.etcd, flags=flags)
    plane.start()
    try:
        yield plane, AuditLog(log)
    finally:
        plane.stop(graceful=False)
