"""Which revision, entry and CRD a travelling CRD calls for (C8)."""

from dataclasses import dataclass, field, replace

import pytest

from crsyncer.core.apis.api_plan import (
    ApiPlan,
    ApiState,
    Memory,
    Observed,
    api_needs,
    api_set_name,
    name_problem,
    names_to_read,
    plan_api,
    revision_object,
    shown_before,
)
from crsyncer.core.apis.revise import revise
from crsyncer.core.content.object_content import ROBOT
from crsyncer.core.kinds.sync_policy import Api
from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import API_SETS, write
from tests.core.apis.crds import crd, version

TEXT = {"type": "string"}
DOWN = Api(source=Side.CLOUD)
UP = Api(source=Side.ROBOT)
GOALS = "goals.lab.example.com"
OLD, NEW = crd(version(x=TEXT)), crd(version(x=TEXT, y=TEXT))
OLDS, NEWS = revise(OLD).name, revise(NEW).name


@dataclass(frozen=True, slots=True)
class Case:
    """Both sides, and what the agent remembers; `source` None: it is not known."""

    source: Json | None = None
    target: Json | None = None
    api_set: Json | None = None
    revisions: dict[str, Json] = field(default_factory=dict)
    missing: bool = False
    memory: Memory = field(default_factory=Memory)

    def plan(self, api: Api = DOWN) -> ApiPlan:
        """What is to be done."""
        own = revise(self.source) if self.source is not None else None
        names = names_to_read(own, self.api_set, GOALS, self.memory)
        found = {name: revise(self.revisions[name]) for name in names if name in self.revisions}
        seen = Observed(own, self.missing, self.target, self.api_set, found)
        return plan_api(seen, api, resource=GOALS, robot="r1", memory=self.memory)

    def done(self, api: Api = DOWN) -> "Case":
        """What there is once the plan has been carried out."""
        plan = self.plan(api)
        new = {plan.new_revision.name: self.source} if plan.new_revision and self.source else {}
        return replace(
            self,
            target=plan.crd or self.target,
            api_set=plan.api_set or self.api_set,
            revisions=self.revisions | new,
            memory=plan.memory,
        )

    def chosen(self, revision: object) -> "Case":
        """The entry names this revision."""
        group, plural = "lab.example.com", "goals"
        entry = {"group": group, "resource": plural, "revision": revision}
        return replace(self, api_set={"metadata": {"name": "crsyncer"}, "spec": {"apis": [entry]}})


NOTHING = Case(OLD)
AT_REST = NOTHING.done()
GROWN = replace(AT_REST, source=NEW).done()


def entries(case: Case) -> dict[str, str]:
    assert case.api_set is not None
    return {each["resource"]: each["revision"] for each in case.api_set["spec"]["apis"]}


def writes(plan: ApiPlan) -> list[bool]:
    return [each is not None for each in (plan.new_revision, plan.api_set, plan.crd)]


def test_C8_1_C8_2_revision_entry_and_crd_are_made_and_then_nothing():
    found = NOTHING.plan()
    assert found.new_revision == revise(OLD)
    assert (found.state, found.revision, found.message) == (ApiState.CURRENT, OLDS, "")
    assert found.api_set == {
        "apiVersion": "crsyncer.cloudrobotics.com/v1alpha1",
        "kind": "APISet",
        "metadata": {"name": "crsyncer"},
        "spec": {"apis": [{"group": "lab.example.com", "resource": "goals", "revision": OLDS}]},
    }
    assert found.crd is not None
    assert found.crd["metadata"] == {"name": GOALS}
    assert revision_object(revise(OLD))["metadata"] == {"name": OLDS}
    rest = AT_REST.plan()
    assert (rest.state, writes(rest)) == (ApiState.CURRENT, [False] * 3)


def test_C8_4_nothing_is_current_before_a_revision_is_known():
    for case in (Case(), Case(target=OLD)):
        assert (case.plan().state, case.plan().revision) == (ApiState.UNREADABLE, "")
        assert case.plan(replace(DOWN, paused=True)).state is ApiState.PAUSED
    assert replace(AT_REST, source=None).plan().state is ApiState.CURRENT


def test_C8_2_entries_of_others_stay_whatever_they_are():
    others = [{"group": "other", "resource": "tasks", "revision": "nonsense"}, 7]
    case = replace(NOTHING, api_set={"metadata": {"resourceVersion": "5"}, "spec": {"apis": others, "more": 1}})
    found = case.plan().api_set
    assert found is not None
    assert (found["metadata"]["resourceVersion"], found["spec"]["more"]) == ("5", 1)
    assert found["spec"]["apis"][:2] == others
    assert found["spec"]["apis"][2]["revision"] == OLDS


def test_C8_2_in_the_cloud_only_a_crd_of_this_robot_is_changed():
    made = NOTHING.done(UP)
    assert api_set_name(Side.CLOUD, "r1") == "crsyncer-r1"
    assert made.target is not None
    assert made.target["metadata"]["annotations"] == {ROBOT: "r1"}
    assert replace(made, source=NEW).plan(UP).crd is not None
    foreign = {**made.target, "metadata": {"name": GOALS}}
    held = replace(made, source=NEW, target=foreign).plan(UP)
    assert (held.state, held.revision, writes(held)) == (ApiState.HELD, OLDS, [True, False, False])
    assert held.message == f"the cloud's CRD was not made by r1, so it does not follow {NEWS}"
    assert held.memory.held_revision == ""
    same = replace(made, target=foreign).plan(UP)
    assert same.state is ApiState.CURRENT  # nothing has to be changed


def test_C8_2_a_crd_that_is_being_deleted_is_made_anew_when_it_is_gone():
    dying = {**OLD, "metadata": {**OLD["metadata"], "deletionTimestamp": "now"}}
    assert writes(replace(AT_REST, source=NEW, target=dying).plan()) == [True, True, False]
    assert replace(AT_REST, target=None).plan().crd is not None


def test_C8_3_what_is_breaking_is_held_until_undone_allowed_or_released():
    undone = replace(GROWN, source=OLD)
    held = undone.plan()
    assert (held.state, held.revision, writes(held)) == (ApiState.HELD, NEWS, [False] * 3)
    assert held.message == f"{OLDS} is breaking: v1 /spec/y: is gone"
    assert held.memory == replace(GROWN.memory, held=held.message, held_revision=OLDS)
    assert replace(undone, source=NEW, memory=held.memory).plan().memory == GROWN.memory
    released = replace(undone, memory=replace(held.memory, released=OLDS))
    for case, api in ((undone, replace(DOWN, allow_breaking=True)), (released, DOWN)):
        passed = case.plan(api)
        assert (passed.state, passed.new_revision) == (ApiState.CURRENT, None)  # the old revision is found again
        assert (entries(case.done(api)), passed.memory) == ({"goals": OLDS}, Memory(entry=OLDS))
    assert replace(undone, memory=replace(held.memory, released=NEWS)).plan().state is ApiState.HELD


def test_C8_3_another_scope_is_never_allowed():
    other = replace(AT_REST, source=crd(version(x=TEXT), scope="Cluster"))
    found = other.plan(replace(DOWN, allow_breaking=True))
    assert (found.state, found.crd, found.memory.held_revision) == (ApiState.HELD, None, "")
    assert "this is never allowed" in found.message


def test_C8_3_what_others_added_to_the_crd_is_not_taken_away_unasked():
    extended = replace(AT_REST, target=NEW)
    assert extended.plan().message == f"{OLDS} is breaking: v1 /spec/y: is gone"
    reduced = replace(GROWN, target=OLD)
    assert reduced.plan().crd is not None


def test_C8_4_paused_makes_nothing_new_and_follows_an_entry_that_was_edited_by_hand():
    paused = replace(DOWN, paused=True)
    assert (NOTHING.plan(paused).state, writes(NOTHING.plan(paused))) == (ApiState.PAUSED, [False] * 3)
    found = replace(AT_REST, source=NEW).plan(paused)
    assert (found.state, found.revision, writes(found)) == (ApiState.PAUSED, OLDS, [False] * 3)
    rolled = GROWN.chosen(OLDS).plan(paused)
    assert (rolled.state, rolled.revision, rolled.api_set) == (ApiState.PAUSED, OLDS, None)
    assert rolled.crd is not None
    assert revise(rolled.crd) == revise(OLD)
    assert rolled.memory.entry == OLDS
    # An entry that nobody has edited since the CRD followed it is no such choice.
    assert replace(AT_REST, target=NEW).plan(paused).state is ApiState.HELD


def test_C8_4_an_entry_edited_by_hand_is_merged_again_unless_paused_or_offline():
    edited = GROWN.chosen(OLDS)
    assert entries(edited.done()) == {"goals": NEWS}
    assert edited.plan().crd is None
    offline = replace(edited, source=None).plan()
    assert (offline.state, offline.revision, writes(offline)) == (ApiState.CURRENT, OLDS, [False, False, True])


def test_C8_2_offline_a_hold_stays_and_the_crd_follows_its_entry():
    held = replace(GROWN, source=OLD).done()
    offline = replace(held, source=None, target=None).plan()
    assert (offline.state, offline.message) == (ApiState.HELD, held.memory.held)
    assert (offline.memory, offline.revision, offline.crd is not None) == (held.memory, NEWS, True)


def test_C8_nonsense_around_an_entry_is_held():
    twice = [{"group": "lab.example.com", "resource": "goals", "revision": OLDS}] * 2
    for spec, said in (({"apis": twice}, "one revision"), ({"apis": {"a": 1}}, "no list"), (["a"], "no list")):
        found = replace(AT_REST, api_set={"metadata": {}, "spec": spec}).plan()
        assert (found.state, writes(found)) == (ApiState.HELD, [False] * 3)
        assert said in found.message


def test_C8_an_entry_without_its_revision_is_held_unless_it_is_the_sources():
    found = replace(AT_REST, revisions={}).plan(replace(DOWN, paused=True))
    said = f"the robot's APISet crsyncer: its entry names {OLDS}, which is no revision"
    assert (found.state, found.message) == (ApiState.HELD, said)
    assert writes(replace(AT_REST, revisions={}).plan()) == [True, False, False]


def test_C8_a_revision_with_another_content_than_its_name_says_is_held():
    seen = Observed(revise(OLD), False, None, None, {OLDS: None})
    found = plan_api(seen, DOWN, resource=GOALS, robot="r1", memory=Memory())
    assert (found.state, writes(found)) == (ApiState.HELD, [False] * 3)
    assert "another content" in found.message


def test_C8_4_without_a_crd_at_the_source_everything_stays():
    found = replace(AT_REST, source=None, missing=True).plan()
    assert (found.state, found.revision, writes(found)) == (ApiState.UNREADABLE, OLDS, [False] * 3)
    assert found.message == f"the cloud has no CRD {GOALS}"


@pytest.mark.parametrize("case", [AT_REST, replace(AT_REST, source=None)])
@pytest.mark.parametrize("paused", [False, True])
def test_C8_an_api_set_that_is_deleted_is_made_anew(case, paused):
    lost = replace(case, api_set=None)
    assert entries(lost.done(replace(DOWN, paused=paused))) == entries(AT_REST)


def test_C8_4_until_the_first_look_the_state_is_as_it_was():
    assert shown_before(DOWN, Memory()) == (ApiState.UNREADABLE, "", "")
    assert shown_before(DOWN, Memory(entry="a")) == (ApiState.CURRENT, "a", "")
    assert shown_before(replace(DOWN, paused=True), Memory()) == (ApiState.PAUSED, "", "")
    assert shown_before(DOWN, Memory(entry="a", held="why")) == (ApiState.HELD, "a", "why")


def test_C8_2_the_name_of_the_robot_is_part_of_a_name_in_the_cloud():
    assert [name_problem(UP, name) == "" for name in ("r1", "r-1.x", "", "R1", "-r")] == [True, True, *[False] * 3]
    assert name_problem(DOWN, "") == ""
    assert name_problem(UP, "") == (
        'spec.api.source is robot, but the robot has no name; allowed: lower-case letters, digits, "-" and "."'
    )


def test_C8_writes_are_guarded_by_the_version_that_was_seen():
    made = write(API_SETS, {"metadata": {"name": "a"}})
    assert (made.verb, made.method, made.path) == ("create", "POST", API_SETS.path)
    put = write(API_SETS, {"metadata": {"name": "a", "resourceVersion": "1"}})
    assert (put.verb, put.method, put.path) == ("update", "PUT", f"{API_SETS.path}/a")


def test_C8_what_a_crd_that_travels_needs_on_each_side():
    def acts(api: Api, side: Side) -> set[tuple[str, str, str]]:
        found = [act for need in api_needs(api, side, resource=GOALS, robot="r1") for act in need.acts]
        return {(act.verb, act.resource, act.name) for act in found}

    crds = "customresourcedefinitions"
    made = {("create", each, "") for each in (crds, "apisets", "apirevisions")} | {("get", "apirevisions", "")}
    changed = {("get", crds, GOALS), ("update", crds, GOALS)}
    seen = {("list", crds, GOALS), ("watch", crds, GOALS)}
    down = {(verb, "apisets", "crsyncer") for verb in ("get", "list", "watch", "update")}
    up = {(verb, "apisets", "crsyncer-r1") for verb in ("get", "list", "watch", "update")}
    assert (acts(DOWN, Side.CLOUD), acts(UP, Side.ROBOT)) == (seen, set())
    assert acts(DOWN, Side.ROBOT) == made | changed | down
    assert acts(UP, Side.CLOUD) == made | changed | seen | up
