"""S9.1 and S9.2: one probe while a side is down; watches go on from where they were."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.link.faults import Injection
from tests.link.link import Link
from tests.system.asked import hit, refusal
from tests.system.bed import Bed, memory
from tests.system.flow import begun, flows


def watch_of(plural: str) -> str:
    """The pattern of a kind's watches, not of those that only ask for what is known (S8.2)."""
    return rf"/{plural}\?(.*&)?watch=true&.*allowWatchBookmarks"


WATCH = watch_of("goals")


def line(kind: str, obj: dict[str, Any]) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def break_connections(link: Link) -> None:
    link.cut()
    link.restore()


def bookmark(version: str) -> bytes:
    """The line of a server that has nothing to say."""
    return line("BOOKMARK", {"kind": "Goal", "metadata": {"resourceVersion": version}})


def faults(version: str) -> dict[str, Callable[[Link, str], Injection]]:
    """What may end a watch, by name; each takes a link and the watch's pattern."""

    def answers(status: int, body: bytes | dict[str, Any]) -> Callable[[Link, str], Injection]:
        return lambda link, watch: link.inject(watch, status=status, body=body, times=1)

    return {
        "clean end": answers(200, b""),
        "end after a bookmark": answers(200, bookmark(version)),
        "half a line": answers(200, b'{"type":"ADDED","object":{"metad'),
        "garbage": answers(200, b"<html>captive portal</html>\n"),
        "not an object": answers(200, line("ADDED", {"metadata": {}})),
        "error line": answers(200, line("ERROR", refusal(500, "etcd is away", reason="InternalError"))),
        "closed without an answer": lambda link, watch: link.stall(watch, times=1, hang_up=True),
        **{
            f"HTTP {code}": answers(code, refusal(code, "trouble", reason="Failure"))
            for code in (400, 403, 404, 408, 500, 502, 504)
        },
    }


@pytest.mark.fault_39
async def test_S9_2_a_line_of_ten_megabytes_is_neither_applied_nor_kept_in_memory(bed: Bed):
    before = await begun(bed)
    huge = await bed.cloud.get("a")
    huge["spec"] = {"text": "x" * (10 << 20)}
    body = line("MODIFIED", huge)
    injection = bed.cloud.link.inject(WATCH, status=200, body=body, times=2)
    most = memory(bed.agent.pid, "VmHWM")
    break_connections(bed.cloud.link)
    await hit(injection, 2)
    await flows(bed.cloud, bed.robot, 2)
    assert (await bed.kind())["relists"] == before["relists"]
    grown = memory(bed.agent.pid, "VmHWM") - most
    print(f"{grown:.1f} MiB more at the most, for two lines of 10 MiB")
    assert grown < 24
