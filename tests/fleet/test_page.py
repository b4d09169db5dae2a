"""The page for people: what needs a human comes first, long lists are cut, and no text of an object becomes markup."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

from crsyncer.core.model import Json
from crsyncer.fleet.page import MOST_HOLDS, MOST_OF_A_REASON, MOST_REASONS, MOST_ROWS, POLICY, page, standby_page
from tests.fleet.status_documents import NOW, counts, fleet_document, hold, reason, shown_placement, wide_document


def shown(document: Json, robot: str = "") -> str:
    return page(document, robot_query=robot, now=NOW)


class Reader(HTMLParser):
    """The tags and the words of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self._words: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "title"} & set(self.open):
            self._words.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self._words).split())


def words(document: Json, robot: str = "") -> str:
    return Reader(shown(document, robot)).words


def in_order(text: str, *parts: str) -> bool:
    """Whether the parts are in the text, one after the other."""
    places = [text.index(part) for part in parts]
    return places == sorted(places)


def test_what_needs_a_human_comes_first_then_the_counts():
    document = fleet_document(
        shown_placement("quiet"),
        shown_placement("moving", counts=counts(10, inFlight=1, waiting=3), group=2),
        shown_placement("hurt", counts=counts(10, failed=2, blocked=1), holds=[hold()]),
        health="attention",
        reasons=[
            reason("RobotsFailed", "2 robots are Failed: r1, r2", "crsyncer fleet explain default/hurt --robot r1")
        ],
    )
    text = words(document)
    assert text.startswith("2 things to look at crsyncer 0.1.0: crsyncer-fleet-0 leads, its Lease was renewed 3 s ago")
    assert "default/hurt : 4211 of 10000 robots were lost" in text
    assert "crsyncer fleet release 9c1e04ab77d2f3b1a0c4e9d2" in text
    assert in_order(
        text, "release 9c1e", "RobotsFailed 2 robots are Failed: r1, r2", "crsyncer fleet explain default/hurt"
    )
    assert in_order(text, "--robot r1", "10,000 robots 9,412 online 380 offline 208 do not report", "3 in all")
    assert in_order(text, "3 in all", "default/hurt held", "default/moving group 2", "default/quiet")


def test_a_sound_fleet_asks_for_nothing():
    text = words(fleet_document(shown_placement()))
    assert text.startswith("All is well ")
    assert 'class="hurt"' not in shown(fleet_document(shown_placement()))
    assert "There is no RobotPlacement." in words(fleet_document())


def test_what_heals_by_itself_is_shown_as_such():
    document = fleet_document(health="degraded", reasons=[reason("StatusBehind", level="degraded")])
    assert words(document).startswith("Catching up ")
    assert '<div class="card needs degraded">' in shown(document)


def test_the_reasons_about_holds_are_not_told_twice():
    document = fleet_document(
        shown_placement(holds=[hold()]), health="attention", reasons=[reason("Held", "told twice")]
    )
    assert "told twice" not in words(document)
    assert words(document).startswith("1 thing to look at ")
    assert "told once" in words(fleet_document(health="attention", reasons=[reason("Held", "told once")]))


def test_long_lists_are_cut_and_say_so():
    text = words(wide_document())
    assert f"and {200 * 20 - MOST_HOLDS:,} more: crsyncer fleet release --all" in text
    assert f"and {200 - MOST_OF_A_REASON} more: crsyncer fleet status" in text
    assert f"and {20 - MOST_REASONS} more: crsyncer fleet status" in text
    assert "200 in all" in text
    assert f"and {200 - MOST_ROWS} more: crsyncer fleet status" in text
    assert len(shown(wide_document())) < 200_000


def test_no_text_of_an_object_becomes_markup_or_controls_the_page():
    evil = "</p><script>alert(1)</script>\"'&\u202e\x1b[2J\n<img src=x onerror=y>"
    condition = {"type": "Resolved", "status": "False", "reason": evil, "message": evil}
    row = {"namespace": evil, "name": evil, "state": evil, "since": evil, "message": evil}
    document = fleet_document(
        shown_placement(evil, namespace=evil, conditions=[condition], holds=[dict.fromkeys(hold(), evil)]),
        controller={"state": evil, "holder": evil, "renewed": evil},
        health=evil,
        version=evil,
        reasons=[reason(evil, evil, evil)],
        robot={"name": evil, "state": evil, "lastReport": evil, "placements": [row]},
    )
    for html in (shown(document, evil), standby_page(evil, now=NOW)):
        found = Reader(html)
        assert found.open == []
        assert {tag for tag, _ in found.tags}.isdisjoint({"script", "img"})
        assert not [name for _, attributes in found.tags for name in attributes if name.startswith("on")]
        assert "\u202e" not in html
        assert "\x1b" not in html
    assert ("input", evil.replace("\u202e", " ").replace("\x1b", " ").replace("\n", " ")) in [
        (tag, attributes.get("value")) for tag, attributes in Reader(shown(document, evil)).tags if tag == "input"
    ]


def test_the_policy_allows_its_own_style_sheet_and_nothing_from_elsewhere():
    html = shown(fleet_document(shown_placement(counts=counts(10, failed=1))))
    [style] = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert f"style-src 'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'" in POLICY
    assert "default-src 'none'" in POLICY
    assert "script-src" not in POLICY
    found = Reader(html)
    assert {tag for tag, _ in found.tags}.isdisjoint({"script", "link", "img", "iframe"})
    assert not [attributes for _, attributes in found.tags if {"style", "src"} & attributes.keys()]
    assert "url(" not in style
    [refresh] = [a["content"] for tag, a in found.tags if tag == "meta" and a.get("http-equiv") == "refresh"]
    assert refresh == "15"


def robot_document(*placements: Any, state: str | None = "online", last: str | None = "2026-11-24T05:57:00Z") -> Json:
    rows = [
        {"namespace": "default", "name": name, "state": row, "since": "2026-11-24T05:50:00Z", "message": message}
        for name, row, message in placements
    ]
    return fleet_document(robot={"name": "r17", "state": state, "lastReport": last, "placements": rows})


def test_a_robot_is_found_with_what_is_not_ready_first():
    document = robot_document(
        ("a", "Ready", None), ("b", "InFlight", "new content"), ("c", "Blocked", "no such property"), ("d", None, None)
    )
    text = words(document, "r17")
    assert in_order(text, "Robot r17", "online last report 3 min ago", "default/c Blocked 10 min no such property")
    assert in_order(text, "default/c", "default/b In flight", "default/d unknown", "default/a Ready")
    assert "crsyncer fleet explain PLACEMENT --robot r17" in text
    assert words(document, "") == words(fleet_document())


def test_a_robot_that_is_not_there_has_never_reported_or_has_nothing_says_so():
    assert "There is no robot of this name." in words(fleet_document(), "r17")
    assert "There is no robot of this name." in words(robot_document(state=None, last=None), "r17")
    assert "unreported never reported No placement selects it." in words(
        robot_document(state="unreported", last=None), "r17"
    )
    assert "gone not in the inventory" in words(robot_document(("a", "Ready", None), state=None, last=None), "r17")


def test_a_robot_of_many_placements_has_a_cut_list():
    rows = [(f"p{number:03}", "Ready", None) for number in range(150)]
    assert "and 50 more: crsyncer fleet status --robot r17" in words(robot_document(*rows), "r17")


def test_a_single_robot_of_many_is_seen_in_the_bar():
    html = shown(fleet_document(shown_placement(counts=counts(10_000, failed=1))))
    assert re.search(r'<rect class="failed" x="\d+" width="12" height="1"/>', html)
    assert 'aria-label="9,999 ready, 1 failed"' in html


def test_what_is_unknown_is_shown_as_unknown():
    document = fleet_document(
        shown_placement(counts=None, group=None, errorCount=None, holds=[{}]),
        health="offline",
        controller={"state": None, "holder": None, "renewed": None},
        robots=dict.fromkeys(("all", "online", "offline", "unreported")),
    )
    text = words(document)
    assert text.startswith("The cloud does not answer crsyncer 0.1.0: nobody leads")
    assert "? robots ? online" in text
    assert 'aria-label="no robots"' in shown(document)


def test_conditions_that_say_more_than_numbers_stand_beside_the_placement():
    def condition(kind: str, reason: str) -> Json:
        return {"type": kind, "status": "False", "reason": reason}

    document = fleet_document(
        shown_placement(
            "a", conditions=[condition("Resolved", "NotServed"), condition("Collected", "CollectorMissing")]
        ),
        shown_placement("b", conditions=[condition("RolledOut", "WaitingForGroup")], errorCount=2),
        shown_placement("c", conditions=[condition("RolledOut", "Waiting")], group=3),
        shown_placement("d", conditions=[condition("RolledOut", "TooManyFailures")]),
    )
    text = words(document)
    assert "default/a NotServed CollectorMissing 10" in text
    assert "default/b 2 errors WaitingForGroup 10" in text
    assert "default/c 10" in text
    assert in_order(text, "default/d TooManyFailures", "default/b")


def test_a_standby_names_the_leader():
    assert Reader(standby_page("crsyncer-fleet-1", now=NOW)).words.startswith(
        "Standby crsyncer-fleet-1 leads, and shows the fleet. 2026-11-24 06:00:00 UTC"
    )
    assert "Nobody leads yet." in standby_page("", now=NOW)
