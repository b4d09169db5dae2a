"""S10: every answer of a server is one of four: it did not happen, perhaps it did, it never will, the credential."""

import pytest

from tests.system.asked import deletes, hit, refusal, status_writes
from tests.system.bed import Bed, eventually, writes
from tests.system.commands import reloaded
from tests.system.crowd import copied

CAUSES = {"causes": [{"reason": "FieldValueInvalid", "message": "too odd", "field": "spec.x"}]}


@pytest.mark.nightly("to be shown by the model")
async def test_S10_a_delete_that_finds_nothing_is_done(bed: Bed):
    await copied(bed, 1)
    bed.robot.link.stall("/g00$", method="DELETE", times=1, after_request=True, hang_up=True)
    await bed.cloud.delete("g00")
    await bed.robot.gone("g00")
    await bed.settled()
    await bed.agent.until(lambda status: status["health"] == "healthy")


@pytest.mark.parametrize("lost", [pytest.param("request", marks=pytest.mark.nightly("a variation")), "reply"])
async def test_S10_a_connection_that_breaks_leaves_no_trace(bed: Bed, lost: str):
    """Creates, updates, statuses and deletions, each with a request or a reply that never arrives."""
    names = await copied(bed, 3)
    for link, method in ((bed.robot.link, "POST"), (bed.robot.link, "PUT"), (bed.robot.link, "DELETE")):
        link.stall("/goals", method=method, times=2, after_request=lost == "reply", hang_up=True)
    bed.cloud.link.stall("/status", method="PATCH", times=2, after_request=lost == "reply", hang_up=True)
    history = await bed.cloud.record("g01")
    await bed.cloud.create("new", spec={"x": 5})
    await bed.cloud.patch("g00", {"spec": {"x": 2}})
    await bed.robot.set_status("g01", {"phase": "DONE"})
    await bed.cloud.delete("g02")
    await bed.robot.shows("new", spec={"x": 5}, seconds=40)
    await bed.robot.shows("g00", spec={"x": 2}, seconds=40)
    await bed.cloud.shows("g01", status={"phase": "DONE"}, seconds=40)
    await bed.robot.gone("g02", seconds=40)
    await bed.agent.until(lambda status: status["health"] == "healthy", seconds=60)
    await bed.settled()
    assert await bed.robot.names() == {*names[:2], "new"}
    await bed.cloud.patch("g01", {"metadata": {"labels": {"marked": "last"}}})
    assert (await history.complete())[-1] == {"phase": "DONE"}


@pytest.mark.nightly("to be shown by the model")
async def test_S10_an_answer_that_never_comes_delays_nobody_else(bed: Bed):
    await copied(bed, 3)
    stalls = [
        bed.robot.link.stall("/g00$", method="PUT"),
        bed.cloud.link.stall("/g01/status", method="PATCH"),
    ]
    await bed.cloud.patch("g00", {"spec": {"x": 2}})
    await bed.robot.set_status("g01", {"phase": "DONE"})

    async def stalled() -> bool:
        return all(stall.count for stall in stalls)

    await eventually(stalled, what="both requests wait")
    await bed.cloud.patch("g02", {"spec": {"x": 2}})
    await bed.robot.shows("g02", spec={"x": 2})
    await bed.robot.set_status("g02", {"phase": "DONE"})
    await bed.cloud.shows("g02", status={"phase": "DONE"})
    for stall in stalls:
        stall.remove()
    await bed.robot.shows("g00", spec={"x": 2})
    await bed.cloud.shows("g01", status={"phase": "DONE"})


@pytest.mark.nightly("to be shown by the model")
async def test_S10_a_server_that_answers_503_to_everything_is_offline_and_nothing_is_lost(bed: Bed):
    await copied(bed, 2)
    bed.cloud.link.cut()
    bed.cloud.link.inject("/", status=503, body=refusal(503, "no back end"))
    bed.cloud.link.restore()
    await bed.until_side("cloud", "offline")
    await bed.robot.set_status("g00", {"phase": "DONE"})
    status = await bed.agent.until(lambda status: status["outbox"]["depth"] == 1)
    assert (status["health"], status["outbox"]["deadLetters"]) == ("offline", 0)
    bed.cloud.link.heal()
    await bed.cloud.shows("g00", status={"phase": "DONE"}, seconds=120)
    assert deletes(bed.robot.link) == []


@pytest.mark.nightly("to be shown by the model")
async def test_S10_content_that_the_robot_refuses_is_a_dead_letter_until_it_changes(bed: Bed):
    await copied(bed, 2)
    refused = bed.robot.link.inject(
        "/g00$", status=422, body=refusal(422, "spec.x: Invalid value", details=CAUSES), method="PUT"
    )
    await bed.cloud.patch("g00", {"spec": {"x": "odd"}})
    await bed.cloud.patch("g01", {"spec": {"x": 2}})
    await bed.robot.shows("g01", spec={"x": 2})
    status = await bed.agent.until(lambda status: status["outbox"]["deadLetters"] == 1)
    assert status["health"] == "attention"
    refused.remove()
    await bed.cloud.patch("g00", {"spec": {"x": 3}})
    await bed.robot.shows("g00", spec={"x": 3})
    await bed.agent.until(lambda status: status["health"] == "healthy")


@pytest.mark.fault_32
async def test_S10_a_request_that_is_too_large_again_and_again_is_a_dead_letter(bed: Bed):
    await copied(bed, 2)
    large = bed.cloud.link.inject(
        "/g00/status", status=500, body=refusal(500, "etcdserver: request is too large"), method="PATCH"
    )
    await bed.robot.set_status("g00", {"map": "x" * 1000})
    await bed.agent.until(lambda status: status["outbox"]["deadLetters"] == 1, seconds=60)
    assert large.count > 1  # once might have been a mistake
    await bed.robot.set_status("g01", {"phase": "DONE"})
    await bed.cloud.shows("g01", status={"phase": "DONE"})
    large.remove()
    await bed.robot.set_status("g00", {"map": "x"})
    await bed.cloud.shows("g00", status={"map": "x"})
    await bed.agent.until(lambda status: status["health"] == "healthy")


@pytest.mark.fault_35
async def test_S10_a_refused_credential_is_said_and_a_new_one_in_the_kubeconfig_is_taken(bed: Bed):
    names = await copied(bed, 3)
    kubeconfig = bed.directory / "cloud.yaml"
    bed.cloud.link.cut()
    await bed.until_side("cloud", "offline")
    bed.cloud.link.kubeconfig(kubeconfig, token="expired")
    await reloaded(bed)  # before a connection can be made with what the agent knew
    bed.cloud.link.restore()
    await bed.until_side("cloud", "unauthorized")
    await bed.robot.set_status("g00", {"phase": "DONE"})
    status = await bed.agent.until(lambda status: status["outbox"]["depth"] == 1)
    assert status["health"] == "attention"
    assert "CloudUnauthorized" in [reason["code"] for reason in status["reasons"]]
    assert await bed.robot.names() == set(names)
    bed.cloud.link.kubeconfig(kubeconfig)
    await bed.until_side("cloud", "connected", seconds=90)
    await bed.cloud.shows("g00", status={"phase": "DONE"})
    assert deletes(bed.robot.link) == []
    assert status["outbox"]["deadLetters"] == 0


@pytest.mark.nightly("to be shown by the model")
async def test_S10_401_on_a_write_is_answered_with_the_credential_read_again_at_once(bed: Bed):
    await copied(bed, 1)
    bed.cloud.link.inject("/status", status=401, body=refusal(401, "Unauthorized"), times=1)
    await bed.robot.set_status("g00", {"phase": "DONE"})
    await bed.cloud.shows("g00", status={"phase": "DONE"})
    await bed.agent.until(lambda status: status["health"] == "healthy")


@pytest.mark.fault_36
async def test_S10_403_on_status_writes_makes_the_kind_forbidden_and_keeps_the_status(bed: Bed):
    await copied(bed, 2)
    forbidden = bed.cloud.link.inject("/status", status=403, body=refusal(403, "goals is forbidden: User cannot"))
    await bed.robot.set_status("g00", {"phase": "DONE"})
    await bed.until_kind("forbidden")
    status = await bed.agent.status()
    assert (status["outbox"]["depth"], status["outbox"]["deadLetters"]) == (1, 0)
    assert status["health"] == "attention"
    assert "Forbidden" in [reason["code"] for reason in status["reasons"]]
    await bed.cloud.patch("g01", {"spec": {"x": 2}})
    await bed.robot.shows("g01", spec={"x": 2})  # spec still flows
    forbidden.remove()
    await bed.cloud.shows("g00", status={"phase": "DONE"}, seconds=90)
    await bed.until_kind("syncing")
    assert deletes(bed.robot.link) == []


@pytest.mark.nightly("to be shown by the model")
async def test_S10_403_for_one_object_is_said_for_as_long_as_it_lasts_whoever_else_succeeds(bed: Bed):
    await copied(bed, 2)
    forbidden = bed.cloud.link.inject("/g00/status", status=403, body=refusal(403, "g00 is not for this robot"))
    await bed.robot.set_status("g00", {"phase": "DONE"})
    await bed.until_kind("forbidden")
    await bed.robot.set_status("g01", {"phase": "DONE"})
    await bed.cloud.shows("g01", status={"phase": "DONE"})
    await hit(forbidden, forbidden.count + 2, seconds=150)  # again: neither forgotten nor said by turns
    status = await bed.agent.status()
    assert [kind["state"] for kind in status["kinds"]] == ["forbidden"]
    assert "g00 is not for this robot" in str(status["reasons"])
    await bed.cloud.delete("g00")
    await bed.until_kind("syncing", seconds=90)
    await bed.agent.until(lambda status: status["health"] == "healthy")


@pytest.mark.nightly("to be shown by the model")
async def test_S10_403_on_the_list_makes_the_kind_forbidden_and_deletes_nothing(bed: Bed):
    names = await copied(bed, 3)
    await bed.agent.stop()
    for file in bed.agent.state_dir.glob("state.db*"):
        file.unlink()
    bed.robot.link.clear()
    forbidden = bed.cloud.link.inject("/goals", status=403, body=refusal(403, "goals is forbidden: User cannot list"))
    await bed.start(state="forbidden")
    assert (await bed.agent.status())["health"] == "attention"
    assert await bed.robot.names() == set(names)
    assert writes(bed.robot.link) == []
    forbidden.remove()
    await bed.until_kind("syncing", seconds=90)


@pytest.mark.nightly("to be shown by the model")
async def test_S10_retry_after_is_obeyed(bed: Bed):
    await copied(bed, 1)
    bed.cloud.link.inject(
        "/status", status=429, body=refusal(429, "slow down"), headers={"Retry-After": "2"}, method="PATCH", times=1
    )
    await bed.robot.set_status("g00", {"phase": "DONE"})
    await bed.cloud.shows("g00", status={"phase": "DONE"})
    first, second = status_writes(bed.cloud.link, "g00")
    assert second.time - first.time >= 2.0
    assert (await bed.agent.status())["outbox"]["deadLetters"] == 0


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize(
    "body",
    [
        b"<html>sign in to go on</html>",
        b'{"metadata": []}',
        b'{"items": [null], "resources": [null], "groups": 1, "versions": "v1", "spec": []}',
        b'{"metadata": 3, "items": 4}',
        b"",
    ],
    ids=["a page", "no metadata", "nonsense", "numbers", "a redirect"],
)
async def test_S10_whoever_answers_everything_alike_neither_ends_the_agent_nor_costs_a_copy(bed: Bed, body: bytes):
    """A login page, a proxy's own words, a server of something else: as a link that is down."""
    names = await copied(bed, 3)
    pid = bed.agent.pid
    status = 302 if body == b"" else 200
    portal = bed.cloud.link.inject(".*", status=status, body=body, headers={"Content-Type": "application/json"})
    bed.cloud.link.cut()
    bed.cloud.link.restore()
    await bed.robot.set_status(names[0], {"phase": "DONE"})
    await hit(portal, 8, seconds=150)
    await bed.until_side("cloud", "offline")
    portal.remove()
    await bed.cloud.shows(names[0], status={"phase": "DONE"}, seconds=90)
    await bed.until_kind("syncing", seconds=90)
    assert await bed.robot.names() == set(names)
    assert bed.agent.pid == pid


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("body", [b"{}", b'{"metadata": []}'])
async def test_S10_a_write_whose_answer_does_not_show_the_object_is_looked_at_again(bed: Bed, body: bytes):
    lies = [
        bed.robot.link.inject("/goals", status=200, body=body, method=method, times=2) for method in ("POST", "PUT")
    ]
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.cloud.patch("a", {"spec": {"x": 2}})
    await bed.robot.shows("a", spec={"x": 2})
    for lie in lies:
        assert lie.count == 2
    assert "Traceback" not in bed.agent.log.read_text()
