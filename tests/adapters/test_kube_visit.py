"""What the doctor reads of certificates, tokens and names."""

import asyncio
import base64
import json
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.adapters.kube.certificates import span, spans, token_span
from crsyncer.adapters.kube.visit import KubeVisit
from crsyncer.errors import Unsure
from tests.adapters.kube_server import TOKEN, Certificates, always, answer, hostile, make_certificates, write_config

DAY = 86400.0


def test_certificates_end_when_the_library_says_they_do(certificates: Certificates) -> None:
    context = ssl.create_default_context(cafile=str(certificates.ca))
    [known] = context.get_ca_certs()
    expected = (ssl.cert_time_to_seconds(str(known["notBefore"])), ssl.cert_time_to_seconds(str(known["notAfter"])))
    pem = certificates.ca.read_text()
    assert spans(pem) == [expected]
    assert spans(f"a comment\n{pem}{pem}") == [expected, expected]
    assert spans("nothing") == []


def test_from_2050_on_years_have_four_digits(certificates: Certificates) -> None:
    made, _ = certificates.issue("late", days=20_000)
    [(_, ends)] = spans(made.read_text())
    assert ends is not None
    assert abs(ends - time.time() - 20_000 * DAY) < DAY


@given(st.binary(max_size=80))
def test_what_is_no_certificate_says_nothing(data: bytes) -> None:
    assert span(data) == (None, None)
    assert span(b"\x30" + bytes([len(data)]) + data) == (None, None)


def jwt(claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.c2ln"


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        (jwt({"exp": 2, "nbf": 1}), (1, 2)),
        (jwt({"exp": "soon"}), (None, None)),
        (jwt(["exp"]), None),
        ("opaque", None),
        ("a.b.c", None),
        (TOKEN, None),
    ],
    ids=["two times", "a word", "a list", "opaque", "no base64", "no claims"],
)
def test_a_token_says_when_it_ends_or_is_none_that_does(token: str, expected: object) -> None:
    assert token_span(token) == expected


async def test_the_servers_certificate_is_seen_also_where_it_cannot_be_trusted(
    certificates: Certificates, tmp_path: Path
) -> None:
    expired = certificates.issue("expired", days=-1)
    async with hostile(always(answer()), pair=expired) as server:
        config = write_config(tmp_path / "config", server=server.url, ca=certificates.ca, user={"token": TOKEN})
        config.chmod(0o644)
        visit = await KubeVisit.enter(config, "")
        try:
            found = await visit.certificate()
            assert found is not None
            assert found.ends is not None
            assert found.ends < time.time()
            assert server.requests == []  # nothing was said to it
            assert [term.name for term in visit.facts.validities] == ["ca"]
            assert visit.facts.means == "a token"
            assert TOKEN not in repr(visit.facts)
            assert visit.facts.exposed == (f"{config} (mode 0644)",)
        finally:
            await visit.aclose()


async def test_a_certificate_of_another_name_or_ca_is_told_to_be_that(
    certificates: Certificates, pair: tuple[Path, Path], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = make_certificates(tmp_path_factory.mktemp("other"))
    elsewhere = certificates.issue("elsewhere", san="DNS:elsewhere")
    for shown, ca, said in (
        (elsewhere, certificates.ca, "not for this host name"),
        (pair, other.ca, "not signed by a CA that the kubeconfig trusts"),
        (pair, certificates.ca, ""),
    ):
        async with hostile(always(answer()), pair=shown) as server:
            config = write_config(tmp_path / "config", server=server.url, ca=ca, user={"token": TOKEN})
            visit = await KubeVisit.enter(config, "")
            found = await visit.certificate()
            await visit.aclose()
            assert found is not None
            assert (said in found.objection, bool(found.remedy)) == (True, bool(said))
            assert server.requests == []


async def test_a_server_that_is_not_there_has_no_certificate(certificates: Certificates, tmp_path: Path) -> None:
    config = write_config(tmp_path / "config", server="https://localhost:9", ca=certificates.ca, user={"token": TOKEN})
    visit = await KubeVisit.enter(config, "")
    with pytest.raises(Unsure, match="connection refused"):
        await visit.certificate()
    await visit.resolve()
    await visit.aclose()


async def test_a_client_certificate_is_told_with_its_dates(certificates: Certificates, tmp_path: Path) -> None:
    crt, key = certificates.issue("operator")
    user = {"client-certificate": str(crt), "client-key": str(key)}
    config = write_config(tmp_path / "config", server="https://localhost:9", ca=certificates.ca, user=user)
    visit = await KubeVisit.enter(config, "")
    await visit.aclose()
    ca, client = visit.facts.validities
    assert (ca.name, client.name, visit.facts.means) == ("ca", "client-certificate", "a client certificate")
    assert client.ends is not None
    assert abs(client.ends - time.time() - 2 * DAY) < DAY


async def test_behind_a_proxy_neither_name_nor_certificate_are_looked_at(
    certificates: Certificates, tmp_path: Path
) -> None:
    proxied = {"proxy-url": "http://localhost:9"}
    config = write_config(
        tmp_path / "config", server="https://no.such.invalid", ca=certificates.ca, user={"token": TOKEN}, **proxied
    )
    visit = await KubeVisit.enter(config, "")
    await visit.resolve()
    assert await visit.certificate() is None
    await visit.aclose()


async def test_a_name_that_nobody_answers_for_keeps_no_process_from_ending(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_config(
        tmp_path / "config", server="https://no.such.invalid", ca=certificates.ca, user={"token": TOKEN}
    )
    visit = await KubeVisit.enter(config, "")
    with pytest.raises(Unsure, match=r"no\.such\.invalid does not resolve"):
        await visit.resolve()
    asked, answered = threading.Event(), threading.Event()

    def silence(*_: object, **__: object) -> list[object]:
        asked.set()
        answered.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", silence)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await visit.resolve()
    assert asked.wait(30)
    assert {thread.daemon for thread in threading.enumerate() if thread.name == "crsyncer-worker"} == {True}
    answered.set()
    await visit.aclose()
