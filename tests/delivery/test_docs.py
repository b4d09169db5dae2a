"""The documents say what is there: every command, flag, variable, key, annotation, metric and target, and no other."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from crsyncer.adapters.config import CONFIG, DOOR_OPTIONS, DOOR_VIEW_OPTIONS, FLEET_OPTIONS, HAPROXY_OPTIONS, OPTIONS
from crsyncer.adapters.metrics import FleetMetrics, Metrics
from crsyncer.cli.main import crsyncer
from crsyncer.console.screens import report
from crsyncer.console.screens.gather import kind_row
from crsyncer.core.content import annotations, marks, object_content
from crsyncer.core.pair import compose

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
REFERENCE = (ROOT / "REFERENCE.md").read_text()
MOST_WORDS = 1300
"""README is a page: who looks for more is led to it."""
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [
        *ROOT.glob("*.md"),
        *(f for d in ("robot", "cloud", "cloud/fleet", "systemd", "packaging") for f in (ROOT / d).glob("*.md")),
    ]
)
UNDRAWN = "CHANGELOG.md"
"""Says what was and what is missing, so it may name what is not there."""


def read(name: str) -> str:
    return (ROOT / name).read_text()


def commands(group: click.Group = crsyncer, path: str = "crsyncer") -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


COMMANDS = dict(commands())
FLAGS = {"--help", "--version"} | {
    flag for command in COMMANDS.values() for option in command.params for flag in option.opts if flag.startswith("--")
}
TARGETS = set(re.findall("^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
ANNOTATIONS = {
    *(annotations.SPEC_SOURCE, annotations.FILTER, annotations.SUBTREE),
    *(annotations.OBSERVED_GENERATION, annotations.DRIFT, annotations.ORPHANS, annotations.PROPAGATION),
    annotations.SHARED,
    *(
        object_content.UPSTREAM_UID,
        object_content.APPLIED,
        object_content.ROBOT,
        object_content.LAST_DESIRED,
        compose.UPSTREAM_PATH,
    ),
    *(marks.UPSTREAM_CLUSTER, marks.UPSTREAM_NAMESPACE, marks.UPSTREAM_NAME),
}


def rows(heading: str) -> list[list[str]]:
    """The cells of the table of REFERENCE.md whose first row begins with a heading."""
    table = REFERENCE.split(f"\n| {heading} |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table]


def code(text: str) -> str:
    """Only what a document shows as code."""
    return "\n".join([*re.findall(r"```[a-z]*\n(.*?)```", text, re.DOTALL), *re.findall(r"`([^`\n]+)`", text)])


def test_every_command_and_flag_is_documented():
    table = " ".join(cell for row in rows("command") for cell in row)
    for words, command in COMMANDS.items():
        *path, name = words.split()
        assert f"`{words}" in table or (f"`{' '.join(path)} " in table and f"`{name}`" in table), words
        for option in [param for param in command.params if isinstance(param, click.Option)]:
            assert any(re.search(rf"`[^`\n]*{flag}\b", REFERENCE) for flag in option.opts), (words, option.opts)


def test_every_command_takes_a_state_directory_and_a_configuration_file():
    for words, command in COMMANDS.items():
        flags = {flag for option in command.params for flag in option.opts}
        if not words.startswith(("crsyncer fleet ", "crsyncer door ")):  # those have no agent, and no disk
            assert {"--state-dir", "--config"} <= flags, words
        elif words.startswith("crsyncer fleet ") and words not in ("crsyncer fleet crds", "crsyncer fleet manifests"):
            assert {"--config", *(option.opts[0] for option in FLEET_OPTIONS.values())} <= flags, words


def test_every_command_of_the_door_takes_its_settings():
    for words, command in COMMANDS.items():
        flags = {flag for option in command.params for flag in option.opts}
        if words.startswith("crsyncer door ") and words != "crsyncer door manifests":
            options = HAPROXY_OPTIONS if words == "crsyncer door drain" else DOOR_VIEW_OPTIONS
            assert {"--config", *(option.opts[0] for option in options.values())} <= flags, words


def settings(options: Mapping[str, click.Option]) -> list[list[str]]:
    """The table of settings that the code has."""
    found = [
        [
            f"`{option.opts[0]} {option.metavar}".rstrip() + "`",
            ", then ".join(f"`{variable}`" for variable in option.envvar or ()),
            f"`{key}`",
            str(option.show_default),
            str(option.help).removesuffix(f"  [key: {key}]"),
        ]
        for key, option in options.items()
    ]
    return [["`--config FILE`", "`CRSYNCER_CONFIG`", "", "none", "YAML file with the keys of this table"], *found]


def test_the_tables_of_settings_are_the_code():
    assert rows("flag") == settings(OPTIONS)
    assert rows("flag of `crsyncer fleet`") == settings(FLEET_OPTIONS)
    assert rows("flag of `crsyncer door`") == settings(DOOR_OPTIONS)


@pytest.mark.parametrize(("metrics", "head"), [(Metrics(), "metric"), (FleetMetrics(), "metric of `crsyncer fleet`")])
def test_every_metric_is_documented_with_its_labels_and_no_other(metrics: Any, head: str):
    # The names as Prometheus sees them: a family of counters ends in _total.
    registry = metrics._family._registry
    expected = {}
    for collector, names in registry._collector_to_names.items():
        family = next(iter(collector.collect()))
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert name in names
        expected[f"`{name}`"] = ", ".join(collector._labelnames)
    assert {name: labels for name, labels, _ in rows(head)} == expected


def test_every_annotation_is_documented_and_no_other():
    documented = set(re.findall(r"(?:cr-syncer|crsyncer)\.cloudrobotics\.com/(?!v1alpha1)[a-z-]+", REFERENCE))
    assert documented == ANNOTATIONS
    assert annotations.ROBOT_LABEL in REFERENCE


def test_what_is_to_be_tuned_are_keys_and_annotations_that_exist():
    [table] = re.findall(r"^## Tune\n(.*?)^## ", read("OPERATING.md"), re.MULTILINE | re.DOTALL)
    named = {span.partition(": ")[0] for span in re.findall("`(.*?)`", table)}
    assert "watchTimeout" in named
    assert named <= OPTIONS.keys() | ANNOTATIONS


def test_exit_codes_and_health_are_those_of_the_code():
    told = {health.strip("`"): int(number) for number, health, *_ in rows("exit code")}
    assert told == {**report.EXIT_CODES, "": report.STOPPED}


def test_the_states_of_kinds_are_those_of_the_code():
    [told] = re.findall(r"Its state is (.*)\.\n", str(kind_row.__doc__))
    assert {state for row in rows("a kind is") for state in re.findall("`(.*?)`", row[0])} == set(
        re.split(", | or ", told)
    )


def test_readme_is_a_page():
    assert len(README.split()) <= MOST_WORDS


def test_what_readme_promises_is_shown_by_tests_that_exist():
    promised = re.findall(r"`(test_\w+)`", README)
    sources = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(promised) > 5
    assert [name for name in promised if f"def {name}(" not in sources] == []


def test_every_page_is_on_readmes_map():
    pages = {path.name for path in ROOT.glob("*.md")} - {"README.md"}
    assert pages <= set(re.findall(r"\]\((\w+\.md)", README))


def test_every_make_target_is_documented():
    documented = set(re.findall(r"make ([a-z]+)", code(README) + code(read("CONTRIBUTING.md"))))
    assert documented == TARGETS


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name != UNDRAWN])
def test_no_document_promises_what_is_not_there(name):
    shown = code(read(name))
    words = {path for command in COMMANDS for path in (command, command.rpartition(" ")[0])}
    for found in re.findall(r"(?<![\w/.-])(?:[\w./]*/)?(crsyncer(?: [a-z]+)+)(?![\w/.:-])", shown):
        assert any(found == word or found.startswith(f"{word} ") for word in words), found
    for found in re.findall(r"\bmake ([a-z]+)", shown):
        assert found in TARGETS, found
    for line in shown.splitlines():
        if re.search(r"\bcrsyncer (run|status|diff|doctor|demo|sandbox)\b", line):
            assert set(re.findall(r"(?<!\S)\[?(--[a-z-]+)", line)) <= FLAGS, line
    variables = {
        variable
        for option in (CONFIG, *OPTIONS.values(), *FLEET_OPTIONS.values(), *DOOR_OPTIONS.values())
        for variable in option.envvar or ()
    }
    assert set(re.findall(r"\bCRSYNCER_[A-Z_]+", shown)) <= variables


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_and_path_leads_somewhere(name):
    text = read(name)
    folder = (ROOT / name).parent
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("https://") or (folder / target).exists(), target
    for target in re.findall(r"`((?:crsyncer|tests|robot|cloud|systemd|packaging)/[\w./-]*)`", text):
        assert (ROOT / target).exists(), target
    for target in re.findall(r"`((?:core|loop|edges|cli|sandbox)/[\w./-]*)`", text):
        assert (ROOT / "crsyncer" / target).exists(), target


def test_no_manifest_has_a_key_that_kubectl_takes_for_a_truth_value():
    manifests = [
        path.read_text() for folder in ("robot", "cloud", "systemd") for path in (ROOT / folder).rglob("*.yaml")
    ]
    shown = [code(read(name)) for name in DOCUMENTS]
    for text in manifests + shown:
        assert re.findall(r"(?mi)(?:^[ -]*|[{,] *)(?:y|n|yes|no|on|off): ", text) == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_lines_can_be_read_without_scrolling(name):
    prose = [line for line in read(name).splitlines() if not line.startswith("|")]
    assert [line for line in prose if len(line) > 120] == []
