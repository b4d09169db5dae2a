"""`crsyncer door run` beside HAProxy, before two API servers: robots move, keys change, programs are killed."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from crsyncer.adapters.retries import until
from crsyncer.core.content.annotations import SHARD_LABEL
from crsyncer.sandbox.resource import CRD
from tests import planes
from tests.door.conftest import ROBOTS_PATH, Audited, robot
from tests.door.kept_shards import PATIENCE, Shards
from tests.door.open_door import Kept, OpenDoor
from tests.door.tokens import Forger, new_key
from tests.system.confined import at
from tests.system.conftest import FLEET_CRDS


@pytest.fixture(scope="module")
def running(audited: Audited, shard_b: Audited, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shards]:
    shards = Shards(tmp_path_factory.mktemp("kept"), audited, shard_b)
    try:
        yield shards
    finally:
        shards.close()


@pytest.fixture
def shards(running: Shards) -> Shards:
    """All robots at the root, everything up."""
    running.settle()
    return running


def test_G4_3_a_robot_that_moves_has_its_streams_ended_and_lands_at_its_new_shard(shards: Shards):
    watch, other = shards.watch("r1", "root"), shards.watch("r2", "root")
    assert until(lambda: shards.kept.streams("root") == ["r1", "r2"], seconds=PATIENCE)
    shards.place("r1", "b")
    assert watch.ends()
    shards.wait_reaches("r1", "b")
    assert until(lambda: shards.kept.streams("root") == ["r2"], seconds=PATIENCE)
    shards.wait_map("robot-r1 b\nrobot-r2 root\nrobot-r3 root\n")
    moved = shards.watch("r1", "b")
    assert until(lambda: shards.kept.streams("b") == ["r1"], seconds=PATIENCE)
    name = shards.b.cloud.create("goals", "r1")["metadata"]["name"]
    assert moved.sees(f'"name":"{name}"')
    name = shards.root.cloud.create("goals", "r2")["metadata"]["name"]
    assert other.sees(f'"name":"{name}"')
    _, metrics = shards.kept.page("/metrics")
    assert 'crsyncer_door_robots{shard="b"} 1.0' in metrics
    # A stream that does not end at once is ended again.
    assert re.search(r"^crsyncer_door_ended_streams_total [1-9]", metrics, re.MULTILINE)
    for each in (watch, other, moved):
        each.close()


def test_G4_1_G4_2_a_robot_whose_shard_nobody_knows_or_that_is_gone_gets_503_and_a_status(shards: Shards):
    watch = shards.watch("r3", "root")
    shards.place("r3", "nowhere")
    assert watch.ends()
    told = shards.door.ask(at("goals", "robot-r3"), shards.token("r3", "root"))
    assert (told.status, "retry-after: 10" in told.text.lower(), '"kind": "Status"' in told.text) == (503, True, True)
    shards.wait_reasons("RobotNotRouted")
    shards.place("r3", "root")
    shards.wait_reaches("r3", "root")
    gone = shards.watch("r3", "root")
    assert shards.root.cloud.admin.ask("DELETE", f"{ROBOTS_PATH}/r3").status == 200
    assert gone.ends()
    assert until(lambda: not shards.reaches("r3", "root"), seconds=PATIENCE)
    shards.wait_map("robot-r1 root\nrobot-r2 root\n")


def test_G4_3_a_watch_survives_a_reload_and_a_move_ends_it_in_the_old_worker_too(shards: Shards):
    stays, moves = shards.watch("r1", "root"), shards.watch("r2", "root")
    shards.door.renew_certificate()
    assert until(lambda: len(workers(shards.door)) > 1, seconds=PATIENCE), shards.kept.process.tail(20)
    name = shards.root.cloud.create("goals", "r1")["metadata"]["name"]
    assert stays.sees(f'"name":"{name}"')
    assert until(lambda: shards.kept.streams("root") == ["r1", "r2"], seconds=PATIENCE)
    shards.place("r2", "b")
    assert moves.ends()
    shards.wait_reaches("r2", "b")
    name = shards.root.cloud.create("goals", "r1")["metadata"]["name"]
    assert stays.sees(f'"name":"{name}"')
    stays.close()
    assert until(lambda: len(workers(shards.door)) == 1, seconds=PATIENCE)


def test_G5_1_a_shard_that_is_killed_or_frozen_loses_its_streams_in_every_worker_and_doctor_names_it(
    shards: Shards,
):
    shards.place("r1", "b")
    shards.wait_reaches("r1", "b")
    old = shards.watch("r1", "b")
    shards.door.renew_certificate()
    assert until(lambda: len(workers(shards.door)) > 1, seconds=PATIENCE), shards.kept.process.tail(20)
    new = shards.watch("r1", "b")
    planes.pause(shards.b.plane)
    assert new.ends()
    assert old.ends()
    told = shards.door.ask(at("goals", "robot-r1"), shards.token("r1", "b"))
    assert told.status == 503, told
    assert until(lambda: "ShardDown" in (shards.kept.reasons() or ()), seconds=PATIENCE)
    content = shards.said("doctor", code=10)
    failed = {(each["name"], each["resource"]) for each in content["checks"] if each["state"] == "fail"}
    assert failed == {("keys", "b"), ("shard", "b")}
    shards.wait_reaches("r2", "root")
    planes.resume(shards.b.plane)
    shards.wait_reaches("r1", "b")
    killed = shards.watch("r1", "b")
    shards.b.plane.stop("apiserver", graceful=False)
    assert killed.ends()
    shards.b.plane.start()
    shards.wait_reaches("r1", "b")


def test_G4_1_while_the_root_is_away_the_last_map_holds_also_for_a_restart(shards: Shards):
    shards.place("r1", "b")
    shards.wait_reaches("r1", "b")
    planes.pause(shards.root.plane)
    shards.wait_reaches("r1", "b")
    shards.kept.stop()
    shards.door.stop()
    shards.door.start()
    shards.kept = Kept(shards.door)
    shards.kept.wait_ready()
    shards.wait_reaches("r1", "b")
    assert until(lambda: "RootAway" in (shards.kept.reasons() or ()), seconds=PATIENCE), shards.kept.page("/status")
    shards.wait_map("robot-r1 b\nrobot-r2 root\nrobot-r3 root\n")
    planes.resume(shards.root.plane)
    shards.wait_reaches("r2", "root")
    shards.wait_reasons()


def test_G4_1_a_haproxy_that_is_killed_and_started_with_an_old_map_gets_the_present_one(shards: Shards):
    shards.place("r1", "b")
    shards.wait_reaches("r1", "b")
    assert shards.door.haproxy is not None
    for pid in workers(shards.door):
        os.kill(pid, signal.SIGKILL)
    shards.door.haproxy.stop(graceful=False)
    assert until(lambda: shards.kept.page("/readyz")[0] == 503, seconds=PATIENCE)
    assert until(lambda: "HAProxySilent" in (shards.kept.reasons() or ()), seconds=PATIENCE)
    file = shards.door.directory / "robots.map"
    file.write_text("robot-r1 root\nrobot-r9 b\ngarbage\n")
    shards.door.start()
    shards.kept.wait_ready()
    shards.wait_reaches("r1", "b")
    shards.wait_map("robot-r1 b\nrobot-r2 root\nrobot-r3 root\n")


def test_G2_1_a_new_key_is_taken_up_after_a_token_was_refused_and_old_streams_go_on(shards: Shards, tmp_path: Path):
    stays = shards.watch("r2", "root")
    plane = shards.b.plane
    shards.place("r1", "b")
    shards.wait_reaches("r1", "b")
    # Another key signs from now on; the plane publishes both.
    kept, (own, other) = plane.flags, (plane.key_file, new_key(tmp_path / "other.key"))
    plane.flags = (
        *kept,
        f"--service-account-key-file={own}",
        f"--service-account-key-file={other}",
        f"--service-account-signing-key-file={other}",
    )
    plane.restart("apiserver")
    fresh = shards.b.cloud.caller("robot-r1", "crsyncer").token
    assert Forger(fresh, own, other).head != Forger(shards.token("r1", "b"), own, other).head
    assert until(lambda: shards.door.ask(at("goals", "robot-r1"), fresh).status == 200, seconds=PATIENCE)
    shards.wait_reaches("r1", "b")
    name = shards.root.cloud.create("goals", "r2")["metadata"]["name"]
    assert stays.sees(f'"name":"{name}"')
    stays.close()


def test_F5_2_while_the_kind_of_robots_is_gone_the_last_map_holds_and_its_robots_are_served(shards: Shards):
    admin, crd = shards.root.cloud.admin, FLEET_CRDS["inventory"]
    path, last = f"{CRD.path()}/{crd['metadata']['name']}", shards.map
    shards.wait_reasons()
    watch = shards.watch("r1", "root")
    assert admin.ask("DELETE", path).status == 200
    assert until(lambda: set(shards.kept.reasons() or ()) == {"RobotsLost", "RootAway"}, seconds=PATIENCE)
    assert shards.map == last
    shards.wait_reaches("r2", "root")
    name = shards.root.cloud.create("goals", "r1")["metadata"]["name"]
    assert watch.sees(f'"name":"{name}"')
    watch.close()
    assert until(lambda: admin.ask("POST", CRD.path(), crd).status == 201, seconds=PATIENCE)
    assert until(lambda: admin.ask("POST", ROBOTS_PATH, robot("r1")).status == 201, seconds=PATIENCE)
    assert until(lambda: shards.kept.reasons() == ["RobotsLost"], seconds=PATIENCE), shards.kept.page("/status")
    assert shards.map == last
    shards.settle()
    shards.wait_reasons()


def test_G4_1_a_bad_certificate_changes_nothing_and_is_told(shards: Shards):
    """Garbage; one that has expired; one that another key belongs to."""
    good = shards.door.certificate.read_text()
    shards.door.renew_certificate(days=-1)
    expired = shards.door.certificate.read_text()
    key = expired.index("-----BEGIN PRIVATE KEY")
    for bad in ("garbage", expired, good[: good.index("-----BEGIN PRIVATE KEY")] + expired[key:]):
        shards.door.certificate.write_text(bad)
        shards.wait_reasons("BadFile")
        shards.wait_reaches("r1", "root")
        assert (shards.door.directory / "certificate.pem").read_text() == good
        shards.door.certificate.write_text(good)
        shards.wait_reasons()


def test_a_certificate_that_expires_while_it_is_used_is_told_and_stays(shards: Shards):
    shards.door.renew_certificate_for(seconds=10)
    used = shards.door.directory / "certificate.pem"
    assert until(lambda: used.read_text() == shards.door.certificate.read_text(), seconds=PATIENCE)
    shards.wait_reasons("BadFile")
    assert used.read_text() == shards.door.certificate.read_text()
    shards.door.renew_certificate()
    shards.wait_reasons()
    shards.wait_reaches("r1", "root")


def test_the_upkeep_starts_before_haproxy_and_takes_up_settings_that_can_be_used(shards: Shards, tmp_path: Path):
    door = OpenDoor(tmp_path / "second", shards.root.door_kubeconfig(tmp_path / "root.kubeconfig"))
    shards.b.door_kubeconfig(tmp_path / "b.kubeconfig")
    settings = tmp_path / "door.yaml"
    settings.write_text("{}")
    kept = Kept(door, "--config", str(settings))
    try:
        assert until(lambda: kept.page("/configured")[0] == 200, seconds=PATIENCE), kept.process.tail(20)
        assert kept.page("/readyz")[0] == 503
        door.start()
        kept.wait_ready()
        token = shards.token("r2", "root")
        assert until(lambda: door.ask(at("goals", "robot-r2"), token).status == 200, seconds=PATIENCE)
        settings.write_text("shards: {b: nowhere}")
        assert until(lambda: kept.reasons() == ["BadFile"], seconds=PATIENCE), kept.page("/status")
        assert door.ask(at("goals", "robot-r2"), token).status == 200
        settings.write_text("shards: {b: b.kubeconfig}")
        assert until(lambda: kept.reasons() == [], seconds=PATIENCE), kept.page("/status")
        shards.place("r1", "b")
        token = shards.token("r1", "b")
        assert until(lambda: door.ask(at("goals", "robot-r1"), token).status == 200, seconds=PATIENCE)
    finally:
        kept.stop()
        door.stop()


def test_files_that_door_config_wrote_meanwhile_are_loaded(shards: Shards):
    before = workers(shards.door)
    (shards.door.directory / "haproxy.cfg").touch()
    assert until(lambda: set(workers(shards.door)) - set(before), seconds=PATIENCE), shards.kept.process.tail(20)
    shards.wait_reaches("r1", "root")


def test_a_configuration_that_somebody_damaged_is_put_right_before_haproxy_loads_it(shards: Shards):
    file, before = shards.door.directory / "haproxy.cfg", workers(shards.door)
    good = file.read_text()
    file.write_text("garbage")
    assert until(lambda: file.read_text() == good, seconds=PATIENCE), shards.kept.process.tail(20)
    assert until(lambda: set(workers(shards.door)) - set(before), seconds=PATIENCE), shards.kept.process.tail(20)
    shards.wait_reasons()


def test_the_status_of_a_door_is_what_haproxy_robots_and_the_upkeep_say(shards: Shards):
    shards.place("r1", "b")
    shards.wait_reaches("r1", "b")
    watch = shards.watch("r1", "b")

    def states(content: dict) -> dict:
        return {each["name"]: (each["state"], each["robots"], each["streams"]) for each in content["shards"]}

    wanted = {"root": ("up", 2, 0), "b": ("up", 1, 1)}  # once the requests that are over have left HAProxy's table
    content = until(
        lambda: shards.said("status", "--robot", "r1", code=None),
        lambda content: (content["health"], states(content)) == ("healthy", wanted),
        seconds=PATIENCE,
    )
    assert (content["schema"], content["health"], content["reasons"]) == ("crsyncer.door-status/v1", "healthy", [])
    assert content["haproxy"]["version"].startswith("2.")
    assert states(content) == wanted
    assert content["robot"] == {"name": "r1", "shard": "b", "streams": 1}
    shards.place("r3", "nowhere")
    assert until(lambda: "robot-r3" not in shards.map, seconds=PATIENCE)
    shards.wait_reasons("RobotNotRouted")
    content = shards.said("status", code=12)
    assert [each["code"] for each in content["reasons"]] == ["RobotNotRouted"]
    text = shards.door.command("status", "--listen", f"127.0.0.1:{shards.kept.port}", "--robot", "r3").stdout
    assert text.startswith("ATTENTION: 1 reason.")
    assert "robot r3: not in the map: it gets 503" in text
    assert shards.door.command("status", "--listen", "127.0.0.1:9").returncode == 13
    watch.close()


def test_G7_2_who_asks_for_streams_at_a_shard_that_there_is_not_is_told_which_there_are(shards: Shards):
    status, text = shards.kept.page("/streams?shard=c")
    assert (status, text) == (404, "this door has no shard c; allowed: root, b\n")


def test_the_doctor_of_a_door_finds_it_in_order(shards: Shards):
    shards.wait_reasons()
    content = shards.said("doctor", code=None)
    found = {(each["name"], each["resource"]): each["state"] for each in content["checks"]}
    assert found.pop(("certificate", None)) == "warn"  # it is valid for two days
    found.pop(("open-files", None))
    assert set(found) == {
        *((name, None) for name in ("program", "haproxy", "files", "robots", "run")),
        *(("keys", shard) for shard in ("root", "b")),
    }
    assert set(found.values()) == {"ok"}


def test_G7_4_robots_without_a_shard_are_assigned_one_and_keep_it(shards: Shards):
    admin = shards.root.cloud.admin
    for name in ("n1", "n2", "n3"):
        assert admin.ask("POST", ROBOTS_PATH, robot(name)).status in (201, 409)
    said = shards.door.command("assign", "n1", "n2")
    lines = [f"robot {name}: {SHARD_LABEL}=b" for name in ("n1", "n2")]
    assert (said.returncode, said.stdout.splitlines()) == (0, lines)
    assert "nothing was changed" in said.stderr
    assert SHARD_LABEL not in str(admin.ask("GET", f"{ROBOTS_PATH}/n1").body)
    refused = shards.door.command("assign", "n1", "--yes")  # the door's own account may only read
    assert (refused.returncode, "forbidden" in refused.stderr) == (1, True)
    admins = ("--cloud-kubeconfig", shards.root.plane.kubeconfig(shards.door.home / "admin.kubeconfig"))
    done = shards.door.command("assign", "n1", "n2", "--yes", *admins)
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, lines, "")
    assert admin.ask("GET", f"{ROBOTS_PATH}/n1").body["metadata"]["labels"][SHARD_LABEL] == "b"
    assert until(lambda: "robot-n1 b\nrobot-n2 b\nrobot-n3 root\n" in shards.map, seconds=PATIENCE)
    again = shards.door.command("assign", "n1", "--yes", *admins)
    assert again.stdout == "every one of these robots has a shard\n"
    unknown = shards.door.command("assign", "n1", "nobody", "--yes", *admins)
    assert unknown.returncode == 1
    assert unknown.stderr.startswith("crsyncer: there is no robot nobody")
    for name in ("n1", "n2", "n3"):
        assert admin.ask("DELETE", f"{ROBOTS_PATH}/{name}").status == 200


def workers(door: OpenDoor) -> list[int]:
    """The processes of HAProxy that serve, old ones included."""
    assert door.haproxy is not None
    children = Path(f"/proc/{door.haproxy.pid}/task/{door.haproxy.pid}/children")
    return [int(each) for each in children.read_text().split()]
