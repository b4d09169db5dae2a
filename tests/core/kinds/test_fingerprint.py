"""S6.2, C1.7: what is seen of which objects is a value that is stored as a text, and whose parts are compared."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from crsyncer.core.kinds.fingerprint import RELATED, CloudKind, Fingerprint

PLAIN = Fingerprint("", "", "cloud", None, "*")
TASKS = CloudKind("tasks.fleet.example.org", "Task", "Namespaced")


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (PLAIN, ";spec=cloud;status=*"),
        (replace(PLAIN, robot="r1"), "cloudrobotics.com/robot-name=r1;spec=cloud;status=*"),
        (replace(PLAIN, selector="tier in (edge,core)"), "tier in (edge,core);spec=cloud;status=*"),
        (
            replace(PLAIN, robot="r1", selector="a=b", names_copies=True, upstream="robot"),
            "named cloudrobotics.com/robot-name=r1,a=b;spec=robot;status=*",
        ),
        (
            replace(PLAIN, in_cloud=TASKS, status="odd;key"),
            ";spec=cloud,tasks.fleet.example.org,Task,Namespaced;status=odd;key",
        ),
        (replace(PLAIN, status=";x/upstream-cluster=f00"), ";spec=cloud;status=;x/upstream-cluster=f00"),
    ],
)
def test_S6_2_a_fingerprint_is_stored_as_a_text_and_read_again(found: Fingerprint, text: str) -> None:
    assert found.text == text
    assert Fingerprint.parse(text) == found


def test_C5_4_a_fingerprint_says_whether_it_is_of_related_objects():
    assert replace(PLAIN, status=RELATED + "x/upstream-cluster=f00").is_of_related
    assert not PLAIN.is_of_related


def test_S6_2_what_is_no_fingerprint_is_none():
    assert Fingerprint.parse("") is None


@pytest.mark.parametrize(
    ("other", "leaves"),
    [
        (lambda now: now, False),
        (lambda now: replace(now, status="part"), False),
        (lambda now: replace(now, status=RELATED), True),
        (lambda now: replace(now, names_copies=True), False),
        (lambda now: replace(now, robot=""), True),
        (lambda now: replace(now, selector="tier=edge"), True),
        (lambda now: replace(now, in_cloud=TASKS), True),
        (lambda now: replace(now, upstream="robot"), False),
        (lambda now: replace(now, robot="r2"), False),
        (lambda now: replace(now, robot="r2", selector="tier=edge"), False),
    ],
)
def test_C1_7_which_edits_leave_copies_behind(other: Callable[[Fingerprint], Fingerprint], leaves: bool) -> None:
    now = replace(PLAIN, robot="r1")
    assert now.leaves_copies_behind(other(now)) is leaves
    assert other(now).leaves_copies_behind(now) is leaves
