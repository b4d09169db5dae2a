"""Steps of histories that befall controllers and their links: what every sort of fleet's history has."""

from typing import Protocol

from crsyncer.ports import Reply
from tests.fleet_model.fleet_world import FleetWorld
from tests.model.simulation.answers import CONFLICT, INTERNAL_ERROR, UNAVAILABLE, too_many
from tests.model.simulation.weather import Fate

_FATES: tuple[Fate | Reply, ...] = (
    *(fate for fate in Fate if fate is not Fate.HUNG),
    *(CONFLICT, INTERNAL_ERROR, UNAVAILABLE, too_many(3.0)),
)


class Machine(Protocol):
    """What takes the steps of a history."""

    world: FleetWorld


def start(machine: Machine, name: str) -> None:
    """A controller is started, if it does not run."""
    if not machine.world.runs(name):
        machine.world.start(name)


def kill(machine: Machine, name: str) -> None:
    """A controller is killed."""
    machine.world.kill(name)


def kill_after(machine: Machine, name: str, messages: int) -> None:
    """A controller will be killed in the middle of things, and started again later."""
    if machine.world.runs(name):
        machine.world.kill_after(messages, name)


def led_anew(machine: Machine, *, seconds: float, statuses: bool = False) -> list[str]:
    """Another controller leads when all agrees: what it writes, which is nothing. `statuses`: it may write these."""
    world, done = machine.world, machine.world.clock.now
    for name in ("a", "b"):
        world.kill(name)
    world.start("b")
    world.pass_time(seconds)
    return [f"a new leader: {each}" for each in world.written(done) if each.verb != "status" or not statuses]


def terminate(machine: Machine, name: str) -> None:
    """A controller is stopped."""
    if machine.world.runs(name) and not machine.world.processes[name].still.stands:
        machine.world.terminate(name)


def stand_still(machine: Machine, name: str) -> None:
    """A controller is stopped by SIGSTOP."""
    if machine.world.runs(name):
        machine.world.stand_still(name)


def go_on(machine: Machine, name: str) -> None:
    """It goes on."""
    if machine.world.runs(name):
        machine.world.go_on(name)


def cut(machine: Machine, link: str) -> None:
    """A link breaks."""
    if link in machine.world.weather:
        machine.world.cut(link)


def silence(machine: Machine, link: str) -> None:
    """A link carries nothing any more."""
    if link in machine.world.weather:
        machine.world.silence(link)


def mend(machine: Machine, link: str) -> None:
    """A link is well again."""
    if link in machine.world.weather:
        machine.world.mend(link)


def delay(machine: Machine, link: str, latency: float, jitter: float) -> None:
    """Messages need longer, and not all of them equally long."""
    if link in machine.world.weather:
        machine.world.judge.trouble()
        machine.world.weather[link].latency, machine.world.weather[link].jitter = latency, jitter


def lag(machine: Machine, link: str, seconds: float) -> None:
    """Events come late."""
    if link in machine.world.weather:
        machine.world.judge.trouble()
        machine.world.weather[link].lag = seconds


def repeat(machine: Machine, link: str, times: int) -> None:
    """Events come twice."""
    if link in machine.world.weather:
        machine.world.weather[link].repeats = times


def end_watches(machine: Machine, link: str, times: int) -> None:
    """Watches end where an event should come."""
    if link in machine.world.weather:
        machine.world.weather[link].ends = times


def befall(machine: Machine, link: str, verb: str, part: str, fate: int, times: int) -> None:
    """Requests are lost, late, answered in vain or refused for the moment."""
    machine.world.inject(_FATES[fate % len(_FATES)], name=link, verb=verb, part=part, times=times)


def heal_links(machine: Machine) -> None:
    """All links are well again, and both controllers run: one that stood still while it led ends first (F1.2)."""
    world = machine.world
    for link, weather in world.weather.items():
        world.mend(link)
        weather.latency = weather.jitter = 0.0
    for name in ("a", "b"):
        if name in world.processes:
            world.go_on(name)
            world.processes[name].fuse = None
    world.pass_time(30.0)
    for name in ("a", "b"):
        start(machine, name)


LINK_STEPS = {
    each.__name__: each
    for each in (
        *(start, kill, kill_after, terminate, stand_still, go_on),
        *(cut, silence, mend, delay, lag, repeat, end_watches, befall),
    )
}
