"""The shape of a kind: what its steps make of objects, views and rows of the outbox, and what they cost without."""

from dataclasses import replace
from typing import Any

import pytest

from crsyncer.adapters.expressions import Expressions
from crsyncer.core.content.mutation import shape_of
from crsyncer.core.content.object_content import APPLIED, LAST_DESIRED
from crsyncer.core.content.shape import AS_RECEIVED, MutationFailed, Shape, signature_name
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.namespaces import Namespaces, meta_name
from crsyncer.core.kinds.sync_policy import read_sync_policy
from crsyncer.core.model import Gap, Json, Key, Observation, Pending, Record, Side, View
from crsyncer.core.pair.actions import Create, Hold, HoldReason, Plan, SendStatus, Update, Why, mutation_failed
from crsyncer.core.pair.compose import compose_copy
from crsyncer.core.pair.decide import decide
from crsyncer.core.pair.project import last_desired, value_to_send, view_of
from tests.core.builders import goal, policy, stored
from tests.core.sync_policies import MINIMAL, edited

KEY = Key("default", "a")
MODE: Json = {"path": "/spec/mode", "set": {"value": "m"}}
NEXT: Json = {"path": "/spec/x", "cel": "value + 1"}
WORD: Json = {"path": "/status/word", "template": "{name} {/spec/x}"}


def shape(*, down: Any = (), up: Any = (), keep_local: bool = False, robot: str = "r1") -> Shape:
    """The shape that these steps give."""
    spec = edited(MINIMAL, "spec", "mutations", value={"down": [*down], "up": [*up]})
    found = shape_of(read_sync_policy(spec).mutations, keep_local=keep_local, expressions=Expressions)
    return replace(found, robot=robot) if found.steps else found


def kind(upstream: Side = Side.CLOUD, **changes: Any) -> KindPolicy:
    """A kind with the shape that these steps give."""
    given = {name: changes.pop(name) for name in ("down", "up", "keep_local") if name in changes}
    return policy(upstream, shape=shape(**given), **changes)


def test_C4_1_without_steps_an_object_stays_the_very_same():
    raw = goal(status={"n": 1})
    for each in (AS_RECEIVED, shape(), shape(keep_local=True)):
        assert each.desired(raw) is each.sent(raw, KEY) is raw
    assert (shape() is AS_RECEIVED, AS_RECEIVED.signature) == (True, "")


def test_C4_1_shapes_are_equal_and_have_one_signature_where_they_make_the_same():
    one = shape(down=[MODE])
    assert (one, one.signature) == (shape(down=[MODE]), shape(down=[MODE]).signature)
    others = [
        shape(down=[{**MODE, "set": {"value": "n"}}]),
        shape(up=[WORD]),
        shape(down=[MODE, MODE]),
        shape(down=[MODE], keep_local=True),
        shape(down=[MODE], robot="r2"),
        shape(keep_local=True),
        shape(down=[{**MODE, "set": {"value": 1}}]),
        shape(down=[{**MODE, "set": {"value": True}}]),
        replace(one, identity="c"),
        shape(),
    ]
    assert len({one.signature, *(each.signature for each in others)}) == len(others) + 1
    assert all(one != other for other in others)


def test_C4_1_the_store_keeps_the_signature_of_each_kind_apart():
    resources = ["goals.lab.example.com", "tasks.lab.example.com"]
    names = [*map(signature_name, resources), *map(meta_name, resources)]
    assert len(set(names)) == 4


def test_C4_2_steps_see_upstreams_names_the_robot_and_the_cluster():
    names: Json = {"path": "/spec/who", "template": "{robot} {namespace} {name} {hash}"}
    found = replace(shape(down=[names]), identity="kube-system:u").desired(goal())
    assert found["spec"]["who"].startswith("r1 default a ")
    with pytest.raises(MutationFailed, match="not known without"):
        shape(down=[names]).desired(goal())


def test_C4_3_steps_do_not_see_what_the_store_does_not_keep():
    step: Json = {"path": "/spec/n", "cel": "has(self.metadata.managedFields)"}
    raw = goal(metadata={"managedFields": [{"manager": "kubectl"}]})
    assert shape(down=[step]).desired(raw)["spec"]["n"] is False
    step = {"path": "/status/n", "cel": "has(self.metadata.managedFields)"}
    assert shape(up=[step]).sent({**raw, "status": {"x": 1}}, KEY)["status"] == {"x": 1, "n": False}


@pytest.mark.parametrize("upstream", Side)
def test_C4_1_the_digest_of_an_upstream_object_is_that_of_the_copy_which_it_calls_for(upstream):
    shaped = kind(upstream, down=[MODE, NEXT])
    raw = goal(spec={"x": 1})
    view = view_of(raw, shaped, upstream)
    copy = stored(compose_copy(shaped.shape.desired(raw), view, shaped, downstream=None))
    assert copy["spec"] == {"x": 2, "mode": "m"}
    assert (
        view_of(copy, shaped, upstream.other).content
        == view.content
        != view_of(raw, policy(upstream), upstream).content
    )
    assert (view.failure, view.uid, view.status) == ("", "u-1", "")


def test_C4_1_the_digest_of_a_copys_status_is_that_of_what_goes_upstream():
    shaped = kind(up=[WORD], subtree="word")
    copy = goal(status={"n": 1})
    found = view_of(copy, shaped, Side.ROBOT)
    assert found.status == view_of(goal(status={"word": "a 1"}), shaped, Side.CLOUD).status
    assert (view_of(goal(), shaped, Side.ROBOT).status, found.failure) == ("", "")


def test_C4_1_steps_for_a_status_see_upstreams_names():
    step: Json = {"path": "/status/where", "template": "{namespace}"}
    shaped = kind(up=[step], namespaces=Namespaces(("theirs",), ("default",)))
    assert (
        view_of(goal(status={"n": 1}), shaped, Side.ROBOT).status
        == view_of(goal(status={"n": 1, "where": "theirs"}), policy(), Side.CLOUD).status
    )


def test_C4_4_the_view_of_an_object_says_which_step_fails():
    raw = goal(spec={"x": "text" * 1000}, status={"n": 1})
    view = view_of(raw, kind(down=[MODE, NEXT]), Side.CLOUD)
    assert view.failure.startswith("spec.mutations.down[1], /spec/x: ")
    assert len(view.failure) <= 500
    found = view_of(goal(status={"n": 1}, other={}), kind(up=[WORD]), Side.ROBOT)
    assert found.failure.startswith("spec.mutations.up[0], /status/word: /spec/x is absent")


FAILED = view_of(goal(spec={}), kind(down=[NEXT]), Side.CLOUD)
TERMINATING = replace(FAILED, terminating=True)


def copied(uid: str = "u-1", **changes: Any) -> View:
    """A copy of an object with this uid."""
    shaped = kind()
    raw = goal(uid=uid)
    view = view_of(raw, shaped, Side.CLOUD)
    return replace(view_of(stored(compose_copy(raw, view, shaped, downstream=None)), shaped, Side.ROBOT), **changes)


@pytest.mark.parametrize(
    ("up", "copy", "held"),
    [
        (FAILED, Gap.ABSENT, True),
        (FAILED, Gap.UNSEEN, False),
        (TERMINATING, Gap.ABSENT, False),
        (FAILED, copied(), True),
        (FAILED, copied("older"), True),
        (TERMINATING, copied("older"), False),
        (TERMINATING, copied(), False),
        (FAILED, copied(terminating=True), False),
        (Gap.ABSENT, copied(), False),
    ],
)
def test_C4_4_no_copy_is_made_changed_or_replaced_for_an_object_on_which_a_step_fails(up, copy, held):
    content = decide(Observation(up), Observation(copy), kind(down=[NEXT]), Record()).content
    assert not isinstance(content, Create | Update)
    assert isinstance(content, Hold) is held
    if isinstance(content, Hold):
        assert (content.reason, FAILED.failure in content.message) == (HoldReason.MUTATION_FAILED, True)


@pytest.mark.parametrize(
    ("status", "acknowledged", "pending", "waits"),
    [
        ("d", "", None, False),
        ("d", "before", Pending(1, "u-1", "before", {}, 0.0), False),
        ("d", "d", Pending(1, "another", "d", {}, 0.0), True),
        ("d", "before", Pending(1, "u-1", "d", {}, 0.0), True),
        ("d", "d", None, True),
        ("", "", None, True),
    ],
)
def test_C4_4_a_status_on_which_a_step_fails_is_held_and_waits_in_the_outbox(status, acknowledged, pending, waits):
    up = view_of(goal(), kind(), Side.CLOUD)
    copy, record = copied(failure="why", status=status, has_status=True), Record("u-1", acknowledged=acknowledged)
    plan = decide(Observation(up), Observation(copy), kind(), record, pending=pending)
    hold = mutation_failed("why")
    assert plan == Plan(None, hold if waits else SendStatus("u-1", "d", hold))


@pytest.mark.parametrize(
    ("row", "changes", "value"),
    [
        (Pending(1, "u", "d", {"n": 1}, 0.0), {}, {"n": 1}),
        (Pending(1, "u", "", None, 0.0), {"up": [WORD]}, None),
        (Pending(1, "u", "d", goal(status={"n": 1}), 0.0, raw=True), {"up": [WORD]}, {"n": 1, "word": "a 1"}),
        (Pending(1, "u", "d", goal(status={"n": 1}), 0.0, raw=True), {}, {"n": 1}),
        (Pending(1, "u", "d", goal(status={"n": 1}), 0.0, raw=True), {"subtree": "n"}, 1),
        (Pending(1, "u", "d", goal(status={"n": 1}), 0.0, raw=True), {"subtree": "word", "up": [WORD]}, "a 1"),
        (Pending(1, "u", "d", 5, 0.0), {"subtree": "n", "up": [{"path": "/status/n", "cel": "value + 1"}]}, 6),
    ],
)
def test_C4_1_a_row_of_the_outbox_is_sent_by_the_steps_of_now(row, changes, value):
    assert value_to_send(row, kind(**changes), KEY) == value


def test_C4_4_a_row_without_the_rest_of_its_copy_may_fail():
    with pytest.raises(MutationFailed, match="/spec/x is absent"):
        value_to_send(Pending(1, "u", "d", {"n": 1}, 0.0), kind(up=[WORD]), KEY)


def test_a_row_has_the_status_as_downstream_has_it():
    assert Pending(1, "u", "d", {"n": 1}, 0.0).status == {"n": 1}
    assert Pending(1, "u", "d", goal(status={"n": 1}), 0.0, raw=True).status == {"n": 1}


# keepLocal


def kept(raw: Json, shaped: KindPolicy, *, onto: Json | None = None) -> Json:
    """The copy as the agent writes it."""
    return stored(compose_copy(raw, view_of(raw, shaped, shaped.upstream), shaped, downstream=onto))


def test_C3_3_what_was_applied_last_is_on_a_copy_with_keep_local_only():
    local = kind(keep_local=True)
    raw = goal(spec={"x": 1}, metadata={"labels": {"a": "1"}, "annotations": {"b": "2", LAST_DESIRED: "theirs"}})
    copy = kept(raw, local)
    assert copy["metadata"]["annotations"][LAST_DESIRED] == (
        '{"spec":{"x":1},"metadata":{"labels":{"a":"1"},"annotations":{"b":"2"}}}'
    )
    assert last_desired(copy, local) == {
        "spec": {"x": 1},
        "metadata": {"labels": {"a": "1"}, "annotations": {"b": "2"}},
    }
    assert LAST_DESIRED not in kept(raw, kind(), onto=copy)["metadata"]["annotations"]
    assert LAST_DESIRED not in kept(raw, kind())["metadata"]["annotations"]


@pytest.mark.parametrize(("size", "is_kept"), [(128 << 10, True), ((128 << 10) + 1, False)])
def test_C3_3_128_KiB_are_kept_and_no_byte_more(size, is_kept):
    around = len('{"spec":"","metadata":{"labels":{},"annotations":{}}}')
    copy = kept(goal(spec="x" * (size - around)), kind(keep_local=True))
    assert (LAST_DESIRED in copy["metadata"]["annotations"]) is is_kept


def test_C3_3_a_copy_that_has_lost_it_is_not_in_line_unless_it_was_never_kept():
    local, raw = kind(keep_local=True), goal(spec={"x": 1})
    for spec, change, in_line in (
        ({"x": 1}, {}, True),
        ({"x": 1}, {LAST_DESIRED: "{"}, False),
        ({"x": 1}, {APPLIED: "{"}, False),
        ("x" * (128 << 10), {}, True),
    ):
        copy = kept(raw | {"spec": spec}, local)
        wanted = view_of(raw | {"spec": spec}, local, local.upstream).content
        copy["metadata"]["annotations"] |= change
        stamp = view_of(copy, local, local.downstream).stamp
        assert stamp is not None
        assert (stamp.digest == wanted) is in_line


@pytest.mark.parametrize("text", [None, "", "{", "[]", "1", '{"spec":1}', '{"metadata":1}', "[" * 100_000])
def test_C3_3_what_is_not_sound_is_not_believed(text):
    local = kind(keep_local=True)
    copy = kept(goal(), local)
    copy["metadata"]["annotations"][LAST_DESIRED] = text
    assert last_desired({**copy, "metadata": {**copy["metadata"]}}, local) is None
    assert last_desired(goal(metadata={"annotations": {LAST_DESIRED: text}}), local) is None
    assert last_desired(goal(), local) is None


def test_C3_2_a_copy_keeps_what_upstream_has_not_changed():
    local = kind(keep_local=True, filtered=True)
    labels = {"cloudrobotics.com/robot-name": "robot-1"}
    copy = kept(goal(spec={"x": 1, "y": 1}, metadata={"labels": labels | {"up": "1"}}), local)
    copy["spec"] = {"x": 2, "y": 2, "mine": 1}
    copy["metadata"]["labels"] = {"up": "2", "mine": "1"}
    copy["metadata"]["annotations"] |= {"theirs": "1", "cr-syncer.cloudrobotics.com/note": "1"}
    found = kept(goal(spec={"x": 1, "y": 3}, metadata={"labels": labels}), local, onto=copy)
    assert found["spec"] == {"x": 2, "y": 3, "mine": 1}
    assert found["metadata"]["labels"] == {"mine": "1", **labels}
    assert {"theirs", "cr-syncer.cloudrobotics.com/note"} <= found["metadata"]["annotations"].keys()


@pytest.mark.parametrize("change", [{"spec": {"x": 2}}, {"more": 1}, {}])
def test_C3_2_a_change_of_a_copy_causes_no_write(change):
    local = kind(keep_local=True)
    up = view_of(goal(), local, Side.CLOUD)
    copy = view_of(kept(goal(), local) | change, local, Side.ROBOT)
    assert decide(Observation(up), Observation(copy), local, Record("u-1", up.content, up.content)).content is None
    later = view_of(goal(spec={"x": 5}), local, Side.CLOUD)
    action = decide(Observation(later), Observation(copy), local, Record("u-1", up.content, up.content)).content
    assert isinstance(action, Update)
    assert action.why is Why.CHANGED


@pytest.mark.parametrize(("before", "after"), [(True, False), (False, True)])
def test_C3_3_every_copy_is_written_once_where_keep_local_is_switched(before, after):
    first, second = kind(keep_local=before), kind(keep_local=after)
    was, now = (view_of(goal(), each, Side.CLOUD) for each in (first, second))
    copy = view_of(kept(goal(), first), second, Side.ROBOT)
    action = decide(Observation(now), Observation(copy), second, Record("u-1", was.content, was.content)).content
    assert isinstance(action, Update)
    again = view_of(kept(goal(), second, onto=kept(goal(), first)), second, Side.ROBOT)
    assert decide(Observation(now), Observation(again), second, Record("u-1", now.content)).content is None
