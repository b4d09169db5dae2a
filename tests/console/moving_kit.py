"""Robots that still run the Go cr-syncer, as far as `crsyncer doctor --from-cr-syncer` looks at them."""

from typing import Any

from crsyncer.console.set_up.moving_report import Pairs
from crsyncer.core.content.object_content import key_of
from crsyncer.core.model import Json, Side
from tests.core.builders import goal, policy


def named(name: str, namespace: str = "default", **metadata: Any) -> Json:
    return goal(metadata={"name": name, "namespace": namespace, **metadata})


def pairs(*, cloud: list[Json], robot: list[Json], **changes: Any) -> Pairs:
    found = Pairs(policy(**changes))
    for side, objects in ((Side.CLOUD, cloud), (Side.ROBOT, robot)):
        for raw in objects:
            found.take(side, key_of(raw), raw)
    return found


def workload(*arguments: str, **spec: Any) -> Json:
    containers = [{"args": list(arguments)}]
    return {"metadata": {"name": "cr-syncer", "namespace": "default"}, "spec": {"containers": containers, **spec}}


def deployment(*arguments: str, replicas: int = 1) -> Json:
    return {**workload(), "spec": {"replicas": replicas, "template": workload(*arguments)}}
