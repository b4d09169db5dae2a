"""What operators' commands say where no agent runs, and that no hint sends anybody to a command that is not there."""

import json
import re
from pathlib import Path

import click
import pytest
import yaml

import crsyncer
from crsyncer.adapters.kubeconfig import read_kubeconfig
from crsyncer.adapters.store.statedir import Lock
from crsyncer.cli.crds import APIS, SYNC_POLICY
from crsyncer.cli.main import crsyncer as group
from crsyncer.cli.shared import send_command
from crsyncer.console.screens.screen import table
from crsyncer.core.requests.calls import SYNC_POLICIES
from crsyncer.errors import SyncError, Unsure
from tests.delivery.command_line import in_process as run

SOURCES = sorted(Path(crsyncer.__file__).parent.rglob("*.py"))
ORDERS = [
    ["holds", "release", "h1"],
    ["holds", "add", "goals.lab.example.com"],
    ["pending", "retry"],
    ["pending", "retry", "goals.lab.example.com", "a"],
    ["pending", "drop", "goals.lab.example.com", "a"],
    ["resync"],
    ["resync", "goals.lab.example.com"],
]


@pytest.mark.parametrize("arguments", ORDERS, ids=" ".join)
def test_what_only_an_agent_can_do_is_refused_in_one_line_with_a_hint(tmp_path, arguments):
    done = run(*arguments, "--state-dir", tmp_path / "never")
    assert (done.returncode, done.stdout) == (1, "")
    line, hint = done.stderr.splitlines()
    assert line.startswith(f"crsyncer: no agent is running on {tmp_path / 'never'}")
    assert hint.startswith("hint: systemctl start crsyncer")
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize(("command", "said"), [("holds", "nothing is held"), ("pending", "nothing is pending")])
def test_lists_need_no_agent_and_no_state(tmp_path, command, said):
    done = run(command, "list", CRSYNCER_STATE_DIR=str(tmp_path / "never"))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{said}\n", "")
    (tmp_path / "c.yaml").write_text(f"stateDir: {tmp_path / 'never'}\n")
    done = run(command, "list", "--json", "--config", tmp_path / "c.yaml")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"schema": f"crsyncer.{command}/v1", command: []})
    assert not (tmp_path / "never").exists()


def test_all_that_look_at_both_clusters_take_the_settings_that_decide_what_is_synced():
    """A robot that trusts copies of SyncPolicies looks alike to the agent and to `doctor` (C1.6)."""

    context = click.Context(group)

    def taken(command: click.Command | None) -> list[set[str]]:
        found = [{str(each.name) for each in command.params}] if command is not None else []
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                found += taken(command.get_command(context, name))
        return found

    both = [names for names in taken(group) if {"cloud_kubeconfig", "robot_kubeconfig"} <= names]
    assert len(both) > 5
    assert [names for names in both if not {"robot_name", "namespaces", "namespace_map", "trust"} <= names] == []


@pytest.mark.parametrize(
    "arguments",
    [["explain", "goals.lab.example.com", "a"], ["pending", "list"], ["holds", "list"], ["events"]],
    ids=" ".join,
)
def test_a_store_that_cannot_be_read_is_an_error_with_a_hint(tmp_path, arguments):
    (tmp_path / "state.db").write_bytes(b"nonsense" * 1000)
    done = run(*arguments, "--state-dir", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["crsyncer", "hint"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["holds"], "Usage: crsyncer holds"),
        (["holds", "release"], "Missing argument 'ID'"),
        (["holds", "drop"], "No such command 'drop'"),
        (["pending", "drop", "goals"], "Missing argument '[NAMESPACE/]NAME'"),
        (["explain", "goals"], "Missing argument '[NAMESPACE/]NAME'"),
        (["explain", "goals", "r1/"], "Missing argument '[NAMESPACE/]NAME'"),
        (["explain", "", "dock"], "Missing argument 'RESOURCE'"),
        (["resync", "a", "b"], "unexpected extra argument"),
        (["holds", "list", "--jsn"], "--json"),
    ],
)
def test_a_wrong_word_is_a_matter_of_usage(tmp_path, arguments, said):
    done = run(*arguments, CRSYNCER_STATE_DIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_an_agent_that_starts_is_given_time_and_one_that_is_stuck_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("crsyncer.cli.shared._START_TIMEOUT_SECONDS", 0.3)
    lock = Lock(tmp_path)
    lock.acquire()
    try:
        with pytest.raises(Unsure, match="is running, but does not answer"):
            send_command(tmp_path, command="retry")
    finally:
        lock.release()
    with pytest.raises(SyncError, match="no agent is running"):
        send_command(tmp_path, command="retry")


def test_a_table_is_as_wide_as_what_is_in_it_and_stays_a_table():
    assert table(("A", "LONGER"), [("long", "x"), ("y", "1\n2")]) == "A     LONGER\nlong  x\ny     1 2"


def test_no_hint_names_a_command_that_is_not_there():
    context = click.Context(group)
    commands = {name: group.get_command(context, name) for name in group.list_commands(context)}
    contract = "diff|doctor|events|explain|holds|pending|resync|status|run|demo|sandbox"
    named = set()
    for source in SOURCES:
        for first, second in re.findall(rf"crsyncer ({contract})\b(?: ([a-z]+))?", source.read_text()):
            command = commands.get(first)
            assert command is not None, (source, first)
            assert not isinstance(command, click.Group) or not second or second in command.commands, (source, second)
            named.add(first)
    assert {"holds", "pending", "explain"} <= named


MAKE = ["cloud-kubeconfig", "cloud.kubeconfig", "--remote-server", "www.example.com", "--token-file", "secret/token"]


def test_a_kubeconfig_for_the_cloud_names_the_token_and_never_shows_it(tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/token").write_text("s3cret-t0ken\n")
    done = run(*MAKE, "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {
        "schema": "crsyncer.cloud-kubeconfig/v1",
        "file": "cloud.kubeconfig",
        "server": "https://www.example.com/apis/core.kubernetes",
        "tokenFile": "secret/token",
    }
    made = tmp_path / "cloud.kubeconfig"
    assert made.stat().st_mode & 0o777 == 0o600
    read = read_kubeconfig(made)
    assert (read.server, read.path("tokenFile")) == (
        "https://www.example.com/apis/core.kubernetes",
        tmp_path / "secret/token",
    )
    assert "s3cret" not in made.read_text() + done.stdout
    # In one directory both can be moved together, such as into a Secret.
    beside = run("cloud-kubeconfig", "secret/kubeconfig", *MAKE[2:-1], "token", "-o", "name", cwd=tmp_path)
    assert (beside.stdout, beside.stderr) == ("secret/kubeconfig\n", "")
    assert read_kubeconfig(tmp_path / "secret/kubeconfig").user["tokenFile"] == "token"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["there", *MAKE[2:]], "there exists already and is not overwritten"),
        (["no/where", *MAKE[2:]], "no/secret/token cannot be read (No such file or directory)"),
        (["secret", *MAKE[2:]], "secret exists already and is not overwritten"),
        (["new", "--remote-server", "www.example.com/x", "--token-file", "there"], "allowed: HOST or HOST:PORT"),
        (["new", "--remote-server", "http://a", "--token-file", "there"], "allowed: HOST or HOST:PORT"),
        (["new", "--remote-server", "a", "--token-file", "gone"], "gone cannot be read"),
        (["new", "--remote-server", "a", "--token-file", "empty"], "empty is empty"),
        (["new", "--remote-server", "a"], "--token-file"),
        (["new", "--remote-server", "a", "--token-file", "there", "--certificate-authority", "gone"], "gone cannot be"),
    ],
)
def test_a_kubeconfig_that_cannot_be_made_is_one_line_and_leaves_everything_as_it_was(tmp_path, arguments, said):
    (tmp_path / "secret").mkdir()
    for name in ("there", "secret/token"):
        (tmp_path / name).write_text("s3cret-t0ken")
    (tmp_path / "empty").touch()
    done = run("cloud-kubeconfig", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert said in line
    assert "s3cret" not in line
    assert (tmp_path / "there").read_text() == "s3cret-t0ken"
    assert not (tmp_path / "new").exists()


def test_the_crd_of_sync_policies_is_printed_for_kubectl_with_its_comments():
    texts = [run("crds"), run("crds", "-o", "yaml")]
    assert [(done.returncode, done.stderr) for done in texts] == [(0, "")] * 2
    assert texts[0].stdout == texts[1].stdout == SYNC_POLICY.read_text()
    for shipped in ("robot", "cloud"):
        assert (Path(__file__).parents[2] / shipped / "syncpolicies.yaml").read_text() == SYNC_POLICY.read_text()
    listed = json.loads(run("crds", "--json").stdout)
    assert listed == {"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(SYNC_POLICY.read_text())]}
    assert listed["items"][0]["metadata"]["name"] == SYNC_POLICIES.resource
    assert run("crds", "-o", "name").stdout == f"customresourcedefinition/{SYNC_POLICIES.resource}\n"


def test_the_crds_of_what_travels_are_printed_for_both_sides():
    assert run("crds", "--api").stdout == APIS.read_text()
    items = json.loads(run("crds", "--api", "--json").stdout)["items"]
    assert items == [*yaml.safe_load_all(APIS.read_text())]
    names = [f"customresourcedefinition/{name}.crsyncer.cloudrobotics.com" for name in ("apirevisions", "apisets")]
    assert run("crds", "--api", "-o", "name").stdout.splitlines() == names
