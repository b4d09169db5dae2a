"""OPERATING.md has every reason, with its words as the product prints them: `--rewrite` prints them anew.

So are the screens in README.md.
"""

import ast
import re
from pathlib import Path

import pytest

from crsyncer.console.screens.report import exit_code
from crsyncer.console.screens.screen import render
from crsyncer.core.model import Json
from tests.console.report_kit import NOW
from tests.delivery.operating import REASONS, SCREENS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "OPERATING.md"
PAGES = (PAGE, ROOT / "README.md")
BLOCK = re.compile(r"(<!-- (screen|reason): (\w+) -->\n\n)(?:```text\n.*?```\n\n)?", re.DOTALL)
TITLES = {"Your action is needed": 12, "It works, with a problem": 10, "Offline": 11, "Good to know": 0}
"""The exit code of the reasons below each title."""


def codes_of_the_product() -> set[str]:
    """Every single capitalised word in the modules that judge is a code."""
    paths = [ROOT / "crsyncer/console/screens" / name for name in ("reasons.py", "reason_texts.py")]
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text()))]
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {text for text in texts if re.fullmatch("[A-Z][A-Za-z]+", text)}


def advice(content: Json, code: str) -> str:
    """What the screen says of one reason below WHAT TO DO, without its number, or below NOTES."""
    advised, _, noted = render(content, NOW).partition("NOTES\n- ")
    if any((reason["code"], reason["level"]) == (code, "info") for reason in content["reasons"]):
        return re.sub("^  ", "", noted, flags=re.MULTILINE).rstrip()
    _, _, below = advised.partition("WHAT TO DO\n")
    for item in re.split(r"^(?=\d\. )", below, flags=re.MULTILINE)[1:]:
        number = int(item.partition(".")[0])
        if content["reasons"][number - 1]["code"] == code:
            return re.sub("^(?:[0-9]\\. |   )", "", item, flags=re.MULTILINE).rstrip()
    raise AssertionError(f"the screen has no {code}")


def shown(sort: str, name: str) -> str:
    """The block of text that belongs behind a mark."""
    if sort == "screen":
        return f"$ crsyncer status; echo $?\n{render(SCREENS[name], NOW)}{exit_code(SCREENS[name])}"
    return "\n\n".join(advice(content, name) for content in REASONS[name])


def sections() -> dict[str, tuple[str, str]]:
    """Of each reason: the title that it is below, and its text."""
    found = {}
    for part in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        for section in re.split(r"^### ", part, flags=re.MULTILINE)[1:]:
            code, _, text = section.partition("\n")
            found[code] = (part.partition("\n")[0], text)
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_shows_what_the_product_prints(request: pytest.FixtureRequest, path: Path):
    page = path.read_text()
    now = BLOCK.sub(lambda mark: f"{mark[1]}```text\n{shown(mark[2], mark[3])}\n```\n\n", page)
    if request.config.getoption("--rewrite"):
        path.write_text(now)
    assert path.read_text() == now, "out of date: run this test with --rewrite"


def test_every_screen_is_shown():
    found = {mark[2] for mark in BLOCK.findall(PAGE.read_text()) if mark[1] == "screen"}
    assert found == set(SCREENS)


def test_the_index_names_every_reason_once_and_leads_to_it():
    [index] = re.findall(r"^## Every reason\n(.*?)^## ", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert sorted(re.findall(r"\[(\w+)\]\(#(\w+)\)", index)) == sorted((code, code.lower()) for code in REASONS)


def test_every_reason_of_the_product_has_a_section_and_no_other():
    assert set(sections()) == set(REASONS) == codes_of_the_product()


@pytest.mark.parametrize("code", REASONS)
def test_a_section_has_the_reason_its_cause_and_its_remedy(code):
    title, text = sections()[code]
    assert f"<!-- reason: {code} -->" in text
    assert re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE) == ["Cause", "Remedy"]
    healths = {exit_code(content) for content in REASONS[code]} - {13}
    assert TITLES[title] in healths or (code, title) == ("AgentStopped", "Your action is needed")
