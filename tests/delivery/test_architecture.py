"""ARCHITECTURE.md names each file once, with the first sentence of its docstring: `--rewrite` writes the tables anew.

The house keeps its own rules: no room is crowded, no file is long, tests included, no two rooms have a file of one
name, and no circle of imports is larger than two files.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "crsyncer"
PAGE = ROOT / "ARCHITECTURE.md"
MOST_FILES, LARGEST_CIRCLE, MOST_LINES = 17, 2, 400
FLOORS = ("", "core", "runtime", "engine", "console", "adapters", "fleet", "door", "cli", "sandbox")


def rooms() -> Iterator[Path]:
    """The folders with files, in the order of the page."""
    folders = {path.parent for path in files()}
    return iter(sorted(folders, key=lambda each: (FLOORS.index(first(each)), each.as_posix())))


def first(folder: Path) -> str:
    """The room on the first level that a folder is in."""
    return folder.relative_to(PACKAGE).as_posix().partition("/")[0].removeprefix(".")


def files(folder: Path = PACKAGE) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if path.name != "__init__.py")


def docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text())) or ""


def sentence(path: Path) -> str:
    """The first sentence of a file's docstring."""
    text = " ".join(docstring(path).split("\n\n")[0].split())
    match = re.match(r"(.+?[.!?])(?:\s|$)(?![a-z])", text)
    assert match is not None, path
    return match[1].replace("|", "\\|")


def tables() -> str:
    parts = []
    for folder in rooms():
        parts.append(f"### `{folder.relative_to(ROOT).as_posix()}/`")
        if folder != PACKAGE:
            parts.append(docstring(folder / "__init__.py"))
        own = [path for path in files(folder) if path.parent == folder]
        parts.append("\n".join(["| file | |", "|---|---|", *(f"| `{each.name}` | {sentence(each)} |" for each in own)]))
    return "\n\n".join(parts)


def test_the_page_names_each_file_once(request: pytest.FixtureRequest):
    page = PAGE.read_text()
    before, found, rest = page.partition("## Rooms\n")
    introduction, _, old = rest.partition("\n### ")
    after = old.partition("\n## ")[2]
    now = f"{before}{found}{introduction}\n{tables()}\n\n## {after}"
    if request.config.getoption("--rewrite"):
        PAGE.write_text(now)
    assert PAGE.read_text() == now, "out of date: run this test with --rewrite"


def test_no_room_is_crowded():
    sizes = Counter(path.parent for path in files() if first(path.parent) != "cli")
    assert {folder: size for folder, size in sizes.items() if size > MOST_FILES} == {}


def test_no_file_is_long():
    paths = [*files(), *files(ROOT / "tests")]
    lines = {path.relative_to(ROOT).as_posix(): len(path.read_text().splitlines()) for path in paths}
    assert {name: number for name, number in lines.items() if number > MOST_LINES} == {}


def test_no_two_rooms_have_a_file_of_one_name():
    names = Counter(path.name for path in files())
    assert [name for name, times in names.items() if times > 1] == []


def test_no_circle_of_imports_is_larger_than_two_files():
    circles = [circle for circle in strongly_connected(imports()) if len(circle) > LARGEST_CIRCLE]
    assert circles == []


def imports() -> dict[str, set[str]]:
    """Which module imports which, also for types only."""
    modules = {module(path): path for path in files()}
    found: dict[str, set[str]] = {}
    for name, path in modules.items():
        nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        named = {f"{node.module}.{each.name}" for node in nodes for each in node.names} | {
            node.module for node in nodes
        }
        found[name] = {each for each in named if each in modules and each != name}
    return found


def module(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")


def strongly_connected(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """The circles of a graph: each set of nodes that reach each other."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen, ahead = set[str](), [start]
        while ahead:
            for node in graph[ahead.pop()] - seen:
                seen.add(node)
                ahead.append(node)
        reached[start] = seen
    circles: list[set[str]] = []
    for node in graph:
        circle = {other for other in reached[node] if node in reached[other]}
        if circle and circle not in circles:
            circles.append(circle)
    return circles
