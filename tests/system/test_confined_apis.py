"""C8.2 on a real API server: a robot publishes its own CRDs, and by that right changes no others."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from crsyncer.adapters.retries import until
from crsyncer.cli.crds import APIS
from crsyncer.console.confinement.manifests import Plan, Profile, confinable
from crsyncer.core.content.object_content import ROBOT
from crsyncer.core.kinds.sync_policy import API_VERSION, KIND, read_sync_policy
from crsyncer.core.requests.calls import API_REVISIONS, API_SETS, CRDS
from tests.system.bed import SECONDS, crd
from tests.system.confined import GROUP, ROBOTS, Answer, Caller, Confined

MINE, OTHER = f"maps.{GROUP}", f"plans.{GROUP}"
POLICY = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "metadata": {"name": "maps"},
    "spec": {"resource": {"group": GROUP, "resource": "maps"}, "api": {"source": "robot"}},
}


@pytest.fixture(scope="module")
def confined(confined: Confined) -> Confined:
    for each in yaml.safe_load_all(APIS.read_text()):
        assert confined.admin.ask("POST", CRDS, each).status in (201, 409)
    kind = confinable(crd(GROUP, plural="maps", source="robot"), Profile.NAMESPACE, place="-")
    kind = replace(kind, sync_policy=read_sync_policy(POLICY))
    for profile in Profile:
        confined.apply(Plan(ROBOTS, (kind,), profile=profile))

    def settled() -> bool:
        """The server has heard of roles and policies: the former let a request pass, the latter refuse it."""
        return all(
            "crsyncer: " in make(who, MINE, robot="r9", query="?dryRun=All").message
            and "crsyncer: " in api_set(who, "x", query="?dryRun=All").message
            for who in (confined.robots["r1"], confined.sharing["r1"])
        )

    assert until(settled, seconds=SECONDS)
    return confined


def body(name: str, robot: str = "r1", **spec: Any) -> dict[str, Any]:
    """A CRD that a robot signs."""
    found = crd(GROUP, plural=name.partition(".")[0], source=None)
    found["metadata"]["annotations"] = {ROBOT: robot} if robot else {}
    found["spec"] |= spec
    return found


def make(who: Caller, name: str, *, robot: str = "r1", query: str = "", **spec: Any) -> Answer:
    return who.ask("POST", f"{CRDS}{query}", body(name, robot, **spec))


def api_set(who: Caller, name: str, *, query: str = "") -> Answer:
    found = {"apiVersion": API_VERSION, "kind": "APISet", "metadata": {"name": name}, "spec": {"apis": []}}
    return who.ask("POST", f"{API_SETS.path}{query}", found)


def revision(who: Caller, crd_name: str) -> Answer:
    name, whole = f"v0123456789.{crd_name}", body(crd_name)["spec"]
    spec = {key: value for key, value in whole.items() if key in ("group", "names", "scope", "versions")}
    found = {"apiVersion": API_VERSION, "kind": "APIRevision", "metadata": {"name": name}, "spec": spec}
    return who.ask("POST", API_REVISIONS.path, found)


def is_established(answer: Answer) -> bool:
    """The server has written a CRD's status, and will not change it any more."""
    found = answer.body.get("status") or {}
    return any(each["type"] == "Established" and each["status"] == "True" for each in found.get("conditions") or ())


def refused(answer: Answer) -> bool:
    """By an admission policy of ours, not for lack of a right."""
    return answer.status == 403 and "crsyncer: " in answer.message


@pytest.mark.parametrize("shared", [False, True], ids=["namespace", "shared"])
def test_C8_2_a_robot_publishes_what_its_role_names_and_signs_it(confined: Confined, shared: bool) -> None:
    callers = confined.sharing if shared else confined.robots
    r1, r2, admin = callers["r1"], callers["r2"], confined.admin
    webhook = {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://x.example.com"}},
    }
    assert refused(make(r1, MINE, robot=""))
    assert refused(make(r1, MINE, robot="r2"))
    assert refused(make(r1, OTHER))
    assert refused(make(r1, MINE, conversion=webhook))
    made = make(r1, MINE)
    assert made.status == 201, made
    path = f"{CRDS}/{MINE}"
    try:
        assert until(lambda: is_established(admin.ask("GET", path)), seconds=SECONDS)
        now = admin.ask("GET", path).body
        stolen = now["metadata"] | {"annotations": {ROBOT: "r2"}}
        assert refused(r2.ask("PUT", path, now))
        assert refused(r2.ask("PUT", path, now | {"metadata": stolen}))
        assert r1.ask("PUT", path, now).status == 200
        assert r1.ask("DELETE", path).status == 403
    finally:
        assert admin.ask("DELETE", path).status == 200
        assert until(lambda: admin.ask("GET", path).status == 404, seconds=SECONDS)


def test_C8_2_a_robot_has_one_api_set_and_revisions_of_what_it_publishes(confined: Confined) -> None:
    r1, admin = confined.robots["r1"], confined.admin
    assert refused(api_set(r1, "crsyncer-r2"))
    assert refused(revision(r1, OTHER))
    try:
        made = api_set(r1, "crsyncer-r1")
        assert made.status == 201, made
        assert r1.ask("PUT", f"{API_SETS.path}/crsyncer-r1", made.body).status == 200
        found = revision(r1, MINE)
        assert found.status == 201, found
        for verb in ("PUT", "DELETE"):
            assert r1.ask(verb, f"{API_REVISIONS.path}/v0123456789.{MINE}", found.body).status == 403
    finally:
        for path in (f"{API_SETS.path}/crsyncer-r1", f"{API_REVISIONS.path}/v0123456789.{MINE}"):
            admin.ask("DELETE", path)
