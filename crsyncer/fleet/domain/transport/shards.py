"""Whether a replica may be touched where it is, and made where it is not: each robot has one shard (F10.2, G7.1).

the Robot   its label F/shard           a replica that is there             one that is not
none        -                           goes where it is (F5)               -
seen        the shard                   is written and removed              is made
seen        another shard               is neither written nor removed      is not wanted there
seen        a shard that nobody knows   is left, like on any other shard    Blocked: UnknownShard
seen        the shard, since a moment,  is left at the old one              Blocked: OtherShard, while the old one shows
            and it was another before                                       the same replica

A robot is not moved by its label alone. What would be made anew at the new shard has other uids, and the robot's agent
holds every copy of such (G7.1). `door split` makes the new shard as a clone, with the same objects, and deletes them at
the old one: to the controller, which stands still meanwhile, they are at the new one from the beginning, and it goes on
there. So a replica is made at a shard only while no other shard that can be seen has it. A shard that cannot be seen
stops no other: a robot is on one at a time, and one that was just enrolled has replicas nowhere.
"""

from collections.abc import Collection, Iterable

from crsyncer.core.content.annotations import SHARD_LABEL
from crsyncer.fleet.domain.transport.keys import ReplicaKey
from crsyncer.fleet.domain.values import Blocked, Reason, Robot


def is_foreign(key: ReplicaKey, robot: Robot | None) -> bool:
    """Whether a replica is on another shard than its Robot's: there it is neither written nor removed."""
    return robot is not None and robot.shard != key.shard


def misplaced(
    key: ReplicaKey, *, shards: Collection[str], is_there: bool, others: Iterable[ReplicaKey]
) -> Blocked | None:
    """Why a replica that is wanted on its robot's shard is not written; None: it may be.

    `shards` are those that are known, `others` the robot's replicas on all of them.
    """
    if key.shard not in shards:
        return Blocked(Reason.UNKNOWN_SHARD, unknown_shard(key.shard, shards))
    twin = None if is_there else next((each for each in others if each.identity == key.identity), None)
    if twin is None:
        return None
    message = f"the replica is on shard {twin.shard}; move robots with crsyncer door split, or set their label back"
    return Blocked(Reason.OTHER_SHARD, message)


def unknown_shard(shard: str, shards: Collection[str]) -> str:
    """What is said of a robot on a shard that is not among those that are known."""
    known = ", ".join(sorted(shards))
    return f"the Robot's label {SHARD_LABEL} names {shard}; the controller's --shard has {known}"
