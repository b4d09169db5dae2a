"""What the cloud calls a kind, and in which scope it is there (C7)."""

from dataclasses import replace

import pytest

from crsyncer.core.content.template import Names, read_template
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.merge_settings import policy_of_kind
from crsyncer.core.kinds.namespaces import same_names
from crsyncer.core.kinds.projection import cloud_resource, discovered, projected
from crsyncer.core.kinds.related_entry import RelatedEntry
from crsyncer.core.kinds.sync_policy import Projection, Related, read_sync_policy
from crsyncer.core.kinds.version_choice import choose_version
from crsyncer.core.model import Key, Side
from crsyncer.core.related.relate import RelatedFailed, references_of, related_entries
from tests.core.builders import crd, goal, policy, spoken
from tests.core.policy_objects import policy_object

CLOUD = {"group": "shop.example.com", "resource": "purchases"}


def kind(source: str = "cloud", *, scope: str = "Namespaced", **spec) -> KindPolicy:
    """What comes of a policy for goals, whose scope this is on the robot."""
    spec = {"projection": CLOUD, **spec}
    found = policy_of_kind(crd(None, scope=scope), "robot-1", objects=[policy_object(specSource=source, **spec)])
    assert found is not None
    return found


def test_C7_only_what_is_given_differs_in_the_cloud():
    found = kind()
    assert (found.problem, found.resource, found.in_cloud.resource) == (
        "",
        "goals.lab.example.com",
        "purchases.shop.example.com",
    )
    assert (found.in_cloud.kind, found.in_cloud.scope) == ("Goal", "Namespaced")
    core = kind(projection={"group": "", "kind": "Thing"})
    assert (core.in_cloud.resource, core.in_cloud.kind) == ("goals", "Thing")
    assert kind(projection={}).in_cloud == found.on_robot


def test_C7_kind_and_scope_are_what_discovery_shows():
    found = discovered(kind(), kind="Purchase", namespaced=True)
    assert not isinstance(found, str)
    assert (found.in_cloud.kind, found.on_robot.kind) == ("Purchase", "Goal")
    assert found.fingerprint != kind().fingerprint
    for given, said in (({"kind": "Order"}, "projection.kind of"), ({"scope": "Namespaced"}, "projection.scope of")):
        wrong = discovered(kind(projection=CLOUD | given), kind="Purchase", namespaced=False)
        assert isinstance(wrong, str)
        assert wrong.startswith(f"spec.{said} SyncPolicy a is ")


@pytest.mark.parametrize("source", ["cloud", "robot"])
@pytest.mark.parametrize(
    ("to_cluster", "naming", "said"),
    [
        (True, {"name": "{namespace}-{name}"}, ""),
        (True, {"name": "{name}-{hash}"}, ""),
        (True, {"name": "{robot}-{name}"}, "spec.naming.name of SyncPolicy a has neither"),
        (True, None, "spec.naming.name of SyncPolicy a has neither"),
        (False, {"namespace": "robot-{robot}"}, ""),
        (False, {"namespace": "shop"}, ""),
        (False, {"namespace": "{namespace}"}, "spec.naming.namespace of SyncPolicy a is not fixed"),
        (False, {"namespace": "a-{hash}"}, "spec.naming.namespace of SyncPolicy a is not fixed"),
        (False, {"name": "a"}, "spec.naming.namespace of SyncPolicy a is not fixed"),
        (False, None, "spec.naming.namespace of SyncPolicy a is not fixed"),
    ],
)
def test_C7_a_name_in_the_other_scope_is_one_of_its_own(source, to_cluster, naming, said):
    in_cloud = "Cluster" if to_cluster is (source == "robot") else "Namespaced"
    on_robot = "Namespaced" if in_cloud == "Cluster" else "Cluster"
    more = {} if naming is None else {"naming": naming}
    given = kind(source, scope=on_robot, projection=CLOUD | {"scope": in_cloud}, **more)
    shown = discovered(kind(source, scope=on_robot, **more), kind="Goal", namespaced=in_cloud == "Namespaced")
    for problem in (given.problem, shown if isinstance(shown, str) else ""):
        assert problem.startswith(said)
        assert bool(problem) is bool(said)


@pytest.mark.parametrize("upstream", Side)
def test_C7_a_name_in_the_other_scope_tells_no_key(upstream):
    found = policy(upstream, cloud={"namespaced": False})
    up, down = (Key("default", "a"), Key("", "a")) if found.namespaced else (Key("", "a"), Key("default", "a"))
    assert (found.key_of(upstream, up), found.key_of(upstream.other, down)) == (up, None)
    assert found.places_on(upstream.other) == ("",)


def test_C7_the_versions_of_both_sides_are_given_or_agreed_on():
    resource = {"group": "lab.example.com", "resource": "goals", "version": "v1"}
    both = kind(projection=CLOUD | {"version": "v7"}, resource=resource)
    assert (both.problem, both.cloud_version("v1")) == ("", "v7")
    assert choose_version(both, frozenset({"v7", "v8"})) == choose_version(both, None) == "v1"
    assert choose_version(both, frozenset({"v1"})) is None
    alone = kind(projection=CLOUD | {"version": "v1"})
    assert (alone.problem, choose_version(alone, frozenset({"v1"}))) == ("", "v1")
    assert choose_version(kind(), frozenset({"v1"})) == "v1"
    wrong = kind(projection=CLOUD | {"version": "v7"})
    assert wrong.problem == 'spec.projection.version of SyncPolicy a is "v7"; the robot serves v1'


def test_C7_nothing_is_projected_to_what_no_policy_may_name():
    for closed in (
        {"group": "", "resource": "namespaces"},
        {"group": "apiextensions.k8s.io"},
        {"group": "crsyncer.cloudrobotics.com"},
    ):
        assert "allowed: neither namespaces nor kinds of" in kind(projection=closed).problem


def test_C5_6_what_is_a_secret_in_the_cloud_is_sensitive():
    secrets = {"group": "", "resource": "secrets", "kind": "Secret"}
    assert kind(projection=secrets).sensitive
    found = kind(projection=secrets, conflict="keepLocal")
    assert found.problem == "spec.conflict of SyncPolicy a is keepLocal; allowed for secrets: upstream"


def test_C5_6_a_policy_for_what_is_a_secret_in_the_cloud_reads_nothing_but_labels():
    secrets = {"group": "", "resource": "secrets", "kind": "Secret"}
    up = kind(projection=secrets, mutations={"up": [{"path": "/status/x", "set": {"value": 1}}]})
    place = "of SyncPolicy a"
    allowed = "mutations.down only, no status of them is synced"
    assert up.problem == f"spec.mutations.up {place} is set; allowed for secrets: {allowed}"
    maps = {"id": "m", "origin": "cloud", "resource": {"group": "", "resource": "configmaps"}}
    for field, found in (
        ("object.reference", {"object": {"reference": "/spec/x"}}),
        ("object.name", {"object": {"name": "a-{/spec/x}"}}),
        ("object.namespace", {"object": {"name": "a", "namespace": "{/spec/x}"}}),
    ):
        wrong = f"spec.related[0].{field} {place} reads /spec/x of a Secret; allowed: /metadata/labels/KEY"
        assert kind(projection=secrets, related=[maps | found]).problem == wrong
        assert kind(related=[maps | found]).problem == ""
    labels = {"object": {"reference": "/metadata/labels/map"}}
    [entry] = related_entries(kind(projection=secrets, related=[maps | labels]))
    primary, quotes_nothing = (
        goal(metadata={"labels": {"map": "No Name"}}),
        "/metadata/labels/map has 7 characters that",
    )
    with pytest.raises(RelatedFailed, match=quotes_nothing):
        references_of(primary, entry, Names("default", "a", "r1", "c1"), namespaced=True)


def test_C7_a_kind_knows_its_name_in_the_cloud():
    own = {"resource": {"group": "lab.example.com", "resource": "goals"}}
    head = {"apiVersion": "crsyncer.cloudrobotics.com/v1alpha1", "kind": "SyncPolicy", "metadata": {"name": "a"}}
    read = [read_sync_policy(head | {"spec": own | more}) for more in ({}, {"projection": CLOUD})]
    assert [*map(cloud_resource, read)] == ["goals.lab.example.com", "purchases.shop.example.com"]


def test_C7_another_place_in_the_cloud_means_other_objects_and_no_other_status():
    one, other = spoken(kind()), spoken(kind(projection=CLOUD | {"resource": "orders"}))
    assert one.fingerprint.moves_the_same_status(other.fingerprint)
    assert one.fingerprint.leaves_copies_behind(other.fingerprint)
    assert not one.fingerprint.is_in_the_same_places(other.fingerprint)
    assert not one.fingerprint.selects_the_same_objects(other.fingerprint)


def test_C7_the_problem_of_a_related_kind_names_its_entry():
    related = Related("maps", Side.CLOUD, Resource("lab.example.com", "goals"), read_template("a", paths=True))
    maps = policy(
        related=(RelatedEntry("p", "tasks.lab.example.com", related, filtered=False, named=False, naming=None),)
    )
    found = projected(maps, Projection(namespaced=False))
    assert found.problem.startswith("spec.related, naming.namespace of maps, of SyncPolicy p is not fixed")


def test_C7_no_copy_of_a_cluster_scoped_object_leaves_the_namespaces_of_an_agent():
    found = kind("robot", scope="Cluster", naming={"namespace": "home"})
    assert not isinstance(discovered(found, kind="Goal", namespaced=True), str)
    confined = replace(found, namespaces=same_names(("home",)))
    assert "is confined to namespaces" in str(discovered(confined, kind="Goal", namespaced=True))
