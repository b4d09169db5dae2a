"""What the doctor says of the cloud's admission policies (threat 33 in the design's security page)."""

from copy import deepcopy

import pytest

from crsyncer.console.confinement.admission_policies import binding, kind_policy, label_policy, token_policy
from crsyncer.console.set_up.doctor_admission import judge_admission
from crsyncer.console.set_up.doctor_report import Check, Mark
from crsyncer.core.model import Json, Side
from tests.core.builders import policy

KIND = policy()
WRITES, LABEL = kind_policy(KIND), label_policy(KIND)
POLICIES = (WRITES, LABEL, token_policy())
BINDINGS = tuple(binding(each, audit=False) for each in POLICIES)


def judged(policies: tuple[Json, ...] = POLICIES, bindings: tuple[Json, ...] = BINDINGS) -> list[tuple[Mark, str]]:
    return [(each.state, each.message) for each in checks(policies, bindings) if each.resource == KIND.resource]


def of_tokens(policies: tuple[Json, ...] = POLICIES, bindings: tuple[Json, ...] = BINDINGS) -> list[tuple[Mark, str]]:
    return [(each.state, each.message) for each in checks(policies, bindings) if not each.resource]


def checks(policies: tuple[Json, ...], bindings: tuple[Json, ...]) -> list[Check]:
    found = judge_admission(policies, bindings, [KIND])
    assert all((each.name, each.side) == ("confinement", Side.CLOUD) for each in found)
    assert all(bool(each.hint) is (each.state is not Mark.OK) for each in found)
    return found


def changed(what: Json, **fields: object) -> Json:
    return deepcopy(what) | fields


def test_policies_as_they_are_printed_and_in_force_are_good():
    [(mark, said)] = judged()
    assert mark is Mark.OK
    assert said.startswith(f"{KIND.resource}: robots are confined by crsyncer-robot-writes.goals")


def test_a_cloud_without_policies_of_ours_for_the_kind_is_not_judged():
    assert checks((), ()) == []
    assert checks((token_policy(), changed(WRITES, metadata={"name": "somebody-else-s"})), ()) == []
    other = deepcopy(WRITES)
    other["spec"]["matchConstraints"]["resourceRules"][0]["resources"] = ["tasks", "tasks/*"]
    assert checks((other,), ()) == []


def test_the_tokens_that_robots_make_are_confined_or_it_is_told():
    assert of_tokens() == [(Mark.OK, "the tokens that robots make are confined by crsyncer-robot-tokens")]
    [(mark, said)] = of_tokens(POLICIES[:2])
    assert (mark, said.startswith("no admission policy confines the tokens that robots make")) == (Mark.FAIL, True)
    [(mark, said)] = of_tokens(bindings=BINDINGS[:2])
    assert (mark, "crsyncer-robot-tokens has no binding" in said) == (Mark.FAIL, True)
    old = deepcopy(token_policy())
    del old["spec"]["validations"][2:]
    [(mark, said)] = of_tokens((*POLICIES[:2], old))
    assert (mark, "crsyncer-robot-tokens is not the one that this version prints" in said) == (Mark.WARN, True)


def test_a_policy_without_a_binding_refuses_nothing():
    [(mark, said)] = judged(bindings=BINDINGS[1:])
    assert (mark, "crsyncer-robot-writes.goals.lab.example.com has no binding" in said) == (Mark.FAIL, True)


def test_a_policy_for_all_kinds_counts_and_one_that_is_gone_is_missed():
    general = changed(WRITES, metadata={"name": "crsyncer-robot-writes"})
    general["spec"]["matchConstraints"]["resourceRules"][0] |= {"apiGroups": ["*"], "resources": ["*/*"]}
    assert [mark for mark, _ in judged((general,), (binding(general, audit=False),))] == [Mark.OK]
    [(mark, said)] = judged(POLICIES[1:], BINDINGS[1:])
    assert (mark, said) == (Mark.FAIL, f"{KIND.resource}: no admission policy confines what robots write")


def test_a_policy_that_only_warns_is_told():
    assert [mark for mark, _ in judged(bindings=tuple(binding(each, audit=True) for each in POLICIES))] == [
        Mark.WARN,
        Mark.WARN,
    ]


@pytest.mark.parametrize("part", ["validations", "variables", "matchConditions"])
def test_a_policy_that_was_changed_is_told(part: str):
    other = deepcopy(WRITES)
    other["spec"][part][0]["expression"] += " || true"
    [(mark, said)] = judged((other, *POLICIES[1:]))
    assert (mark, "is not the one that this version prints" in said) == (Mark.WARN, True)


def test_an_expression_that_the_server_cannot_check_is_told():
    status = {"typeChecking": {"expressionWarnings": [{"fieldRef": "spec", "warning": "undeclared reference to 'x'"}]}}
    [(mark, said)] = judged((changed(WRITES, status=status), *POLICIES[1:]))
    assert (mark, said.endswith("is wrong: undeclared reference to 'x'")) == (Mark.FAIL, True)
