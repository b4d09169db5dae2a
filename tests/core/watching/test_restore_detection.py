"""How a cluster that went back in time gives itself away (S8.2, S8.3)."""

import pytest

from crsyncer.core.model import Cursor
from crsyncer.core.watching.restore_detection import (
    DISTRUSTED,
    Checkpoint,
    History,
    Replay,
    are_too_many,
    is_foreign,
    newest_up_to,
    not_replayed,
    read_replay,
)
from crsyncer.core.watching.watch import Rewatch, read_answer
from crsyncer.errors import NotAllowed, NotServed, Unsure
from tests.core.builders import error, line

CHECKPOINT = Checkpoint("u-1", "7")


@pytest.mark.parametrize(
    ("uid", "version", "history"),
    [
        ("u-1", "7", History.SAME),
        ("u-1", "8", History.OTHER),
        ("u-2", "7", History.OTHER),
        ("u-2", "9", History.OTHER),
        (None, "7", History.OTHER),
    ],
)
def test_S8_2_the_same_history_begins_with_the_same_object_at_the_same_revision(uid, version, history):
    shown = line("MODIFIED", {"metadata": {"uid": uid, "resourceVersion": version}})
    assert read_replay(shown, CHECKPOINT) == Replay(history)


def test_S8_2_a_bookmark_proves_nothing_of_a_history():
    assert read_replay(line("BOOKMARK", {"metadata": {"resourceVersion": "9"}}), CHECKPOINT) is None


def test_S8_2_what_a_server_has_forgotten_it_says():
    gone = error(code=410, message="too old resource version: 6 (205)")
    assert read_replay(gone, CHECKPOINT) == Replay(History.UNKNOWN, "205")
    assert read_replay(error(code=410, message="gone"), CHECKPOINT) == Replay(History.UNKNOWN)
    too_old = read_answer(410, {"message": "too old resource version: 6 (205)"})
    assert not_replayed(too_old) == Replay(History.UNKNOWN, "205")


def test_S8_2_S9_2_a_collection_that_keeps_us_out_is_no_reason_for_a_list():
    assert repr(not_replayed(NotAllowed("who?", status=401))) == repr(Unsure("who?"))
    for step in (NotServed(""), NotAllowed("no", status=403), Rewatch(2.0)):
        assert not_replayed(step) == step
    assert repr(read_replay(b"<html>", CHECKPOINT)) == repr(Unsure("a watch line that is not an event"))


@pytest.mark.parametrize(
    ("cursor", "objects", "newest"),
    [
        ("9", [("u-1", "7"), ("u-2", "5")], Checkpoint("u-1", "7")),
        ("9", [("u-1", "7"), ("u-2", "12")], Checkpoint("u-1", "7")),  # our own write, maybe to another history
        ("9", [("u-1", DISTRUSTED), ("u-2", "five")], None),
        ("9", [("u-1", "1")], None),
        ("9", [], None),
        ("", [("u-1", "7")], None),
    ],
)
def test_S8_2_the_checkpoint_is_the_newest_known_object_up_to_the_cursor(cursor, objects, newest):
    assert newest_up_to(cursor, objects) == newest


@pytest.mark.parametrize(
    ("shown", "known", "listed_at", "cursor", "foreign"),
    [
        ("5", "5", "20", "9", False),
        ("5", "8", "20", "9", True),  # older than what the list should know
        ("5", "30", "20", "9", False),  # our own write is newer than the list
        ("7", "5", "20", "9", True),  # not newer than the cursor, and never seen
        ("7", None, "20", "9", True),
        ("12", "5", "20", "9", False),
        ("12", None, "20", "9", False),
        ("7", DISTRUSTED, "20", "9", False),
        ("7", None, "20", "", False),
    ],
)
def test_S8_3_a_list_shows_no_version_that_this_history_cannot_have(shown, known, listed_at, cursor, foreign):
    assert is_foreign(shown, known=known, is_known=shown == known, listed_at=listed_at, cursor=cursor) is foreign


@pytest.mark.parametrize(
    ("missing", "shown", "listed_at", "cursor", "too_many"),
    [
        (["3", "4"], [], "11", "9", False),
        (["3", "4", "5"], [], "11", "9", True),
        (["3", "4", DISTRUSTED], [], "11", "9", False),
        (["3", "4"], ["10"], "11", "9", True),  # the write of 10 made what is shown, and deleted nothing
        (["3", "4"], ["8", "9"], "11", "9", False),
        (["3", "4"], ["12"], "11", "9", False),  # written after the list
        (["3"], ["10", "10"], "11", "9", False),
        (["3"], [], "8", "9", False),  # a list that is older than the cursor is noticed by its revision
        (["3"], [], "11", "", False),
        (["3"], [], "eleven", "9", False),
        ([], [], "9", "9", False),
    ],
)
def test_S8_3_no_more_objects_can_be_deleted_than_there_were_writes(missing, shown, listed_at, cursor, too_many):
    assert are_too_many(missing, shown=shown, listed_at=listed_at, cursor=cursor) is too_many


def test_S8_2_an_unfinished_cursor_says_how_new_the_objects_are_and_nothing_resumes_from_it():
    cursor = Cursor("cluster", "/api/v1/goals", "filter", "17")
    assert cursor.is_finished
    left = cursor.unfinished()
    assert not left.is_finished
    assert (left.identity, left.resource_version) == ("cluster", "17")
    assert left != cursor
