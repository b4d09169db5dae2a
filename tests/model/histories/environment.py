"""The steps of a history that need nothing but a world: time, the agent's process, the links, and the API servers."""

from collections.abc import Callable, Sequence
from random import Random

from crsyncer.core.model import Side
from crsyncer.ports import Reply
from tests.model.simulation.answers import CONFLICT, FORBIDDEN, INTERNAL_ERROR, NO_LISTS, NOT_SERVED, too_many
from tests.model.simulation.plane import GROUP
from tests.model.simulation.weather import Fate
from tests.model.simulation.world import World

SIDES = ("cloud", "robot")
_HAPPENS = tuple(fate for fate in Fate if fate is not Fate.HUNG)
_STORM = (Reply(500, {"message": "storm"}), Reply(429, {"message": "slow"}, retry_after=5.0), Reply(503, {}))
ANSWERS = (*_HAPPENS, CONFLICT, FORBIDDEN, INTERNAL_ERROR, NOT_SERVED, too_many(20.0))
"""What may become of a request, and be answered to it, for a while."""
_FATES = (*_HAPPENS, *_STORM, *NO_LISTS)
_DENIALS = (Reply(403, {"message": "denied"}), Reply(401, {"message": "who are you?"}))


class Environment:
    """What happens around an agent. Each public method is a step (`history`)."""

    def __init__(self, world: World, *, part: str = GROUP) -> None:
        self._world = world
        self._part = part
        """What the paths contain that something befalls."""

    def wait(self, seconds: float) -> None:
        """Time passes."""
        self._world.pass_time(seconds)

    def crash(self) -> None:
        """The agent is killed, and started again."""
        self._world.crash()
        self.start()

    def crash_after(self, steps: int) -> None:
        """The agent will be killed after so many steps of its own, in the middle of things."""
        self._world.crash_after(steps)

    def stop(self) -> None:
        """The agent is stopped."""
        self._world.stop()

    def kill(self) -> None:
        """The agent is killed, and is not started for a while."""
        self._world.crash()

    def start(self) -> None:
        """The agent is started, if it does not run."""
        if self._world.life is None:
            self._world.start()

    def slow_disk(self, seconds: float) -> None:
        """Whoever waits for the disk may have to wait so long."""
        self._world.disk.commit_seconds = seconds

    def cut(self, side: str) -> None:
        """A link breaks."""
        self._world.cut(side)

    def silence(self, side: str) -> None:
        """A link carries nothing any more."""
        self._world.silence(side)

    def mend(self, side: str) -> None:
        """A link is well again."""
        self._world.mend(side)

    def delay(self, side: str, latency: float, jitter: float) -> None:
        """Messages need longer, and not all of them equally long."""
        weather = self._world.weather[Side(side)]
        weather.latency, weather.jitter = latency, jitter

    def close_slowly(self, side: str, seconds: float) -> None:
        """It takes a while until a watch is closed."""
        self._world.weather[Side(side)].closing = seconds

    def lag(self, side: str, seconds: float) -> None:
        """Events come late."""
        self._world.weather[Side(side)].lag = seconds

    def repeat(self, side: str, times: int) -> None:
        """Events come twice."""
        self._world.weather[Side(side)].repeats = times

    def end_watches(self, side: str, times: int) -> None:
        """Watches end where an event should come."""
        self._world.weather[Side(side)].ends = times

    def befall(self, side: str, verb: str, fate: int, times: int) -> None:
        """Requests are lost, late, answered in vain or refused for the moment."""
        self._world.inject(side, _FATES[fate % len(_FATES)], verb=verb, part=self._part, times=times)

    def deny(self, side: str, verb: str, which: int, times: int) -> None:
        """The credential is refused, or lacks a right."""
        self._world.inject(side, _DENIALS[which % 2], verb=verb, part=f"/{GROUP}/v1/", times=times)

    # The clusters

    def restart(self, side: str) -> None:
        """An API server is restarted."""
        self._world.planes[Side(side)].restart()

    def compact(self, side: str, status: int) -> None:
        """An API server forgets its past; `status`: it says so with HTTP 410."""
        self._world.weather[Side(side)].gone_as_status = bool(status)
        self._world.planes[Side(side)].compact()

    def others_write(self, side: str, revisions: int) -> None:
        """Something else happens in a cluster."""
        self._world.planes[Side(side)].others_write(revisions)


def mishaps(
    world: World, around: Environment, chance: Random, *, part: str, answers: Sequence[Reply | Fate]
) -> list[Callable[[], None]]:
    """What may befall an agent that writes objects of its own as well; the paths of those have `part` in them."""

    def befall() -> None:
        where, times = chance.choice([part, part, "/goals"]), chance.randint(1, 3)
        side = "cloud" if where == part else chance.choice(SIDES)
        world.inject(side, chance.choice(answers), part=where, times=times, seconds=600)

    return [
        around.crash,
        lambda: around.crash_after(chance.randint(1, 30)),
        around.start,
        lambda: around.cut(chance.choice(SIDES)),
        lambda: around.mend(chance.choice(SIDES)),
        lambda: around.lag(chance.choice(SIDES), chance.choice([0.0, 3.0])),
        lambda: around.delay(chance.choice(SIDES), 0.3, 2.0),
        lambda: around.compact(chance.choice(SIDES), 1),
        befall,
    ]


def calm_down(world: World) -> None:
    """From now on nothing befalls the agent, and it runs."""
    for side in SIDES:
        world.mend(side)
    if world.life is None:
        world.start()
    assert world.life is not None
    world.life.fuse = None
