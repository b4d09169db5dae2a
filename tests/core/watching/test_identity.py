"""S8.1 and C9.1: which evidence tells clusters apart."""

import pytest

from crsyncer.core.watching.identity import (
    crd,
    crds,
    evidence_in,
    is_enough,
    is_logical_cluster,
    logical_cluster,
    merged,
    name_of,
    same_cluster,
)

SERVER = {"server": "s1"}
OTHER_SERVER = {"server": "s2"}
KUBE = {"kube-system": "k1"}
KCP, OTHER_KCP = {"kcp": "c1"}, {"kcp": "c2"}
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
        (KCP | SERVER, KCP | OTHER_SERVER, True),
        (KCP | SERVER, OTHER_KCP | SERVER, False),
        (KCP | KUBE | SERVER, OTHER_KCP | KUBE | SERVER, False),
        (KCP | KUBE | SERVER, KCP | {"kube-system": "k2"} | SERVER, True),
        (KUBE | SERVER, KCP | KUBE | SERVER, True),
        (KCP | GOALS | SERVER, KCP | NEW_GOALS | SERVER, True),
        (KCP | SERVER, SERVER, True),
        (KCP | SERVER, OTHER_SERVER, False),
        (SERVER, KCP | SERVER, True),
    ],
)
def test_S8_1_the_strongest_evidence_that_both_have_tells(known, found, same):
    assert same_cluster(known, found) is same


def test_S8_1_weaker_evidence_never_replaces_stronger():
    assert merged(KUBE | SERVER, GOALS | OTHER_SERVER) == KUBE | GOALS | OTHER_SERVER
    assert merged(GOALS | SERVER, KUBE | SERVER) == KUBE | SERVER
    assert merged(GOALS | SERVER, KUBE | NEW_GOALS | SERVER) == KUBE | NEW_GOALS | SERVER
    assert merged(KUBE | GOALS | SERVER, KCP | SERVER) == KCP | KUBE | SERVER
    assert merged(KCP | SERVER, GOALS | SERVER) == KCP | GOALS | SERVER


def test_S8_1_a_clusters_name_is_its_strongest_evidence_and_can_be_read_again():
    for evidence in (SERVER, TASKS, KUBE, KCP):
        name = name_of({**SERVER, **evidence})
        assert evidence_in(name) == evidence
    assert name_of(GOALS | TASKS | SERVER) == "crd:goals.x:g1"
    assert evidence_in(None) == {}
    assert crds(GOALS | KUBE | SERVER) == {"goals.x"}
    assert name_of(KCP | KUBE | GOALS | SERVER) == "kcp:c1"


@pytest.mark.parametrize(
    ("known", "found", "enough"),
    [
        ({}, KUBE | SERVER, True),
        (SERVER, KCP | SERVER, True),
        (KUBE | SERVER, KUBE | SERVER, True),
        (KCP | SERVER, KCP | SERVER, True),
        (SERVER, SERVER, False),
        (GOALS | SERVER, KUBE | SERVER, False),
        (KUBE | SERVER, KCP | SERVER, False),
        (KUBE | SERVER, KCP | KUBE | SERVER, True),
        (KCP | SERVER, KUBE | SERVER, False),
    ],
)
def test_S8_1_no_more_is_read_than_can_be_compared(known, found, enough):
    assert is_enough(known, found) is enough


@pytest.mark.parametrize(
    ("server", "logical"),
    [
        ("https://kcp.example.com/clusters/root:robots", True),
        ("https://kcp.example.com:6443/clusters/2hnrv0u1m7d8h2ar", True),
        ("https://kcp.example.com/services/apiexport/root/robots/clusters/2hnrv0u1m7d8h2ar", True),
        ("https://kcp.example.com", False),
        ("https://kcp.example.com/clusters/", False),
        ("https://kcp.example.com/services/clusters", False),
        ("https://www.example.com/apis/core.kubernetes", False),
        ("https://rancher.example.com/k8s/clusters/c-m-x", False),
    ],
)
def test_C9_1_the_path_of_a_server_tells_whether_it_is_a_logical_cluster(server, logical):
    assert is_logical_cluster(server) is logical


@pytest.mark.parametrize(
    ("metadata", "evidence"),
    [
        ({"annotations": {"kcp.io/cluster": "c1", "x": "y"}}, KCP),
        ({"annotations": {"kcp.io/cluster": ""}}, {}),
        ({"annotations": {"kcp.io/cluster": 7}}, {}),
        ({"annotations": "kcp.io/cluster"}, {}),
        ({"annotations": None}, {}),
        ({}, {}),
    ],
)
def test_C9_1_an_objects_annotation_names_its_logical_cluster(metadata, evidence):
    assert logical_cluster(metadata) == evidence


def test_C9_1_the_path_of_a_logical_cluster_is_told_with_it_and_proves_nothing():
    metadata = {"annotations": {"kcp.io/cluster": "c1", "kcp.io/path": "root:a"}}
    assert logical_cluster(metadata) == {"kcp": "c1", "kcp-path": "root:a"}
    assert name_of({**SERVER, **logical_cluster(metadata)}) == "kcp:c1"
    assert same_cluster(KCP | SERVER | {"kcp-path": "a"}, KCP | SERVER | {"kcp-path": "b"})
    assert logical_cluster({"annotations": {"kcp.io/path": 7}}) == {}
