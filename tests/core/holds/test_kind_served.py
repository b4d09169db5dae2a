"""Whether upstream serves a kind, and still the same one (S5.5a)."""

import pytest

from crsyncer.core.holds.kind_served import Served, crd_in, is_alive, served_by_both, served_by_crd, served_in_discovery
from tests.core.builders import endpoint

GOALS = "goals.lab.example.com"
GOAL = {"name": "goals", "namespaced": True}


@pytest.mark.parametrize(
    ("status", "body", "alive"),
    [
        (200, {"resources": [GOAL | {"verbs": ["create", "list"]}]}, Served.YES),
        (200, {"resources": [GOAL | {"verbs": ["list", "watch", "delete"]}]}, Served.NO),
        (200, {"resources": [GOAL | {"verbs": None}]}, Served.NO),
        (200, {"resources": [{"name": "goals", "verbs": ["create"]}]}, Served.NO),
        (200, {"resources": [GOAL | {"name": "goals/status", "verbs": ["create"]}, {"name": "maps"}]}, Served.NO),
        (200, {"resources": None}, Served.NO),
        (200, {}, Served.UNKNOWN),
        (404, {}, Served.NOT_FOUND),
        (401, {}, Served.UNKNOWN),
        (403, {}, Served.UNKNOWN),
        (400, {"kind": "Status", "reason": "BadRequest"}, Served.UNKNOWN),
        (302, {}, Served.UNKNOWN),
    ],
)
def test_S5_5_a_kind_is_alive_as_long_as_it_can_be_created(status, body, alive):
    assert served_in_discovery(endpoint(), status, body) is alive


CRD = {"name": GOALS, "uid": "u1"}


NOT_FOUND = {"kind": "Status", "reason": "NotFound"}


@pytest.mark.parametrize(
    ("status", "body", "shown"),
    [
        (200, {"metadata": {"resourceVersion": "1"}, "items": [{"metadata": CRD}]}, (200, {"metadata": CRD})),
        (200, {"metadata": {"resourceVersion": "1"}, "items": None}, (404, {"reason": "NotFound"})),
        (200, {"items": []}, (200, {"items": []})),
        (200, {}, (200, {})),
        (403, NOT_FOUND, (403, NOT_FOUND)),
    ],
)
def test_S5_5_only_a_list_shows_that_a_crd_is_gone(status, body, shown):
    assert crd_in(status, body) == shown


@pytest.mark.parametrize(
    ("status", "body", "uid", "alive"),
    [
        (200, {"metadata": CRD}, "u1", Served.YES),
        (200, {"metadata": CRD}, "", Served.YES),
        (200, {"metadata": CRD}, "u0", Served.OTHER),
        (200, {"metadata": CRD | {"deletionTimestamp": "now"}}, "u1", Served.NO),
        (200, {"metadata": CRD | {"deletionTimestamp": "now"}}, "u0", Served.NO),
        (200, {"metadata": {}}, "u1", None),
        (200, {}, "u1", None),
        (404, NOT_FOUND, "u1", Served.NO),
        (404, NOT_FOUND, "", None),
        (404, {}, "u1", None),
        (403, {"kind": "Status", "reason": "Forbidden"}, "u1", None),
        (502, NOT_FOUND, "u1", None),
        (404, {"metadata": CRD}, "u1", None),
        (401, {}, "u1", None),
    ],
)
def test_S5_5_a_kind_is_the_one_that_it_was_as_long_as_its_crd_has_the_same_uid(status, body, uid, alive):
    assert served_by_crd(status, body, uid) is alive


@pytest.mark.parametrize(
    ("served", "crd", "alive"),
    [
        (Served.YES, Served.YES, Served.YES),
        (Served.YES, None, Served.YES),
        (Served.YES, Served.OTHER, Served.OTHER),
        (Served.YES, Served.NO, Served.NO),
        (Served.NO, Served.YES, Served.NO),
        (Served.NO, Served.OTHER, Served.NO),
        (Served.UNKNOWN, Served.YES, Served.YES),
        (Served.UNKNOWN, None, Served.UNKNOWN),
        (Served.NOT_FOUND, Served.YES, Served.NOT_FOUND),
        (Served.NOT_FOUND, Served.NO, Served.NO),
    ],
)
def test_S5_5_whoever_says_that_a_kind_is_not_alive_is_believed(served, crd, alive):
    assert served_by_both(served, crd) is alive


def test_S1_7_a_cluster_scoped_kind_is_alive_under_its_own_scope():
    answer = {"resources": [GOAL | {"namespaced": False, "verbs": ["create"]}]}
    assert served_in_discovery(endpoint(namespaced=False), 200, answer) is Served.YES
    assert served_in_discovery(endpoint(), 200, answer) is Served.NO


@pytest.mark.parametrize(
    ("status", "body", "alive"),
    [
        (200, {"resources": [GOAL | {"verbs": ["create", "list"]}]}, True),
        (200, {"resources": [GOAL | {"verbs": ["list", "watch", "delete"]}]}, False),
        (200, {"resources": [{"name": "maps", "verbs": ["create"]}]}, False),
        (200, {"resources": None}, False),
        (200, {}, None),
        (404, {}, False),
        (403, {}, None),
    ],
)
def test_S5_5a_discovery_says_whether_a_resource_is_alive_or_nothing(status, body, alive):
    assert is_alive("goals", status, body) is alive
