"""A controller that does nothing but lead and write: what the Lease alone must guarantee is seen with it."""

import asyncio
import contextlib
import itertools
from typing import Any

from crsyncer.core.requests.calls import CRD_REVISION, JSON_PATCH, VERSION, Call
from crsyncer.errors import Unsure
from crsyncer.fleet.controllers.leader import Leader
from crsyncer.runtime.connection import Connection
from tests.fleet_model.process import Process
from tests.fleet_model.world_parts import HOME
from tests.model.simulation.life import Tally

WRITE_EACH = 0.4
"""Seconds between two writes."""


class Meta:
    """Small values in memory (ports.MetaStore)."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def get_meta(self, name: str) -> Any:
        """See ports.MetaStore."""
        return self._values.get(name)

    def put_meta(self, name: str, value: Any) -> None:
        """See ports.MetaStore."""
        self._values[name] = value


async def lead_and_write(process: Process) -> None:
    """Lead or stand by; a leader writes a ConfigMap all the time."""
    leader: Leader
    connection = Connection(
        "cloud",
        cluster=process.cluster,
        store=Meta(),
        observer=Tally(),
        probe_calls=lambda: [CRD_REVISION, VERSION],
        crds=dict,
        clock=process.clock,
        gate=lambda call: leader.check(call),
    )
    leader = Leader(connection, namespace=HOME, identity=process.identity, clock=process.clock)
    process.leads = lambda: leader.leads
    process.parts["leader"] = leader
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(connection.run())
            await leader.acquire()
            group.create_task(leader.keep())
            group.create_task(_write(process, connection))
    finally:
        await leader.release()


async def _write(process: Process, connection: Connection) -> None:
    for number in itertools.count(1):
        call = Call(
            "patch",
            "PATCH",
            f"/api/v1/namespaces/{HOME}/configmaps/written",
            body=[{"op": "add", "path": "/data", "value": {"by": f"{process.identity} {number}"}}],
            content_type=JSON_PATCH,
            timeout=5.0,
        )
        with contextlib.suppress(Unsure):
            await connection.request(call)
        await asyncio.sleep(WRITE_EACH)
