"""The document of `crsyncer door status`, schema `crsyncer.door-status/v1`, and the choice of a robot's shard."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from crsyncer import __version__
from crsyncer.core.accounts.robot_account import robot_namespace
from crsyncer.core.content.object_content import digest
from crsyncer.core.model import Json
from crsyncer.door.domain.door_health import Reason, worst
from crsyncer.door.domain.haproxy_answers import Stream, Worker
from crsyncer.door.domain.robots_map import Routes

SCHEMA = "crsyncer.door-status/v1"


def door_status(
    servers: Mapping[str, str],
    routes: Routes,
    reasons: Sequence[Reason],
    *,
    workers: Sequence[Worker],
    up: Mapping[str, bool],
    streams: Sequence[Stream] | None,
    robot: str = "",
) -> Json:
    """The state of a door; with `robot` also where that robot is, whose name need not be known.

    `servers` has the address of each shard, `up` and `streams` (None: not known) are what HAProxy says.
    """
    robots, at = Counter(routes.values()), Counter(each.shard for each in streams or ())
    states = {True: "up", False: "down", None: None}
    own = robot_namespace(robot)
    return {
        "schema": SCHEMA,
        "version": __version__,
        "health": str(worst(reasons)),
        "reasons": [each.document for each in reasons],
        "haproxy": {
            "version": next((each.version for each in workers), None),
            "workers": len(workers) if workers else None,
        },
        "shards": [
            {
                "name": name,
                "server": server,
                "state": states[up.get(name)],
                "robots": robots[name],
                "streams": None if streams is None else at[name],
            }
            for name, server in servers.items()
        ],
        "robot": {
            "name": robot,
            "shard": routes.get(own),
            "streams": None if streams is None else sum(each.namespace == own for each in streams),
        }
        if robot
        else None,
    }


def chosen_shard(robot: str, shards: Collection[str]) -> str:
    """The shard of a robot that has none yet: a rendezvous hash, so that another shard moves no other choice (G7.4)."""
    return max(shards, key=lambda shard: digest([robot, shard]))
