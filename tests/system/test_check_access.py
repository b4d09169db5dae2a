"""`crsyncer check-access` and `run --require-confinement` on a real cloud, with real roles."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from crsyncer.adapters.retries import until
from crsyncer.console.confinement.admission_policies import binding, token_policy
from crsyncer.console.confinement.manifests import Plan, Profile, confinable
from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.two_planes import Sandbox
from tests.delivery.command_line import crsyncer
from tests.link.link import Link
from tests.system.bed import SECONDS
from tests.system.confined import GROUP, KINDS, SHARED, Confined, at

Check = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def check(sandbox: Sandbox, tmp_path: Path) -> Check:
    """Run check-access as the holder of a token, for the kinds of these tests."""
    crds = tmp_path / "crds.yaml"
    crds.write_text(yaml.safe_dump_all(KINDS.values()))
    local = sandbox.robot.kubeconfig(tmp_path / "robot.yaml")

    def run(token: str, *arguments: str, robot: str = "r1", namespace: str = "") -> subprocess.CompletedProcess[str]:
        cloud = sandbox.cloud.kubeconfig(tmp_path / "cloud.yaml", token=token)
        settings = ("--cloud-kubeconfig", cloud, "--robot-kubeconfig", local, "--state-dir", tmp_path / "state")
        about = ("--robot-name", robot, "--namespace", namespace or f"robot-{robot}", "--crds", crds)
        return crsyncer("check-access", *settings, *about, *arguments)

    return run


def findings(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """By name, as `-o name` prints it."""
    document = json.loads(done.stdout)
    assert document["schema"] == "crsyncer.check-access/v1"
    return {"/".join(filter(None, (f["verb"], f["namespace"], f["resource"]))): f for f in document["findings"]}


def test_a_robot_that_the_manifests_confine_may_do_nothing_more_than_it_should(
    confined: Confined, check: Check
) -> None:
    for token, namespace in ((confined.robots["r1"].token, "robot-r1"), (confined.sharing["r1"].token, SHARED)):
        done = check(token, namespace=namespace)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("CONFINED: no access review allows more than it should (https://127.0.0.1:")
        noted = f"only admission policies keep it from other robots' objects of areas.{GROUP}, carts.{GROUP}, errands."
        assert (noted in done.stdout) == (namespace == SHARED)


def test_an_administrator_is_named_in_a_line_with_what_to_do(confined: Confined, check: Check) -> None:
    done = check(confined.admin.token)
    assert done.returncode == 12
    verdict, finding = done.stdout.splitlines()
    assert verdict.startswith("NOT CONFINED: 1 finding (")
    assert finding.startswith("it may do everything: this is an administrator's credential -> give the robot")


def test_each_right_too_many_is_a_finding(confined: Confined, check: Check) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    account = {"kind": "ServiceAccount", "name": "crsyncer", "namespace": "robot-r3"}
    reads = [{"apiGroups": [GROUP], "resources": ["goals"], "verbs": ["list"]}]
    steals = [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
        {"apiGroups": [GROUP], "resources": ["goals"], "verbs": ["update"]},
    ]
    for kind, namespace, rules in (("Cluster", "", reads), ("", "namespaces/robot-r3/", steals)):
        name = {"metadata": {"name": f"too-much-{kind.lower()}"}}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": f"{kind}Role", **name["metadata"]}
        path = f"{rbac}/{namespace}{kind.lower()}role"
        made = confined.admin.ask("POST", f"{path}s", {**name, "rules": rules})
        assert made.status in (201, 409), made
        made = confined.admin.ask("POST", f"{path}bindings", {**name, "roleRef": role, "subjects": [account]})
        assert made.status in (201, 409), made
    expected = {"list/goals", "get/robot-r3/secrets", "update/robot-r3/goals"}
    thief = confined.robots["r3"]
    everywhere, secret = at("goals"), "/api/v1/namespaces/robot-r3/secrets/x"
    # A server notices roles by watch.
    assert until(
        lambda: (thief.ask("GET", everywhere).status, thief.ask("GET", secret).status) == (200, 404), seconds=SECONDS
    )
    done = check(thief.token, "-o", "json", robot="r3")
    found = findings(done)
    assert set(found) == expected
    assert done.returncode == 12
    assert all(each["message"].startswith("it may ") and each["hint"] for each in found.values())


def test_tokens_that_would_not_end_are_findings(confined: Confined, check: Check) -> None:
    kinds = (confinable(KINDS["goals"], Profile.NAMESPACE, place="-"),)
    confined.apply(Plan(("r5",), kinds, two_accounts=True))
    maker = confined.caller("robot-r5", "crsyncer-enroll")

    def verdict(token: str, robot: str) -> str:
        return check(token, robot=robot).stdout.partition(":")[0]

    assert until(lambda: verdict(maker.token, "r5") == "CONFINED", seconds=SECONDS)
    name = "crsyncer-robot-tokens"
    bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    assert confined.admin.ask("DELETE", f"{bindings}/{name}").status == 200

    def found() -> list[str]:
        return [each["message"] for each in json.loads(check(maker.token, "-o", "json", robot="r5").stdout)["findings"]]

    may = "it may create serviceaccounts/token of crsyncer in namespace robot-r5: a token "
    expected = [f"{may}may live for more than an hour", f"{may}outlives the Secret whose deletion locks the robot out"]
    try:
        assert until(lambda: found() == expected, seconds=SECONDS)
    finally:
        assert confined.admin.ask("POST", bindings, binding(token_policy(), audit=False)).status == 201
    # The role of an earlier version, by which an account renews itself.
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/robot-r5"
    account = {"kind": "ServiceAccount", "name": "crsyncer", "namespace": "robot-r5"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "crsyncer:renew"}
    old = {"metadata": {"name": "old"}, "roleRef": role, "subjects": [account]}
    assert confined.admin.ask("POST", f"{rbac}/rolebindings", old).status == 201
    never = (
        "it may create serviceaccounts/token of crsyncer in namespace robot-r5: with a stolen token one makes others"
    )
    assert until(lambda: [each.partition(",")[0] for each in found()] == [never], seconds=SECONDS)


def test_a_cloud_that_does_not_answer_is_offline(
    confined: Confined, check: Check, sandbox: Sandbox, tmp_path: Path
) -> None:
    away = sandbox.cloud.kubeconfig(tmp_path / "away.yaml", server="https://127.0.0.1:1")
    done = check(confined.admin.token, "--cloud-kubeconfig", str(away))
    assert (done.returncode, done.stderr) == (11, "")
    assert done.stdout.startswith("OFFLINE: the cloud does not answer: ")


@pytest.fixture
def agent(confined: Confined, sandbox: Sandbox, cloud_link: Link, tmp_path: Path) -> Callable[[str], AgentProcess]:
    """An agent of robot r1 that wants to be confined, with a credential."""

    def make(token: str) -> AgentProcess:
        return AgentProcess(
            tmp_path,
            cloud_kubeconfig=cloud_link.kubeconfig(tmp_path / "cloud.yaml", token=token),
            robot_kubeconfig=sandbox.robot.kubeconfig(tmp_path / "robot.yaml"),
            robot_name="r1",
            flags=("--namespace", "robot-r1", "--require-confinement"),
        )

    return make


def test_with_cluster_admin_it_refuses_to_start(confined: Confined, sandbox: Sandbox, tmp_path: Path) -> None:
    done = crsyncer(
        *("run", "--require-confinement", "--listen", "off", "--state-dir", tmp_path / "state"),
        *("--cloud-kubeconfig", sandbox.cloud.kubeconfig(tmp_path / "cloud.yaml")),
        *("--robot-kubeconfig", sandbox.robot.kubeconfig(tmp_path / "robot.yaml")),
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    reason = "the account is not confined (see crsyncer check-access): it may do everything"
    assert done.stderr.startswith(f"crsyncer: --require-confinement: {reason}: this is an administrator's credential")
    assert not (tmp_path / "state").exists()


async def test_it_starts_without_the_link_and_uses_no_account_that_is_not_confined(
    confined: Confined, agent: Callable[[str], AgentProcess], cloud_link: Link, tmp_path: Path
) -> None:
    cloud_link.cut()
    running = agent(confined.admin.token)
    await running.start()
    await running.until(lambda status: status["sides"]["cloud"]["state"] == "offline")
    cloud_link.restore()

    def is_refused(status: dict[str, Any]) -> bool:
        cloud = status["sides"]["cloud"]
        unconfined = "it may do everything" in (cloud["error"] or "")
        return (cloud["state"], unconfined, status["health"]) == ("unauthorized", True, "attention")

    await running.until(is_refused)
    cloud_link.kubeconfig(tmp_path / "cloud.yaml", token=confined.robots["r1"].token)
    await running.until(lambda status: status["sides"]["cloud"]["state"] == "connected")
    assert await running.stop() == 0
