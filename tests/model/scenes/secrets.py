"""Worlds with Secrets, and everything that the agent says, writes and has written down (C5.6)."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

from crsyncer.core.model import Json
from crsyncer.core.requests.calls import kind_of
from tests.model.scenes.config_maps import data, put_map
from tests.model.scenes.policies import EDGE, apply_policy, put_policy, serve_policies
from tests.model.simulation.plane import Plane
from tests.model.simulation.scene import scene
from tests.model.simulation.world import World

LABELS = {"tier": "edge"}
FIRST, SECOND, THIRD, LOCAL = "aHVudGVyMg==", "c3dvcmRmaXNo", "dGhpcmQ=", "bG9jYWw="
AS_SECRETS: Json = {"group": "", "resource": "secrets", "kind": "Secret"}
"""The projection of a kind that the cloud has as Secrets."""
LOG = StringIO()
"""What the agent has logged in the present world."""


@contextmanager
def logging_everything() -> Iterator[None]:
    """Every line of the agent's log is in LOG."""
    LOG.seek(0)
    LOG.truncate()
    handler, logger = logging.StreamHandler(LOG), logging.getLogger("crsyncer")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@contextmanager
def with_secrets(*, source: str = "cloud", **spec: Any) -> Iterator[World]:
    """A world with a policy for Secrets, one of which is synced."""
    with logging_everything(), scene() as world:
        serve_policies(world.robot)
        secrets_policy(world, specSource=source, **spec)
        put(getattr(world, source), FIRST)
        world.start()
        world.settle()
        yield world


@contextmanager
def as_secrets(*, source: str = "cloud", **spec: Any) -> Iterator[World]:
    """A world where the cloud's Secrets are goals on the robot; the agent does not run yet."""
    with logging_everything(), World(kinds={"goals": {"source": source}}) as world:
        serve_policies(world.robot)
        apply_policy(world.robot, projection=AS_SECRETS, filter=EDGE, **spec)
        yield world
        assert world.troubles == []


def secrets_policy(world: World, **spec: Any) -> None:
    """Create or replace the policy for Secrets."""
    named = {"group": "", "resource": "secrets"}
    put_policy(world.robot, "p", {"resource": named, "specSource": "cloud", "filter": EDGE, **spec})


def put(plane: Plane, value: str, name: str = "a") -> None:
    """Create a Secret, or replace its value."""
    put_map(plane, name, labels=LABELS, kind="secrets", password=value)


def passwords(plane: Plane) -> dict[str, str]:
    """The values of Secrets, by name."""
    return {name: found["password"] for name, found in data(plane, kind="secrets").items()}


def holds(world: World) -> list[str]:
    """The reasons of all holds."""
    return [hold["reason"] for hold in world.status()["holds"]]


def told(world: World, resource: str = "secrets", name: str = "a") -> str:
    """Everything that the agent says, writes elsewhere than into the content of copies, and has written down."""
    said: list[Any] = [world.status(), world.order("pending"), world.order("events")]
    said.append(world.order("explain", resource=resource, name=name))
    for request in world.journal.requests:
        body = request.call.body
        copies = kind_of(request.call).rpartition("/")[2] in ("secrets", "goals", "configmaps")
        said.append(
            [request.call.path, body["metadata"].get("annotations") if copies and "metadata" in body else body]
            if isinstance(body, dict)
            else [request.call.path, body]
        )
    return json.dumps(said) + str(world.disk.rows) + LOG.getvalue()
