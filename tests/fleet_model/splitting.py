"""A shard that is split while a controller runs: the command, the door, and the administrator, on virtual time (G7)."""

from collections.abc import Sequence

from crsyncer.core.requests.calls import Call, Collection
from crsyncer.door.domain.split_plan import AskedDoor
from crsyncer.door.split.shard_objects import ShardObjects
from crsyncer.door.split.splitting import Splitting
from crsyncer.ports import Reply, Send
from tests.door.simulated import answered
from tests.fleet_model import oracle
from tests.fleet_model.oracle import ROBOTS
from tests.fleet_model.sharded import Sharded
from tests.model.simulation.weather import Weather

_ROBOTS = Collection("registry.cloudrobotics.com", "v1alpha1", "robots", "default")


def hide(fleet: Sharded, name: str) -> None:
    """Have a shard be one that is not there yet: nobody is at it, and the controller a does not reach it."""
    fleet.world.lose_robots(f"r{name}")
    fleet.world.weather[fleet[name].link] = Weather(fleet.world.chance)
    fleet.world.cut(fleet[name].link)


def clone(fleet: Sharded, shard: str, new: str) -> None:
    """Restore a snapshot of a shard, or of the root, as another one."""
    cloud = fleet.world.cloud if shard == "root" else fleet[shard].cloud
    fleet[new].cloud.restore(cloud.snapshot())
    fleet.world.mend(fleet[new].link)
    fleet.world.pass_time(60)


def take_step(fleet: Sharded, shard: str, new: str, names: tuple[str, ...], number: int) -> str:
    """Take a step of the command; why it is not done."""

    async def root(call: Call) -> Reply:
        if call.method == "PATCH":  # a merge patch, of the label alone
            fleet.move(call.path.rpartition("/")[2], new)
            return Reply(200, {"metadata": {}})
        return answered(fleet.world.server, call)

    async def ask(shards: Sequence[str]) -> tuple[AskedDoor, ...]:
        """The door, which follows the labels."""
        found = {each: frozenset(name for name, own in homes(fleet).items() if own == each) for each in shards}
        return (AskedDoor("door", streams=found, routed=found),)

    one, other = (ShardObjects(name, _sending(fleet, name)) for name in (shard, new))
    splitting = Splitting(root, _ROBOTS, one, other, names, ask)
    _, failed = fleet.world.clock.run(splitting.run(number, yes=True))
    return "" if failed is None else f"{failed.number}: {failed.message}"


def homes(fleet: Sharded) -> dict[str, str]:
    """The shard of each Robot."""
    found = fleet.world.server.storage.of(ROBOTS).values()
    return {each["metadata"]["name"]: oracle.shard_of(each) for each in found}


def _sending(fleet: Sharded, name: str) -> Send:
    """The requests of an administrator to a shard, or to the root."""
    server = fleet.world.server if name == "root" else fleet[name].server

    async def send(call: Call) -> Reply:
        reply = answered(server, call)
        fleet.world.signal.ring()
        return reply

    return send
