"""C6.5 on a real API server: a robot whose deletion is blocking writes its own finalizer, and nothing else by it."""

from typing import Any

import pytest

from crsyncer.core.content.annotations import OURS
from tests.system.bed import LABEL
from tests.system.confined import JSON_PATCH, Answer, Caller, Confined, where

MINE, THEIRS, FOREIGN = f"{OURS}robot-r1", f"{OURS}robot-r2", "example.com/wait"


def who(confined: Confined, *, shared: bool) -> Caller:
    return (confined.sharing if shared else confined.robots)["r1"]


def parcel(confined: Confined, *, shared: bool, finalizers: tuple[str, ...] = (), robot: str = "r1") -> dict[str, Any]:
    """An object with finalizers."""
    made = confined.create("parcels", robot, shared=shared)
    if finalizers:
        put = confined.admin.ask("PUT", where(made), made | {"metadata": made["metadata"] | {"finalizers": finalizers}})
        assert put.status == 200, put
        made = dict(put.body)
    return made


def patch(caller: Caller, obj: dict[str, Any], *operations: dict[str, Any]) -> Answer:
    test = {"op": "test", "path": "/metadata/uid", "value": obj["metadata"]["uid"]}
    return caller.ask("PATCH", where(obj), [test, *operations], **JSON_PATCH)


def add(value: Any, path: str = "/metadata/finalizers") -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def remove(place: int) -> dict[str, Any]:
    return {"op": "remove", "path": f"/metadata/finalizers/{place}"}


SHARED = pytest.mark.parametrize("shared", [False, True], ids=["namespace", "shared"])


@SHARED
def test_C6_5_a_robot_adds_and_removes_its_own_finalizer(confined: Confined, shared: bool) -> None:
    r1 = who(confined, shared=shared)
    bare, kept = parcel(confined, shared=shared), parcel(confined, shared=shared, finalizers=(FOREIGN, THEIRS))
    assert patch(r1, bare, add([MINE])).status == 200
    assert patch(r1, bare, remove(0)).status == 200
    assert patch(r1, kept, add(MINE, "/metadata/finalizers/-")).body["metadata"]["finalizers"] == [
        FOREIGN,
        THEIRS,
        MINE,
    ]
    assert patch(r1, kept, remove(2)).body["metadata"]["finalizers"] == [FOREIGN, THEIRS]


@SHARED
def test_C6_5_and_no_other_nor_anything_else(confined: Confined, shared: bool) -> None:
    r1 = who(confined, shared=shared)
    kept = parcel(confined, shared=shared, finalizers=(FOREIGN, THEIRS, MINE))
    wrong = [
        patch(r1, kept, remove(0)),
        patch(r1, kept, remove(1)),
        patch(r1, kept, add(FOREIGN + "s", "/metadata/finalizers/-")),
        patch(r1, kept, add([THEIRS, FOREIGN, MINE])),
        patch(r1, kept, remove(2), add("pear", "/spec/secret")),
        patch(r1, kept, remove(2), add({LABEL: "r1", "more": "x"}, "/metadata/labels")),
        patch(r1, kept, remove(2), add({"note": "x"}, "/metadata/annotations")),
        patch(r1, kept, add("pear", "/spec/secret")),
    ]
    assert [answer.status for answer in wrong] == [403] * len(wrong)
    assert all("crsyncer: a robot may only write status and its own finalizer" in each.message for each in wrong)
    assert confined.now(kept)["metadata"]["finalizers"] == [FOREIGN, THEIRS, MINE]


def test_C6_5_an_object_of_another_robot_gets_none_but_one_that_was_relabelled_is_released(confined: Confined) -> None:
    sharer = who(confined, shared=True)
    other = parcel(confined, shared=True, robot="r2")
    answer = patch(sharer, other, add([MINE]))
    assert (answer.status, "object is not labelled for this robot" in answer.message) == (403, True)
    former = parcel(confined, shared=True, robot="r2", finalizers=(MINE, FOREIGN))
    assert patch(sharer, former, remove(0)).body["metadata"]["finalizers"] == [FOREIGN]
