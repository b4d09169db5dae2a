"""S8.1: which evidence tells clusters apart."""

import pytest

from crsyncer.core.identity import crd, crds, evidence_in, merged, name_of, same_cluster

SERVER = {"server": "s1"}
OTHER_SERVER = {"server": "s2"}
KUBE = {"kube-system": "k1"}
GOALS, TASKS = {crd("goals.x"): "g1"}, {crd("tasks.x"): "t1"}
NEW_GOALS, NEW_TASKS = {crd("goals.x"): "g2"}, {crd("tasks.x"): "t2"}


@pytest.mark.parametrize(
    ("known", "found", "same"),
    [
        ({}, SERVER, True),
        (SERVER, SERVER, True),
        (SERVER, OTHER_SERVER, False),
        (KUBE | SERVER, KUBE | OTHER_SERVER, True),
        (KUBE | SERVER, {"kube-system": "k2"} | SERVER, False),
        (KUBE | SERVER, SERVER, True),
        (KUBE | SERVER, OTHER_SERVER, False),
        (SERVER, KUBE | SERVER, True),
        (GOALS | SERVER, GOALS | OTHER_SERVER, True),
        (GOALS | SERVER, NEW_GOALS | SERVER, False),
        (GOALS | TASKS | SERVER, NEW_GOALS | TASKS | SERVER, True),
        (GOALS | TASKS | SERVER, NEW_GOALS | NEW_TASKS | SERVER, False),
        (GOALS | SERVER, TASKS | SERVER, True),
        (GOALS | SERVER, SERVER, True),
        (KUBE | GOALS | SERVER, NEW_GOALS | SERVER, False),
        (GOALS | SERVER, KUBE | NEW_GOALS | SERVER, False),
    ],
)
def test_S8_1_the_strongest_evidence_that_both_have_tells(known, found, same):
    assert same_cluster(known, found) is same


def test_S8_1_weaker_evidence_never_replaces_stronger():
    assert merged(KUBE | SERVER, GOALS | OTHER_SERVER) == KUBE | GOALS | OTHER_SERVER
    assert merged(GOALS | SERVER, KUBE | SERVER) == KUBE | SERVER


def test_S8_1_a_clusters_name_is_its_strongest_evidence_and_can_be_read_again():
    for evidence in (SERVER, TASKS, KUBE):
        name = name_of({**SERVER, **evidence})
        assert evidence_in(name) == evidence
    assert name_of(GOALS | TASKS | SERVER) == "crd:goals.x:g1"
    assert evidence_in(None) == {}
    assert crds(GOALS | KUBE | SERVER) == {"goals.x"}
