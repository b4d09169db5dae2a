"""Two accounts on a real cloud: what a robot works with is dead after weeks without the link, and it comes back."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from crsyncer.adapters.retries import until
from crsyncer.console.confinement.manifests import Plan, Profile, confinable
from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.two_planes import Sandbox
from tests.api import Api
from tests.link.link import Link
from tests.system.bed import SECONDS, eventually
from tests.system.confined import KINDS, NUMBERS, Answer, Caller, Confined, at, where

TEN_YEARS = 315_360_000
ACCOUNT = "/api/v1/namespaces/robot-r4/serviceaccounts/crsyncer"
GOALS = KINDS["goals"]


@pytest.fixture(scope="module")
def confined(confined: Confined) -> Confined:
    """The cloud with one more robot, which has two accounts."""
    kinds = (confinable(GOALS, Profile.NAMESPACE, place="-"),)
    confined.apply(Plan(("r4",), kinds, two_accounts=True))
    return confined


@dataclass(frozen=True, slots=True)
class Enrolled:
    """The token maker of a robot, and where its tokens are made."""

    maker: Caller
    tokens: str
    """The path of requests for tokens."""
    secret: str
    """The path of the Secret that they are bound to."""

    def ask(self, *, seconds: int = 3600, **bound: str) -> Answer:
        """Ask for a token that is bound to an object."""
        ref = {"apiVersion": "v1", "kind": "Secret", "name": self.secret.rpartition("/")[2], **bound}
        return self.maker.ask("POST", self.tokens, {"spec": {"expirationSeconds": seconds, "boundObjectRef": ref}})


_SHARED = pytest.param(Profile.SHARED, marks=pytest.mark.nightly("an API server treats every account alike"))


@pytest.fixture(params=[Profile.NAMESPACE, _SHARED])
def enrolled(confined: Confined, request: pytest.FixtureRequest) -> Enrolled:
    """A robot of each profile; its accounts and Secrets are new for each test."""
    robot, kinds = f"e{next(NUMBERS)}", (confinable(GOALS, request.param, place="-"),)
    confined.apply(Plan((robot,), kinds, profile=request.param, two_accounts=True))
    if request.param is Profile.NAMESPACE:
        home, account, secret, enroll = f"robot-{robot}", "crsyncer", "crsyncer-enroll", f"robot-{robot}"
    else:
        home, account, secret, enroll = "crsyncer-robots", robot, robot, "crsyncer-enroll"
    made = Enrolled(
        confined.caller(enroll, secret),
        f"/api/v1/namespaces/{home}/serviceaccounts/{account}/token",
        f"/api/v1/namespaces/{home}/secrets/{secret}",
    )

    def settled() -> bool:  # the server hears of the role by watch; the policies are in force
        return made.ask().status == 201 and made.ask(seconds=TEN_YEARS).status == 403

    assert until(settled, seconds=SECONDS)
    return made


def test_the_account_that_makes_tokens_gets_none_that_outlives_the_hour_or_its_secret(
    confined: Confined, enrolled: Enrolled
) -> None:
    other = {"metadata": {"name": "another"}}
    assert confined.admin.ask("POST", enrolled.secret.rpartition("/")[0], other).status in (201, 409)
    unbound = {"spec": {"expirationSeconds": 600}}
    for attack in (
        enrolled.ask(seconds=3601),
        enrolled.ask(seconds=TEN_YEARS),
        enrolled.ask(name="another"),
        enrolled.ask(kind="Pod"),
        enrolled.maker.ask("POST", enrolled.tokens, unbound),
        enrolled.maker.ask("POST", f"{enrolled.tokens}?dryRun=All", {"spec": {}}),
    ):
        assert (attack.status, "crsyncer: a robot's token" in attack.message) == (403, True), attack
    assert enrolled.ask(uid="of-another").status == 409


def test_the_deletion_of_the_secret_ends_every_token(confined: Confined, enrolled: Enrolled) -> None:
    token = enrolled.ask().body["status"]["token"]
    worker, own = Caller(confined.plane, token), "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    assert worker.ask("POST", own, {}).status == 201
    assert confined.admin.ask("DELETE", enrolled.secret).status == 200
    assert until(lambda: worker.ask("POST", own, {}).status == 401, seconds=SECONDS)
    assert enrolled.ask().status == 404
    # Another Secret of that name revives no token.
    name = {"metadata": {"name": enrolled.secret.rpartition("/")[2]}}
    assert confined.admin.ask("POST", enrolled.secret.rpartition("/")[0], name).status == 201
    assert worker.ask("POST", own, {}).status == 401


def test_a_role_that_lets_the_working_account_renew_itself_gives_it_an_hour_at_most(confined: Confined) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/robot-r2"
    rule = {"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]}
    role = {"metadata": {"name": "crsyncer:renew"}, "rules": [rule]}
    assert confined.admin.ask("POST", f"{rbac}/roles", role).status == 201
    subject = {"kind": "ServiceAccount", "name": "crsyncer", "namespace": "robot-r2"}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "crsyncer:renew"}
    bound = {"metadata": {"name": "crsyncer:renew"}, "roleRef": ref, "subjects": [subject]}
    assert confined.admin.ask("POST", f"{rbac}/rolebindings", bound).status == 201
    accounts = "/api/v1/namespaces/robot-r2/serviceaccounts"
    tokens = f"{accounts}/{{}}/token"
    assert confined.admin.ask("POST", accounts, {"metadata": {"name": "another"}}).status in (201, 409)
    r2, hour = confined.robots["r2"], {"spec": {"expirationSeconds": 3600}}
    try:
        assert until(lambda: r2.ask("POST", tokens.format("crsyncer"), hour).status == 201, seconds=SECONDS)
        for name, seconds in (("crsyncer", TEN_YEARS), ("crsyncer", 3601), ("another", 3600)):
            answer = r2.ask("POST", tokens.format(name), {"spec": {"expirationSeconds": seconds}})
            assert (answer.status, "crsyncer: " in answer.message) == (403, True), answer
    finally:
        assert confined.admin.ask("DELETE", f"{rbac}/rolebindings/crsyncer:renew").status == 200


@pytest.fixture
async def agent(
    confined: Confined, sandbox: Sandbox, robot_api: Api, cloud_link: Link, tmp_path: Path
) -> AsyncIterator[AgentProcess]:
    """The agent of robot r4, with nothing but the token of the account that makes tokens."""
    await robot_api.apply_crd(GOALS)
    enroll = confined.caller("robot-r4", "crsyncer-enroll")
    agent = AgentProcess(
        tmp_path,
        cloud_kubeconfig=cloud_link.kubeconfig(tmp_path / "cloud.yaml", token=enroll.token),
        robot_kubeconfig=sandbox.robot.kubeconfig(tmp_path / "robot.yaml"),
        robot_name="r4",
        flags=("--namespace", "robot-r4", "--require-confinement"),
    )
    yield agent
    await agent.kill()
    await robot_api.remove_crds(GOALS)


def working_token(link: Link) -> str:
    """The token of the last request that was not for a token."""
    used = [request for request in link.requests if not request.path.endswith("/token")]
    return used[-1].headers["authorization"].removeprefix("Bearer ")


async def test_tokens_that_ended_without_the_link_are_made_anew_without_a_human(
    confined: Confined, sandbox: Sandbox, agent: AgentProcess, cloud_link: Link
) -> None:
    on_robot = Caller(sandbox.robot, sandbox.robot.admin_token)
    goal = confined.create("goals", "r4")
    await agent.start()

    async def copied() -> bool:
        return on_robot.ask("GET", where(goal)).status == 200

    await eventually(copied)
    worker = Caller(sandbox.cloud, working_token(cloud_link))
    assert worker.ask("GET", at("goals", "robot-r4")).status == 200
    cloud_link.cut()
    await agent.until(lambda status: status["sides"]["cloud"]["state"] == "offline")
    # No server makes a token that ends within ten minutes: with its account made anew it is as dead as after weeks.
    assert confined.admin.ask("DELETE", ACCOUNT).status == 200
    assert confined.admin.ask("POST", ACCOUNT.rpartition("/")[0], {"metadata": {"name": "crsyncer"}}).status == 201
    assert until(lambda: worker.ask("GET", at("goals", "robot-r4")).status == 401, seconds=SECONDS)
    report = {"op": "add", "path": "/status", "value": {"phase": "DONE"}}
    assert on_robot.patch(where(goal, "status"), report).status == 200
    cloud_link.restore()

    async def reported() -> bool:
        return confined.now(goal).get("status") == {"phase": "DONE"}

    await eventually(reported)

    async def renewed() -> bool:
        return working_token(cloud_link) != worker.token

    await eventually(renewed, what="the work goes on with another token")
    await agent.until(lambda status: status["health"] == "healthy" and status["sides"]["cloud"]["reconnects"] >= 1)
    kept = [file for file in agent.directory.rglob("*") if file.is_file()]
    assert [file for file in kept if working_token(cloud_link).encode() in file.read_bytes()] == []
    # Nor does a start without the link need one: there is no token on the disk.
    await agent.stop()
    cloud_link.cut()
    await agent.start()
    cloud_link.restore()
    await agent.until(lambda status: status["sides"]["cloud"]["state"] == "connected")
