"""A cluster behind a server that misbehaves, for the tests of the API server's edge."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from crsyncer.adapters.kube import Exchange, KubeCluster
from tests.adapters.config_kit import kubeconfig
from tests.adapters.kube_server import (
    TOKEN,
    Certificates,
    Handler,
    HostileServer,
    Reach,
    hostile,
    make_certificates,
    write_config,
)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="session")
def pair(certificates: Certificates) -> tuple[Path, Path]:
    return certificates.issue("server")


@pytest.fixture
def reach(certificates: Certificates, pair: tuple[Path, Path], tmp_path: Path) -> Reach:
    """A cluster that is served by a handler."""

    @asynccontextmanager
    async def opened(
        handler: Handler,
        *,
        pair: tuple[Path, Path] = pair,
        path: str = "",
        ca: Path | None = certificates.ca,
        observe: Callable[[Exchange], None] | None = None,
        oldest: int | None = None,
        client_ca: Path | None = None,
        user: dict[str, Any] | None = None,
        **about: Any,
    ) -> AsyncIterator[tuple[KubeCluster, HostileServer]]:
        async with hostile(handler, pair=pair, oldest=oldest, client_ca=client_ca) as server:
            login = {"token": TOKEN} if user is None else user
            config = write_config(tmp_path / "config", server=server.url + path, ca=ca, user=login, **about)
            cluster = KubeCluster(config, observe=observe)
            try:
                yield cluster, server
            finally:
                await cluster.close()

    return opened


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory to work in with usable kubeconfigs, two for each way of naming one."""
    monkeypatch.chdir(tmp_path)
    for side in ("cloud", "robot"):
        for way in ("flag", "env", "file", "default"):
            (tmp_path / f"{side}-{way}").write_text(json.dumps(kubeconfig(f"https://{side}-{way}.example.com")))
    return tmp_path
