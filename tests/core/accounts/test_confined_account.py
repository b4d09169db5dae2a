"""The hint after a refusal: which settings an agent needs whose account is confined to one namespace."""

import pytest

from crsyncer.core.accounts.confined_account import confined_hint

USER = 'goals.lab.example.com is forbidden: User "system:serviceaccount:robot-r1:crsyncer" cannot list resource "goals"'
GROUP = ' in API group "lab.example.com"'


@pytest.mark.parametrize(
    "refusal",
    [
        f"{USER}{GROUP} at the cluster scope",
        f'{USER}{GROUP} in the namespace "default"',
        f"the cloud: {USER.replace('goals', 'configmaps')} at the cluster scope",
    ],
)
def test_an_account_that_asks_beyond_its_namespace_needs_a_setting_and_no_right(refusal):
    hint = confined_hint(refusal)
    assert "namespaces: [robot-r1]" in hint
    assert "namespaceMap: {robot-r1: NAMESPACE}" in hint
    assert "grant" not in hint


@pytest.mark.parametrize(
    "refusal",
    [
        f'{USER}{GROUP} in the namespace "robot-r1"',
        f"{USER.replace('robot-r1:crsyncer', 'default:agent')}{GROUP} at the cluster scope",
        "goals.lab.example.com is forbidden",
        "",
    ],
)
def test_any_other_refusal_may_be_a_missing_right(refusal):
    assert confined_hint(refusal) == ""
