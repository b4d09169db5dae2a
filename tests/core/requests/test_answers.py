"""Answers to writes: did it happen? (S10)"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.requests.answers import (
    TOO_LARGE,
    TRIES_BEFORE_DEAD,
    is_discovery,
    is_inconclusive,
    is_still_there,
    judge,
    lasting,
    shown,
)
from crsyncer.errors import Conflict, Expired, Never, NotAllowed, NotServed, SyncError, Throttled, Unsure
from tests.core.builders import many

bodies = st.fixed_dictionaries(
    {},
    optional={
        "message": st.one_of(st.none(), st.text(max_size=600)),
        "details": st.one_of(st.none(), st.just({}), st.just({"causes": [{"field": "spec"}]})),
    },
)


@many
@given(st.integers(100, 599), bodies, st.text(max_size=9), st.one_of(st.none(), st.floats(0, 99)), st.booleans())
def test_S10_it_happened_exactly_when_the_answer_says_so(status, body, text, retry_after, patch):
    error = judge(status, body, text=text, retry_after=retry_after, patch=patch)
    assert (error is None) == (200 <= status < 300)
    if error is not None:
        assert type(error) in (Conflict, NotServed, Expired, Unsure, Throttled, Never, NotAllowed)
        assert 0 < len(str(error)) <= 500
    if status >= 500 or status in (408, 429):
        assert isinstance(error, Unsure)


FOUND = {"kind": "Status"}
garbled = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9), st.lists, max_leaves=10)


@many
@given(st.integers(100, 599), garbled, garbled, st.booleans())
def test_S10_of_a_garbled_answer_the_code_counts(status, details, causes, patch):
    said = repr(judge(status, FOUND, patch=patch))
    assert repr(judge(status, FOUND | {"details": details}, patch=patch)) == said
    assert repr(judge(status, FOUND | {"details": {"causes": causes}}, patch=patch)) == said


NAMESPACE_ENDS = {"kind": "Status", "details": {"causes": [{"reason": "NamespaceTerminating"}]}}


@pytest.mark.parametrize(
    ("status", "body", "answer", "nothing"),
    [
        (201, {}, type(None), False),
        *((status, {}, Unsure, True) for status in (301, 302, 408, 502, 503, 504)),
        *((status, {}, Never, False) for status in (405, 413, 415)),
        (400, FOUND, Never, False),
        (401, FOUND, NotAllowed, True),
        (403, FOUND, NotAllowed, False),
        (403, NAMESPACE_ENDS, Unsure, False),
        (404, {}, NotServed, False),
        (404, FOUND, Conflict, False),
        (409, FOUND, Conflict, False),
        (410, FOUND, Expired, False),
        (422, FOUND, Never, False),
        (429, FOUND, Throttled, True),
        (500, FOUND, Unsure, True),
    ],
)
def test_S10_an_answer_says_whether_it_happened_or_nothing_at_all(status, body, answer, nothing):
    error = judge(status, body)
    assert type(error) is answer
    assert not isinstance(error, NotAllowed) or error.status == status
    assert is_inconclusive(status) is nothing


def test_S1_5_only_versions_or_resources_are_an_answer_of_discovery():
    assert is_discovery({"kind": "APIGroup", "versions": []})
    assert is_discovery({"kind": "APIResourceList", "resources": []})
    assert not any(map(is_discovery, ({}, {"items": []})))


def kind_of(status: int, **more) -> type[SyncError]:
    error = judge(status, more.pop("body", {}), **more)
    assert error is not None
    return type(error)


def test_S4_2_a_patch_whose_uid_test_fails_did_not_happen_but_a_schema_violation_never_will():
    silent = {"message": "the server rejected our request due to an error in our request"}
    schema = silent | {"details": {"causes": [{"field": "status.phase"}]}}
    assert kind_of(422, body=silent, patch=True) is Conflict
    assert kind_of(422, body=schema, patch=True) is Never
    assert kind_of(422, body=silent) is Never
    assert kind_of(400, body=silent, patch=True) is Never


def test_S9_1_the_servers_wish_for_patience_is_passed_on():
    for status, asked, granted in ((429, 30.0, 30.0), (429, None, 1.0), (503, 7.0, 7.0)):
        error = judge(status, {}, retry_after=asked)
        assert isinstance(error, Throttled)
        assert error.retry_after == granted


def test_the_servers_own_words_are_kept_however_they_came():
    assert str(judge(500, {"message": f"etcdserver: {TOO_LARGE}"})) == "etcdserver: request is too large"
    assert str(judge(502, {}, text="<html>Bad Gateway</html>")) == "<html>Bad Gateway</html>"
    assert str(judge(502, {})) == "answered 502"


@pytest.mark.parametrize(
    "body", [{}, {"metadata": None}, {"metadata": ["uid"]}, {"metadata": {"name": "a", "uid": ""}}]
)
def test_S10_a_2xx_that_shows_no_object_is_no_answer(body):
    with pytest.raises(Unsure, match="does not show"):
        shown(body)


def test_S10_an_answer_has_to_show_the_object_that_was_meant():
    body = {"metadata": {"uid": "u1"}}
    assert shown(body) == shown(body, "u1") == {"uid": "u1"}
    with pytest.raises(Unsure, match="does not show"):
        shown(body, "u2")


@pytest.mark.parametrize(
    ("error", "unchanged", "lasts"),
    [
        (Unsure("etcdserver: request is too large"), False, True),
        (Unsure("the server is starting"), True, False),
        (Conflict("the object has been modified"), True, True),
        (Conflict("the object has been modified"), False, False),
    ],
)
def test_S10_an_answer_that_repeats_and_cannot_pass_becomes_a_dead_letter(
    error: SyncError, unchanged: bool, lasts: bool
) -> None:
    assert lasting(error, tries=TRIES_BEFORE_DEAD - 1, unchanged=unchanged) is error
    last = lasting(error, tries=TRIES_BEFORE_DEAD, unchanged=unchanged)
    assert isinstance(last, Never) is lasts
    assert str(last) == str(error)


@pytest.mark.parametrize(
    ("body", "there"),
    [
        ({"kind": "Status", "status": "Success", "metadata": {}, "details": {"uid": "u"}}, False),
        ({"kind": "Goal", "metadata": {"uid": "u", "deletionTimestamp": "now"}, "status": {"phase": "DONE"}}, True),
        ({"kind": "Goal", "metadata": {"uid": "u", "deletionTimestamp": "now"}}, True),
    ],
)
def test_S5_1_an_answer_to_a_deletion_shows_whether_finalizers_keep_the_object(body, there):
    assert is_still_there(body, "u") is there


@pytest.mark.parametrize("body", [{}, {"metadata": []}, {"status": "Failure"}, {"metadata": {"uid": "another"}}])
def test_S10_what_shows_neither_the_object_nor_a_success_is_no_answer_to_a_deletion(body):
    with pytest.raises(Unsure):
        is_still_there(body, "u")
