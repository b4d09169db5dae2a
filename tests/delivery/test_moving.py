"""MOVING.md: its files are taken, and the real engine takes copies over and asks a gateway as the page says."""

import math
import re
from pathlib import Path

import click
import pytest
import yaml

from crsyncer.adapters.config import OPTIONS, load
from crsyncer.adapters.kubeconfig import read_kubeconfig
from crsyncer.cli.doctor import render
from crsyncer.console.set_up.doctor_report import Check, Mark, document
from crsyncer.console.set_up.moving import Robot, examine_move
from crsyncer.console.set_up.moving_report import (
    Predecessor,
    forecast,
    judge_cost,
    judge_flags,
    judge_pairs,
    judge_predecessor,
    judge_reading,
)
from crsyncer.core.content.annotations import ROBOT_LABEL, SPEC_SOURCE
from crsyncer.core.kinds.namespaces import EVERYWHERE, same_names
from crsyncer.core.model import Side
from crsyncer.core.requests.calls import Call
from crsyncer.ports import Reply, Send
from tests.console.moving_kit import deployment, named, pairs
from tests.core.builders import crd
from tests.delivery.command_line import crsyncer, write_kubeconfig
from tests.model.simulation.life import ROBOT, AgentSettings
from tests.model.simulation.scene import copy, holds, original, scene
from tests.model.simulation.weather import Rule
from tests.model.simulation.world import World

FILE = Path(__file__).parents[2] / "MOVING.md"
PAGE = FILE.read_text()
[COMMAND] = re.findall("^crsyncer (cloud-kubeconfig .*)$", PAGE, re.MULTILINE)
KUBECONFIG, CONFIGURATION = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
MINE = {ROBOT_LABEL: ROBOT}
FILTERED = {"goals": {"filtered": "true"}}
NOTE = {"cr-syncer.cloudrobotics.com/remote-resource-version": "5"}
PLACES = {
    "GROUP": "lab.example.com",
    "VERSION": "v1",
    "PLURAL": "goals",
    "ROBOT": ROBOT,
    "NAME": "(?:goals.lab.example.com|a|b)",
}


def filled(text: str) -> str:
    """A pattern, or a text, with the names of the world in it."""
    return re.sub("|".join(PLACES), lambda place: PLACES[place[0]], text)


def table(start: str) -> list[tuple[str, set[str]]]:
    """Requests that the page lists below a sentence, as patterns, each with the parameters that it may have."""
    rows = PAGE.split(start)[1].split("\n\n")[1].splitlines()[2:]
    return [
        (filled(request), set(re.findall("`(.*?)`", parameters)))
        for asked, parameters in (row.strip("|").split("|")[:2] for row in rows)
        for request in re.findall("`(.*?)`", asked)
    ]


ENOUGH = table("With filtered kinds these requests")
WELCOME = table("crsyncer also asks for these")


def senders(world: World) -> dict[Side, Send]:
    """Both clusters as an operator's command reaches them."""

    def send(side: Side) -> Send:
        async def request(call: Call) -> Reply:
            return world.servers[side].answer(call)

        return request

    return {side: send(side) for side in Side}


def is_enough(call: Call) -> bool:
    """Whether a gateway that knows only what the page calls enough, and no PATCH, lets a request through."""
    return call.method != "PATCH" and any(re.fullmatch(pattern, f"{call.method} {call.path}") for pattern, _ in ENOUGH)


def test_its_kubeconfig_and_its_configuration_are_taken_and_every_key_exists(tmp_path: Path):
    file, token = tmp_path / "cloud.kubeconfig", tmp_path / "token"
    token.write_text("s3cret-t0ken")
    done = crsyncer(*COMMAND.replace("/etc/crsyncer/token", str(token)).split(), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert yaml.safe_load(file.read_text()) == yaml.safe_load(KUBECONFIG.replace("/etc/crsyncer/token", str(token)))
    assert read_kubeconfig(file).server.endswith("/apis/core.kubernetes")
    (tmp_path / "crsyncer.yaml").write_text(CONFIGURATION)
    robot = write_kubeconfig(tmp_path / "robot.kubeconfig")
    settings = load({"config": tmp_path / "crsyncer.yaml", "robot_kubeconfig": robot, "cloud_kubeconfig": file}, {})
    assert (settings.robot_name, settings.namespaces) == ("r1", ("default",))
    assert yaml.safe_load(CONFIGURATION)["cloud"]["kubeconfig"] == file.name
    keys = [key for row in re.findall(r"^\| `--.*?\|(.*)\|$", PAGE, re.MULTILINE) for key in re.findall("`(.*?)`", row)]
    assert {key for key in keys if not key[0].isdigit()} <= set(OPTIONS)


def test_the_page_shows_what_the_doctor_prints(request: pytest.FixtureRequest):
    found = pairs(
        cloud=[named("dock"), named("kitchen"), named("lobby")],
        robot=[named("dock"), named("kitchen"), named("hall"), named("note", "elsewhere")],
    )
    about = Predecessor([deployment("--remote-server=www.example.com", "--robot-name=robot-1")], [])
    checks = [
        judge_predecessor(about, agent_runs=False),
        *judge_flags(about, robot=ROBOT, server="https://www.example.com/apis/core.kubernetes"),
        *judge_reading(crd({SPEC_SOURCE: "cloud"}), ROBOT),
        *judge_pairs(found, forecast(found), namespaces=()),
        judge_cost({"goals": (found, forecast(found))}),
    ]
    screen = "\n".join(click.unstyle(line) for line in render(document(checks, pid=None)))
    mark = "<!-- screen: doctor -->\n\n"
    now = re.sub(f"{mark}(```text\n.*?```\n\n)?", f"{mark}```text\n{screen}\n```\n\n", PAGE, flags=re.DOTALL)
    if request.config.getoption("--rewrite"):
        FILE.write_text(now)
    assert FILE.read_text() == now, "out of date: run this test with --rewrite"


def test_copies_of_the_predecessor_are_taken_over_with_one_write_each_and_nothing_else():
    with scene(goals={"filtered": "true"}) as world:
        for name in "ab":
            world.cloud.create(name, spec={"x": 1}, labels=MINE, annotations=NOTE)
            world.robot.create(name, spec={"x": 1}, labels=MINE)
        for plane in (world.cloud, world.robot):
            plane.set_status("a", {"phase": "DONE"})
        world.cloud.set_status("b", {"phase": "WAITING"})  # its copy has no status yet
        before = {name: (copy(world, name)["metadata"]["uid"], original(world, name)) for name in "ab"}
        world.start()
        world.settle()
        world.pass_time(7 * 3600)  # an audit is among it
        assert sorted(map(str, world.journal.asked(verb="write"))) == [
            f"robot: update /apis/lab.example.com/v1/namespaces/default/goals/{name} (200)" for name in "ab"
        ]
        assert {name: (copy(world, name)["metadata"]["uid"], original(world, name)) for name in "ab"} == before
        assert not NOTE.keys() & copy(world)["metadata"]["annotations"].keys()


def test_its_copies_in_the_cloud_are_made_again_with_their_status_once_they_are_deleted():
    with scene(goals={"source": "robot"}) as world:
        for plane in (world.robot, world.cloud):
            plane.create("a", spec={"x": 1})
            plane.set_status("a", {"seen": True})
        world.start()
        world.settle()
        assert holds(world) == [("NameTaken", 1)]
        world.cloud.delete("a")
        world.settle()
        assert holds(world) == []
        assert original(world)["status"] == {"seen": True}


def test_what_the_doctor_foretells_is_what_the_agent_does():
    with scene(goals={"filtered": "true"}, tasks={"orphans": "keep"}, visits={"source": "robot"}) as world:
        for name in ("both", "cloud", "taken"):
            world.cloud.create(name, spec={"x": 1}, labels=MINE)
        world.robot.create("both", spec={"x": 1}, labels=MINE)
        world.robot.make_namespace("kitchen")
        world.robot.create("orphan", spec={"x": 1}, labels=MINE, namespace="kitchen")
        world.robot.create("taken", spec={"x": 1})
        world.robot.create("local", kind="tasks")
        for plane in (world.robot, world.cloud):
            plane.create("old", kind="visits")
        told = world.clock.run(examine_move(senders(world), Robot(ROBOT, EVERYWHERE, "", agent_runs=False), seconds=60))
        assert world.writes == []
        said = {(check.resource.split(".")[0], check.name): check.message for check in told if check.resource}
        assert "adopts 1 in place" in str(told)
        assert "creates 1: default/cloud" in str(told)
        assert "NameTaken: default/taken" in said["goals", "copies"]
        assert (
            "deletes 1 object outside of default that the cloud does not have: kitchen/orphan"
            in said["goals", "orphans"]
        )
        assert "keeps default/local" in said["tasks", "orphans"]
        assert "NameTaken: default/old" in said["visits", "copies"]
        world.start()
        world.settle()
        assert sorted(map(str, (write for write in world.writes if write.before != write.after))) == [
            "robot: create cloud (201)",
            "robot: delete orphan (200)",
            "robot: update both (200)",
        ]
        assert sorted(holds(world)) == [("NameTaken", 1), ("NameTaken", 1)]
        cost = next(check.message for check in told if check.name == "cost")
        assert "4 objects of the cloud and 4 of the robot, and writes 3 times on the robot and 0 times in" in cost


def test_the_doctor_needs_no_more_of_a_gateway_and_says_what_to_do_where_it_asked_for_more():
    with World(kinds=FILTERED) as world:
        world.cloud.create("a", spec={"x": 1}, labels=MINE)
        reached = senders(world)

        async def gateway(call: Call) -> Reply:
            return await reached[Side.CLOUD](call) if is_enough(call) else Reply(403, {}, "not for robots")

        def told(*namespaces: str) -> list[Check]:
            about = Robot(ROBOT, same_names(namespaces), "", agent_runs=False)
            return world.clock.run(examine_move({**reached, Side.CLOUD: gateway}, about, seconds=60))

        [copies] = [check for check in told("default") if check.name == "copies"]
        assert (copies.state, copies.message) == (Mark.OK, "crsyncer creates 1: default/a")
        [copies] = [check for check in told() if check.name == "copies"]
        assert copies.state is Mark.UNKNOWN
        assert copies.hint == "a gateway may let only one namespace through: --namespace default"


def test_a_gateway_is_asked_for_what_the_page_lists_and_needs_to_let_no_more_through():
    with World(kinds=FILTERED, settings=AgentSettings(namespaces=same_names(("default",)))) as world:
        refused = Rule(lambda call: not is_enough(call), Reply(403, {}, "not for robots"), math.inf)
        world.weather[world.cloud.side].add(refused)
        world.cloud.create("a", spec={"x": 1}, labels=MINE)
        world.start()
        world.settle()
        world.robot.set_status("a", {"n": 1})
        world.settle()
        world.cut("cloud")
        world.pass_time(60)
        world.mend("cloud")
        world.cloud.set("a", spec={"x": 2})
        world.settle()
        world.pass_time(7 * 3600)
        assert (copy(world)["spec"], original(world)["status"]) == ({"x": 2}, {"n": 1})
        world.cloud.delete("a")
        world.settle()
        assert (world.robot.objects(), world.status()["health"]) == ({}, "healthy")
        asked = [(f"{each.call.method} {each.call.path}", each.query) for each in world.journal.asked("cloud")]
        known = ENOUGH + WELCOME
        used = set()
        for request, query in asked:
            [(pattern, allowed)] = [each for each in known if re.fullmatch(each[0], request)]
            used.add(pattern)
            if pattern == ENOUGH[0][0]:
                parameters = {key if key != "labelSelector" else f"{key}={value}" for key, value in query.items()}
                assert parameters <= {filled(each) for each in allowed}
                assert "labelSelector" in query
        assert used == {pattern for pattern, _ in known}
        assert world.troubles == []
