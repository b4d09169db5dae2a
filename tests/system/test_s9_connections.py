"""S9.2: a watch goes on from where it was, and what it brings does not fill the memory."""

import json
from typing import Any

import pytest

from tests.link.link import Link
from tests.system.asked import hit
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


@pytest.mark.fault_39
async def test_S9_2_a_line_of_ten_megabytes_is_neither_applied_nor_kept_in_memory(bed: Bed):
    await begun(bed)
    huge = await bed.cloud.get("a")
    huge["spec"] = {"text": "x" * (10 << 20)}
    body = line("MODIFIED", huge)
    injection = bed.cloud.link.inject(WATCH, status=200, body=body, times=2)
    most = memory(bed.agent.pid, "VmHWM")
    break_connections(bed.cloud.link)
    await hit(injection, 2)
    await flows(bed.cloud, bed.robot, 2)
    grown = memory(bed.agent.pid, "VmHWM") - most
    print(f"{grown:.1f} MiB more at the most, for two lines of 10 MiB")
    assert grown < 24
