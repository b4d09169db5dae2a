"""How credentials stay fresh: files that change, and plug-ins."""

import asyncio
import base64
import errno
import json
import logging
import sys
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from crsyncer.adapters.kube import credentials, loader
from crsyncer.errors import NotAllowed
from tests.adapters.kube_server import (
    GET,
    TOKEN,
    Certificates,
    HostileServer,
    connected,
    hostile,
    make_certificates,
    only,
    without_credential,
    write_config,
)
from tests.adapters.processes import ends

HOUR = 3600.0


def plugin(directory: Path, **status: Any) -> dict[str, Any]:
    """A user with an exec plug-in in the kubeconfig's own directory that answers with `status` and counts its runs."""
    script = directory / "plugin"
    reply = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    (directory / "reply").write_text(json.dumps(reply))
    script.write_text(f"#!{sys.executable}\nopen('runs', 'a').write('x')\nprint(open('reply').read())\n")
    script.chmod(0o700)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "installHint": "ask us"}}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plug-in is a process, which takes long to begin on a busy machine."""
    monkeypatch.setattr(loader, "_TIMEOUT", HOUR)


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
            cluster.refresh_credentials()
            assert not cluster.refresh_credentials()
            assert (await cluster.request(GET)).body == {"token": "old"}
        replaced(token, "new\n")
        assert (await cluster.request(GET)).status == 200
        assert len(server.requests) == 5
        replaced(token, "newer")
        assert cluster.refresh_credentials()
        assert not cluster.refresh_credentials()
        assert (await cluster.request(GET)).body == {"token": "newer"}
        token.unlink()
        assert cluster.refresh_credentials()
        assert (await cluster.request(GET)).body == {"token": "newer"}


async def test_a_watch_is_opened_anew_after_a_401_with_new_credentials(
    server: HostileServer, certificates: Certificates, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    config = write_config(tmp_path / "config", server=server.url, ca=certificates.ca, user={"tokenFile": str(token)})
    async with connected(config) as cluster:
        async with cluster.watch(GET, read_timeout=30) as stream:
            assert stream.status == 401
        replaced(token, "new")
        async with cluster.watch(GET, read_timeout=30) as stream:
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
            caplog.clear()
            assert cluster.refresh_credentials()
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
    user = plugin(tmp_path, token="new", expirationTimestamp=soon)
    config = write_config(tmp_path / "config", server=server.url, ca=certificates.ca, user=user)
    async with connected(config) as cluster:
        assert (await cluster.request(GET)).status == 200
        assert (tmp_path / "runs").read_text() == "x"
        plugin(tmp_path, token="new")
        for _ in range(3):
            assert (await cluster.request(GET)).status == 200
        assert len(server.requests) == 4
        assert (tmp_path / "runs").read_text() == "xx"


async def test_a_plugin_that_failed_is_asked_again(
    server: HostileServer, certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "_PATIENCE", HOUR)
    config = write_config(tmp_path / "config", server=server.url, ca=certificates.ca, user=plugin(tmp_path))
    async with connected(config) as cluster:
        for _ in range(2):  # though not at once
            with pytest.raises(NotAllowed, match="neither a token nor a certificate"):
                await cluster.request(GET)
        assert (tmp_path / "runs").read_text() == "x"
        plugin(tmp_path, token="new")
        monkeypatch.setattr(credentials, "_PATIENCE", 0)
        assert cluster.refresh_credentials()
        assert (await cluster.request(GET)).status == 200


async def test_a_plugin_that_cannot_be_started_is_asked_again(
    server: HostileServer, certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")  # as fork(2) does at TasksMax

    user = plugin(tmp_path, token="new")
    config = write_config(tmp_path / "config", server=server.url, ca=certificates.ca, user=user)
    async with connected(config) as cluster:
        with monkeypatch.context() as crowded:
            crowded.setattr(asyncio, "create_subprocess_exec", refuse)
            with pytest.raises(NotAllowed, match=r"could not be asked \(resource temporarily unavailable\)"):
                await cluster.request(GET)
        monkeypatch.setattr(credentials, "_PATIENCE", 0)
        assert cluster.refresh_credentials()
        assert (await cluster.request(GET)).status == 200


async def test_a_plugin_is_asked_again_after_a_401_but_not_at_once(
    server: HostileServer, certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "_PATIENCE", HOUR)
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
    ids=["no program", "on stderr", "no JSON", "no credential", "empty"],
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
    error = await without_credential(config)
    assert words in str(error)
    assert error.hint == "ask us"
    assert TOKEN not in caplog.text


async def test_a_plugin_that_hangs_is_ended_with_everything_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = plugin(tmp_path)
    (tmp_path / "plugin").write_text("#!/bin/sh\nsleep 600 &\necho $! >made\nmv made pid\nwait\n")
    config = write_config(tmp_path / "config", server="https://one", ca=None, user=user)
    told = tmp_path / "pid"
    for seconds in (2, 4, 8, 16, 32, 64):  # what runs it takes a moment to begin, and on a busy machine several
        monkeypatch.setattr(loader, "_TIMEOUT", seconds)
        assert f"gave nothing within {seconds} s" in str(await without_credential(config))
        if told.exists():
            break
    pid = int(told.read_text())
    assert ends(pid)


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
    assert "auth-provider 'oidc' gave no token" in str(await without_credential(config))
