"""-o text, json, yaml, wide and name, on what commands say where no agent runs."""

import json
import subprocess

import pytest
import yaml

import crsyncer
from crsyncer.adapters.store.statedir import Lock
from crsyncer.cli.output import confirmed
from tests.delivery.command_line import CLI, environment
from tests.delivery.command_line import in_process as run

LISTS = [["status"], ["events"], ["pending", "list"], ["holds", "list"], ["version"]]


@pytest.mark.parametrize("arguments", LISTS, ids=" ".join)
def test_json_and_yaml_are_one_document_that_names_its_schema(tmp_path, arguments):
    texts = {
        output: run(*arguments, "-o", output, CRSYNCER_STATE_DIR=str(tmp_path)).stdout for output in ("json", "yaml")
    }
    content = json.loads(texts["json"])
    assert content["schema"] == f"crsyncer.{arguments[0]}/v1"
    assert yaml.safe_load(texts["yaml"]).keys() == content.keys()
    assert json.loads(run(*arguments, "--json", CRSYNCER_STATE_DIR=str(tmp_path)).stdout).keys() == content.keys()


@pytest.mark.parametrize("arguments", LISTS, ids=" ".join)
def test_wide_says_at_least_what_text_says(tmp_path, arguments):
    text, wide = (run(*arguments, "-o", output, CRSYNCER_STATE_DIR=str(tmp_path)).stdout for output in ("text", "wide"))
    assert text.split()[0] == wide.split()[0]
    assert len(wide) >= len(text) > 0


def test_name_prints_names_alone(tmp_path):
    assert run("version", "-o", "name").stdout == f"{crsyncer.__version__}\n"
    for arguments in (["status"], ["events"], ["holds", "list"], ["pending", "list"]):
        assert run(*arguments, "-o", "name", CRSYNCER_STATE_DIR=str(tmp_path)).stdout == ""


def test_an_output_that_cannot_be_written_is_one_line(tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*CLI, "status", "--state-dir", tmp_path], stdout=full, stderr=subprocess.PIPE, text=True, env=environment()
        )
    assert done.returncode == 1
    assert done.stderr == "crsyncer: [Errno 28] No space left on device\n"


def test_a_watch_continues_after_an_agent_that_did_not_answer(tmp_path):
    (tmp_path / "state.db").touch()
    lock = Lock(tmp_path)
    lock.acquire()
    with subprocess.Popen(
        [*CLI, "status", "--watch", "--state-dir", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as watching:
        try:
            assert watching.stdout is not None
            assert watching.stderr is not None
            assert "is running, but does not answer" in watching.stderr.readline()
            lock.release()
            assert watching.stdout.readline().startswith("STOPPED")
        finally:
            watching.kill()


def test_a_reader_that_goes_away_ends_a_watch_without_a_word(tmp_path):
    with subprocess.Popen(
        [*CLI, "status", "--watch", "--state-dir", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert watching.stdout.readline().startswith("STOPPED")
        watching.stdout.close()
        assert watching.wait(60) == 1
        assert watching.stderr.read() == ""


def test_a_wrong_format_is_answered_with_those_there_are(tmp_path):
    done = run("status", "-o", "xml", CRSYNCER_STATE_DIR=str(tmp_path))
    assert done.returncode == 2
    assert "'xml' is not one of 'text', 'json', 'yaml', 'wide', 'name'" in done.stderr


def test_without_a_terminal_nothing_is_done_unless_it_was_said_before(capsys, monkeypatch, tmp_path):
    empty = (tmp_path / "empty").open("w+")
    monkeypatch.setattr("sys.stdin", empty)
    assert confirmed("delete?", "one object", yes=True, output="text")
    assert capsys.readouterr() == ("", "")
    for output in ("text", "wide", "json"):
        assert not confirmed("delete?", "one object", yes=False, output=output)
        out, err = capsys.readouterr()
        assert "--yes" in err
        assert "one object" in (err if output == "json" else out)
    empty.close()


def test_kubectl_finds_it_as_a_plug_in():
    from importlib.metadata import entry_points

    [script] = entry_points(group="console_scripts", name="kubectl-crsyncer")
    assert script.load() is not None
