"""What both demos of fleets look at: a robot's copy, and what a placement says of its robots."""

from collections.abc import Awaitable, Callable

from crsyncer.sandbox.cluster import Cluster
from crsyncer.sandbox.stories.fleet_cast import COPY, NAVIGATIONS, PLACEMENT, PLACEMENTS, Json, Robot
from crsyncer.sandbox.stories.story import Seen, Story

_MEANING = {0: "healthy", 10: "degraded: something does not answer", 12: "a human is needed"}


async def copy_is(robot: Robot, release: str, place: str, phase: str = "DRIVING") -> Seen:
    """The object on a robot, and the status that the robot's own controller writes."""
    found = await robot.cluster.find(NAVIGATIONS, COPY)
    if found is None:
        return Seen(robot.name, "has no navigations/nav", holds=False)
    spec, status = found["spec"], found.get("status") or {}
    text = f"navigations/nav: {shown(spec)}; {status.get('phase')} with {status.get('release')}"
    wanted = ({"release": release, "map": place}, {"release": release, "phase": phase})
    return Seen(robot.name, text, (spec, status) == wanted)


async def placement_is(cloud: Cluster, good: Callable[[Json], bool], described: Callable[[Json], str]) -> Seen:
    """What the placement's status says, once it is about the placement as it is."""
    found = await cloud.get(PLACEMENTS, PLACEMENT)
    status = found.get("status") or {}
    if status.get("observedGeneration") != found["metadata"]["generation"]:
        return Seen("placement", "its status is behind", holds=False)
    return Seen("placement", described(status), good(status))


async def counts_are(cloud: Cluster, **wanted: int) -> Seen:
    """The placement's counts of robots; `wanted`: those that matter."""

    def described(status: Json) -> str:
        return ", ".join(f"{number} {name}" for name, number in status["counts"].items() if number)

    return await placement_is(cloud, lambda status: wanted.items() <= status["counts"].items(), described)


async def ends_with(story: Story, command: str, code: int, run: Callable[[], Awaitable[tuple[int, str, str]]]) -> None:
    """Check the exit code of a command about health, and show its output."""
    screen = ""

    async def look() -> Seen:
        nonlocal screen
        ended, screen, error = await run()
        screen = screen or error
        return Seen("status", f"{command} ends with {ended}", ended == code)

    await story.expect(f"exit code {code} ({_MEANING[code]})", look)
    story.quotes(f"\n{screen.rstrip()}")


def shown(fields: Json) -> str:
    """Fields in a line."""
    return ", ".join(f"{name} {value}" for name, value in fields.items())
