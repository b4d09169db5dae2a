"""With robot r1's credential every trick of the design's list is refused by a real API server, request by request.

Each robot also does its work with these rights: `test_confined_robots.py`.
"""

from collections.abc import Callable
from typing import Any

import pytest

from crsyncer.adapters.retries import until
from crsyncer.core.content.object_content import ROBOT
from tests.system.bed import LABEL, SECONDS
from tests.system.confined import (
    GROUP,
    ROBOTS,
    SHARED,
    Answer,
    Caller,
    Confined,
    at,
    changed,
    meta,
    thing,
    where,
)

ENROLL = {"spec": {"expirationSeconds": 600}}


@pytest.fixture(scope="module")
def r1(confined: Confined) -> Caller:
    """Robot r1 in profile `namespace`."""
    return confined.robots["r1"]


@pytest.fixture(scope="module")
def sharer(confined: Confined) -> Caller:
    """Robot r1 in profile `shared`."""
    return confined.sharing["r1"]


def refused_by_policy(answer: Answer) -> bool:
    """By one of ours, and not by RBAC. That of the labels in a robot's namespace answers 422, as to everybody."""
    return answer.status in (403, 422) and "crsyncer: " in answer.message


# --- what RBAC refuses

G = f"/apis/{GROUP}/v1"
SECRETS = "/api/v1/namespaces/robot-r1/secrets"
ACCOUNTS = "/api/v1/namespaces/{}/serviceaccounts/{}/token"
AS_R2 = {"Impersonate-User": "system:serviceaccount:robot-r2:crsyncer"}
REFUSED: dict[str, tuple[str, str, dict[str, str]]] = {
    "another robot's namespace": ("GET", f"{G}/namespaces/robot-r2/goals", {}),
    "an object there": ("GET", f"{G}/namespaces/robot-r2/goals/x", {}),
    "a watch there": ("GET", f"{G}/namespaces/robot-r2/goals?watch=true", {}),
    "all namespaces": ("GET", f"{G}/goals", {}),
    "all namespaces, own label": ("GET", f"{G}/goals?labelSelector=cloudrobotics.com%2Frobot-name%3Dr1", {}),
    "all namespaces, own field": ("GET", f"{G}/goals?fieldSelector=metadata.namespace%3Drobot-r1", {}),
    "a path with ..": ("GET", f"{G}/namespaces/robot-r1/../robot-r2/goals", {}),
    "a path with encoded ..": ("GET", f"{G}/namespaces/robot-r1%2F..%2Frobot-r2/goals", {}),
    "a path with //": ("GET", f"{G}//namespaces/robot-r2/goals", {}),
    "the old watch of a namespace": ("GET", f"{G}/watch/namespaces/robot-r2/goals", {}),
    "the old watch of all": ("GET", f"{G}/watch/goals", {}),
    "OPTIONS": ("OPTIONS", f"{G}/namespaces/robot-r2/goals", {}),
    "HEAD": ("HEAD", f"{G}/namespaces/robot-r2/goals", {}),
    "DELETE": ("DELETE", f"{G}/namespaces/robot-r2/goals/x", {}),
    "deletecollection": ("DELETE", f"{G}/namespaces/robot-r2/goals", {}),
    "deletecollection at home": ("DELETE", f"{G}/namespaces/robot-r1/goals", {}),
    "DELETE at home": ("DELETE", f"{G}/namespaces/robot-r1/goals/x", {}),
    "another robot impersonated": ("GET", f"{G}/namespaces/robot-r2/goals", AS_R2),
    "a group impersonated": ("GET", f"{G}/goals", {**AS_R2, "Impersonate-Group": "system:masters"}),
    "a proxy's header": ("GET", f"{G}/goals", {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}),
    "own secrets": ("GET", SECRETS, {}),
    "all secrets": ("GET", "/api/v1/secrets", {}),
    "namespaces": ("GET", "/api/v1/namespaces", {}),
    "its own binding": (
        "PUT",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/robot-r1/rolebindings/crsyncer:robot",
        {},
    ),
    "the policies": ("GET", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", {}),
    "their deletion": (
        "DELETE",
        f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/crsyncer-robot-writes.goals.{GROUP}",
        {},
    ),
    "its CRD": ("PATCH", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/goals.{GROUP}", {}),
    "a token of another robot": ("POST", ACCOUNTS.format("robot-r2", "crsyncer"), {}),
    "a token of its own": ("POST", ACCOUNTS.format("robot-r1", "crsyncer"), {}),
    "a token of another account at home": ("POST", ACCOUNTS.format("robot-r1", "default"), {}),
}


@pytest.mark.parametrize("trick", REFUSED)
def test_a_robot_reaches_nothing_outside_its_namespace(r1: Caller, trick: str) -> None:
    method, path, headers = REFUSED[trick]
    body = ENROLL if method == "POST" else None
    assert r1.ask(method, path, body, **headers).status == 403


def test_a_robot_lists_its_own_objects(confined: Confined, r1: Caller) -> None:
    own = {confined.create("goals", robot)["metadata"]["name"]: robot for robot in ROBOTS}
    listed = r1.ask("GET", at("goals", "robot-r1"))
    assert listed.status == 200
    assert {own.get(each["metadata"]["name"], "r1") for each in listed.body["items"]} == {"r1"}


SHARED_REFUSED = {
    "patch of a status": ("PATCH", "goals", "r1", "status"),
    "patch of another's status": ("PATCH", "goals", "r2", "status"),
    "patch of an object": ("PATCH", "errands", "r2", ""),
    "DELETE": ("DELETE", "goals", "r1", ""),
    "another's DELETE": ("DELETE", "goals", "r2", ""),
}


@pytest.mark.parametrize("trick", SHARED_REFUSED)
def test_in_a_shared_namespace_a_json_patch_tells_nothing_of_others(
    confined: Confined, sharer: Caller, trick: str
) -> None:
    method, plural, owner, subresource = SHARED_REFUSED[trick]
    obj = confined.create(plural, owner, shared=True)
    for guess in ("apple", "pear"):  # the answer must not depend on whether it is right
        test = {"op": "test", "path": "/spec/secret", "value": guess}
        answer = sharer.patch(where(obj, subresource), test) if method == "PATCH" else sharer.ask(method, where(obj))
        assert answer.status == 403
        assert "crsyncer: " not in answer.message, "admission was asked, so the patch had been applied"


def test_in_a_shared_namespace_a_robot_reaches_no_other_namespace_and_makes_no_other_token(sharer: Caller) -> None:
    for plural in ("goals", "errands", "findings"):
        assert sharer.ask("GET", at(plural, "robot-r1")).status == 403
        assert sharer.ask("GET", at(plural)).status == 403
    for name in ("r1", "r2", "default"):
        assert sharer.ask("POST", ACCOUNTS.format("crsyncer-robots", name), ENROLL).status == 403


# --- the status of one's own objects, guarded by uid


def test_a_json_patch_lands_on_the_uid_that_it_tests_and_on_no_other(confined: Confined, r1: Caller) -> None:
    goal = confined.create("goals", "r1")
    status = {"op": "add", "path": "/status", "value": {"phase": "DONE"}}
    for uid, code in (("another", 422), (goal["metadata"]["uid"], 200)):
        test = {"op": "test", "path": "/metadata/uid", "value": uid}
        assert r1.patch(where(goal, "status"), test, status).status == code
    assert confined.now(goal)["status"] == {"phase": "DONE"}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"uid": "another"}, 409),
        ({"name": "another"}, 400),
        ({"namespace": "robot-r2"}, 400),
        ({"resourceVersion": "1"}, 409),
        ({"resourceVersion": ""}, 422),
    ],
)
def test_a_put_of_a_status_has_to_name_the_very_object(
    confined: Confined, r1: Caller, changes: dict[str, str], code: int
) -> None:
    goal = confined.create("goals", "r1")
    assert r1.ask("PUT", where(goal, "status"), meta(changed(goal, status={"phase": "X"}), **changes)).status == code
    assert "status" not in confined.now(goal)


@pytest.mark.parametrize("shared", [False, True])
def test_of_a_put_of_a_status_nothing_but_the_status_is_stored(confined: Confined, shared: bool) -> None:
    caller = (confined.sharing if shared else confined.robots)["r1"]
    goal = confined.create("goals", "r1", shared=shared)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}
    sent = meta(
        changed(goal, status={"phase": "DONE"}, spec={"secret": "pear"}),
        labels={LABEL: "r2"},
        annotations={"a": "b"},
        finalizers=["example.com/f"],
        ownerReferences=[owner],
    )
    assert caller.ask("PUT", where(goal, "status"), sent).status == 200
    now = confined.now(goal)
    assert (now["spec"], now["status"]) == (goal["spec"], {"phase": "DONE"})
    assert now["metadata"]["labels"] == {LABEL: "r1"}
    assert not {"annotations", "finalizers", "ownerReferences"} & now["metadata"].keys()


def test_the_status_of_another_robots_object_is_refused(confined: Confined, r1: Caller, sharer: Caller) -> None:
    for plural in ("goals", "carts"):
        theirs = confined.create(plural, "r2", shared=True)
        assert refused_by_policy(sharer.ask("PUT", where(theirs, "status"), changed(theirs, status={"robot": 1})))
        theirs = confined.create(plural, "r2")
        assert r1.ask("PUT", where(theirs, "status"), changed(theirs, status={"robot": 1})).status == 403
    area = confined.create("areas", "r2")
    assert refused_by_policy(sharer.ask("PUT", where(area, "status"), changed(area, status={"x": 1})))
    area = confined.create("areas", "r1")
    assert sharer.ask("PUT", where(area, "status"), changed(area, status={"x": 1})).status == 200


@pytest.mark.parametrize("plural", ["goals", "carts", "errands"])
def test_a_robot_makes_no_object_that_the_cloud_owns(r1: Caller, sharer: Caller, plural: str) -> None:
    assert r1.ask("POST", at(plural, "robot-r1"), thing(plural, "robot-r1", "new", "r1")).status == 403
    assert sharer.ask("POST", at(plural, SHARED), thing(plural, SHARED, "new", "r1")).status == 403


# --- a CRD without the status subresource: the whole object is put, and only the status may differ

ALTERATIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "spec": lambda obj: changed(obj, spec={"secret": "pear"}),
    "spec removed": lambda obj: changed(obj, spec=None),
    "another top-level field": lambda obj: changed(obj, more={"x": 1}),
    "label": lambda obj: meta(obj, labels={LABEL: "r1", "a": "b"}),
    "relabelled": lambda obj: meta(obj, labels={LABEL: "r2"}),
    "label removed": lambda obj: meta(obj, labels={}),
    "annotation": lambda obj: meta(obj, annotations={"a": "b"}),
    "finalizer": lambda obj: meta(obj, finalizers=["example.com/f"]),
    "owner": lambda obj: meta(obj, ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}]),
}


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("part", ALTERATIONS)
def test_without_the_subresource_nothing_but_the_status_can_be_changed(
    confined: Confined, part: str, shared: bool
) -> None:
    caller = (confined.sharing if shared else confined.robots)["r1"]
    errand = confined.create("errands", "r1", shared=shared)
    sent = ALTERATIONS[part](changed(errand, status={"phase": "DONE"}))
    assert refused_by_policy(caller.ask("PUT", where(errand), sent))
    assert confined.now(errand) == errand


@pytest.mark.parametrize("shared", [False, True])
def test_without_the_subresource_the_status_is_written_and_anothers_refused(confined: Confined, shared: bool) -> None:
    caller = (confined.sharing if shared else confined.robots)["r1"]
    errand = confined.create("errands", "r1", shared=shared)
    assert caller.ask("PUT", where(errand), changed(errand, status={"phase": "DONE"})).status == 200
    theirs = confined.create("errands", "r2", shared=shared)
    assert caller.ask("PUT", where(theirs), changed(theirs, status={"phase": "DONE"})).status == 403
    stolen = meta(changed(theirs, status={"phase": "DONE"}), labels={LABEL: "r1"})
    assert caller.ask("PUT", where(theirs), stolen).status == 403
    assert confined.now(theirs) == theirs


# --- status-subtree: the neighbours are others'


@pytest.mark.parametrize("shared", [False, True])
def test_only_its_subtree_of_the_status_can_be_written(confined: Confined, shared: bool) -> None:
    caller = (confined.sharing if shared else confined.robots)["r1"]
    cart = confined.create("carts", "r1", shared=shared)
    before = {"fleet": {"seen": 1}, "robot": {"mode": "Idle"}}
    cart = confined.admin.ask("PUT", where(cart, "status"), changed(cart, status=before)).body
    for status in (
        {"fleet": {"seen": 2}, "robot": {"mode": "Idle"}},
        {"robot": {"mode": "Idle"}},
        {**before, "more": 1},
    ):
        assert refused_by_policy(caller.ask("PUT", where(cart, "status"), changed(cart, status=status)))
    after = {"fleet": {"seen": 1}, "robot": {"mode": "Working"}}
    assert caller.ask("PUT", where(cart, "status"), changed(cart, status=after)).status == 200
    assert confined.now(cart)["status"] == after


# --- kinds that robots own: only copies that are signed for this robot


@pytest.mark.parametrize("shared", [False, True])
def test_a_robot_writes_its_own_copies_and_signs_no_others(confined: Confined, shared: bool) -> None:
    caller = (confined.sharing if shared else confined.robots)["r1"]
    place = SHARED if shared else "robot-r1"
    for signature in ("r2", ""):
        answer = caller.ask("POST", at("findings", place), thing("findings", place, "new", signature))
        assert refused_by_policy(answer)
    labelled = meta(thing("findings", place, "new", "r1"), labels={LABEL: "r2"})
    assert refused_by_policy(caller.ask("POST", at("findings", place), labelled))
    own = confined.create("findings", "r1", shared=shared)
    assert refused_by_policy(caller.ask("PUT", where(own), meta(own, annotations={ROBOT: "r2"})))
    assert refused_by_policy(caller.ask("PUT", where(own), meta(own, labels={LABEL: "r2"})))
    assert refused_by_policy(caller.ask("PUT", where(own), meta(own, finalizers=["example.com/f"])))
    assert caller.ask("PUT", where(own), changed(own, spec={"secret": "pear"})).status == 200
    assert caller.ask("DELETE", where(own)).status == 200


def test_a_robot_fills_no_more_than_its_quota(confined: Confined, r1: Caller) -> None:
    quotas = "/api/v1/namespaces/robot-r1/resourcequotas"
    name = f"crsyncer-findings.{GROUP}"

    def counted() -> dict[str, Any]:
        return dict(confined.admin.ask("GET", f"{quotas}/{name}").body)

    quota = until(counted, lambda found: "used" in found.get("status", {}), seconds=SECONDS)
    assert quota["spec"]["hard"] == {f"count/findings.{GROUP}": "1k"}
    used = int(quota["status"]["used"][f"count/findings.{GROUP}"])

    def limit(number: int) -> None:
        hard = {"op": "replace", "path": "/spec/hard", "value": {f"count/findings.{GROUP}": str(number)}}
        assert confined.admin.patch(f"{quotas}/{name}", hard).status == 200

    limit(used + 2)
    made: list[Answer] = []

    def is_full() -> bool:
        answer = r1.ask("POST", at("findings", "robot-r1"), thing("findings", "robot-r1", f"q{len(made)}", "r1"))
        made.append(answer)
        return answer.status == 403 and "exceeded quota" in answer.message

    try:
        assert until(is_full, seconds=SECONDS)
        assert len([each for each in made if each.status == 201]) < 1000
    finally:
        limit(1000)


@pytest.mark.parametrize("shared", [False, True])
def test_another_robots_copy_is_neither_changed_nor_taken_nor_deleted(confined: Confined, shared: bool) -> None:
    caller = (confined.sharing if shared else confined.robots)["r1"]
    theirs = confined.create("findings", "r2", shared=shared)
    stolen = meta(theirs, annotations={ROBOT: "r1"})
    for answer in (
        caller.ask("PUT", where(theirs), changed(theirs, spec={"secret": "pear"})),
        caller.ask("PUT", where(theirs), stolen),
        caller.ask("PUT", where(theirs, "status"), changed(stolen, status={"x": 1})),
        caller.ask("DELETE", where(theirs)),
        caller.ask("DELETE", at("findings", theirs["metadata"]["namespace"])),
    ):
        assert answer.status == 403
    assert confined.now(theirs) == theirs


# --- who is a robot, and the labels in its namespace


@pytest.mark.parametrize(
    "user",
    ["robot:", "robot:R1", "robot:r1:x", "robot:../r2", "robot:r1.r2", "system:serviceaccount:robot-R1:crsyncer"],
)
def test_a_malformed_identity_writes_nothing_even_with_all_rights(confined: Confined, user: str) -> None:
    goal = confined.create("goals", "r1", shared=True)
    headers = {"Impersonate-User": user, "Impersonate-Group": "system:masters"}
    answer = confined.admin.ask("PUT", where(goal, "status"), changed(goal, status={"x": 1}), **headers)
    assert refused_by_policy(answer), answer


def test_another_user_in_the_robots_group_is_refused_and_a_certificates_robot_is_not(confined: Confined) -> None:
    goal = confined.create("goals", "r1", shared=True)
    sent = changed(goal, status={"x": 1})
    stranger = {"Impersonate-User": "somebody", "Impersonate-Group": "system:serviceaccounts:crsyncer-robots"}
    assert refused_by_policy(confined.admin.ask("PUT", where(goal, "status"), sent, **stranger))
    robot = {"Impersonate-User": "robot:r1", "Impersonate-Group": "system:masters"}
    assert confined.admin.ask("PUT", where(goal, "status"), sent, **robot).status == 200


def test_in_a_robots_namespace_nobody_makes_or_relabels_an_object_for_another_robot(confined: Confined) -> None:
    for label in ("r2", ""):
        wrong = thing("goals", "robot-r1", "wrong", label)
        assert confined.admin.ask("POST", at("goals", "robot-r1"), wrong).status == 422
    goal = confined.create("goals", "r1")
    assert confined.admin.ask("PUT", where(goal), meta(goal, labels={LABEL: "r2"})).status == 422
    assert confined.now(goal) == goal
