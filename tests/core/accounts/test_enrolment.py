"""Which account makes tokens for which, and when they are renewed."""

import pytest

from crsyncer.console.confinement.manifests import Plan, Profile, manifests
from crsyncer.core.accounts.enrolment import Account, read_token, renewal, token_request, worker
from tests.core.builders import policy


@pytest.mark.parametrize(
    ("subject", "account"),
    [
        ("system:serviceaccount:robot-r1:crsyncer-enroll", Account("robot-r1", "crsyncer", "crsyncer-enroll")),
        ("system:serviceaccount:crsyncer-enroll:r1", Account("crsyncer-robots", "r1", "r1")),
        ("system:serviceaccount:robot-r1:crsyncer", None),
        ("system:serviceaccount:crsyncer-robots:r1", None),
        ("system:serviceaccount:robot-r1:crsyncer-enroll:more", None),
        ("crsyncer-enroll", None),
        ("", None),
    ],
)
def test_the_account_that_makes_tokens_is_known_by_its_name(subject, account):
    assert worker(subject) == account


@pytest.mark.parametrize("profile", Profile)
def test_the_manifests_let_the_one_account_make_tokens_of_the_other(profile):
    printed = [each.content for each in manifests(Plan(("r1",), (policy(),), profile=profile, two_accounts=True))]
    [binding] = [each for each in printed if each["kind"] == "RoleBinding" and each["roleRef"]["kind"] == "Role"]
    [role] = [each for each in printed if each["kind"] == "Role"]
    [maker] = binding["subjects"]
    account = worker(f"system:serviceaccount:{maker['namespace']}:{maker['name']}")
    [rule] = role["rules"]
    [name] = rule["resourceNames"]
    assert account is not None
    assert (account.namespace, account.name) == (role["metadata"]["namespace"], name)
    secrets = {
        (each["metadata"]["namespace"], each["metadata"]["name"]) for each in printed if each["kind"] == "Secret"
    }
    assert (account.namespace, account.secret) in secrets
    assert token_request(account).body["spec"] == {
        "expirationSeconds": 3600,
        "boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": account.secret},
    }
    assert token_request(account).path == f"/api/v1/namespaces/{account.namespace}/serviceaccounts/{account.name}/token"
    assert str(account) == f"{account.namespace}/{account.name}"


@pytest.mark.parametrize(
    ("status", "found"),
    [
        ({"token": "t", "expirationTimestamp": "1970-01-01T01:00:00Z"}, ("t", 3000.0)),
        ({"token": "t", "expirationTimestamp": "1970-01-01T00:00:00Z"}, ("t", 0.0)),
        ({"token": "t", "expirationTimestamp": "soon"}, None),
        ({"token": "t"}, None),
        ({"token": "", "expirationTimestamp": "1970-01-01T01:00:00Z"}, None),
        ({"token": 1, "expirationTimestamp": "1970-01-01T01:00:00Z"}, None),
        ([], None),
        (None, None),
    ],
)
def test_a_token_lives_as_long_as_the_server_says_by_its_own_clock(status, found):
    assert read_token({"status": status}, now=600.0) == found


def test_a_token_is_renewed_after_seventy_to_ninety_percent_of_its_life():
    assert [renewal(3600.0, chance) for chance in (0.0, 0.5, 1.0)] == pytest.approx([2520.0, 2880.0, 3240.0])
