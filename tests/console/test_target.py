"""What operators may call a kind and an object: the spellings that kubectl takes."""

import pytest

from crsyncer.console.explained.target import find_key, find_resource, split_target, synced_resource
from crsyncer.core.kinds.read_kind import read_policy
from crsyncer.core.model import Key
from crsyncer.errors import SyncError
from tests.system.bed import crd

KNOWN = {
    "goals.a.com": ("goal", "Goal", "gl"),
    "goals.b.com": ("goal", "Goal"),
    "maps.a.com": ("map", "FloorMap", "fm"),
}


@pytest.mark.parametrize(
    "text",
    [
        "maps.a.com",
        "maps",
        "map",
        "FloorMap",
        "floormap",
        "fm",
        "FM",
        "map.a.com",
        "fm.a.com",
        "maps.v1.a.com",
        "FM.v1beta2.a.com",
    ],
)
def test_a_kind_may_be_named_as_kubectl_names_it(text):
    assert find_resource(text, KNOWN) == "maps.a.com"


def test_a_name_that_several_kinds_have_needs_the_group():
    assert find_resource("goals.b.com", KNOWN) == "goals.b.com"
    assert find_resource("goal.b.com", KNOWN) == "goals.b.com"
    assert find_resource("gl", KNOWN) == "goals.a.com"
    with pytest.raises(SyncError, match=r"goal may be goals\.a\.com or goals\.b\.com"):
        find_resource("goal", KNOWN)


def test_S1_1_other_short_names_restart_no_kind():
    first, second = crd("lab.example.com"), crd("lab.example.com")
    second["spec"]["names"]["shortNames"] = ["gl"]
    one, other = read_policy(first, "robot-1"), read_policy(second, "robot-1")
    assert one is not None
    assert other is not None
    assert one == other
    assert (one.aliases, other.aliases) == (("goal", "Goal"), ("goal", "Goal", "gl"))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (("goals", "a", ""), ("goals", "a")),
        (("goals", "x/a", ""), ("goals", "x/a")),
        (("goals/a", "", ""), ("goals", "a")),
        (("goals/x/a", "", ""), ("goals", "x/a")),
        (("goals/a", "", "x"), ("goals", "x/a")),
        (("goals", "a", "x"), ("goals", "x/a")),
        (("goals", "x/a", "x"), ("goals", "x/a")),
        (("goals", "", "x"), ("goals", "")),
        (("", "", ""), ("", "")),
    ],
)
def test_an_object_may_be_named_in_one_word_or_in_two(given, meant):
    assert split_target(*given) == meant


def test_a_name_that_is_given_twice_is_refused_and_a_namespace_has_to_be_the_same():
    with pytest.raises(SyncError, match="goals/a and b are two names"):
        split_target("goals/a", "b", "")
    with pytest.raises(SyncError, match="x/a is not in the namespace y"):
        split_target("goals", "x/a", "y")


def test_an_object_where_a_kind_is_meant_is_told_apart_from_a_kind_that_is_not_synced():
    with pytest.raises(SyncError, match=r"maps/a is an object, and this command takes a kind"):
        synced_resource("maps/a", KNOWN)
    with pytest.raises(SyncError, match=r"charts is not synced"):
        synced_resource("charts", KNOWN)


def test_an_object_may_be_named_without_its_namespace_where_only_one_is_meant():
    known = [Key("default", "a"), Key("x", "b"), Key("y", "a")]
    assert find_key("x/a", known) == Key("x", "a")
    assert find_key("b", known) == Key("x", "b")
    assert find_key("c", known) == Key("default", "c")
    assert find_key("c", known, namespaced=False) == Key("", "c")
    assert find_key("default/c", known, namespaced=False) == Key("", "c")
    assert find_key("x/b", known, namespaced=False) == Key("x", "b")
    with pytest.raises(SyncError, match="a may be default/a or y/a"):
        find_key("a", known)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("gaols.a.com", "goals.a.com"), ("mpa", "map"), ("FlorMap", "FloorMap"), ("zzz", "")],
)
def test_a_kind_that_is_not_known_is_an_error_with_the_nearest_that_is(typed, meant):
    with pytest.raises(SyncError, match=f"^{typed} is not synced: ") as caught:
        synced_resource(typed, KNOWN)
    assert str(caught.value).endswith(f"; did you mean {meant}?" if meant else "is annotated")


def test_where_no_kind_is_synced_it_is_not_said_that_the_crd_lacks_an_annotation():
    with pytest.raises(SyncError, match="goals is not synced: no kind is at the moment") as caught:
        synced_resource("goals", {})
    assert caught.value.hint == "crsyncer status shows the reason"
