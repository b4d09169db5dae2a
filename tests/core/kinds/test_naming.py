"""How copies are called, and whose copies objects are (C2)."""

import hashlib
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.content.annotations import OURS
from crsyncer.core.content.marks import UPSTREAM_CLUSTER, UPSTREAM_NAME, Marks
from crsyncer.core.content.shape import Shape
from crsyncer.core.content.template import Names, read_template
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.namespaces import EVERYWHERE, Namespaces
from crsyncer.core.kinds.naming import LONGEST_NAME, LONGEST_NAMESPACE, Naming, NoOriginal, cut, original_of
from crsyncer.core.kinds.sync_policy import API_VERSION, KIND, read_sync_policy
from crsyncer.core.model import Gap, Json, Key, Observation, Record, Side
from crsyncer.core.pair.actions import NAME_TAKEN, HoldReason, duplicate
from crsyncer.core.pair.compose import compose_copy
from crsyncer.core.pair.decide import decide
from crsyncer.core.pair.project import view_of
from crsyncer.core.reports.facts import hold_rule
from crsyncer.errors import Conflict, Never
from tests.core.builders import goal, policy, stored

LABEL = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
A, B = Key("default", "a"), Key("shop", "b")
UID = {f"{OURS}upstream-uid": "u-9"}


def digits(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def naming(namespace: str = "{namespace}", name: str = "{name}") -> Naming:
    return Naming(read_template(namespace, paths=False), read_template(name, paths=False))


@pytest.mark.parametrize("longest", [LONGEST_NAME, LONGEST_NAMESPACE])
def test_C2_3_a_name_that_is_too_long_is_cut_and_gets_digits(longest):
    assert cut("a" * longest, longest) == "a" * longest
    name = "a" * longest + "b"
    assert cut(name, longest) == "a" * (longest - 11) + "-" + digits(name)
    dotted = "a" * (longest - 13) + ".-" + "b" * 20
    assert cut(dotted, longest) == "a" * (longest - 13) + "-" + digits(dotted)


@given(st.lists(LABEL, min_size=1, max_size=12).map(".".join))
def test_C2_3_what_is_left_of_a_name_is_a_name(name):
    short = cut(name, LONGEST_NAME)
    assert len(short) <= LONGEST_NAME
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", short)


def test_C2_3_a_copy_is_called_by_the_templates():
    names = Names("shop", "a" * 250, robot="r1", identity="c1")
    made = naming("{namespace}-{robot}", "{name}-{cluster}").new_name(
        Key("shop", "a" * 250), robot="r1", identity="c1", namespaced=True
    )
    assert made == Key("shop-r1", cut("a" * 250 + f"-{names.cluster}", 253))
    assert naming("x").new_name(Key("", "a"), robot="", identity="", namespaced=False) == Key("", "a")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (naming(name="{cluster}"), "the copy has no name: {cluster} is not known"),
        (naming(name="{name}_"), 'the name "a_", which spec.naming makes'),
        (naming(name="../{name}"), 'the name "../a", which'),
        (naming("{namespace}."), 'the namespace "shop.", which'),
    ],
)
def test_C2_3_what_is_no_name_is_never_asked_for(template, message):
    with pytest.raises(Never) as error:
        template.new_name(Key("shop", "a"), robot="r1", identity="", namespaced=True)
    assert message in str(error.value)


def whose(copy: Json, **facts: Any) -> Key | NoOriginal:
    return original_of(
        copy,
        **{"stored": None, "seen": {}, "unnamed": A, "identity": "c1", "listed": True, "namespaced": True, **facts},
    )


def marked(marks: Marks, *fields: str, uid: bool = True) -> Json:
    """A copy with these marks, in labels or annotations."""
    both = {"labels": marks.labels, "annotations": marks.annotations}
    texts = {field: both[field] for field in fields}
    texts["annotations"] = texts.get("annotations", {}) | (UID if uid else {})
    return goal(metadata=texts)


def test_C2_2_the_first_that_gives_an_answer_decides():
    both = marked(Marks(B, "c1"), "labels", "annotations")
    assert whose(both, stored=A, seen={"u-9": B}) == A
    assert whose(both, seen={"u-9": Key("shop", "c")}) == Key("shop", "c")
    assert whose(both) == B
    assert whose(marked(Marks(B, "c1"), "labels"), seen={"u-1": A, "u-2": B}) == B
    assert whose(marked(Marks(B, "c1"))) == A


@pytest.mark.parametrize(("listed", "answer"), [(False, NoOriginal.UNDECIDED), (True, NoOriginal.LOCAL)])
def test_C2_2_what_none_decides_waits_for_both_lists_and_is_local_then(listed, answer):
    assert whose(goal(), listed=False) is NoOriginal.LOCAL
    assert whose(marked(Marks(Key("", "b"), "c1"), "annotations"), listed=listed) is answer
    assert whose(marked(Marks(B, "c1"), "labels"), seen={"u-1": A}, listed=listed) is answer
    torn = goal(metadata={"annotations": UID | {UPSTREAM_NAME: "b"}})
    assert whose(torn, listed=listed) is answer


@pytest.mark.parametrize("field", ["labels", "annotations"])
@pytest.mark.parametrize("uid", [False, True])
def test_C2_6_a_copy_of_another_cluster_is_not_ours(field, uid):
    assert whose(marked(Marks(A, "c2"), field, uid=uid), listed=False) is NoOriginal.FOREIGN
    assert UPSTREAM_CLUSTER in Marks(A, "c2").labels


def kind(namespaces: Namespaces = EVERYWHERE, **templates: str) -> KindPolicy:
    """A kind with a policy whose copies are called so."""
    spec = {"resource": {"group": "lab.example.com", "resource": "goals"}, "naming": templates}
    raw = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "p"}, "spec": spec}
    return policy(namespaces=namespaces, sync_policy=read_sync_policy(raw), shape=Shape(marks=Marks, identity="c1"))


def test_C2_3_a_new_copy_is_called_by_the_template_and_an_old_one_as_it_is():
    named = kind(namespace="copies", name="{robot}-{name}")
    new, up = Key("copies", "robot-1-b"), goal(metadata={"namespace": "shop", "name": "b"})
    assert named.new_name(B) == named.copy_name(B, Gap.ABSENT) == new
    body = compose_copy(up, view_of(up, named, Side.CLOUD), named, downstream=None)
    assert (body["metadata"]["namespace"], body["metadata"]["name"]) == ("copies", "robot-1-b")
    view = view_of(stored(body), named, Side.ROBOT, key=B)
    assert (view.called, view.unmarked, named.copy_name(B, view)) == (new, False, new)
    assert kind(name="x").copy_name(B, view) == new
    as_before = view_of(stored(body), named, Side.ROBOT)
    assert (as_before.called, as_before.unmarked, named.copy_name(new, as_before)) == (None, True, new)


def test_C2_3_in_mapped_namespaces_only_the_name_is_made():
    named = kind(Namespaces(("shop",), ("ours",)), name="{name}-x")
    assert named.new_name(B) == Key("ours", "b-x")
    with pytest.raises(Conflict):
        named.new_name(A)


def test_C2_3_names_change_what_is_seen_of_which_objects_and_no_status():
    named, plain = kind(name="x"), policy()
    assert (named.names_copies, plain.names_copies) == (True, False)
    assert named.fingerprint != plain.fingerprint
    assert named.fingerprint.moves_the_same_status(plain.fingerprint)
    assert named.fingerprint.is_in_the_same_places(plain.fingerprint)
    assert not named.fingerprint.leaves_copies_behind(plain.fingerprint)


OWNED = {"ownerReferences": [{"kind": "Pod", "name": "x", "controller": True}]}


@pytest.mark.parametrize(
    ("metadata", "controlled", "taken"),
    [
        ({}, False, False),
        (OWNED, True, True),
        ({"ownerReferences": [{"kind": "Pod", "name": "x"}, "odd"]}, False, False),
        (OWNED | {"annotations": UID}, False, True),  # it says that it is the copy of another object
        (OWNED | {"labels": Marks(A, "c1").labels}, False, False),
    ],
)
def test_C2_5_what_a_controller_owns_is_not_adopted(metadata, controlled, taken):
    named, up = kind(name="x"), view_of(goal(), policy(), Side.CLOUD)
    down = view_of(goal(uid="c-1", metadata=metadata), named, Side.ROBOT)
    assert down.controlled is controlled
    assert not view_of(goal(metadata=metadata), policy(), Side.ROBOT).controlled
    assert (decide(Observation(up), Observation(down), named, Record()).content == NAME_TAKEN) is taken
    assert decide(Observation(Gap.ABSENT), Observation(down), named, Record()).content != NAME_TAKEN


def test_C2_5_C2_6_holds_cite_their_rules():
    rules = [hold_rule(reason, by_policy=True) for reason in (HoldReason.NAME_TAKEN, HoldReason.DUPLICATE)]
    assert rules == ["C2.5", "C2.6"]
    assert hold_rule(HoldReason.NAME_TAKEN, by_policy=False) == "S5.3"
    assert duplicate(A).message == "its original has two copies: default/a is the one that is not touched"
