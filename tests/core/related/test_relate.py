"""Which objects are related to a primary, and how their kind is synced (C5)."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from crsyncer.core.content.marks import UPSTREAM_CLUSTER, Marks
from crsyncer.core.content.object_content import UPSTREAM_UID
from crsyncer.core.content.selector import Selector
from crsyncer.core.content.shape import AS_RECEIVED
from crsyncer.core.content.template import Names
from crsyncer.core.kinds.built_in_kind import unknown
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.merge_settings import policy_of_kind
from crsyncer.core.kinds.namespaces import Namespaces
from crsyncer.core.kinds.related_entry import RelatedEntry
from crsyncer.core.model import Freshness, Gap, Json, Key, Observation, Record, Side, Stamp, View
from crsyncer.core.pair.actions import NAME_TAKEN, HoldReason, Until, Update, Wait, Why
from crsyncer.core.pair.decide import decide, may_delete
from crsyncer.core.related.relate import (
    References,
    RelatedFailed,
    Selection,
    is_primary,
    references_of,
    related_entries,
    related_failed,
    related_policy,
)
from tests.core.builders import crd, goal, policy, spoken
from tests.core.policy_objects import merged_of, policy_object

MAPS = {"group": "", "resource": "configmaps"}
NAMES = Names("default", "a", "robot-1", "c1")
COPY = View("c", "1", 1, False, "content", "status", has_status=True, stamp=Stamp("u", digest="content"))
LABEL = "cloudrobotics.com/robot-name"


def primaries(*entries: Json, cluster: bool = False, **spec: Any) -> KindPolicy:
    """The kind of the primaries, whose policy has these entries."""
    own = policy_object(specSource="cloud", related=list(entries), **{k: v for k, v in spec.items() if v is not None})
    return merged_of(crd({}, scope="Cluster") if cluster else crd({}), own)


def entry(id_: str = "x", *, origin: str = "cloud", **more: Any) -> Json:
    return {"id": id_, "origin": origin, "resource": MAPS, "object": {"reference": "/spec/maps/*"}, **more}


def said(primary: Json, *, namespaced: bool = True, cluster: bool = False, **more: Any) -> References:
    """What a primary refers to."""
    [found] = related_entries(primaries(entry(**more), cluster=cluster))
    return references_of(primary, found, NAMES, namespaced=namespaced)


def keys(primary: Json, *, namespaced: bool = True, cluster: bool = False, **object_: str) -> set[str]:
    return {str(key) for key in said(primary, object=object_, cluster=cluster, namespaced=namespaced).keys}


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
    assert keys(primary, reference="/spec/map", namespace="{/spec/none}", cluster=True) == set()
    with pytest.raises(RelatedFailed, match="/spec is neither a text"):
        keys(primary, reference="/spec/map", namespace="{/spec}", cluster=True)
    for wrong in ("No Place", "a.name", "n" * 64):
        with pytest.raises(RelatedFailed, match=f'"{wrong}" is no namespace'):
            keys(goal(spec={"map": "m", "place": wrong}), reference="/spec/map", namespace="{/spec/place}")
    assert keys(goal(spec={"map": "m"}), reference="/spec/map", namespaced=False) == {"m"}


def test_C5_1_what_is_about_to_go_or_is_no_copy_refers_to_nothing():
    kind, own = primaries(entry()), goal()
    assert (is_primary(own, kind, Side.CLOUD), is_primary(own, kind, Side.ROBOT)) == (True, False)
    assert is_primary(goal(metadata={"annotations": {UPSTREAM_UID: "u"}}), policy(), Side.ROBOT)
    own["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    assert not is_primary(own, kind, Side.CLOUD)


def test_C5_1_a_selector_in_a_namespace_that_the_primary_does_not_say_selects_nothing():
    object_: Json = {"selector": {}, "namespace": "{/spec/place}"}
    assert said(goal(spec={}), object=object_) == References()


def selection(*, namespaced: bool = True) -> Selection:
    found = said(goal(), object={"selector": {"matchLabels": {"tier": "edge"}}}, namespaced=namespaced)
    assert (found.keys, found.selection is not None) == (frozenset(), True)
    return found.selection or Selection("", Selector())


def test_C5_1_a_selector_selects_in_the_namespace_of_the_primary():
    assert said(goal(spec={})).selection is None
    found = selection()
    assert found.matches(Key("default", "m"), {"tier": "edge"})
    assert not found.matches(Key("other", "m"), {"tier": "edge"})
    assert not found.matches(Key("default", "m"), {"tier": "cloud"})
    assert selection(namespaced=False).matches(Key("", "m"), {"tier": "edge"})
    assert found.text == "default/tier=edge"


def named(original: str = "shop/m", *, of_kind: Json | None = None, **more: Any) -> str:
    """What the copy of an original is called, by an entry that says more, of a policy with this naming."""
    kind = maps(*related_entries(primaries(entry(**more), naming=of_kind)))
    namespace, _, name = original.rpartition("/")
    return str(replace(kind, shape=replace(kind.shape, identity="c1")).new_name(Key(namespace, name)))


def test_C5_2_a_copys_name_depends_on_its_entry_and_its_original_only():
    assert named() == "shop/m"
    assert named(naming={"name": "{namespace}-{name}"}) == "shop/shop-m"
    assert named(naming={"namespace": "x-{namespace}"}) == "x-shop/m"
    assert named(naming={"name": "{name}-{robot}"}) == "shop/m-robot-1"
    digest = sha256(b"c1/shop/m").hexdigest()[:10]
    assert named(naming={"name": "{name}-{hash}"}) == f"shop/m-{digest}"


def test_C5_2_without_a_namespace_of_its_own_it_is_in_what_the_kind_of_the_primary_makes_of_the_originals():
    assert named(of_kind={"name": "x-{name}"}) == "shop/m"
    assert named(of_kind={"namespace": "copies", "name": "x-{name}"}) == "copies/m"
    assert named(of_kind={"namespace": "{robot}-{namespace}"}) == "robot-1-shop/m"
    assert named(of_kind={"namespace": "copies"}, naming={"name": "{name}-y"}) == "copies/m-y"
    assert named(of_kind={"namespace": "copies"}, naming={"namespace": "mine"}) == "mine/m"


@pytest.mark.parametrize("template", ["x-{name}", "{hash}"])
def test_C5_2_where_that_depends_on_more_than_the_original_the_entry_has_to_say_it(template):
    found = primaries(entry(), naming={"namespace": template})
    assert "spec.related[0].naming.namespace is absent" in found.problem
    assert primaries(entry(naming={"namespace": "x"}), naming={"namespace": template}).problem == ""
    assert primaries(naming={"namespace": template}).problem == ""


def test_C5_2_no_value_of_the_primary_is_in_the_name_of_a_copy():
    assert "spec.related[0].naming.name has {/spec/n}" in primaries(entry(naming={"name": "{/spec/n}"})).problem


def test_C5_2_entries_for_one_kind_have_to_agree_on_naming():
    found = maps(*entries(entry(naming={"name": "x-{name}"})), *entries(entry("y")))
    assert "differ in naming" in found.problem


def test_C5_2_related_objects_stay_in_the_namespaces_of_an_agent_that_is_confined():
    def problem(**more: Any) -> str:
        own = policy_object(specSource="cloud", related=[entry(**more)])
        confined = Namespaces(("robot-r1",), ("default",))
        found = policy_of_kind(crd({}), "robot-1", namespaces=confined, objects=[own])
        assert found is not None
        return found.problem

    own = {"namespace": "{namespace}"}
    assert problem(naming=own | {"name": "x-{name}"}, object=own | {"name": "m"}) == ""
    for field, more in (
        ("naming", {"naming": {"namespace": "x"}}),
        ("object", {"object": {"name": "x", "namespace": "y"}}),
    ):
        said = f"spec.related[0].{field}.namespace of SyncPolicy a is set, but this agent is confined to namespaces"
        assert said in problem(**more)


def test_C5_2_a_template_with_the_robot_needs_its_name():
    own = policy_object(specSource="cloud", related=[entry(naming={"name": "{robot}-{name}"})])
    assert merged_of(crd({}), own).problem == ""
    assert "spec.related[0].naming of SyncPolicy a has {robot}" in merged_of(crd({}), own, robot="").problem


def test_C2_2_with_naming_of_primary_or_entry_no_other_object_becomes_a_copy():
    own: Json = {"naming": {"name": "x-{name}"}}
    kinds = [maps(*entries(entry())), maps(*entries(entry(**own))), maps(*entries(entry(), **own))]
    assert [kind.names_copies for kind in kinds] == [False, True, True]


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
    assert known.fingerprint != found.fingerprint
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


@pytest.mark.parametrize("content", ["content", "other"])
def test_C5_4_a_copy_that_is_kept_becomes_that_of_the_original_that_is_there_now(content):
    kept, anew = maps(*entries(entry(cleanup="keep"))), replace(COPY, uid="u-2", stamp=None, content=content)
    update = Update(COPY.uid, COPY.resource_version, Why.CHANGED)
    assert decide(Observation(anew), Observation(COPY), kept, Record()).content == update
    resumed = Observation(anew, Freshness.RESUMED)
    assert decide(resumed, Observation(COPY), kept, Record()).content == Wait(Until.UPSTREAM_LISTED)
    assert decide(resumed, Observation(replace(COPY, terminating=True)), kept, Record()).content is None
    assert decide(Observation(Gap.ABSENT), Observation(COPY), kept, Record()).content is None


def test_C2_2_marks_alone_do_not_make_an_object_a_copy():
    found, anew = maps(*entries(entry())), replace(COPY, uid="u-2", stamp=None)
    forged = replace(COPY, stamp=Stamp("u", bare=True))
    assert (may_delete(forged, found), may_delete(forged, replace(found, shape=AS_RECEIVED))) == (False, True)
    assert decide(Observation(Gap.ABSENT), Observation(forged), found, Record()).content is None
    assert decide(Observation(anew), Observation(forged), found, Record()).content == NAME_TAKEN


def test_C5_5_the_status_of_a_related_object_stays_where_it_is():
    own = replace(COPY, uid="u", stamp=None, status="")
    found = (Observation(own), Observation(COPY))
    record = Record(upstream_uid="u", applied=COPY.content)
    assert decide(*found, spoken(primaries(entry())), record).status is not None
    assert decide(*found, spoken(maps(*entries(entry()))), record).status is None


def test_C7_related_objects_may_be_called_otherwise_in_the_cloud():
    cloud = {"group": "shop.example.com", "resource": "settings", "kind": "Setting"}
    found = maps(*entries(entry(projection=cloud)))
    assert (found.problem, found.resource, found.in_cloud.resource) == (
        "",
        "goals.lab.example.com",
        "settings.shop.example.com",
    )
    one = maps(*entries(entry(projection=cloud)), *entries(entry(projection=cloud | {"kind": "X"}), name="b"))
    assert "differ in projection for goals" in one.problem
    wide = cloud | {"scope": "Cluster"}
    assert "spec.related, naming.namespace of x" in maps(*entries(entry(projection=wide))).problem
    assert maps(*entries(entry(projection=wide, naming={"namespace": "home"}))).problem == ""
    robots = entry(origin="robot", projection=wide)
    assert "has neither" in maps(*entries(robots)).problem
    named = maps(*entries(robots | {"naming": {"name": "{namespace}-{name}"}}))
    assert named.problem == ""
    known = spoken(replace(named, shape=replace(named.shape, identity="c1")))
    assert known.new_name(Key("default", "m")) == Key("", "default-m")


def test_C5_4_references_cover_others_that_name_and_select_no_more():
    one, other = Key("default", "m"), Key("default", "n")
    edge, north = (Selection(namespace, Selector()) for namespace in ("edge", "north"))
    both = References(frozenset({one}), edge) | References(frozenset({other}), north)
    assert both == References(frozenset({one, other}), edge)
    assert References() | both == both
    assert [both.cover(each) for each in (both, References(), References(frozenset({other})))] == [True] * 3
    assert not both.cover(References(frozenset({Key("default", "o")})))
    assert not both.cover(References(selection=north))


def test_C5_4_an_entry_has_another_text_where_it_may_mean_other_originals_and_no_other_one_where_it_may_not():
    def text(**more: Any) -> str:
        [found] = related_entries(primaries(entry(**more)))
        return found.text

    objects: list[Json] = [{"reference": "/spec/a"}, {"name": "a"}, {"selector": {"matchLabels": {"a": "b"}}}]
    others: list[Json] = [{"reference": "/spec/b"}, {"name": "{name}"}]
    differing = [*objects, *others, *(each | {"namespace": "a"} for each in objects)]
    assert len({text(object=each) for each in differing}) == len(differing)
    same: list[Json] = [
        {"status": True},
        {"cleanup": "keep"},
        {"naming": {"name": "x-{name}"}},
        {"filterByRobotName": True},
    ]
    assert {text(**each) for each in same} == {text()}
