"""The gate of a connection is asked right before each request that writes, and can keep it from being sent (F1.2)."""

import time

import pytest

from crsyncer.adapters.memory_meta import MemoryMeta
from crsyncer.adapters.metrics import Metrics
from crsyncer.core.requests.calls import VERSION, Call
from crsyncer.runtime.connection import Connection
from tests.adapters.kube_server import GET, Reach, always, answer

WRITE = Call("update", "PUT", "/apis/g.example.com/v1/goals/x", body={})


class LeaseLostError(Exception):
    """What the gate of this test raises."""


async def test_F1_2_a_request_that_writes_is_not_sent_when_the_gate_raises(reach: Reach) -> None:
    asked, leads = [], True

    def gate(call: Call) -> None:
        asked.append(call)
        if not leads:
            raise LeaseLostError

    async with reach(always(answer())) as (cluster, server):
        connection = Connection(
            "root",
            cluster=cluster,
            store=MemoryMeta(),
            observer=Metrics(),
            probe_calls=lambda: [VERSION],
            crds=dict,
            clock=time.time,
            gate=gate,
        )
        await connection.request(WRITE)
        leads = False
        with pytest.raises(LeaseLostError):
            await connection.request(WRITE)
        await connection.request(GET)
        assert [request.line.split()[0] for request in server.requests] == ["PUT", "GET"]
        assert asked == [WRITE, WRITE]
