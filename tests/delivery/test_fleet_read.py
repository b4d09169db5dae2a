"""The fleet's commands that read the cloud: what they say where they cannot, and how their documents look as text."""

import json
from dataclasses import replace

import pytest

from crsyncer.cli.fleet.fleet_explain import _text as explained
from crsyncer.cli.fleet.fleet_plan import _lines as plan_lines
from crsyncer.cli.fleet.fleet_release import _preview as preview
from crsyncer.cli.fleet.fleet_screen import exit_code, render
from crsyncer.core.model import Json
from crsyncer.fleet.domain.shown.release_document import HeldHere
from tests.delivery.command_line import in_process as crsyncer
from tests.delivery.command_line import write_kubeconfig

READING = [("status",), ("plan",), ("explain", "nav", "--robot", "r1"), ("release", "--all"), ("doctor",)]


@pytest.mark.parametrize("words", READING)
def test_bad_settings_are_one_line_and_exit_code_2(tmp_path, words):
    for flags, said in [
        ((), "--cloud-kubeconfig is required"),
        (("--cloud-kubeconfig", tmp_path / "none"), "--cloud-kubeconfig"),
        (("--robots", "robots"), "'robots' is not RESOURCE.GROUP"),
        (("--config", tmp_path / "none.yaml"), "none.yaml"),
    ]:
        done = crsyncer("fleet", *words, *flags)
        assert (done.returncode, done.stdout) == (2, ""), done.stdout
        [line] = done.stderr.splitlines()
        assert said in line


@pytest.mark.parametrize(("words", "code"), [(READING[1], 2), (READING[2], 1), (READING[3], 1)])
def test_a_cloud_that_does_not_answer_is_an_error(tmp_path, words, code):
    done = crsyncer("fleet", *words, "--cloud-kubeconfig", write_kubeconfig(tmp_path / "cloud.yaml"))
    assert (done.returncode, done.stdout) == (code, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("crsyncer: ")


def test_a_cloud_that_does_not_answer_is_offline_to_status(tmp_path):
    words = ("fleet", "status", "--cloud-kubeconfig", write_kubeconfig(tmp_path / "cloud.yaml"))
    done = crsyncer(*words, "--json")
    assert done.returncode == 11, done.stderr
    content = json.loads(done.stdout)
    assert (content["health"], content["controller"]["state"], content["robots"]["all"]) == ("offline", None, None)
    assert crsyncer(*words).stdout.startswith("OFFLINE: ")


def test_a_cloud_that_does_not_answer_is_offline_to_doctor(tmp_path):
    kubeconfig = write_kubeconfig(tmp_path / "cloud.yaml")
    kubeconfig.chmod(0o600)
    words = ("fleet", "doctor", "--cloud-kubeconfig", kubeconfig)
    done = crsyncer(*words, "--json")
    assert done.returncode == 11, done.stderr
    content = json.loads(done.stdout)
    checks = {each["name"]: each["state"] for each in content["checks"]}
    assert checks == {"login": "ok", "server": "fail"}
    assert content["agent"] == {"state": None, "pid": None}
    assert crsyncer(*words).stdout.startswith("OFFLINE: ")


@pytest.mark.parametrize("words", [(), ("ab12", "--all")])
def test_a_release_needs_ids_or_all(words):
    done = crsyncer("fleet", "release", *words)
    assert (done.returncode, "or --all is needed" in done.stderr) == (2, True)


@pytest.mark.parametrize("name", ["a/b/c", "a/", "/"])
def test_a_name_that_is_none_is_told(tmp_path, name):
    done = crsyncer("fleet", "status", name, "--cloud-kubeconfig", write_kubeconfig(tmp_path / "cloud.yaml"))
    assert done.returncode == 2
    assert "is not [NAMESPACE/]PLACEMENT" in done.stderr


def document(**fields: object) -> Json:
    content: Json = {
        "time": "2027-01-15T08:00:00Z",
        "controller": {"state": "running", "holder": "pod-a", "renewed": "2027-01-15T07:59:55Z"},
        "health": "healthy",
        "reasons": [],
        "robots": {"all": 3, "online": 1, "offline": 1, "unreported": 1},
        "placements": [],
        "robot": None,
    }
    return content | fields


def row(name: str = "nav", **fields: object) -> Json:
    found: Json = {"namespace": "site", "name": name, "created": "2027-01-15T07:00:00Z", "counts": {"selected": 3}}
    return found | {"errors": [], "errorCount": 0, "holds": []} | fields


def reasons(number: int) -> list[Json]:
    return [{"code": "Held", "level": "attention", "message": f"m{each}", "hint": f"h{each}"} for each in range(number)]


def test_what_needs_a_human_comes_before_the_counts():
    text = render(document(health="attention", reasons=reasons(2), placements=[row(holds=[{"id": "x"}])]))
    assert text.startswith("ATTENTION: action needed: m0 (and 1 more).")
    assert text.index("1. m0") < text.index("   -> h0") < text.index("NAMESPACE  NAME  SELECTED  READY")
    assert [line.split() for line in text.splitlines() if line.startswith("site")] == [
        ["site", "nav", "3", "-", "-", "-", "-", "-", "yes", "1", "h"]
    ]
    assert "controller  running pod-a, its Lease renewed 5 s ago" in text
    assert "robots      3: 1 online, 1 offline, 1 unreported" in text


def test_long_lists_are_cut_and_say_so():
    errors = [{"robot": f"r{each}", "source": "", "reason": "UnknownRobot", "message": "m"} for each in range(20)]
    rows = [row(f"p{each}") for each in range(50)] + [row(errors=errors, errorCount=500)]
    text = render(document(reasons=reasons(9), placements=rows, health="degraded"))
    assert "and 3 more: crsyncer fleet status -o wide" in text
    assert "and 11 more: crsyncer fleet status -o wide" in text
    assert "site/nav: r5: UnknownRobot: m\nand 494 more" in text
    assert text.startswith("DEGRADED: m0 (and 8 more).")
    wide = render(document(reasons=reasons(9), placements=rows), wide=True)
    assert wide.count("\nsite  ") == 51
    assert "UNREPORTED" in wide
    assert "and 480 more" in wide


def test_a_robot_is_shown_with_its_placements():
    placed = {"namespace": "site", "name": "nav", "state": None, "since": None, "message": None}
    known = {**placed, "state": "Blocked", "since": "2027-01-15T07:59:00Z", "message": "NameTaken\x1b[2J"}
    robot = {"name": "r1", "shard": "root", "state": "online", "placements": [known, placed]}
    robot |= {"lastReport": "2027-01-15T07:59:00Z"}
    text = render(document(robot=robot))
    assert "ROBOT r1: online, last report 1 min ago" in text
    assert "site/nav   Blocked  1 min  NameTaken [2J" in text
    assert "the controller has not decided about it yet" in text
    silent = {**robot, "state": None, "lastReport": None, "placements": []}
    gone = render(document(robot={**silent, "shard": None}))
    assert gone.endswith("ROBOT r1: there is no Robot of this name\n\nno placement selects it".replace("\n\n", "\n"))
    unknown = render(document(robot={**silent, "shard": "b"}, robots={**document()["robots"], "all": 4}))
    assert "ROBOT r1: not known (shard b)" in unknown
    assert "robots      4: 1 online, 1 offline, 1 unreported, 1 not known" in unknown


def test_a_stopped_controller_comes_before_health():
    stopped = document(controller={"state": "stopped", "holder": None, "renewed": None}, reasons=reasons(2))
    assert exit_code(stopped | {"health": "attention"}) == 13
    assert render(stopped).startswith("STOPPED: no controller runs, so nothing is placed, changed or removed; 1 other")
    assert [exit_code(document(health=each)) for each in ("healthy", "degraded", "offline", "attention")] == [
        *(0, 10, 11, 12)
    ]


def replica(**fields: object) -> Json:
    found: Json = {"resource": "goals", "shard": "root", "source": "site/dock", "sourceId": "a" * 24}
    found |= {
        "namespace": "robot-r1",
        "name": "dock",
        "uid": "u1",
        "governedBy": "site/nav",
        "stamp": "s1",
        "written": "s1",
        "acked": True,
    }
    return found | {"verdict": "current", "reason": "Current", "rule": "F3.4", "message": "fine\x1b[2J"} | fields


def test_an_explanation_names_verdict_reason_and_rule():
    content: Json = {"placement": {"namespace": "site", "name": "nav", "uid": "u"}, "robot": "r1", "selected": True}
    content |= {"robotKnown": True, "state": "Ready", "replicas": [replica()]}
    assert explained(content).splitlines() == [
        "RobotPlacement site/nav selects robot r1, which is Ready.",
        "",
        "ok  goals robot-r1/dock: current: Current [F3.4]",
        "    fine [2J",
        "    of site/dock, applied by the robot",
        "",
        "1 replica: 1 current",
    ]
    other = replica(governedBy="site/old", acked=False, verdict="due", uid=None, stamp=None, written=None)
    wide = explained(content | {"replicas": [other]}, wide=True)
    assert "    of site/dock, governed by site/old, not applied by the robot yet\n" in wide
    assert "    uid -, must be -, is -\n" in wide
    assert f"    SOURCEID {'a' * 24}\n" in wide
    nothing = explained(content | {"replicas": [], "state": None, "selected": False})
    assert nothing == "RobotPlacement site/nav does not select robot r1.\nThere are no replicas: none is left there."
    assert explained(content | {"replicas": []}).endswith("it selects no source that it may place.")


def test_a_plan_has_a_line_for_each_write_and_counts_them():
    write: Json = {"verb": "create", "resource": "goals", "shard": "root", "namespace": "robot-r1"}
    write |= {"name": "dock", "robot": "r1"}
    write |= {"source": "site/dock", "placement": "site/nav", "when": "now"}
    held = write | {"verb": "delete", "placement": None, "when": "held"}
    blocked = {"robot": "r1", "source": "site/map", "reason": "RenderFailed", "message": "no property x"}
    counts = {"create": 1, "update": 0, "delete": 1}
    assert plan_lines({"writes": [write, held], "counts": counts, "blocked": [blocked]}) == [
        "create goals robot-r1/dock: of site/dock, by site/nav",
        "delete goals robot-r1/dock: of site/dock (held)",
        "blocked site/map for r1: RenderFailed: no property x",
        "1 create, 0 updates, 1 delete; 1 held, 1 blocked",
    ]


def test_a_release_shows_what_goes():
    many = tuple(f"goals/robot-r{number}/dock" for number in range(60))
    hold = HeldHere("ab12", "RobotsLost", "m", 60, "site", "nav", "u", names=many)
    lines = preview([hold, replace(hold, id="cd34", decision="nav-0", names=None)])
    assert lines[0] == "ab12: 60 replicas of RobotPlacement site/nav will be removed: m"
    assert lines[1] == "    goals/robot-r0/dock"
    assert lines[51:] == [
        "    and 10 more: -o json shows all",
        "cd34: 60 replicas of RobotPlacement site/nav (gone) will be removed: m",
        "    they cannot be named: the status may be behind, or not everything can be listed",
    ]
