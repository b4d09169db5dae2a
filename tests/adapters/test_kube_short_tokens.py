"""Two accounts: one makes short tokens, the other works with them, over a server that knows its tokens."""

import asyncio
import base64
import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crsyncer.adapters.kube import credentials
from crsyncer.adapters.kube.visit import KubeVisit
from crsyncer.errors import NotAllowed, Unsure
from tests.adapters.kube_server import GET, Certificates, Request, answer, connected, hostile, write_config


def jwt(subject: str, number: int = 0) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"sub": subject, "n": number}).encode()).decode().rstrip("=")
    return f"header.{claims}.signature"


MAKER = jwt("system:serviceaccount:robot-r1:crsyncer-enroll")
SECRET = MAKER.split(".")[1]


@dataclass(slots=True)
class Issuer:
    """Makes tokens, and answers everything else to these only."""

    lifetime: float = 60.0
    """How long a token lives, in seconds, as it says."""
    refuses: str = ""
    """What it answers instead of a token; empty: it makes one."""
    hangs: bool = False
    """It answers no request for a token."""
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    """Such a request has come."""
    silent: bool = False
    """It closes every connection."""
    good: set[str] = field(default_factory=set)
    """The tokens that it takes."""
    number: int = 0
    answered: list[str] = field(default_factory=list)
    """The tokens of the requests that it answered."""

    async def handle(self, request: Request, writer: asyncio.StreamWriter) -> None:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.silent:
            writer.close()
        elif "/serviceaccounts/crsyncer/token" in request.line and self.hangs:
            self.waiting.set()
            await asyncio.Event().wait()
        elif "/serviceaccounts/crsyncer/token" in request.line:
            writer.write(self._make(token))
        elif token in self.good:
            self.answered.append(token)
            writer.write(answer())
        else:
            writer.write(answer(status="401 Unauthorized"))

    def _make(self, maker: str) -> bytes:
        if maker != MAKER:
            return answer(status="401 Unauthorized")
        if self.refuses:
            return answer(b'{"message": "not for you"}', status=self.refuses)
        self.number += 1
        token = jwt("system:serviceaccount:robot-r1:crsyncer", self.number)
        self.good.add(token)
        until = datetime.fromtimestamp(time.time() + self.lifetime, UTC).isoformat()
        return answer(
            json.dumps({"status": {"token": token, "expirationTimestamp": until}}).encode(), status="201 Created"
        )


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "_PATIENCE", 0.05)


@pytest.fixture
def kubeconfig(certificates: Certificates, tmp_path: Path):
    return lambda url, token=MAKER: write_config(
        tmp_path / "config", server=url, ca=certificates.ca, user={"token": token}
    )


async def test_the_account_that_makes_tokens_does_nothing_else_and_they_are_renewed_in_time(pair, kubeconfig) -> None:
    issuer = Issuer(lifetime=0.5)
    async with hostile(issuer.handle, pair=pair) as server, connected(kubeconfig(server.url)) as cluster:
        while len(set(issuer.answered)) < 3:
            assert (await cluster.request(GET)).status == 200
            await asyncio.sleep(0.05)
    lines = {request.line.split()[1] for request in server.requests if MAKER in request.headers["authorization"]}
    assert lines == {"/api/v1/namespaces/robot-r1/serviceaccounts/crsyncer/token"}


async def test_after_weeks_without_the_link_it_works_again_by_itself(pair, kubeconfig) -> None:
    issuer = Issuer(lifetime=0.0)
    async with hostile(issuer.handle, pair=pair) as server, connected(kubeconfig(server.url)) as cluster:
        assert (await cluster.request(GET)).status == 200
        issuer.silent = True
        issuer.good.clear()  # every token has expired
        with pytest.raises(Unsure):
            await cluster.request(GET)
        issuer.silent = False
        assert (await cluster.request(GET)).status == 200


async def test_a_token_that_is_refused_is_made_anew_once(pair, kubeconfig) -> None:
    issuer = Issuer()
    async with hostile(issuer.handle, pair=pair) as server, connected(kubeconfig(server.url)) as cluster:
        assert (await cluster.request(GET)).status == 200
        await asyncio.sleep(0.1)
        issuer.good.clear()  # as where the account was deleted and made again
        assert (await cluster.request(GET)).status == 200
        await asyncio.sleep(0.1)
        issuer.good.clear()
        issuer.refuses = "403 Forbidden"
        assert (await cluster.request(GET)).status == 401, "the old one is tried, and the server says that it is dead"


async def test_S9_5_while_a_new_token_is_waited_for_the_old_one_is_used(pair, kubeconfig, monkeypatch) -> None:
    monkeypatch.setattr(credentials, "renewal", lambda *_: 0.0)
    issuer = Issuer()
    async with hostile(issuer.handle, pair=pair) as server, connected(kubeconfig(server.url)) as cluster:
        assert (await cluster.request(GET)).status == 200
        issuer.hangs = True
        async with asyncio.TaskGroup() as tasks:
            delayed = tasks.create_task(cluster.request(GET))
            await issuer.waiting.wait()
            async with asyncio.timeout(30):
                assert (await cluster.request(GET)).status == 200
            delayed.cancel()


@pytest.mark.parametrize("refuses", ["401 Unauthorized", "403 Forbidden", "404 Not Found", "201 Created"])
async def test_a_robot_that_is_locked_out_says_so(pair, kubeconfig, refuses: str) -> None:
    issuer = Issuer(refuses=refuses)
    async with hostile(issuer.handle, pair=pair) as server, connected(kubeconfig(server.url)) as cluster:
        with pytest.raises(NotAllowed) as caught:
            await cluster.request(GET)
        assert caught.value.status == 401
        assert str(caught.value).startswith("no token could be made for robot-r1/crsyncer: ")
        assert SECRET not in f"{caught.value} {caught.value.hint} {cluster.credentials.login!r}"
        issuer.refuses = ""
        await asyncio.sleep(0.1)
        assert (await cluster.request(GET)).status == 200


async def test_the_kubeconfig_may_change_to_two_accounts_while_it_runs(pair, kubeconfig) -> None:
    issuer = Issuer()
    issuer.good.add("plain")
    async with hostile(issuer.handle, pair=pair) as server, connected(kubeconfig(server.url, "plain")) as cluster:
        assert (await cluster.request(GET)).status == 200
        kubeconfig(server.url)
        issuer.refuses = "403 Forbidden"
        assert cluster.refresh_credentials()
        assert (await cluster.request(GET)).status == 200
        assert issuer.answered[-1] == "plain"  # it goes on with what works
        issuer.refuses = ""
        await asyncio.sleep(0.1)
        assert (await cluster.request(GET)).status == 200
        assert issuer.answered[-1] != "plain"


async def test_the_doctor_sees_a_token_that_is_renewed_by_itself(pair, kubeconfig) -> None:
    async with hostile(Issuer().handle, pair=pair) as server:
        visit = await KubeVisit.enter(kubeconfig(server.url), "")
        await visit.aclose()
    assert visit.facts.means == "a short token that its account makes"
    assert [term.renewed for term in visit.facts.validities if term.name == "token"] == [True]
