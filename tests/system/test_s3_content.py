"""S3 on real API servers: what they make of content, and what they refuse; tests/model shows the rest."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.system.bed import Bed, eventually
from tests.system.conftest import MakeBed
from tests.system.kinds import one_sided

VALUES = {
    "big": 9007199254740993,
    "biggest": 9223372036854775807,
    "negative": -9223372036854775808,
    "float": 0.1,
    "small": 5e-324,
    "exponent": 1.5e300,
    "whole": 1.0,
    "zero": 0,
    "false": False,
    "empty": "",
    "nothing": [],
    "none": {},
    "text": 'grüße 机器人 🤖 \u2028 \\ " \x7f \u0000 e\u0301 é',
    "ключ/~0 ~1 a.b": {"$ref": "#/x", "": 1},
    "looks like": {"number": "1", "bool": "true", "date": "2026-01-01T00:00:00Z"},
    "order": {"z": 1, "a": {"b": 2, "B": 3}},
    "mixed": [1, 1.5, "1", True, {"x": []}],
}
STRICT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "x": {"type": "integer", "maximum": 10},
                "speed": {"type": "string", "default": "slow"},
                "limits": {"type": "object", "default": {}, "properties": {"n": {"type": "integer", "default": 7}}},
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


async def test_S3_1_S3_7_every_field_and_value_survives_both_ways(bed: Bed) -> None:
    await bed.cloud.create("a", spec=VALUES, data={"key": "value"}, unheardOf=[{"kept": False}, 3])
    original = await bed.cloud.get("a")
    copy = await bed.robot.shows("a", spec=original["spec"], data={"key": "value"}, unheardOf=original["unheardOf"])
    assert copy["spec"]["big"] == 9007199254740993
    assert isinstance(copy["spec"]["big"], int)
    await bed.robot.set_status("a", VALUES)
    upstream = await bed.cloud.shows("a", status=(await bed.robot.get("a"))["status"])
    assert upstream["status"]["biggest"] == 9223372036854775807
    await bed.cloud.patch("a", {"spec": {"big": 9007199254740992}, "data": None})
    copy = await bed.robot.shows("a", data=None, spec={**original["spec"], "big": 9007199254740992})
    assert copy["status"] == upstream["status"]


@pytest.fixture
def deep_json() -> Iterator[None]:
    """The JSON decoder of this process, too, would give up at 1,000 levels.

    To be asked for before the planes: what is left there is read when they are cleaned.
    """
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    yield
    sys.setrecursionlimit(usual)


async def test_S3_7_deep_nesting_stops_nobody(deep_json: None, bed: Bed) -> None:
    path = bed.cloud.api.path(bed.cloud.goal("deep"), name=False)
    head = f'"apiVersion":"{bed.cloud.resource.api_version}","kind":"Goal","metadata":{{"name":"deep"}}'
    nested = '{"a":' * 9000 + "1" + "}" * 9000
    body = f'{{{head},"spec":{nested}}}'.encode()
    status, _ = await bed.cloud.api.request("POST", path, json=body)
    assert status == 201

    async def copied() -> bool:
        return (await bed.robot.api.request("GET", f"{path}/deep"))[0] == 200

    await eventually(copied, what="the deep object is copied")
    await bed.cloud.create("b", spec={"x": 1})
    await bed.robot.shows("b", spec={"x": 1})
    async with bed.stopped():
        await bed.cloud.patch("b", {"spec": {"x": 3}})
    await bed.robot.shows("b", spec={"x": 3})


async def test_S3_1_S3_5_what_a_schema_prunes_and_completes_settles_and_its_loss_is_drift(make_bed: MakeBed) -> None:
    bed = await make_bed(**one_sided("robot", STRICT))
    await bed.cloud.create("a", spec={"x": 1, "unknown": 1}, data={"k": "v"})
    admitted = {"x": 1, "speed": "slow", "limits": {"n": 7}}
    await bed.robot.shows("a", spec=admitted, data=None)
    await bed.robot.set_status("a", {"n": 1})
    await bed.cloud.shows("a", status={"n": 1}, spec={"x": 1, "unknown": 1}, data={"k": "v"})
    await bed.settled()
    await bed.robot.patch("a", {"spec": {"speed": "fast"}})
    await bed.robot.shows("a", spec=admitted)
    await bed.cloud.patch("a", {"spec": {"x": 2, "speed": "fast"}})
    await bed.robot.shows("a", spec={"x": 2, "speed": "fast", "limits": {"n": 7}}, status={"n": 1})
    await bed.settled()
