"""Leading by a Lease, on virtual time (F1.2)."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.leading import lead_and_write
from tests.fleet_model.world_parts import HOME
from tests.model.simulation.answers import CONFLICT, FORBIDDEN, INTERNAL_ERROR, NOT_SERVED
from tests.model.simulation.weather import Fate

LEASE = "/leases"


@contextmanager
def two(seed: int = 0) -> Iterator[FleetWorld]:
    """Two controllers, of which a leads."""
    with FleetWorld(lead_and_write, seed, only_lease=True) as world:
        world.cloud.create("written", kind="configmaps", namespace=HOME, data={})
        world.start("a")
        world.pass_time(2)
        world.start("b")
        world.pass_time(20)
        assert world.leaders == ["a"]
        yield world


def writers(world: FleetWorld, since: float) -> list[str]:
    """Who has written since then, in order, each once."""
    found = [each.process for each in world.writes if each.resource == "configmaps" and each.time > since]
    return list(dict.fromkeys(found))


def until_led(world: FleetWorld, name: str, *, seconds: float = 60.0) -> float:
    """Let time pass until a controller leads; how long it took."""
    began = world.clock.now
    while name not in world.leaders:
        assert world.clock.now < began + seconds, f"{name} does not lead after {seconds} s"
        world.pass_time(0.25)
    return world.clock.now - began


def test_F1_2_the_first_leads_at_once_and_the_standby_only_reads_the_lease() -> None:
    with two() as world:
        assert world.lease is not None
        assert world.lease["spec"]["holderIdentity"] == "a-1"
        assert world.lease["spec"]["leaseDurationSeconds"] == 15
        world.pass_time(60)
        renewals = [each for each in world.writes if each.resource.startswith("leases")]
        assert 10 <= len(renewals) <= 20
        reads = {each.call.path for each in world.journals["b"].requests if LEASE in each.call.path}
        assert reads == {f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases/crsyncer-fleet"}
        assert writers(world, 0) == ["a"]


def test_F1_2_a_leader_that_is_killed_is_followed_within_20_s_and_not_before_15() -> None:
    with two() as world:
        world.kill("a")
        renewed = max(each.time for each in world.writes if each.resource.startswith("leases"))
        until_led(world, "b")
        assert 15.0 <= world.clock.now - renewed <= 20.0
        assert world.lease is not None
        assert world.lease["spec"]["leaseTransitions"] == 1


def test_F1_2_sigterm_gives_the_lease_back_and_the_standby_leads_at_once() -> None:
    with two() as world:
        world.terminate("a")
        assert world.lease is not None
        assert world.lease["spec"]["holderIdentity"] == ""
        assert until_led(world, "b") <= 3.0


def test_F1_2_a_leader_that_stood_still_writes_nothing_when_it_wakes_and_ends() -> None:
    with two() as world:
        world.stand_still("a")
        began = world.clock.now
        until_led(world, "b")
        assert world.clock.now - began <= 20.0
        world.pass_time(40)
        awake = world.clock.now
        world.go_on("a")
        world.pass_time(5)
        assert writers(world, awake) == ["b"]
        assert not world.runs("a")
        sent = [each for each in world.journals["a"].requests if each.sent >= awake and each.call.method != "GET"]
        assert sent == []


def test_F1_2_a_leader_that_is_cut_off_ends_before_the_standby_leads() -> None:
    with two() as world:
        world.cut("a")
        world.pass_time(10.5)
        assert not world.runs("a")
        assert world.leaders == []
        until_led(world, "b")


@pytest.mark.parametrize("fate", list(Fate), ids=lambda fate: fate.name)
@pytest.mark.parametrize("verb", ["create", "get", "update"])
def test_F1_2_S10_a_lost_answer_about_the_lease_makes_no_two_leaders(fate: Fate, verb: str) -> None:
    with FleetWorld(lead_and_write, only_lease=True) as world:
        world.cloud.create("written", kind="configmaps", namespace=HOME, data={})
        for name in ("a", "b"):
            world.inject(fate, name=name, verb=verb, part=LEASE, standing=True)
            world.start(name)
        world.pass_time(70)
        assert len(world.leaders) == 1


def test_F1_2_one_lost_answer_to_a_renewal_does_not_end_a_leader() -> None:
    with two() as world:
        for fate in (Fate.REPLY_LOST, Fate.LOST, Fate.SNAPPED, INTERNAL_ERROR, CONFLICT):
            world.inject(fate, verb="update", part=LEASE)
            world.pass_time(12)
            assert world.leaders == ["a"]


@pytest.mark.parametrize("answer", [FORBIDDEN, INTERNAL_ERROR, NOT_SERVED], ids=lambda reply: str(reply.status))
def test_F1_2_a_leader_that_may_not_renew_ends_and_one_that_may_not_begin_waits(answer: object) -> None:
    with two() as world:
        world.inject(answer, name="b", part=LEASE, seconds=60, times=1000)  # type: ignore[arg-type]
        world.inject(answer, verb="update", part=LEASE, times=1000)  # type: ignore[arg-type]
        world.pass_time(20)
        assert not world.runs("a")
        assert world.leaders == []
        assert world.processes["b"].parts["leader"].error
        until_led(world, "b")
        assert world.processes["b"].parts["leader"].error == ""


def test_F1_2_without_its_namespace_a_controller_waits_and_says_so() -> None:
    with FleetWorld(lead_and_write, only_lease=True) as world:
        world.server.storage.remove("namespaces", ("", HOME))
        world.start("a")
        world.pass_time(60)
        assert world.leaders == []
        assert 'namespaces "fleet" not found' in world.processes["a"].parts["leader"].error
        world.server.make_namespace(HOME)
        until_led(world, "a")


def test_F1_2_a_lease_that_somebody_deletes_ends_the_leader_and_the_standby_waits_its_time() -> None:
    with two() as world:
        world.server.storage.remove("leases.coordination.k8s.io", (HOME, "crsyncer-fleet"))
        gone = world.clock.now
        world.pass_time(6)
        assert not world.runs("a")
        until_led(world, "b")
        assert world.clock.now - gone >= 15.0


def test_F1_2_no_wall_clock_is_compared() -> None:
    with two() as world:
        world.processes["a"].skew = -400.0 * 86400
        world.processes["b"].skew = 86400.0
        world.pass_time(60)
        assert world.leaders == ["a"]
        world.processes["a"].skew = 86400.0 * 365
        world.pass_time(60)
        assert world.leaders == ["a"]
        world.kill("a")
        assert until_led(world, "b") <= 20.0


def test_F1_2_a_process_of_the_same_name_is_another_one() -> None:
    with two() as world:
        world.kill("a")
        world.kill("b")
        world.start("a")
        assert until_led(world, "a") >= 14.0


@pytest.mark.parametrize("seed", range(12))
def test_F1_2_no_two_lead_in_any_history(seed: int) -> None:
    chance = random.Random(seed)
    with FleetWorld(lead_and_write, seed, only_lease=True, by_chance=True) as world:
        world.cloud.create("written", kind="configmaps", namespace=HOME, data={})
        for _ in range(60):
            name = chance.choice("ab")
            if not world.runs(name):
                world.start(name)
            match chance.randrange(10):
                case 0:
                    world.stand_still(name)
                case 1 | 2 | 3:
                    for each in list(world.processes):
                        world.go_on(each)
                        world.mend(each)
                case 4:
                    world.kill(name)
                case 5:
                    world.processes[name].skew = chance.uniform(-1e6, 1e6)
                case 6:
                    (world.cut if chance.random() < 0.5 else world.silence)(name)
                case 7:
                    world.inject(chance.choice(list(Fate)), name=name, part=LEASE, times=chance.randrange(1, 4))
                case 8:
                    world.weather[name].latency = chance.choice([0.0, 0.0, 1.0, 3.0])
                case _:
                    world.kill_after(chance.randrange(20), name)
            world.pass_time(chance.choice([0.5, 3.0, 8.0, 20.0]))
        for each in list(world.processes):
            world.go_on(each)
            world.mend(each)
            world.weather[each].latency = 0.0
            world.processes[each].fuse = None
        for name in "ab":
            if not world.runs(name):
                world.start(name)
        world.pass_time(90)
        assert len(world.leaders) == 1
