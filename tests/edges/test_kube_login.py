"""Logging in to an API server: what a kubeconfig may hold, what is refused, and how credentials stay fresh."""

import base64
import json
import logging
import os
import stat
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from crsyncer.core.calls import Call
from crsyncer.edges.kube import KubeCluster, credentials, kubeconfig
from crsyncer.errors import ConfigError
from tests.edges.kube_server import (
    TOKEN,
    Certificates,
    Handler,
    HostileServer,
    Request,
    answer,
    hostile,
    make_certificates,
    write_config,
)

GET = Call("get", "GET", "/api")


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="session")
def pair(certificates: Certificates) -> tuple[Path, Path]:
    return certificates.issue("server")


def only(*tokens: str) -> Handler:
    """A server that takes these tokens, and echoes the one that came."""

    async def handler(request: Request, writer: Any) -> None:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        good = token in tokens
        writer.write(answer(json.dumps({"token": token}).encode(), status="200 OK" if good else "401 Unauthorized"))

    return handler


@asynccontextmanager
async def connected(path: Path, *, context: str | None = None) -> AsyncIterator[KubeCluster]:
    cluster = await KubeCluster.connect(path, context=context, observe=None)
    try:
        yield cluster
    finally:
        await cluster.close()


async def refused(path: Path | None, *, context: str | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        await KubeCluster.connect(path, context=context, observe=None)
    assert "\n" not in str(caught.value)
    assert TOKEN not in f"{caught.value} {caught.value.hint}"
    return caught.value


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def plugin(directory: Path, **status: Any) -> dict[str, Any]:
    """A user with an exec plug-in in the kubeconfig's own directory that answers with `status` and counts its runs."""
    script = directory / "plugin"
    reply = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    (directory / "reply").write_text(json.dumps(reply))
    script.write_text(f"#!{sys.executable}\nopen('runs', 'a').write('x')\nprint(open('reply').read())\n")
    script.chmod(0o700)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "installHint": "ask us"}}


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
    assert "no context is named 'c3'" in str(await refused(config, context="c3"))


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
    assert "in-cluster account" in str(await refused(None))
    (tmp_path / "ca.crt").write_bytes(certificates.ca.read_bytes())
    assert "token file" in str(await refused(None))
    (tmp_path / "token").write_text(TOKEN)
    async with hostile(only(TOKEN), pair=pair) as server:
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
        cluster = await KubeCluster.connect(None, context=None, observe=None)
        assert (await cluster.request(GET)).status == 200
        await cluster.close()


async def test_outside_a_pod_it_is_the_file_of_k3s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(kubeconfig, "K3S", tmp_path / "k3s.yaml")
    assert "no kubeconfig" in str(await refused(None))
    write_config(tmp_path / "k3s.yaml", server="https://127.0.0.1:6443", ca=None, user={"token": TOKEN})
    cluster = await KubeCluster.connect(None, context=None, observe=None)
    assert cluster.server == "https://127.0.0.1:6443"
    await cluster.close()


@pytest.mark.parametrize(
    ("environment", "about", "server", "expected"),
    [
        ({"HTTPS_PROXY": "http://proxy:3128"}, {}, "https://cloud.example.com", "http://proxy:3128"),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": ".example.com"}, {}, "https://cloud.example.com", None),
        ({"HTTPS_PROXY": "http://proxy:3128"}, {}, "https://127.0.0.1:6443", None),
        ({"HTTPS_PROXY": "http://proxy:3128"}, {"proxy-url": "http://u:p@own:1"}, "https://[::1]", "http://u:p@own:1"),
        ({}, {}, "https://cloud.example.com", None),
    ],
)
def test_the_proxy_is_the_one_that_kubectl_would_use(
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
    found = kubeconfig.read_kubeconfig(path, context=None)
    assert (found.proxy and found.proxy.text) == expected
    assert "u:p" not in repr(found)


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
        ("https://one", {"tokenFile": "nowhere"}, {}, "nowhere: missing"),
        ("https://one", {"client-certificate": "nowhere"}, {}, "nowhere: no such file"),
        ("https://one", {"client-key-data": base64.b64encode(TOKEN.encode()).decode()}, {}, "not both there"),
        ("https://one", {"client-key-data": TOKEN + "=x"}, {}, "client-key is not PEM"),
        ("https://one", {}, {"certificate-authority-data": "eA=="}, "no PEM certificate"),
        ("https://one", {}, {"insecure-skip-tls-verify": True}, "insecure-skip-tls-verify"),
        ("https://one", {}, {"proxy-url": "socks5://x"}, "proxy"),
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
    assert str(await refused(config)) == f"kubeconfig {config}: no such file or directory"
    for text, words in (
        (f"users:\n- {TOKEN}: [\n", "not YAML (line "),
        (f"- {TOKEN}", "not a mapping"),
        (f"token: {TOKEN}", "no current-context"),
        (f"current-context: x\ncontexts: {TOKEN}", "no context is named 'x'"),
        ("current-context: x\ncontexts: [{name: x, context: {cluster: y}}]", "no cluster is named 'y'"),
    ):
        config.write_text(text)
        assert words in str(await refused(config))
    config.write_bytes(b"\xff\xfe\x00")
    await refused(config)


async def test_a_key_that_is_encrypted_or_of_another_certificate_is_refused(
    certificates: Certificates, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    user = {"client-certificate": str(pair[0]), "client-key": str(certificates.issue("client")[1])}
    config = write_config(tmp_path / "config", server="https://one", ca=certificates.ca, user=user)
    assert "no PEM pair" in str(await refused(config))


async def test_tls_without_verification_takes_an_explicit_wish_and_is_reported(
    pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CRSYNCER_ALLOW_INSECURE_TLS", "1")
    async with hostile(only(TOKEN), pair=pair) as server:
        about = {"insecure-skip-tls-verify": True}
        config = write_config(tmp_path / "config", server=server.url, ca=None, user={"token": TOKEN}, **about)
        async with connected(config) as cluster:
            assert (await cluster.request(GET)).status == 200
    assert "NOT verified" in caplog.text


# --- credentials that change


@pytest.fixture
async def server(pair: tuple[Path, Path]) -> AsyncIterator[HostileServer]:
    async with hostile(only("new"), pair=pair) as running:
        yield running


def replaced(path: Path, text: str) -> None:
    scratch = path.with_suffix(".new")
    scratch.write_text(text)
    scratch.replace(path)


async def test_a_new_token_file_is_used_after_a_401(
    server: HostileServer, certificates: Certificates, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    config = write_config(tmp_path / "config", server=server.url, ca=certificates.ca, user={"tokenFile": str(token)})
    async with connected(config) as cluster:
        assert (await cluster.request(GET)).status == 401
        assert len(server.requests) == 1
        assert not cluster.refresh_credentials()
        for bad in ("", "two\nlines"):
            replaced(token, bad)
            assert not cluster.refresh_credentials()
        replaced(token, "new\n")
        assert (await cluster.request(GET)).status == 200
        assert len(server.requests) == 3
        replaced(token, "newer")
        assert cluster.refresh_credentials()
        assert not cluster.refresh_credentials()
        token.unlink()
        assert not cluster.refresh_credentials()
        assert (await cluster.request(GET)).body == {"token": "newer"}


async def test_a_token_file_is_looked_at_again_before_requests(
    server: HostileServer, certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "_PATIENCE", 0)
    token = tmp_path / "token"
    token.write_text("old")
    config = write_config(tmp_path / "config", server=server.url, ca=certificates.ca, user={"tokenFile": str(token)})
    async with connected(config) as cluster:
        replaced(token, "new")
        assert (await cluster.request(GET)).status == 200
        assert len(server.requests) == 1


async def test_a_watch_is_opened_anew_after_a_401_with_new_credentials(
    server: HostileServer, certificates: Certificates, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    config = write_config(tmp_path / "config", server=server.url, ca=certificates.ca, user={"tokenFile": str(token)})
    async with connected(config) as cluster:
        async with cluster.watch(GET, read_timeout=5) as stream:
            assert stream.status == 401
        replaced(token, "new")
        async with cluster.watch(GET, read_timeout=5) as stream:
            assert stream.status == 200


async def test_a_new_kubeconfig_is_used_unless_it_is_broken_or_leads_elsewhere(
    server: HostileServer, certificates: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = write_config(tmp_path / "config", server=server.url, ca=certificates.ca, user={"token": "old"})
    async with connected(config) as cluster:
        for broken, words in (
            (f"token: {TOKEN}: {{", "not YAML"),
            (config.read_text().replace(server.url, "https://elsewhere").replace("old", "new"), "another server"),
        ):
            replaced(config, broken)
            assert cluster.refresh_credentials()
            caplog.clear()
            assert (await cluster.request(GET)).body == {"token": "old"}
            assert caplog.text.count(words) == 1
            assert TOKEN not in caplog.text
            assert not cluster.refresh_credentials()
        write_config(config, server=server.url, ca=certificates.ca, user={"token": "new"})
        assert (await cluster.request(GET)).status == 200
        assert cluster.server == server.url


async def test_a_rotated_client_certificate_and_ca_are_used_after_a_refresh(
    certificates: Certificates, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    stranger = make_certificates(tmp_path)
    ca, crt, key = (tmp_path / name for name in ("trusted", "crt", "key"))
    for target, source in zip((ca, crt, key), (stranger.ca, *stranger.issue("client")), strict=True):
        target.write_bytes(source.read_bytes())
    user = {"client-certificate": str(crt), "client-key": str(key), "token": TOKEN}
    async with hostile(only(TOKEN), pair=pair, client_ca=certificates.ca) as server:
        config = write_config(tmp_path / "config", server=server.url, ca=ca, user=user)
        async with connected(config) as cluster:
            with pytest.raises(Exception, match="not signed by a CA"):
                await cluster.request(GET)
            for target, source in zip((ca, crt, key), (certificates.ca, *certificates.issue("client")), strict=True):
                replaced(target, source.read_text())
            assert cluster.refresh_credentials()
            assert (await cluster.request(GET)).status == 200


# --- plug-ins


async def test_a_plugin_is_asked_again_before_its_token_expires(
    server: HostileServer, certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "_PATIENCE", 0)
    soon = datetime.fromtimestamp(time.time() + 20, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    user = plugin(tmp_path, token="old", expirationTimestamp=soon)
    config = write_config(tmp_path / "config", server=server.url, ca=certificates.ca, user=user)
    async with connected(config) as cluster:
        plugin(tmp_path, token="new")
        for _ in range(3):
            assert (await cluster.request(GET)).status == 200
        assert len(server.requests) == 3
        assert (tmp_path / "runs").read_text() == "xx"


async def test_a_plugin_is_asked_again_after_a_401_but_not_at_once(
    server: HostileServer, certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_config(
        tmp_path / "config", server=server.url, ca=certificates.ca, user=plugin(tmp_path, token="old")
    )
    async with connected(config) as cluster:
        assert (await cluster.request(GET)).status == 401
        assert not cluster.refresh_credentials()
        assert (tmp_path / "runs").read_text() == "x"
        plugin(tmp_path, token="new")
        monkeypatch.setattr(credentials, "_PATIENCE", 0)
        assert (await cluster.request(GET)).status == 200
        assert (tmp_path / "runs").read_text() == "xx"


async def test_a_plugin_may_give_a_certificate(
    certificates: Certificates, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    crt, key = certificates.issue("client")
    user = plugin(tmp_path, clientCertificateData=crt.read_text(), clientKeyData=key.read_text())
    async with hostile(only(""), pair=pair, client_ca=certificates.ca) as server:
        config = write_config(tmp_path / "config", server=server.url, ca=certificates.ca, user=user)
        async with connected(config) as cluster:
            assert (await cluster.request(GET)).status == 200


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (None, "no such file"),
        (f"import sys; sys.exit('session of {TOKEN} is over')", "session of … is over"),
        (f"print('{TOKEN}')", "failed to decode"),
        (f'print(\'{{"kind": "{TOKEN}"}}\')', "missing key"),
        ("print(open('empty').read())", "neither a token nor a certificate"),
    ],
)
async def test_a_plugin_that_fails_says_so_without_its_secrets(
    tmp_path: Path, script: str | None, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    user = plugin(tmp_path)
    (tmp_path / "empty").write_text((tmp_path / "reply").read_text())
    if script is None:
        (tmp_path / "plugin").unlink()
    else:
        (tmp_path / "plugin").write_text(f"#!{sys.executable}\n{script}\n")
    config = write_config(tmp_path / "config", server="https://one", ca=None, user=user)
    error = await refused(config)
    assert words in str(error)
    assert error.hint == "ask us"
    assert TOKEN not in caplog.text


async def test_a_plugin_that_hangs_is_ended_with_everything_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "_HELPER_TIMEOUT", 2)
    user = plugin(tmp_path)
    (tmp_path / "plugin").write_text(
        f"#!{sys.executable}\nimport os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(60)\n"
    )
    config = write_config(tmp_path / "config", server="https://one", ca=None, user=user)
    assert "gave nothing within 2 s" in str(await refused(config))
    pid = int((tmp_path / "pid").read_text())
    assert _ends(pid)


def _ends(pid: int) -> bool:
    """Is a process over, or will be within 5 s? It is nobody's child any more, so it may linger as a zombie."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


async def test_an_oidc_provider_gives_its_token(
    server: HostileServer, certificates: Certificates, tmp_path: Path
) -> None:
    claims = base64.urlsafe_b64encode(b'{"sub":"robot"}').decode().rstrip("=")
    token = f"e30.{claims}.x"
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": token}}}
    config = write_config(tmp_path / "config", server=server.url, ca=certificates.ca, user=user)
    async with connected(config) as cluster:
        assert (await cluster.request(GET)).body == {"token": token}
    user["auth-provider"]["config"] = {"id-token": TOKEN, "refresh-token": TOKEN}
    config = write_config(tmp_path / "config", server=server.url, ca=certificates.ca, user=user)
    assert "auth-provider 'oidc' gave no token" in str(await refused(config))


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
