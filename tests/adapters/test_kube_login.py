"""Logging in to an API server: what a kubeconfig may hold, and what is refused."""

import asyncio
import base64
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from crsyncer.adapters import kubeconfig
from crsyncer.adapters.kube import KubeCluster
from crsyncer.errors import Unsure
from tests.adapters.kube_server import (
    GET,
    STREAM,
    TOKEN,
    Certificates,
    always,
    chunk,
    connected,
    hostile,
    only,
    refused,
    without_credential,
    write_config,
)


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


# --- what a kubeconfig may hold


async def test_files_may_be_relative_to_the_kubeconfig_and_data_inline(
    certificates: Certificates, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    client = certificates.issue("client")
    for source, name in ((certificates.ca, "ca"), (client[0], "crt"), (client[1], "key")):
        (tmp_path / name).write_bytes(source.read_bytes())
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    async with hostile(only(TOKEN), pair=pair, client_ca=certificates.ca) as server:
        files = {"client-certificate": "crt", "client-key": "key", "tokenFile": "token", "token": "the-file-wins"}
        config = write_config(tmp_path / "config", server=server.url, ca=Path("ca"), user=files)
        async with connected(config) as cluster:
            assert (await cluster.request(GET)).body == {"token": TOKEN}
        data = {
            "client-certificate-data": encoded(client[0]),
            "client-key-data": encoded(client[1]),
            "token": TOKEN,
        }
        inline = {"certificate-authority-data": encoded(certificates.ca)}
        config = write_config(tmp_path / "config", server=server.url, ca=None, user=data, **inline)
        async with connected(config) as cluster:
            assert (await cluster.request(GET)).body == {"token": TOKEN}


async def test_the_context_is_the_named_one_else_the_current_one(tmp_path: Path) -> None:
    config = write_config(tmp_path / "config", server="https://one/", ca=None, user={"token": TOKEN})
    document = yaml.safe_load(config.read_text())
    document["clusters"].append({"name": "k2", "cluster": {"server": "https://two:6443/apis/core.kubernetes/"}})
    document["contexts"].append({"name": "c2", "context": {"cluster": "k2"}})
    config.write_text(yaml.safe_dump(document))
    async with connected(config) as one, connected(config, context="c2") as two:
        assert (one.server, two.server) == ("https://one", "https://two:6443/apis/core.kubernetes")
        assert one.fallback_identity != two.fallback_identity
    assert 'has no context "c3"' in str(await refused(config, context="c3"))


async def test_a_user_and_password_are_sent_as_basic(
    certificates: Certificates, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    async with hostile(only(), pair=pair) as server:
        user = {"username": "u", "password": "p"}
        config = write_config(tmp_path / "config", server=server.url, ca=certificates.ca, user=user)
        async with connected(config) as cluster:
            await cluster.request(GET)
        assert server.requests[0].headers["authorization"] == "Basic " + base64.b64encode(b"u:p").decode()


async def test_in_a_pod_it_is_the_account_of_the_pod(
    certificates: Certificates, pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert "in-cluster account" in str(await refused(None))
    (tmp_path / "ca.crt").write_bytes(certificates.ca.read_bytes())
    assert "token file" in str(await without_credential(None))
    (tmp_path / "token").write_text(TOKEN)
    async with hostile(only(TOKEN), pair=pair) as server:
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
        cluster = KubeCluster(None)
        assert (await cluster.request(GET)).status == 200
        await cluster.close()


async def test_outside_a_pod_there_is_no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert "no account of a pod" in str(await refused(None))


BEHIND_K3S = {
    "HTTPS_PROXY": "http://proxy:3128",
    "NO_PROXY": "10.42.0.0/16, 10.43.0.0/16,.svc,127.0.0.0/8,fd00::/8,9.9.9.9,port.example:6443,Whole.example,*.star,/",
}
"""As k3s' documentation writes it, and what else golang.org/x/net/http/httpproxy knows."""
DIRECT = (
    *("https://10.43.0.1:6443", "https://10.42.255.255", "https://[fd12::1]:6443", "https://9.9.9.9:1"),
    *(
        "https://kubernetes.default.svc",
        "https://port.example:6443",
        "https://whole.example",
        "https://a.whole.example",
    ),
    *("https://a.star", "https://127.3.2.1:6443", "https://localhost:6443", "https://[::1]"),
)
PROXIED = (
    *("https://10.44.0.1", "https://svc", "https://asvc", "https://port.example", "https://awhole.example"),
    *("https://star", "https://[fe80::1]", "https://9.9.9.99", "https://10.43.0.1.example.com"),
)


@pytest.mark.parametrize(
    ("environment", "about", "server", "expected"),
    [
        ({"HTTPS_PROXY": "http://proxy:3128"}, {}, "https://cloud.example.com", "http://proxy:3128"),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": ".example.com"}, {}, "https://cloud.example.com", None),
        ({"HTTPS_PROXY": "http://proxy:3128"}, {}, "https://127.0.0.1:6443", None),
        ({"HTTPS_PROXY": "http://proxy:3128"}, {"proxy-url": "http://u:p@own:1"}, "https://[::1]", "http://u:p@own:1"),
        ({}, {}, "https://cloud.example.com", None),
        *((BEHIND_K3S, {}, server, None) for server in DIRECT),
        *((BEHIND_K3S, {}, server, "http://proxy:3128") for server in PROXIED),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "*"}, {}, "https://cloud.example.com", None),
        ({"https_proxy": "proxy:3128"}, {}, "https://cloud.example.com", "http://proxy:3128"),
        ({"HTTP_PROXY": "http://proxy:3128"}, {}, "https://cloud.example.com", None),
    ],
)
async def test_the_proxy_is_the_one_that_kubectl_would_use(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    about: dict[str, str],
    server: str,
    expected: str | None,
) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    path = write_config(tmp_path / "config", server=server, ca=None, user={}, **about)
    cluster = KubeCluster(path)
    login = cluster.credentials.login
    await cluster.close()
    assert (login.proxy and login.proxy.text) == expected
    assert "u:p" not in repr(login)


# --- what is refused, and how it is said


@pytest.mark.parametrize(
    ("server", "user", "cluster", "words"),
    [
        ("http://one", {}, {}, "not an https:// URL"),
        ("one:6443", {}, {}, "not an https:// URL"),
        ("https://:1", {}, {}, "not an https:// URL"),
        ("https://one:99999", {}, {}, "not an https:// URL"),
        (7, {}, {}, "not an https:// URL"),
        ("https://u:p@one", {}, {}, "more than host, port and path"),
        ("https://one?x=1", {}, {}, "more than host, port and path"),
        ("https://one", {"token": TOKEN, "as": "root"}, {}, "impersonates"),
        ("https://one", {"auth-provider": {"name": "azure"}}, {}, "auth-provider is not supported"),
        ("https://one", {"exec": {"args": [TOKEN]}}, {}, "no command"),
        ("https://one", {"token": f"{TOKEN}\r\nX: y"}, {}, "characters that no token has"),
        ("https://one", {"client-certificate": "nowhere"}, {}, "nowhere cannot be read (No such file"),
        ("https://one", {"client-key-data": base64.b64encode(TOKEN.encode()).decode()}, {}, "not both there"),
        ("https://one", {"client-key-data": TOKEN + "=x"}, {}, "client-key is not PEM"),
        ("https://one", {}, {"certificate-authority-data": "eA=="}, "no PEM certificate"),
        ("https://one", {}, {"certificate-authority-data": "!!"}, "certificate-authority is not PEM in base64"),
        ("https://one", {}, {"insecure-skip-tls-verify": True}, "insecure-skip-tls-verify"),
        *(("https://one", {}, {"proxy-url": wrong}, "proxy") for wrong in ("socks5://x", "http://", "http://[::1")),
        ("https://one..two", {}, {}, "not a host name"),
        *(("https://one", {}, {"tls-server-name": wrong}, "not a host name") for wrong in (".x", "x" * 64, "x\0y")),
    ],
)
async def test_what_would_be_unsafe_or_cannot_work_is_refused_in_one_line(
    tmp_path: Path, server: Any, user: dict[str, Any], cluster: dict[str, Any], words: str
) -> None:
    config = write_config(tmp_path / "config", server=server, ca=None, user=user, **cluster)
    error = await refused(config)
    assert words in str(error)
    assert str(tmp_path) in str(error)
    assert error.hint


async def test_a_file_that_is_no_kubeconfig_is_refused_without_quoting_it(tmp_path: Path) -> None:
    config = tmp_path / "config"
    assert str(await refused(config)) == f"{config} cannot be read (No such file or directory)"
    for text, words in (
        (f"users:\n- {TOKEN}: [\n", "not YAML ("),
        (f"- {TOKEN}", "has no contexts"),
        (f"token: {TOKEN}", "has no contexts"),
        ("password: *hunter2", "not YAML (found undefined alias"),
        ("password: !hunter2 x", "not YAML (could not determine a constructor for the tag …)"),
        ("contexts: [{name: x}]", "no valid current-context"),
        (f"current-context: x\ncontexts: {TOKEN}", "has no contexts"),
        ("current-context: x\ncontexts: [{name: x, context: {cluster: y}}]", "no cluster is named 'y'"),
    ):
        config.write_text(text)
        assert words in str(await refused(config))
    for content, words in ((b"\xff\xfe\x00", "not UTF-8"), (b"[" * 200_000, "not YAML"), (b"- " * 100_000, "not YAML")):
        config.write_bytes(content)
        assert words in str(await refused(config))
    config.unlink()
    os.mkfifo(config)
    assert str(await refused(config)) == f"{config} cannot be read (not a regular file)"


async def test_a_key_that_is_encrypted_or_of_another_certificate_is_refused(
    certificates: Certificates, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    user = {"client-certificate": str(pair[0]), "client-key": str(certificates.issue("client")[1])}
    config = write_config(tmp_path / "config", server="https://one", ca=certificates.ca, user=user)
    assert "no PEM pair" in str(await refused(config))


async def test_tls_without_verification_takes_an_explicit_wish_and_is_reported(
    pair: tuple[Path, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with hostile(only(TOKEN), pair=pair) as server:
        about = {"insecure-skip-tls-verify": True}
        config = write_config(tmp_path / "config", server=server.url, ca=None, user={"token": TOKEN}, **about)
        assert "--insecure-skip-tls-verify" in (await refused(config)).hint
        cluster = KubeCluster(config, insecure=True)
        assert (await cluster.request(GET)).status == 200
        assert not cluster.verified
        await cluster.close()
    assert "NOT verified" in caplog.text


async def test_a_watch_whose_server_was_not_verified_ends_once_it_can_be(
    certificates: Certificates, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    about, user = {"insecure-skip-tls-verify": True}, {"token": TOKEN}
    async with hostile(always(STREAM, chunk(b"{}\n")), pair=pair) as server:
        config = write_config(tmp_path / "config", server=server.url, ca=None, user=user, **about)
        cluster = KubeCluster(config, insecure=True)
        async with asyncio.timeout(30), cluster.watch(GET, read_timeout=60) as stream:
            lines = stream.lines()
            assert await anext(lines) == b"{}"
            waiting = asyncio.ensure_future(anext(lines))
            await asyncio.sleep(0)
            write_config(config, server=server.url, ca=certificates.ca, user=user)
            cluster.refresh_credentials()
            with pytest.raises(Unsure):
                await waiting
        async with asyncio.timeout(30), cluster.watch(GET, read_timeout=60) as stream:
            assert await anext(stream.lines()) == b"{}"
        assert cluster.verified
        await cluster.close()


async def test_keys_are_never_written_to_a_file(
    certificates: Certificates, pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    before = stat.S_IMODE(scratch.stat().st_mode), scratch.stat().st_mtime_ns
    user = {"client-certificate-data": encoded(pair[0]), "client-key-data": encoded(pair[1])}
    config = write_config(tmp_path / "config", server="https://one", ca=certificates.ca, user=user)
    async with connected(config):
        pass
    assert (stat.S_IMODE(scratch.stat().st_mode), scratch.stat().st_mtime_ns) == before
