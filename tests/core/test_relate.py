"""Which objects are related to a primary, and how their kind is synced (C5)."""

from dataclasses import replace
from typing import Any

import pytest

from crsyncer.core.actions import HoldReason
from crsyncer.core.built_in import unknown
from crsyncer.core.decide import decide, may_delete
from crsyncer.core.kind_policy import KindPolicy
from crsyncer.core.marks import UPSTREAM_CLUSTER, Marks
from crsyncer.core.model import Json, Key, Observation, Record, Side, Stamp, View
from crsyncer.core.relate import (
    RelatedEntry,
    RelatedFailed,
    related_entries,
    related_failed,
    related_keys,
    related_policy,
    related_selection,
)
from crsyncer.core.selector import Selector
from crsyncer.core.sync_policy import Related, Resource
from crsyncer.core.template import Names
from tests.core.builders import crd, goal, spoken
from tests.core.policy_objects import merged_of, policy_object

MAPS = {"group": "", "resource": "configmaps"}
NAMES = Names("default", "a", "robot-1", "c1")
COPY = View("c", "1", 1, False, "content", "status", has_status=True, stamp=Stamp("u", digest="content"))
LABEL = "cloudrobotics.com/robot-name"


def primaries(*entries: Json, cluster: bool = False, **spec: Any) -> KindPolicy:
    """The kind of the primaries, whose policy has these entries."""
    own = policy_object(specSource="cloud", related=list(entries), **spec)
    return merged_of(crd({}, scope="Cluster") if cluster else crd({}), own)


def entry(id_: str = "x", *, origin: str = "cloud", **more: Any) -> Json:
    return {"id": id_, "origin": origin, "resource": MAPS, "object": {"reference": "/spec/maps/*"}, **more}


def one(*, cluster: bool = False, **more: Any) -> Related:
    [found] = related_entries(primaries(entry(**more), cluster=cluster))
    return found.related


def keys(primary: Json, *, namespaced: bool = True, cluster: bool = False, **object_: str) -> set[str]:
    related = one(object=object_, cluster=cluster)
    return {str(key) for key in related_keys(primary, related, NAMES, namespaced=namespaced)}


@pytest.mark.parametrize(
    ("path", "spec", "found"),
    [
        ("/spec/map", {"map": "a"}, {"default/a"}),
        ("/spec/map", {}, set()),
        ("/spec/map", {"map": None}, set()),
        ("/spec/maps/*", {"maps": ["a", "b", "a", None]}, {"default/a", "default/b"}),
        ("/spec/maps/*/name", {"maps": [{"name": "a"}, {}, {"name": "b"}]}, {"default/a", "default/b"}),
        ("/spec/maps/*", {"maps": {"one": "a", "two": "b"}}, {"default/a", "default/b"}),
        ("/spec/maps/*", {"maps": "a"}, set()),
        ("/spec/maps/1", {"maps": ["a", "b"]}, {"default/b"}),
    ],
)
def test_C5_1_each_text_at_the_path_is_the_name_of_an_object_and_what_is_absent_is_none(path, spec, found):
    assert keys(goal(spec=spec), reference=path) == found


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"map": 1}, "related object x: /spec/map is not a text"),
        ({"map": ["a"]}, "related object x: /spec/map is not a text"),
        ({"map": {}}, "related object x: /spec/map is not a text"),
        ({"map": "A b"}, 'related object x: "A b" is not the name of an object'),
        ({"map": ""}, 'related object x: "" is not the name of an object'),
    ],
)
def test_C5_1_a_value_that_is_no_name_is_an_error(spec, said):
    with pytest.raises(RelatedFailed, match="related object x") as failure:
        keys(goal(spec=spec), reference="/spec/map")
    assert str(failure.value) == said
    hold = related_failed(said)
    assert (hold.reason, said in hold.message) == (HoldReason.RELATED_FAILED, True)


def test_C5_1_more_than_100_objects_are_an_error():
    names = [f"m{number}" for number in range(101)]
    with pytest.raises(RelatedFailed, match="there are 101 of them; allowed: 100"):
        keys(goal(spec={"maps": names}), reference="/spec/maps/*")
    assert len(keys(goal(spec={"maps": [*names[1:], *names[1:]]}), reference="/spec/maps/*")) == 100


def test_C5_1_a_name_is_made_of_the_primary_and_is_none_where_a_value_is_absent():
    assert keys(goal(spec={"n": 1}), name="{name}-{/spec/n}") == {"default/a-1"}
    assert keys(goal(spec={}), name="{name}-{/spec/n}") == set()
    with pytest.raises(RelatedFailed, match="/spec/n is neither a text nor a number nor a boolean"):
        keys(goal(spec={"n": {}}), name="{name}-{/spec/n}")


def test_C5_1_a_cluster_scoped_primary_names_the_namespace_and_a_cluster_scoped_object_has_none():
    primary = goal(spec={"map": "m", "place": "there"})
    del primary["metadata"]["namespace"]
    assert keys(primary, reference="/spec/map", namespace="{/spec/place}", cluster=True) == {"there/m"}
    assert keys(primary, reference="/spec/map", cluster=True, namespaced=False) == {"m"}
    with pytest.raises(RelatedFailed, match='"" is no namespace'):
        keys(primary, reference="/spec/map", cluster=True)
    with pytest.raises(RelatedFailed, match="/spec/none is absent"):
        keys(primary, reference="/spec/map", namespace="{/spec/none}", cluster=True)
    assert keys(goal(spec={"map": "m"}), reference="/spec/map", namespaced=False) == {"m"}


def test_C5_1_a_selector_names_no_object():
    selecting = replace(one(), objects=Selector())
    assert related_keys(goal(), selecting, NAMES, namespaced=True) == frozenset()
    assert related_selection(goal(), one(), NAMES, namespaced=True) is None


def test_C5_1_a_selector_selects_in_the_namespace_of_the_primary():
    related = one(object={"selector": {"matchLabels": {"tier": "edge"}}})
    found = related_selection(goal(), related, NAMES, namespaced=True)
    assert found is not None
    assert found.matches(Key("default", "m"), {"tier": "edge"})
    assert not found.matches(Key("other", "m"), {"tier": "edge"})
    assert not found.matches(Key("default", "m"), {"tier": "cloud"})
    everywhere = related_selection(goal(), related, NAMES, namespaced=False)
    assert everywhere is not None
    assert everywhere.matches(Key("", "m"), {"tier": "edge"})


def test_C5_1_what_cannot_be_followed_yet_is_refused():
    def problem(**more: Any) -> str:
        return primaries(entry(**more)).problem

    assert problem() == ""
    for more, said in (
        ({"naming": {"name": "x"}}, "spec.related[0].naming is"),
        ({"projection": {"kind": "X"}}, "spec.related[0].projection is"),
        ({"status": True}, "spec.related[0].status is"),
        ({"object": {"name": "x", "namespace": "y"}}, "spec.related[].object.namespace of SyncPolicy a is"),
    ):
        assert f"{said} not supported by this version" in problem(**more)
    together: dict[str, Any] = {"naming": {"name": "x-{name}"}, "deletion": {"mode": "blocking"}}
    for field, own in together.items():
        found = merged_of(crd({}), policy_object(specSource="cloud", related=[entry()], **{field: own})).problem
        assert f"spec.{field}" in found
        assert "together with spec.related is not supported by this version" in found


def test_C5_3_only_policies_that_are_followed_have_entries_which_filter_as_their_kind_does():
    assert related_entries(merged_of(crd({}), policy_object(specSource="cloud"))) == ()
    assert related_entries(replace(primaries(entry()), problem="wrong")) == ()
    for by_name, own, filtered in ((True, None, True), (True, False, False), (False, True, True), (None, None, False)):
        more: Json = {} if own is None else {"filterByRobotName": own}
        filter_ = {} if by_name is None else {"byRobotName": by_name}
        [found] = related_entries(primaries(entry(**more), filter=filter_))
        assert (found.filtered, found.id, found.resource) == (filtered, ("a", "x"), "configmaps")


def maps(*entries: RelatedEntry) -> KindPolicy:
    return related_policy(crd({}), entries, "robot-1")


def entries(*raw: Json, **spec: Any) -> tuple[RelatedEntry, ...]:
    return related_entries(primaries(*raw, **spec))


def test_C5_3_copies_are_found_by_their_marks_and_originals_by_the_label_of_the_robot():
    found = maps(*entries(entry()))
    assert (found.problem, found.upstream, found.selector_on(Side.CLOUD)) == ("", Side.CLOUD, "")
    known = replace(found, shape=replace(found.shape, identity="c1"))
    marks = f"{UPSTREAM_CLUSTER}={Marks(Key('', ''), 'c1').labels[UPSTREAM_CLUSTER]}"
    assert (known.selector_on(Side.CLOUD), known.selector_on(Side.ROBOT)) == ("", marks)
    assert known.projection != found.projection
    filtered = maps(*entries(entry(filterByRobotName=True)))
    assert filtered.selector_on(Side.CLOUD) == f"{LABEL}=robot-1"
    assert filtered.shape.down is None


def test_C5_3_copies_in_the_cloud_get_the_label_of_the_robot():
    found = maps(*entries(entry(origin="robot", filterByRobotName=True)))
    assert (found.upstream, found.selector_on(Side.ROBOT)) == (Side.ROBOT, "")
    for labels in ({"own": "1"}, None):
        made = found.shape.desired(goal(metadata={"labels": labels}))
        assert made["metadata"]["labels"] == {**(labels or {}), LABEL: "robot-1"}


def test_C5_3_entries_that_differ_are_a_problem_of_the_related_kind():
    one, other = entry("x"), entry("y")
    assert maps(*entries(one, other)).problem == ""
    for more, said in (
        ({"origin": "robot"}, "differ in origin"),
        ({"cleanup": "keep"}, "differ in cleanup"),
        ({"filterByRobotName": True}, "differ in filterByRobotName"),
        ({"resource": MAPS | {"version": "v1"}}, "differ in resource.version"),
    ):
        assert (
            f"spec.related of a {said} for goals.lab.example.com; allowed: one for all"
            in maps(*entries(one, other | more)).problem
        )
    nameless = related_policy(crd({}), entries(entry(origin="robot")), "")
    assert "no robot name to sign copies with" in nameless.problem


def test_C5_3_a_version_that_is_given_is_the_only_one():
    found = maps(*entries(entry(resource=MAPS | {"version": "v1"})))
    assert ([each.name for each in found.versions], found.problem) == (["v1"], "")
    wrong = maps(*entries(entry(resource=MAPS | {"version": "v7"})))
    assert wrong.problem == 'spec.related of a has version "v7"; the robot does not serve it'
    nothing = related_policy(
        unknown(Resource("", "configmaps")), entries(entry(resource=MAPS | {"version": "v1"})), "robot-1"
    )
    assert (nothing.versions, nothing.problem) == ((), "")


def test_C5_4_copies_that_are_kept_are_never_deleted():
    kept, others = (maps(*entries(entry(cleanup=cleanup))) for cleanup in ("keep", "delete"))
    assert (may_delete(COPY, kept), may_delete(COPY, others)) == (False, True)


def test_C5_5_the_status_of_a_related_object_stays_where_it_is():
    own = replace(COPY, uid="u", stamp=None, status="")
    found = (Observation(own), Observation(COPY))
    record = Record(upstream_uid="u", applied=COPY.content)
    assert decide(*found, spoken(primaries(entry())), record).status is not None
    assert decide(*found, spoken(maps(*entries(entry()))), record).status is None
