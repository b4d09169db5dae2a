"""One control plane: an API server and its datastore, real ones, on loopback ports, and two controllers."""

import http.client
import json
import secrets
import ssl
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml

from crsyncer.adapters.retries import until
from crsyncer.errors import SyncError
from crsyncer.sandbox import controllers
from crsyncer.sandbox.free_ports import free_ports
from crsyncer.sandbox.process import recorded, spawn, write_private

COMPONENTS = ("controllers", "apiserver", "store")
_START_LIMIT = 90.0  # seconds; 3 to 5 on two idle cores


class Plane:
    """An API server and its datastore in a directory of their own.

    Every method returns when its work is done, and raises SyncError with the end of the program's log when it fails.
    Not for several threads at a time.
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        *,
        apiserver: Path,
        datastore: Path,
        detached: bool = False,
        flags: Sequence[str] = (),
    ) -> None:
        """`datastore`: the program, which is called etcd or kine. What still runs, detached, is taken over.

        `flags` are more flags of the API server.
        """
        self.flags = tuple(flags)
        self.name = name
        self.directory = directory.resolve()
        self.datastore = datastore
        self.apiserver = apiserver
        self._detached = detached
        self.data = self.directory / "data"
        self.data.mkdir(parents=True, exist_ok=True)
        self._processes = recorded(self.directory)
        # What must not change while a plane stops and starts, so that clients find it again.
        kept = self.directory / "plane.json"
        if not kept.exists():
            port, store_port = free_ports(2)
            token = secrets.token_urlsafe(24)
            write_private(self.directory / "tokens.csv", f'{token},admin,admin,"system:masters"\n')
            write_private(kept, json.dumps({"port": port, "store_port": store_port, "admin_token": token}))
        settings = json.loads(kept.read_text())
        self.port: int = settings["port"]
        self.store_port: int = settings["store_port"]
        self.admin_token: str = settings["admin_token"]
        self.server = f"https://127.0.0.1:{self.port}"
        self._certificates = self.directory / "certs"
        self.ca_file = self.cert_file = self._certificates / "apiserver.crt"  # the certificate, then its authority
        self.key_file = self._certificates / "apiserver.key"

    def start(self) -> None:
        """Start what is not running. Returns when /readyz says ok and namespace `default` can be read."""
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Start the programs without waiting until they are ready, so that two planes can start together."""
        self._spawn("store", self._store_argv())
        self._wait(self._store_is_ready, "store")
        self._spawn("apiserver", self._apiserver_argv())
        self._spawn("controllers", [sys.executable, "-I", str(Path(controllers.__file__)), str(self.directory)])

    def wait_ready(self) -> None:
        """Wait until the plane is ready."""
        self._wait(lambda: self._serves("/readyz") and self._serves("/api/v1/namespaces/default"), *COMPONENTS)

    def healthy(self) -> bool:
        """Whether it runs and is ready."""
        return len(self.pids()) == len(COMPONENTS) and self._serves("/readyz")

    def stop(self, *components: str, graceful: bool = True) -> None:
        """End "apiserver", "store", or both; gracefully, or by SIGKILL."""
        for component in components or COMPONENTS:
            if (process := self._processes.pop(component, None)) is not None:
                process.stop(graceful=graceful)

    def restart(self, *components: str, graceful: bool = True) -> None:
        """Stop, start, and wait until it is ready."""
        self.stop(*components, graceful=graceful)
        self.start()

    def kubeconfig(
        self,
        path: Path,
        *,
        server: str | None = None,
        token: str | None = None,
        token_file: Path | None = None,
        namespace: str | None = None,
    ) -> Path:
        """Write a kubeconfig, mode 0600, for the administrator or for the holder of another token. Returns `path`."""
        cluster = {"server": server or self.server, "certificate-authority": str(self.ca_file)}
        user = {"tokenFile": str(token_file)} if token_file else {"token": token or self.admin_token}
        context = {"cluster": self.name, "user": self.name, **({"namespace": namespace} if namespace else {})}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": self.name,
            "clusters": [{"name": self.name, "cluster": cluster}],
            "users": [{"name": self.name, "user": user}],
            "contexts": [{"name": self.name, "context": context}],
        }
        write_private(path, yaml.safe_dump(document, sort_keys=False))
        return path

    def pids(self) -> dict[str, int]:
        """Process numbers by component, those that run."""
        return {component: process.pid for component, process in self._processes.items() if process.alive()}

    def _spawn(self, component: str, argv: list[str]) -> None:
        if component not in self.pids():
            log = self.directory / f"{component}.log"
            self._processes[component] = spawn(argv, log=log, cwd=self.data, detached=self._detached)

    def _store_argv(self) -> list[str]:
        if self.datastore.name == "kine":
            # The bare endpoint keeps kine's own SQLite options, those of k3s: a query drops them.
            listen = f"--listen-address=tcp://127.0.0.1:{self.store_port}"
            return [str(self.datastore), "--endpoint=sqlite://", listen, "--metrics-bind-address=0"]
        url = f"http://127.0.0.1:{self.store_port}"
        return [
            str(self.datastore),
            f"--data-dir={self.data}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            "--listen-peer-urls=http://127.0.0.1:0",  # there are no peers
            # A throw-away plane needs no protection from power cuts, and fsync makes small disks slow. A killed etcd
            # loses nothing: its writes are in the kernel's memory.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _apiserver_argv(self) -> list[str]:
        return [
            str(self.apiserver),
            f"--etcd-servers=http://127.0.0.1:{self.store_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",  # nobody looks for the API server by its service
            f"--secure-port={self.port}",
            f"--cert-dir={self._certificates}",
            f"--token-auth-file={self.directory / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            # The key of the server's certificate, which the API server makes at its first start, also signs tokens.
            f"--service-account-key-file={self.key_file}",
            f"--service-account-signing-key-file={self.key_file}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            # Its token controller belongs to another program; token requests work without.
            "--disable-admission-plugins=ServiceAccount",
            "--allow-privileged=true",
            "--profiling=false",
            *self.flags,
        ]

    def _wait(self, condition: Callable[[], bool], *needed: str) -> None:
        """Wait until a condition holds. Raises SyncError when it does not, or when one of the needed processes ends."""
        started = time.monotonic()

        def ended() -> list[str]:
            return [component for component in needed if component not in self.pids()]

        if until(lambda: ended() or condition(), seconds=_START_LIMIT) and not ended():
            return
        # The API server cannot become ready without its store.
        culprit, what = (ended()[-1], "ended") if ended() else (needed[0], "is not ready")
        process = self._processes[culprit]
        raise SyncError(
            f"{self.name}: {culprit} {what} after {time.monotonic() - started:.0f} s\n{process.tail()}",
            hint=f"the whole log is {process.log}",
        )

    def _store_is_ready(self) -> bool:
        if self.datastore.name == "kine":
            # It writes the file's first row when it serves; the API server tries again if it is a moment early.
            return (self.data / "db" / "state.db").exists()
        return _is_ok(f"http://127.0.0.1:{self.store_port}/health")

    def _serves(self, path: str) -> bool:
        """Whether the API server answers an administrator's GET with 200."""
        return self.ca_file.exists() and _is_ok(self.server + path, token=self.admin_token, ca_file=self.ca_file)


def start_together(planes: Sequence[Plane]) -> None:
    """Start planes at the same time, and return when all are ready. Raises SyncError; some may run then."""
    for plane in planes:
        plane.launch()
    for plane in planes:
        plane.wait_ready()


def _is_ok(url: str, *, token: str = "", ca_file: Path | None = None) -> bool:
    """Whether there is an answer below 400, without a proxy."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - our own URLs
    try:
        tls = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca_file))
        with urllib.request.build_opener(urllib.request.ProxyHandler({}), tls).open(request, timeout=2):
            return True
    except (OSError, http.client.HTTPException):
        return False
