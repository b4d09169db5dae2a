"""The command line as it is installed: real processes, real files, exit codes."""

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crsyncer import __version__
from crsyncer.adapters.config import OPTIONS
from tests.delivery.command_line import CLI, crsyncer, environment, in_process, write_kubeconfig

HEAVY = [
    *("kubernetes", "aiohttp", "asyncio", "yaml", "sqlite3", "prometheus_client", "watchfiles"),
    *("cel_expr_python", "re2"),
]
COMMANDS = [
    *("run", "status", "explain", "diff", "pending", "holds", "resync", "doctor", "api", "crds", "mutate", "release"),
    *("fleet", "door", "demo", "sandbox"),
]
FLEET = ["crds", "doctor", "explain", "plan", "release", "render", "status"]
DOOR = ["assign", "config", "doctor", "drain", "manifests", "run", "split", "status"]
GROUPS = {"fleet": FLEET, "door": DOOR}


def test_help_imports_nothing_heavy():
    """In one process, the shortest first: what one of them imported would be there for all that follow."""
    commands = [
        [],
        *([name] for name in COMMANDS),
        *([group, name] for group, names in GROUPS.items() for name in names),
    ]
    script = (
        "import json, sys; from crsyncer.cli.main import main\n"
        "for command in json.loads(sys.argv[2]):\n"
        "    found = [name for name in sys.argv[1].split(',') if name in sys.modules]\n"
        "    assert (main([*command, '--help']), found) == (0, []), command\n"
        "print([name for name in sys.argv[1].split(',') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, ",".join(HEAVY), json.dumps(commands)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "[]\n")
    assert done.stdout.count("Usage: crsyncer") == len(commands)


def test_the_overview_names_every_command():
    done = in_process("--help")
    assert done.returncode == 0
    for name in COMMANDS:
        assert f"\n  {name} " in done.stdout


def test_the_help_of_run_names_every_flag_variable_and_key():
    text = " ".join(in_process("run", "--help").stdout.split())
    for key, option in OPTIONS.items():
        for name in (option.opts[0], *(option.envvar or ()), f"[key: {key}]"):
            assert name in text
    assert "--config FILE" in text
    assert "CRSYNCER_CONFIG" in text


def test_the_version_is_told():
    done = crsyncer("--version")
    assert (done.returncode, done.stdout) == (0, f"crsyncer {__version__}\n")


def test_without_a_command_the_help_is_shown_and_the_exit_code_is_usage():
    done = crsyncer()
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: crsyncer")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["walk"], "No such command 'walk' (see"),
        (["statsu"], "No such command 'statsu'; did you mean status?"),
        (["holds", "lst"], "Did you mean 'list'?"),
        (["--walk"], "No such option '--walk'"),
        (["run", "--robot-nme", "x"], "--robot-name"),
        (["run", "--listen"], "requires an argument"),
        (["run", "now"], "unexpected extra argument"),
        (["status", "--jsn"], "--json"),
        (["status", "--state-dir", "k"], "'--state-dir'"),
        (["run"], "--cloud-kubeconfig is required"),
        (["run", "--cloud-kubeconfig", "k", "--robot-kubeconfig", "k"], "two different clusters"),
        (["doctor", "--cloud-kubeconfig", "gone"], "cannot be read (No such file or directory)"),
        (["doctor", "--config", "broken.yaml"], "broken.yaml:2: not YAML"),
        (["demo", "--config", "broken.yaml"], "broken.yaml:2: not YAML"),
        (["demo", "--state-dir", "k"], "a directory"),
        (["sandbox", "up", "--config", "gone"], "cannot be read (No such file or directory)"),
        (["diff", "--cloud-kubeconfig", "k"], "--robot-kubeconfig is required here"),
        (["release", "goals"], "--robot"),
        (["release", "goals", "--robot", "r1"], "--cloud-kubeconfig is required"),
        (["release", "goals", "--robot", "r1", "--cloud-kubeconfig", "gone"], "cannot be read (No such file"),
        (["release", "goals", "--robot", "R1"], '--robot is "R1"; allowed: at most 57 lower-case letters'),
        (["release", "goals", "--robot", "r" * 58], "allowed: at most 57 lower-case letters"),
        (["release", "goals", "--robot", "r1", "--older-than", "1d"], '--older-than is "1d"; allowed: a duration'),
        (["release", "goals", "--robot", "r1", "--older-than", "-1h"], '--older-than is "-1h"; allowed: a duration'),
        (["run", "--cloud-kubeconfig", "gone"], "cannot be read (No such file or directory)"),
        (["run", "--cloud-kubeconfig", "k", "--cloud-context", "a\nb"], 'allowed: cloud, robot'),
        (["run", "--cloud-kubeconfig", "k", "--listen", "nine"], "HOST:PORT"),
        (["run", "--cloud-kubeconfig", "k", "--config", "broken.yaml"], "broken.yaml:2: not YAML"),
    ],
)  # fmt: skip
def test_a_wrong_word_is_one_line_and_exit_code_2_and_touches_nothing(tmp_path, arguments, said):
    write_kubeconfig(tmp_path / "k")
    (tmp_path / "broken.yaml").write_text("robotName: 'r\n")
    done = in_process(*arguments, cwd=tmp_path, CRSYNCER_STATE_DIR=str(tmp_path / "state"))
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("crsyncer: ")
    assert said in line
    assert not (tmp_path / "state").exists()


def test_a_port_that_is_taken_is_one_line_and_exit_code_2_and_touches_nothing(tmp_path):
    write_kubeconfig(tmp_path / "k")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        clusters = ("--cloud-kubeconfig", "k", "--robot-kubeconfig", "k", "--robot-context", "robot")
        done = crsyncer("run", *clusters, "--listen", listen, cwd=tmp_path, CRSYNCER_STATE_DIR=str(tmp_path / "state"))
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith(f"crsyncer: --listen {listen} cannot be used")
    assert not (tmp_path / "state").exists()


def status(state: Path, *more: str) -> tuple[int, dict]:
    done = crsyncer("status", "--json", "--state-dir", state, *more)
    return done.returncode, json.loads(done.stdout)


def test_the_status_of_nothing_is_complete_and_says_so(tmp_path):
    code, content = status(tmp_path / "never")
    assert code == 13
    assert content["schema"] == "crsyncer.status/v1"
    assert content["agent"] == {"state": "stopped", "pid": None, "since": None}
    assert content["reasons"][0]["code"] == "AgentStopped"
    assert not (tmp_path / "never").exists()
    text = crsyncer("status", "--state-dir", tmp_path / "never")
    assert text.returncode == 13
    assert text.stdout.startswith("STOPPED: the agent is not running")
    assert "\x1b" not in text.stdout


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_characters_that_a_terminal_does_not_have_end_no_command(tmp_path, flags):
    done = crsyncer("status", *flags, "--state-dir", tmp_path / "größe", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (13, "")
    if flags:
        assert json.loads(done.stdout)["store"]["path"] == str(tmp_path / "größe" / "state.db")


def test_the_status_of_a_broken_store_is_still_a_status(tmp_path):
    (tmp_path / "state.db").write_bytes(b"nonsense" * 1000)
    code, content = status(tmp_path)
    assert (code, content["store"]["state"]) == (13, "unreadable")
    assert [reason["code"] for reason in content["reasons"]] == ["AgentStopped", "StateDegraded"]


def test_the_state_directory_may_come_from_the_environment_or_the_file(tmp_path):
    (tmp_path / "c.yaml").write_text("stateDir: here\nother: wrong but not ours to judge\n")
    for variables in ({"CRSYNCER_CONFIG": "c.yaml"}, {"STATE_DIRECTORY": str(tmp_path / "here")}):
        done = crsyncer("status", "--json", cwd=tmp_path, **variables)
        assert json.loads(done.stdout)["store"]["path"] == str(tmp_path / "here" / "state.db")


class Running:
    """An agent whose two clusters are not there."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self.config = folder / "c.yaml"
        self.log = folder / "log"
        kubeconfig = write_kubeconfig(folder / "k")
        self.config.write_text("robotName: r1\n")
        self.arguments = [
            "run", "--config", str(self.config),
            "--cloud-kubeconfig", str(kubeconfig), "--robot-kubeconfig", str(kubeconfig),
            "--robot-context", "robot", "--state-dir", str(self.state), "--listen", "off", "--log-format", "json",
            "--log-level", "debug",
        ]  # fmt: skip
        with self.log.open("w") as log:
            self.process = subprocess.Popen([*CLI, *self.arguments], stderr=log, env=environment())

    def wait_for(self, look):
        deadline = time.monotonic() + 60
        while not look():
            assert time.monotonic() < deadline, self.log.read_text()
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.05)


@pytest.fixture
def agent(tmp_path):
    running = Running(tmp_path)
    try:
        running.wait_for((running.state / "crsyncer.sock").exists)
        yield running
    finally:
        running.process.kill()
        running.process.wait()


@pytest.mark.fault_48
def test_the_life_of_an_agent_as_its_operator_sees_it(agent):
    offline = {"RobotOffline", "CloudOffline"}
    agent.wait_for(lambda: offline <= {reason["code"] for reason in status(agent.state)[1]["reasons"]})
    code, content = status(agent.state)
    assert (code, content["health"]) == (10, "degraded")
    assert content["robot"] == "r1"
    assert content["agent"]["pid"] == agent.process.pid

    second = crsyncer(*agent.arguments)
    assert second.returncode == 1
    assert f"process {agent.process.pid}" in second.stderr
    assert [line.split(":")[0] for line in second.stderr.splitlines() if not line.startswith("{")] == [
        "crsyncer",
        "hint",
    ]

    for edit in ("listen: nonsense", "robotname: typo"):
        agent.config.write_text(f"robotName: r2\n{edit}\n")
        agent.process.send_signal(signal.SIGHUP)
        agent.wait_for(lambda: f"c.yaml:2: {edit[:6]}" in str(status(agent.state)[1]["reasons"]))  # noqa: B023
    assert status(agent.state)[1]["robot"] == "r1"

    agent.process.terminate()
    assert agent.process.wait(60) == 0
    code, content = status(agent.state)
    assert (code, content["robot"], content["agent"]["state"]) == (13, "r1", "stopped")

    log = agent.log.read_text()
    assert all(json.loads(line)["level"] for line in log.splitlines())
    assert "s3cret" not in log


@pytest.mark.parametrize("file", ["lock", "state.db", "crsyncer.sock"])
def test_an_agent_that_is_told_to_stop_while_it_starts_exits_0(tmp_path, file):
    running = Running(tmp_path)
    running.wait_for((running.state / file).exists)
    running.process.terminate()
    assert running.process.wait(30) == 0, running.log.read_text()


def test_watching_a_status_ends_cleanly_with_ctrl_c(tmp_path):
    # Whoever runs the tests in the background has them ignore SIGINT, and every child inherits that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    watching = subprocess.Popen(
        [*CLI, "status", "--watch", "--json", "--state-dir", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    signal.signal(signal.SIGINT, before)
    assert watching.stdout is not None
    lines = [watching.stdout.readline() for _ in range(2)]
    watching.send_signal(signal.SIGINT)
    lines += watching.communicate(timeout=60)[0].splitlines()  # it goes on until the signal is there
    assert watching.returncode == 0
    assert {json.loads(line)["agent"]["state"] for line in lines} == {"stopped"}
