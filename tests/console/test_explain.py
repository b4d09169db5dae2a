"""What `explain` says of every state that a pair can be in, and which kind and object an operator means."""

from dataclasses import replace

import pytest

from crsyncer.cli.explain import render
from crsyncer.console.explained.explanation import ObjectFacts, explain, stored_policy
from crsyncer.console.screens.report import pending_status, rejected_row
from crsyncer.core.content.shape import MutationFailed, Shape
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.namespaces import Namespaces, same_names
from crsyncer.core.model import Gap, Key, Pending, Record, Side, Tombstone
from crsyncer.core.pair.actions import (
    NOTHING,
    Create,
    Delete,
    Hold,
    HoldReason,
    Plan,
    Seed,
    Update,
    Why,
    mutation_failed,
)
from crsyncer.core.pair.project import view_of
from tests.console.report_kit import GOALS, NOW, hold, kind
from tests.core.builders import ROBOT_NAME, copy_of, goal, policy

A = Key("default", "a")
MAP = Namespaces(("robot-r1",), ("default",))
CLOUD, ROBOT = Side
POLICY = policy()
UP = goal(status={"phase": "A"})
DOWN = copy_of(UP, POLICY, status={"phase": "A"})
UP_VIEW = view_of(UP, POLICY, CLOUD)
DOWN_VIEW = view_of(DOWN, POLICY, ROBOT)
ROW = kind(filterByRobotName=False)
AGREED = ObjectFacts(
    GOALS,
    A,
    kind=ROW,
    policy=POLICY,
    connections={CLOUD: "connected", ROBOT: "connected"},
    observations={CLOUD: UP_VIEW, ROBOT: DOWN_VIEW},
    bodies={CLOUD: UP, ROBOT: DOWN},
    record=Record(upstream_uid="u-1", acknowledged=DOWN_VIEW.status),
)
WAITING = Pending(1, "u-1", "d", {"phase": "B"}, NOW - 90, attempts=3)
HELD = hold(hint="look", message="many vanished")
ODD = Hold(HoldReason.ODD_STATUS, "the status is not an object", "mend it")
TAKEN = Hold(HoldReason.NAME_TAKEN, "the name is taken", "rename it")


def seen(up=UP_VIEW, down=DOWN_VIEW, plan=NOTHING, **changes) -> ObjectFacts:
    """Facts with these observations; of what is not seen there is no body."""
    sights = {CLOUD: up, ROBOT: down}
    bodies = {side: AGREED.bodies[side] for side in Side if not isinstance(sights[side], Gap)}
    return replace(AGREED, observations=sights, bodies=bodies, plan=plan, **changes)


def waiting(*, next_try: float | None = None, **changes) -> dict:
    return pending_status(replace(WAITING, **changes), CLOUD, next_try=next_try)


def rejected(message: str) -> dict:
    return rejected_row("content", message, ROBOT, next_try=NOW + 60)


def labelled(**changes) -> ObjectFacts:
    return seen(policy=policy(filtered=True), **changes)


def confined(*names: str) -> KindPolicy:
    return policy(namespaces=same_names(names))


def content(action) -> Plan:
    return Plan(content=action)


STATES: dict[str, tuple[ObjectFacts, str, str, dict[str, bool | None]]] = {
    "both agree": (AGREED, "in-sync", "nothing to do", {}),
    "not a kind of ours": (ObjectFacts(GOALS, A), "not-synced", "is annotated", {"S1.2": False}),
    "one kind is": (
        ObjectFacts("x.y", A, annotated=(GOALS,)), "not-synced", f"annotated are: {GOALS}", {"S1.2": False},
    ),
    "misconfigured": (
        ObjectFacts(GOALS, A, kind=kind(state="misconfigured", message="odd", rule="S1.3")),
        "not-synced", "misconfigured: odd", {"S1.3": False},
    ),
    "starting": (
        ObjectFacts(GOALS, A, kind=kind(state="waiting", message="starting")),
        "waiting", "starting", {"S1": None},
    ),
    "kind missing": (
        replace(AGREED, kind=kind(state="kind-missing", message="gone", rule="S1.6")),
        "not-synced", "gone", {"S1.6": False},
    ),
    "labelled, deleted upstream, waits for a finalizer": (
        labelled(up=Gap.ABSENT, down=replace(DOWN_VIEW, terminating=True), tombstone=Tombstone("u-1", NOW)),
        "waiting", "waits for its finalizers: not known", {"S5.1": None},
    ),
    "a write fails": (
        replace(AGREED, plan=content(Create()), error="the robot answered 503", next_try=NOW),
        "waiting", "the next one is at 2026-11-21T08:00:00Z: the robot answered 503", {"S10": None},
    ),
    "a write has failed": (
        replace(AGREED, plan=content(Create()), error="the answer was lost"),
        "waiting", "the next one is soon: the answer was lost", {"S10": None},
    ),
    "no agent": (replace(AGREED, running=False, connections={}), "waiting", "not running", {"S7.1": None}),
    "no link": (
        replace(AGREED, connections={CLOUD: "offline", ROBOT: "connected"}),
        "waiting", "the cloud is offline", {"S7.1": None},
    ),
    "labelled": (labelled(), "in-sync", "nothing to do", {"S2.1": True}),
    "not labelled": (labelled(up=Gap.ABSENT, down=Gap.ABSENT), "not-synced", "robot-name=robot-1", {"S2.2": False}),
    "who knows": (labelled(up=Gap.UNSEEN, down=Gap.UNSEEN), "waiting", "whether the robot has it", {"S2.2": None}),
    "neither has it": (seen(Gap.ABSENT, Gap.ABSENT), "absent", "neither side", {"S2": True}),
    "a recorded deletion": (
        seen(Gap.ABSENT, Gap.ABSENT, tombstone=Tombstone("u-1", NOW)), "absent", "neither", {"S7.1": True},
    ),
    "to be created": (seen(down=Gap.ABSENT, plan=content(Create())), "waiting", "created on the robot", {"S3.2": None}),
    "refused": (
        seen(down=Gap.ABSENT, plan=content(Create()), pending=(rejected("x is wrong"),)),
        "refused", "rejects the copy: x is wrong", {"S3.6": False},
    ),
    "owed a status": (seen(plan=content(Seed("c-1", "10"))), "waiting", "upstream's status, once", {"S4.4": None}),
    "changed": (seen(plan=content(Update("c-1", "10", Why.CHANGED))), "waiting", "changed upstream", {"S3.2": None}),
    "to be deleted": (
        seen(Gap.ABSENT, plan=content(Delete("c-1", Why.GONE))), "waiting", "upstream does not", {"S5": None},
    ),
    "held": (
        seen(Gap.ABSENT, plan=content(Delete("c-1", Why.GONE)), holds=(HELD,)),
        "held", "MassDeletion (h1): many vanished; look", {"S5.5": False},
    ),
    "taken": (seen(plan=content(TAKEN)), "held", "the name is taken; rename it", {"S5.3": False}),
    "taken, and known to be": (
        seen(plan=content(TAKEN), holds=(HELD | {"reason": "NameTaken"},)),
        "held", "NameTaken (h1)", {"S5.3": False},
    ),
    "an orphan that stays": (seen(Gap.ABSENT), "in-sync", "nothing to do", {"S5.3": True}),
    "an orphan, of which nobody decides now": (
        seen(Gap.ABSENT, running=False, connections={}), "waiting", "when it runs", {"S5": None},
    ),
    "not of these namespaces": (
        seen(Gap.UNSEEN, Gap.UNSEEN, policy=confined("one", "two")),
        "not-synced", "only in one, two", {"S1.7": False},
    ),
    "of this namespace": (seen(policy=confined("one", "default")), "in-sync", "nothing to do", {}),
    "waits for finalizers": (
        seen(Gap.ABSENT, replace(DOWN_VIEW, terminating=True)), "waiting", "finalizers", {"S5.1": None},
    ),
    "the copy is dying": (seen(down=replace(DOWN_VIEW, terminating=True)), "waiting", "finalizers", {"S5.1": None}),
    "upstream is dying": (seen(replace(UP_VIEW, terminating=True), Gap.ABSENT), "in-sync", "nothing", {"S5": True}),
    "upstream unseen": (seen(Gap.UNSEEN), "waiting", "not known whether the cloud has it", {"S7.1": None}),
    "status waits": (seen(pending=(waiting(),)), "waiting", "waits to be sent to the cloud", {"S6.3": None}),
    "status was refused once": (seen(pending=(waiting(error="no"),)), "waiting", "answer: no", {"S6.3": None}),
    "status is dead": (
        seen(pending=(waiting(error="no", dead=True),)),
        "refused", "rejects the status permanently: no", {"S10": False},
    ),
    "status is odd": (seen(plan=Plan(status=ODD)), "held", "not an object; mend it", {"S4.5": False}),
    "status is odd, and known to be": (
        seen(plan=Plan(status=ODD), holds=(HELD | {"reason": "StatusNotAnObject"},)),
        "held", "h1", {"S4.5": False},
    ),
    "no stamp": (seen(down=replace(DOWN_VIEW, stamp=None)), "waiting", "no status is sent", {"S5.4": None}),
    "no status": (seen(down=replace(DOWN_VIEW, status="")), "in-sync", "nothing to do", {"S4.3": True}),
    "a new status": (seen(record=Record()), "waiting", "not been sent yet", {"S4.1": None}),
    "upstream shows another status": (
        replace(AGREED, bodies={CLOUD: {**UP, "status": {}}, ROBOT: DOWN}),
        "in-sync", "nothing to do", {"S4.8": True},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STATES)
def test_every_state_is_explained_by_the_rule_that_makes_it_so(name):
    facts, state, summary, rules = STATES[name]
    found = explain(facts)
    assert (found["state"], found["schema"]) == (state, "crsyncer.explain/v1")
    assert summary in found["summary"]
    steps = [(step["rule"], step["ok"]) for step in found["steps"]]
    assert all((rule, ok) in steps for rule, ok in rules.items()), steps
    text = render(found, NOW)
    assert text.startswith(f"{GOALS if name != 'one kind is' else 'x.y'} default/a: {state}: ")
    assert all(step["text"] in text for step in found["steps"])


@pytest.mark.parametrize("why", Why)
def test_every_reason_of_a_write_has_words_and_a_rule(why):
    (step,) = [step for step in explain(seen(plan=content(Update("c", "1", why))))["steps"] if step["ok"] is None]
    assert step["text"].startswith("the copy ")


def test_both_versions_are_shown_with_what_differs():
    changed = {**UP, "spec": {"x": 2, "long": "y" * 90}}
    robot = {**DOWN, "status": {"phase": "B"}}
    bodies = {CLOUD: changed, ROBOT: robot}
    found = explain(replace(AGREED, bodies=bodies, plan=content(Update("c-1", "10", Why.CHANGED))))
    assert found["objects"]["cloud"]["object"] == changed
    assert found["objects"]["robot"]["uid"] == "c-1"
    assert found["differences"] == [
        {"path": "spec.long", "cloud": "y" * 90, "robot": None},
        {"path": "spec.x", "cloud": 2, "robot": 1},
        {"path": "status.phase", "cloud": "A", "robot": "B"},
    ]
    text = render(found, NOW)
    assert "spec.x: cloud 2, robot 1" in text
    assert f'spec.long: cloud "{"y" * 38}…, robot -' in text


def test_a_copy_of_another_object_than_the_one_that_is_known_is_not_said_to_have_been_changed_at_admission():
    steps = explain(seen(replace(UP_VIEW, uid="u-0")))["steps"]
    assert {step["rule"] for step in steps if step["rule"] in ("S3.2", "S3.5")} == set()
    assert [step["ok"] for step in steps if "which of the two is newer" in step["text"]] == [None]


def test_what_is_known_to_differ_is_said_to_be_left_or_not_yet_acted_on():
    bodies = {CLOUD: {**UP, "spec": {"x": 2}}, ROBOT: DOWN}
    steps = {step["rule"]: step for step in explain(replace(AGREED, bodies=bodies))["steps"]}
    assert (steps["S3.5"]["ok"], "spec.x" in steps["S3.5"]["text"]) == (True, True)
    steps = {step["rule"]: step for step in explain(replace(AGREED, bodies=bodies, running=False))["steps"]}
    assert (steps["S3.2"]["ok"], "spec.x" in steps["S3.2"]["text"]) == (None, True)


def test_a_status_differs_where_it_is_ours_and_not_by_what_is_neither_sent_nor_as_it_was():
    """A subtree's neighbours do not count; of a mapped generation what upstream is told counts (S4.5, S4.7)."""

    def paths(**changes) -> list[str]:
        return [each["path"] for each in explain(replace(AGREED, **changes))["differences"]]

    neighbours = {CLOUD: {**UP, "status": {"robot": 1, "cloud": 1}}, ROBOT: {**DOWN, "status": {"robot": 1}}}
    assert paths(bodies=neighbours) == ["status.cloud"]
    assert paths(bodies=neighbours, policy=policy(subtree="robot")) == []
    assert paths(bodies=neighbours, policy=policy(subtree="cloud")) == ["status"]
    observed = {
        CLOUD: {**UP, "status": {"observedGeneration": 7}},
        ROBOT: {**DOWN, "status": {"observedGeneration": 2}},
    }
    known = Record(upstream_uid="u-1", acknowledged=DOWN_VIEW.status, generations=((2, 7),))
    assert paths(bodies=observed, record=known) == ["status.observedGeneration"]
    assert paths(bodies=observed, record=known, policy=policy(map_generation=True)) == []


def test_a_screen_is_not_filled_with_differences():
    bodies = {CLOUD: {**UP, "spec": {f"k{number:03}": 1 for number in range(50)}}, ROBOT: DOWN}
    text = render(explain(replace(AGREED, bodies=bodies)), NOW)
    assert "and 31 more" in text


def test_the_text_shows_what_is_pending_and_where_the_object_is():
    facts = seen(
        down=replace(DOWN_VIEW, terminating=True),
        pending=(rejected("wrong"), waiting(next_try=NOW + 12, error="no\x1b", dead=True)),
    )
    lines = render(explain(facts), NOW).splitlines()
    assert "cloud  uid u-1, resourceVersion 1, generation 1" in lines
    assert "robot  uid c-1, resourceVersion 10, generation 1, being deleted, finalizers: none" in lines
    assert "content for the robot; rejected permanently; last answer: wrong; next try in 1 min" in lines
    assert (
        "status for the cloud; rejected permanently; waiting for 1 min 30 s, tried 3 times; last answer: no ;"
        " next try in 12 s"
    ) in lines
    assert "cloud  absent" in render(explain(seen(Gap.ABSENT)), NOW)
    bare = render(explain(replace(AGREED, key=Key("", "a"), pending=(waiting(),))), NOW)
    assert bare.startswith(f"{GOALS} a: waiting")
    assert "status for the cloud; waiting for 1 min 30 s, tried 3 times\n" in bare


def test_holds_are_shown_with_their_ids():
    (hold,) = explain(seen(holds=(HELD,)))["holds"]
    assert (hold["id"], hold["reason"], hold["hint"]) == ("h1", "MassDeletion", "look")


def test_the_policy_of_a_stopped_agent_is_read_from_its_last_document():
    row = kind(statusSubtree="robot")
    known = stored_policy(row, ROBOT_NAME, MAP)
    assert known is not None
    assert known.namespaces == MAP
    assert (known.resource, known.version, known.upstream, known.selector, known.subtree) == (
        GOALS, "v1", CLOUD, "cloudrobotics.com/robot-name=robot-1", "robot",
    )  # fmt: skip
    for useless in (kind(version=None), kind(state="misconfigured"), kind(state="version-mismatch")):
        assert stored_policy(useless, ROBOT_NAME, MAP) is None


def test_C4_1_without_an_agent_what_a_policy_changes_is_not_compared():
    other = replace(AGREED, bodies={CLOUD: goal(spec={"x": 2}), ROBOT: DOWN}, running=False)
    assert explain(other)["differences"] != []
    found = explain(replace(other, is_comparable=False))
    assert (found["differences"], found["state"]) == ([], "waiting")
    assert "C4.1" in [step["rule"] for step in found["steps"]]


def test_C3_2_local_fields_are_no_differences():
    local = policy(shape=Shape(keep_local=True))
    copy = copy_of(UP, local, status={"phase": "A"}) | {"spec": {"x": 9, "mine": 1}}
    found = explain(replace(AGREED, policy=local, bodies={CLOUD: UP, ROBOT: copy}))
    assert (found["differences"], found["state"]) == ([], "in-sync")
    assert explain(replace(AGREED, bodies={CLOUD: UP, ROBOT: copy}))["differences"] != []


def test_C4_4_where_a_step_fails_there_is_a_hold_and_nothing_to_compare():
    def fails(*_):
        raise MutationFailed("spec.mutations.down[0]", "no number")

    failing = policy(shape=Shape(steps="x", down=fails))
    view = view_of(UP, failing, CLOUD)
    plan = Plan(mutation_failed(view.failure))
    found = explain(replace(seen(view, plan=plan), policy=failing))
    assert (found["differences"], found["state"]) == ([], "held")
    assert "spec.mutations.down[0]" in found["summary"]
