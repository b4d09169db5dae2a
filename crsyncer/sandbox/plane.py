"""One control plane: an API server and its datastore, real ones, on loopback ports."""

import base64
import http.client
import json
import os
import secrets
import ssl
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from crsyncer.adapters.retries import until
from crsyncer.errors import SyncError
from crsyncer.sandbox.datastore import Datastore
from crsyncer.sandbox.kubeconfig import write_kubeconfig
from crsyncer.sandbox.ports import free_ports
from crsyncer.sandbox.process import Process, spawn

COMPONENTS = ("apiserver", "store")
_START_LIMIT = 90.0  # seconds; 3 to 5 on two idle cores


@dataclass(frozen=True, slots=True)
class Settings:
    """What must not change while a plane stops and starts, so that clients find it again."""

    api_port: int
    store_port: int
    admin_token: str


class Plane:
    """An API server and its datastore in a directory of their own.

    Every method returns when its work is done, and raises SyncError with the end of the program's log when it fails.
    Not for several threads at a time.
    """

    def __init__(
        self, name: str, directory: Path, *, apiserver: Path, datastore: Datastore, detached: bool = False
    ) -> None:
        self.name = name
        self.directory = directory.resolve()
        self.datastore = datastore
        self._program = apiserver
        self._detached = detached
        self._processes: dict[str, Process] = {}
        self.data = self.directory / "data"
        self.data.mkdir(parents=True, exist_ok=True)
        self._settings = self._load()
        self.server = f"https://127.0.0.1:{self._settings.api_port}"
        self.admin_token = self._settings.admin_token
        self.ca_file = self.cert_file = (
            self.directory / "certs" / "apiserver.crt"
        )  # the certificate, then its authority
        self.key_file = self.directory / "certs" / "apiserver.key"

    @property
    def port(self) -> int:
        """Where the API server listens on 127.0.0.1."""
        return self._settings.api_port

    @property
    def store_port(self) -> int:
        """Where the datastore listens on 127.0.0.1."""
        return self._settings.store_port

    def start(self) -> None:
        """Start what is not running. Returns when /readyz says ok and namespace `default` can be read."""
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Start the programs without waiting until they are ready, so that two planes can start together."""
        for component in ("store", "apiserver"):
            running = self._processes.get(component)
            if running is None or not running.alive():
                self._processes[component] = self._spawn(component)
            if component == "store":
                self._wait(lambda: self.datastore.ready(self.data, self.store_port), "store")

    def wait_ready(self) -> None:
        """Wait until the plane is ready."""
        self._wait(lambda: self._get("/readyz") == 200 and self._get("/api/v1/namespaces/default") == 200, "apiserver")

    def healthy(self) -> bool:
        """Whether it runs and is ready."""
        return self._alive("apiserver", "store") and self._get("/readyz") == 200

    def stop(self, *components: str, graceful: bool = True) -> None:
        """End "apiserver", "store", or both; gracefully, or by SIGKILL."""
        for component in components or COMPONENTS:
            process = self._processes.pop(component, None)
            if process is not None:
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
        """Write a kubeconfig, mode 0600, for the administrator or for the holder of another token."""
        return write_kubeconfig(
            path,
            name=self.name,
            server=server or self.server,
            ca_file=self.ca_file,
            token=None if token_file else token or self.admin_token,
            token_file=token_file,
            namespace=namespace,
        )

    def pids(self) -> dict[str, int]:
        """Process numbers by component, those that run."""
        return {component: process.pid for component, process in self._processes.items() if process.alive()}

    def adopt(self, pids: dict[str, int]) -> None:
        """Take over the processes that another process of ours started and that still run."""
        for component, pid in pids.items():
            process = Process(pid=pid, home=self.data, log=self._log(component))
            if component in COMPONENTS and process.alive():
                self._processes[component] = process

    def _alive(self, *components: str) -> bool:
        return all(name in self._processes and self._processes[name].alive() for name in components)

    def _process(self, component: str) -> Process:
        if not self._alive(component):
            raise SyncError(f"{self.name}: {component} is not running", hint="start() it first")
        return self._processes[component]

    def _log(self, component: str) -> Path:
        return self.directory / f"{component}.log"

    def _spawn(self, component: str) -> Process:
        store = component == "store"
        argv = self.datastore.argv(self.data, self.store_port) if store else self._apiserver_argv()
        return spawn(argv, log=self._log(component), cwd=self.data, detached=self._detached)

    def _apiserver_argv(self) -> list[str]:
        return [
            str(self._program),
            f"--etcd-servers=http://127.0.0.1:{self.store_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",  # nobody looks for the API server by its service
            f"--secure-port={self._settings.api_port}",
            f"--cert-dir={self.directory / 'certs'}",
            f"--token-auth-file={self.directory / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            f"--service-account-key-file={self.directory / 'service-account.key'}",
            f"--service-account-signing-key-file={self.directory / 'service-account.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            # Its token controller belongs to another program; token requests work without.
            "--disable-admission-plugins=ServiceAccount",
            "--allow-privileged=true",
            "--profiling=false",
        ]

    def _load(self) -> Settings:
        path = self.directory / "plane.json"
        if path.exists():
            return Settings(**json.loads(path.read_text()))
        api_port, store_port = free_ports(2)
        settings = Settings(api_port=api_port, store_port=store_port, admin_token=secrets.token_urlsafe(24))
        _write_secret(self.directory / "service-account.key", _signing_key())
        _write_secret(self.directory / "tokens.csv", f'{settings.admin_token},admin,admin,"system:masters"\n')
        _write_secret(path, json.dumps(asdict(settings)))
        return settings

    def _wait(self, condition: Callable[[], bool], component: str) -> None:
        started = time.monotonic()
        needed = COMPONENTS[COMPONENTS.index(component) :]  # the API server cannot become ready without its store
        in_time = until(lambda: not self._alive(*needed) or condition(), seconds=_START_LIMIT)
        if in_time and self._alive(*needed):
            return
        culprit = next((each for each in needed if not self._alive(each)), component)
        what = "is not ready" if self._alive(culprit) else "ended"
        process = self._processes[culprit]
        raise SyncError(
            f"{self.name}: {culprit} {what} after {time.monotonic() - started:.0f} s\n{process.tail()}",
            hint=f"the whole log is {process.log}",
        )

    def _get(self, path: str) -> int:
        """Status of an administrator's GET, 0 when there is no answer."""
        if not self.ca_file.exists():
            return 0
        try:
            context = ssl.create_default_context(cafile=str(self.ca_file))
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=2, context=context)
            try:
                connection.request("GET", path, headers={"Authorization": f"Bearer {self.admin_token}"})
                return connection.getresponse().status
            finally:
                connection.close()
        except (OSError, http.client.HTTPException):
            return 0


def _write_secret(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)


def _signing_key() -> str:
    """A P-256 key for service account tokens, as PEM.

    Any number below the group's order is a private key, and the public half may be left out (RFC 5915): no
    cryptography library is needed.
    """
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    number = (1 + secrets.randbelow(order - 1)).to_bytes(32, "big")
    curve = bytes.fromhex("a00a06082a8648ce3d030107")
    body = b"\x02\x01\x01\x04\x20" + number + curve
    encoded = base64.b64encode(b"\x30" + bytes([len(body)]) + body).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{encoded}\n-----END EC PRIVATE KEY-----\n"
