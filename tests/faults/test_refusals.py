"""What servers refuse, for a while or for good, and credentials that do not fit: nothing is lost, and it is said."""

import asyncio
import time
from typing import Any

import pytest
import yaml

from crsyncer.sandbox.plane import Plane
from crsyncer.sandbox.resource import CLUSTER_ROLE
from tests.api import Api
from tests.link.faults import Request
from tests.link.link import Link
from tests.system.asked import deletes, refusal, status_writes
from tests.system.bed import LABEL, ROBOT, Bed, crd, eventually, writes
from tests.system.commands import edit, reloaded, run
from tests.system.conftest import MakeBed
from tests.system.crowd import copied
from tests.system.kinds import account, account_name, another, rules, until_may, until_row

STORM = 30


async def reported(bed: Bed, names: list[str], status: dict[str, Any]) -> None:
    await asyncio.gather(*(bed.robot.set_status(name, status) for name in names))


async def all_reported(bed: Bed, names: list[str], status: dict[str, Any], *, seconds: float = 120.0) -> None:
    for name in names:
        await bed.cloud.shows(name, status=status, seconds=seconds)


@pytest.mark.fault_18
async def test_S1_8_a_kind_whose_crd_is_missing_on_the_robot_starts_when_it_appears(make_bed: MakeBed):
    bed = await make_bed(start=False)
    name = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": bed.resource},
    }
    await bed.robot.api.delete(name)
    await bed.robot.api.until_gone(name)
    cloud_tasks, robot_tasks = await another(bed)
    await bed.cloud.create("a", spec={"x": 1})
    await cloud_tasks.create("t", spec={"x": 1})
    await bed.agent.start()
    await robot_tasks.shows("t", spec={"x": 1})
    status = await bed.agent.until(lambda status: status["health"] == "healthy")
    assert [kind["resource"] for kind in status["kinds"]] == [f"tasks.{bed.group}"]
    await bed.robot.api.apply_crd(crd(bed.group))
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"phase": "DONE"})
    await bed.cloud.shows("a", status={"phase": "DONE"})


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_27
async def test_S2_2_an_object_given_to_another_robot_and_back_is_gone_silent_and_there_again(make_bed: MakeBed):
    bed = await make_bed(filtered="true")
    await bed.cloud.create("a", spec={"x": 1}, labels={LABEL: ROBOT})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"phase": "MINE"})
    await bed.cloud.shows("a", status={"phase": "MINE"})
    await bed.settled()
    bed.cloud.link.clear()
    await bed.cloud.patch("a", {"metadata": {"labels": {LABEL: "robot-2"}}})
    await bed.robot.gone("a")
    await bed.cloud.set_status("a", {"phase": "THEIRS"})
    await bed.cloud.create("marker", spec={"x": 1}, labels={LABEL: ROBOT})
    await bed.robot.shows("marker")
    await bed.settled()
    assert status_writes(bed.cloud.link) == []
    await bed.cloud.patch("a", {"metadata": {"labels": {LABEL: ROBOT}}})
    # It starts with what the other robot has reported, as after a change of hardware (S4.4).
    await bed.robot.shows("a", spec={"x": 1}, status={"phase": "THEIRS"})
    await bed.robot.set_status("a", {"phase": "MINE AGAIN"})
    await bed.cloud.shows("a", status={"phase": "MINE AGAIN"})


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_30
@pytest.mark.parametrize("code", [409, 422])
async def test_S10_an_object_whose_status_is_always_refused_is_a_dead_letter_and_others_flow(bed: Bed, code: int):
    names = await copied(bed, 3)
    refused = bed.cloud.link.inject("/g00/status", status=code, body=refusal(code, "no, never"))
    await reported(bed, names, {"phase": "DONE"})
    await all_reported(bed, names[1:], {"phase": "DONE"})
    status = await bed.agent.until(
        lambda status: (status["outbox"]["deadLetters"], status["outbox"]["depth"]) == (1, 1), seconds=60
    )
    assert status["health"] == "attention"
    assert "crsyncer pending" in next(r["hint"] for r in status["reasons"] if r["code"] == "DeadLetters")
    tried = refused.count
    await reported(bed, names[1:], {"phase": "AGAIN"})
    await all_reported(bed, names[1:], {"phase": "AGAIN"})
    assert refused.count == tried
    assert "no, never" in await run(bed, "pending", "list")
    # Deleted upstream, it is nobody's letter any more.
    await bed.cloud.delete("g00")
    await bed.robot.gone("g00")
    await bed.agent.until(lambda status: status["outbox"]["deadLetters"] == 0 and status["health"] == "healthy")


async def storm_of_500(bed: Bed, seconds: float) -> None:
    names = await copied(bed, 10)
    bed.cloud.link.clear()
    storm = bed.cloud.link.inject("/status", status=500, body=refusal(500, "etcdserver: request timed out"))
    await reported(bed, names, {"phase": "DONE"})

    async def raged() -> bool:
        return storm.count >= 40

    await eventually(raged, seconds=60, what="each was tried four times")
    await asyncio.sleep(seconds)
    status = await bed.agent.until(lambda status: status["outbox"]["depth"] == 10)
    assert status["outbox"]["deadLetters"] == 0
    # The pauses double up to a minute: 11 tries in the first, then less than two a minute.
    assert storm.count <= 10 * (13 + 2 * seconds / 60)
    storm.remove()
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 0, seconds=120)
    await all_reported(bed, names, {"phase": "DONE"})


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_31
async def test_S10_a_storm_of_500_is_backed_off_from_and_buries_nothing(bed: Bed):
    await storm_of_500(bed, 0)


@pytest.mark.nightly
@pytest.mark.fault_31
async def test_S10_a_storm_of_500_for_ten_minutes_is_backed_off_from_and_buries_nothing(bed: Bed):
    await storm_of_500(bed, 600)


def busy(link: Link, seconds: int) -> None:
    """Every request of the cloud is asked for patience."""
    body = refusal(429, "slow down", reason="TooManyRequests")
    link.inject("/", status=429, body=body, headers={"Retry-After": str(seconds)})


def bursts(requests: list[Request], pause: float) -> list[list[Request]]:
    """Requests that came closer together than so many seconds."""
    found: list[list[Request]] = []
    for request in requests:
        if found and request.time - found[-1][-1].time < pause:
            found[-1].append(request)
        else:
            found.append([request])
    return found


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_34
@pytest.mark.parametrize(("patience", "rounds"), [(3, 3), pytest.param(30, 3, marks=pytest.mark.nightly)])
async def test_S10_a_storm_of_429_is_answered_by_one_request_a_round(bed: Bed, patience: int, rounds: int):
    names = await copied(bed, 10)
    bed.cloud.link.clear()
    busy(bed.cloud.link, patience)
    await reported(bed, names, {"phase": "DONE"})

    async def over() -> bool:
        return len(bursts(status_writes(bed.cloud.link), patience)) > rounds

    await eventually(over, seconds=patience * rounds * 3 + 60, what="some rounds")
    first, *later = bursts(status_writes(bed.cloud.link), patience)
    assert len({request.path for request in first}) == len(first)  # these were under way when the first answer came
    assert [len(burst) for burst in later] == [1] * len(later)
    status = await bed.agent.status()
    assert (status["outbox"]["depth"], status["outbox"]["deadLetters"]) == (10, 0)
    bed.cloud.link.heal()
    await all_reported(bed, names, {"phase": "DONE"})


@pytest.mark.fault_35
async def test_S10_a_new_token_in_its_file_is_taken_within_half_a_minute(bed: Bed, cloud: Plane):
    names = await copied(bed, 3)
    token = bed.directory / "token"
    token.write_text(cloud.admin_token)
    bed.cloud.link.kubeconfig(bed.directory / "cloud.yaml", token_file=token)
    async with bed.stopped():
        pass
    await bed.until_kind("syncing")
    token.write_text("expired")
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    await reloaded(bed)  # before a connection can be made with what the agent knew
    bed.cloud.link.restore()
    await bed.until_side("cloud", "unauthorized")
    await reported(bed, names, {"phase": "DONE"})
    status = await bed.agent.until(lambda status: status["outbox"]["depth"] == 3)
    assert status["health"] == "attention"
    assert await bed.robot.names() == set(names)
    pid, began = bed.agent.pid, time.monotonic()
    token.write_text(cloud.admin_token)
    await bed.until_side("cloud", "connected", seconds=60)
    print(f"connected after {time.monotonic() - began:.1f} s")
    await all_reported(bed, names, {"phase": "DONE"})
    assert bed.agent.pid == pid
    assert deletes(bed.robot.link) == []


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.fault_36
async def test_S1_6_a_kind_that_rbac_forbids_is_said_to_be_and_runs_when_the_right_is_given(
    make_bed: MakeBed, cloud_api: Api, group: str
):
    name = account_name(group)
    token = await account(cloud_api, name, rules(group, "patch"))
    bed = await make_bed(cloud_token=token)
    cloud_tasks, robot_tasks = await another(bed)
    await until_row(bed, "tasks", state="syncing")
    names = await copied(bed, 3)
    role = CLUSTER_ROLE.object(name)
    tasks_only = [
        rule | {"resources": [r for r in rule["resources"] if "tasks" in r]} for rule in rules(group, "patch")
    ]
    async with bed.stopped():
        await cloud_api.patch(role, {"rules": tasks_only})
        await until_may(cloud_api, name, rules(group, "patch")[0], allowed=False)
        bed.robot.link.clear()
    forbidden = await bed.until_kind("forbidden", seconds=60)
    assert "cannot" in forbidden["message"]
    status = await bed.agent.status()
    assert status["health"] == "attention"
    assert "Forbidden" in [reason["code"] for reason in status["reasons"]]
    await cloud_tasks.create("t", spec={"x": 1})
    await robot_tasks.shows("t", spec={"x": 1})
    await bed.robot.patch(names[0], {"spec": {"x": 9}})
    await bed.robot.shows(names[0], spec={"x": 1})  # what was known of it is enforced all the while
    await reported(bed, names, {"phase": "DONE"})
    assert await bed.robot.names() == set(names)
    assert not any(write.startswith("DELETE") for write in writes(bed.robot.link))
    await cloud_api.patch(role, {"rules": rules(group, "patch")})
    await all_reported(bed, names, {"phase": "DONE"})
    await bed.until_kind("syncing", seconds=90)


def trusting(bed: Bed, **changes: str) -> None:
    """Have the kubeconfig trust something else."""
    path = bed.directory / "cloud.yaml"
    document = yaml.safe_load(path.read_text())
    document["clusters"][0]["cluster"].update(changes)
    edit(path, yaml.safe_dump(document))


@pytest.mark.fault_38
@pytest.mark.parametrize("wrong", ["another CA", "another name"])
async def test_S10_a_server_that_cannot_prove_who_it_is_is_refused_and_nothing_is_lost(
    bed: Bed, robot: Plane, wrong: str
):
    names = await copied(bed, 3)
    good = (bed.directory / "cloud.yaml").read_text()
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    trusting(
        bed,
        **(
            {"certificate-authority": str(robot.ca_file)} if wrong == "another CA" else {"tls-server-name": "elsewhere"}
        ),
    )
    await reloaded(bed)  # before a connection can be made with what the agent knew
    bed.cloud.link.restore()
    bed.cloud.link.clear()
    said = "CA" if wrong == "another CA" else "name"
    status = await bed.agent.until(lambda status: said in str(status["sides"]["cloud"]["error"]), seconds=60)
    assert (status["sides"]["cloud"]["state"], status["health"]) == ("offline", "offline")
    await reported(bed, names, {"phase": "DONE"})
    await bed.agent.until(lambda status: status["outbox"]["depth"] == 3)
    assert bed.cloud.link.requests == []  # no token was shown to it
    assert str(status["sides"]["cloud"]["error"]) in await run(bed, "status", code=11)
    assert await bed.robot.names() == set(names)
    edit(bed.directory / "cloud.yaml", good)
    await all_reported(bed, names, {"phase": "DONE"})
    assert deletes(bed.robot.link) == []
