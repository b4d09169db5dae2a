"""The demo: with its own kinds and with the real CRDs; it notices a step that fails."""

import asyncio
import base64
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from crsyncer.adapters.retries import until
from crsyncer.errors import SyncError
from crsyncer.sandbox.front_door import find_haproxy
from crsyncer.sandbox.stories.story import WIDTH, Seen, Story, tell
from crsyncer.sandbox.stories.story_kinds import OWN, load, sample
from tests.delivery.command_line import in_process
from tests.door.programs import haproxy

DEMO = [sys.executable, "-m", "crsyncer.cli.main", "demo"]
SHARED = Path(__file__).parents[3] / "shared" / "crds"
STEPS = 11
FLEET_STEPS = 13
SHARDS_STEPS = 9


def run(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*DEMO, *arguments], capture_output=True, text=True, timeout=600, env={**os.environ, **variables}
    )


def holds(done: subprocess.CompletedProcess, *verdicts: str, steps: int = STEPS) -> None:
    """A story that was told to its end, readable in a log."""
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
    story, passed, _ = done.stdout.partition(f"\nPASSED: all {steps} steps")
    assert passed
    assert [f" s] {number}. " in story for number in range(1, steps + 1)] == [True] * steps
    assert "WRONG" not in story
    assert "\x1b" not in done.stdout
    assert max(map(len, story.splitlines())) <= WIDTH
    assert re.findall("^([A-Z ]+): ", story, re.MULTILINE) == [*verdicts]


def of_a_robot(done: subprocess.CompletedProcess, *, kinds: int) -> None:
    """The story of a robot with so many kinds holds."""
    holds(done, "HEALTHY", "OFFLINE", "STOPPED", "OFFLINE", "HEALTHY")
    assert f"{kinds} kinds, {kinds} objects; nothing waits." in done.stdout


@pytest.mark.nightly("the same story; tests/system/test_real_crds.py syncs these kinds")
@pytest.mark.skipif(not SHARED.is_dir(), reason="the real CRDs are not beside this checkout")
def test_the_story_holds_with_the_real_crds():
    done = run("--crds", SHARED)
    of_a_robot(done, kinds=5)
    assert "robottypes have no status" in done.stdout


def test_the_story_of_a_policy_holds_and_leaves_nothing_behind(tmp_path):
    done = run("--policy", TMPDIR=str(tmp_path))
    holds(done)
    assert list(tmp_path.glob("crsyncer-sandbox-*")) == []
    assert "url http://localhost:8080/plan-8.pdf, note use the back door" in done.stdout
    secrets = [base64.b64encode(password).decode() for password in (b"first", b"second")]
    assert [secret in done.stdout for secret in secrets] == [False, False]


def test_the_story_of_a_fleet_holds():
    done = run("--fleet")
    holds(done, "ATTENTION", "HEALTHY", "ATTENTION", "HEALTHY", steps=FLEET_STEPS)
    assert re.search("released [0-9a-f]{24}: 9 replicas will be removed", done.stdout)


def test_the_story_of_shards_holds():
    done = run("--shards", PATH=f"{haproxy().parent}:{os.environ['PATH']}")
    holds(done, "HEALTHY", "DEGRADED", "HEALTHY", "HEALTHY", "HEALTHY", steps=SHARDS_STEPS)
    assert "robot amr-4: 2 objects removed at east" in done.stdout
    assert "robot amr-2: 2 objects removed at east-2" in done.stdout


def test_without_haproxy_the_demo_of_shards_names_the_package(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SyncError, match="haproxy is not installed") as caught:
        find_haproxy(others=())
    assert caught.value.hint == "install the package haproxy, 2.6 or newer"


@pytest.mark.parametrize("alone", ["--fleet", "--shards"])
@pytest.mark.parametrize("others", [["--keep"], ["--crds", "."], ["--policy"], ["--state-dir", "."]])
def test_the_story_of_a_fleet_or_of_shards_is_told_alone(alone, others):
    done = in_process("demo", alone, *others)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{alone}: not together with {others[0]}; allowed: {alone} alone" in done.stderr


def test_one_story_is_told_at_a_time():
    done = in_process("demo", "--fleet", "--shards")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--fleet: not together with --shards; allowed: --fleet alone" in done.stderr


def test_the_story_holds_and_a_kept_demo_runs_on_until_it_is_stopped(tmp_path):
    programs = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crsyncer" / "control-plane"
    (tmp_path / "crsyncer").mkdir()
    (tmp_path / "crsyncer" / "control-plane").symlink_to(programs)
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    config, state = tmp_path / "c.yaml", tmp_path / "state"
    config.write_text("log:\n  format: json\n")
    done = run("--keep", "--state-dir", state, "--config", config, **cache)
    *_, stop = done.stdout.splitlines()
    try:
        of_a_robot(done, kinds=2)
        assert 'cloud     orders/order-1 status {"percent": 100, "phase": "DELIVERED"}' in done.stdout
        assert (state / "state.db").exists()
        assert f"crsyncer status --state-dir {state}" in done.stdout
        [log] = tmp_path.glob("crsyncer/demo/agent/agent.log")
        assert json.loads(log.read_text().splitlines()[0])["level"] == "info"
        other = run("--state-dir", state, **cache)
        assert (other.returncode, other.stdout) == (2, "")
        assert "holds another agent's state" in other.stderr
        again = run("--keep", **cache)
        assert again.returncode == 1
        assert stop.strip() in again.stderr
        setup = next(line for line in done.stdout.splitlines() if line.startswith("  eval"))
        commands = done.stdout.partition(setup)[2].partition("Stop it all")[0]
        tried = subprocess.run(
            ["/bin/sh", "-ec", setup + commands],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, **cache},
        )
        assert tried.returncode == 0, tried.stderr
        assert "patched" in tried.stdout
        assert "kind: Order" in tried.stdout
        assert "HEALTHY: robot-1" in tried.stdout
    finally:
        stopped = subprocess.run(stop, shell=True, capture_output=True, text=True, timeout=180, env=os.environ | cache)
    assert stopped.stdout == "down\n"
    assert list((tmp_path / "crsyncer" / "demo").iterdir()) == []
    assert until(lambda: processes(tmp_path) == [], seconds=30), processes(tmp_path)


def test_an_interrupted_demo_leaves_nothing_behind(tmp_path):
    telling = subprocess.Popen(DEMO, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert telling.stdout is not None
    for line in telling.stdout:
        if "process" in line:
            telling.send_signal(signal.SIGTERM)  # treated as Ctrl-C
            break
    telling.communicate(timeout=120)
    assert telling.returncode == 130
    assert list(tmp_path.glob("crsyncer-sandbox-*")) == []
    assert until(lambda: processes(tmp_path) == [], seconds=30), processes(tmp_path)


def processes(folder: Path) -> list[str]:
    """The command lines of processes that have to do with a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line:
            found.append(line)
    return found


def told(looks: list[Seen], *, seconds: float = 30.0) -> tuple[int, str]:
    """A story of one step, which may take so long, and what is seen, look after look."""
    lines: list[str] = []
    story = Story(lines.append)

    async def look() -> Seen:
        return looks.pop(0) if len(looks) > 1 else looks[0]

    def plot() -> None:
        story.step("An order is made")
        asyncio.run(story.expect("the robot has it", look, seconds=seconds))

    return tell(story, plot), "\n".join(lines)


def test_a_step_that_does_not_hold_ends_the_story_and_says_what_is_there_instead():
    code, text = told([Seen("robot", "has no order-1", holds=False)], seconds=0.2)
    assert code == 1
    assert "expected  the robot has it\n      robot     WRONG: has no order-1" in text
    assert "FAILED: step 1" in text


def test_a_step_may_take_a_while_to_hold():
    code, text = told([Seen("robot", "nothing", holds=False), Seen("robot", "order-1\x1b[2J " + 300 * "x", holds=True)])
    assert code == 0
    assert "nothing" not in text
    assert "\x1b" not in text
    assert "PASSED: all 1 steps" in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no CRD in"),
        ("a: [", "cannot be read"),
        ("wrong", 'spec-source is "moon"; allowed: cloud, robot'),
    ],
)
def test_crds_that_no_story_can_be_told_with_are_refused_before_anything_starts(tmp_path, text, said):
    if text == "wrong":
        [crd, *_] = yaml.safe_load_all((OWN / "orders.yaml").read_text())
        crd["metadata"]["annotations"]["cr-syncer.cloudrobotics.com/spec-source"] = "moon"
        text = json.dumps(crd)
    (tmp_path / "crds.yaml").write_text(text)
    with pytest.raises(SyncError, match=said):
        load(tmp_path, "robot-1")
    done = in_process("demo", "--crds", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr


def test_a_folder_that_is_not_there_is_a_wrong_word():
    done = in_process("demo", "--crds", "/nowhere")
    assert done.returncode == 2
    assert "/nowhere" in done.stderr


@pytest.mark.parametrize(
    ("schema", "first", "second"),
    [
        ({"type": "string"}, "value-1", "value-2"),
        ({"type": "string", "enum": ["A", "B"]}, "A", "B"),
        ({"type": "string", "minLength": 9, "maxLength": 9}, "xxvalue-1", "xxvalue-2"),
        ({"type": "string", "maxLength": 2}, "-1", "-2"),
        ({"type": "string", "format": "date-time"}, "2030-01-01T00:00:01Z", "2030-01-01T00:00:02Z"),
        ({"type": "integer"}, 1, 2),
        ({"type": "integer", "minimum": 10, "maximum": 11}, 11, 11),
        ({"type": "number", "multipleOf": 0.5}, 0.5, 1.0),
        ({"type": "boolean"}, True, False),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 2], [2, 3]),
        ({"x-kubernetes-int-or-string": True, "anyOf": []}, 1, 2),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, {"round": 1}, {"round": 2}),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, {"key": True}, {"key": False}),
        (
            {
                "type": "object",
                "maxProperties": 2,
                "required": ["c"],
                "properties": {
                    "a": {"type": "string", "pattern": "^z$"},
                    "b": {"type": "integer"},
                    "c": {"type": "string"},
                    "d": {"type": "string"},
                },
            },
            {"c": "c-1", "b": 1},
            {"c": "c-2", "b": 2},
        ),
    ],
)
def test_samples_fit_their_schema_and_differ_where_they_can(schema, first, second):
    assert (sample(schema, 1), sample(schema, 2)) == (first, second)
