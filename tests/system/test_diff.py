"""`crsyncer diff` on real planes: what differs, what does not, and what could not be looked at."""

import json
from typing import Any

import yaml

from tests.system.bed import OURS, ROBOT, Bed
from tests.system.commands import access
from tests.system.conftest import MakeBed


async def diff(bed: Bed, *arguments: str, code: int, robot: str = ROBOT) -> tuple[str, str]:
    """What it says on standard output and standard error, once it has ended with this code."""
    name = ("--robot-name", robot) if robot else ()
    found, out, error = await bed.agent.crsyncer("diff", *arguments, *access(bed), *name)
    assert found == code, (out, error)
    assert "Traceback" not in error
    return out, error


async def copied(bed: Bed, *names: str, **fields: Any) -> None:
    """Create objects in the cloud, and wait until they are on both sides."""
    for name in names:
        await bed.cloud.create(name, **fields)
    for name in names:
        await bed.robot.shows(name)
    await bed.settled()


async def test_what_differs_is_a_unified_diff_of_what_crsyncer_is_responsible_for(bed: Bed):
    whatever = {"spec": {"x": 1.0, "big": 2**53 + 1}, "annotations": {"note": "ü\x1b[2J"}}
    await copied(bed, "same", labels={"l": "1"}, **whatever)
    await copied(bed, "spec", "gone", "status", spec={"x": 1, "y": 2}, labels={"l": "1"})
    await bed.robot.set_status("same", {"phase": "RUNNING"})
    await bed.cloud.shows("same", status={"phase": "RUNNING"})
    await bed.robot.patch("same", {"metadata": {"labels": {"local": "1"}, "finalizers": ["lab.example.com/f"]}})
    assert await diff(bed, code=0) == ("", "")
    await bed.agent.stop()
    await bed.cloud.patch("spec", {"spec": {"x": 7}, "metadata": {"labels": {"l": None}}})
    await bed.robot.patch("spec", {"metadata": {"labels": {"local": "1"}, "annotations": {OURS + "other": "1"}}})
    await bed.cloud.delete("gone")
    await bed.cloud.create("new", spec={"z": "\x1b[2J"})
    await bed.robot.set_status("status", {"phase": "DONE"})
    out, error = await diff(bed, "goals", code=1)
    assert error == ""
    assert await diff(bed, "goals", "-n", "default", code=1) == (out, "")
    typo = "no synced object is in the namespace defualt; did you mean default?\n"
    assert await diff(bed, "goals", "-n", "defualt", code=0) == ("", typo)
    place = f"{bed.resource}/default"
    assert [line for line in out.splitlines() if line.startswith(("---", "+++"))] == [
        *("--- /dev/null", f"+++ robot/{place}/gone"),
        *(f"--- cloud/{place}/new", "+++ /dev/null"),
        *(f"--- cloud/{place}/spec", f"+++ robot/{place}/spec"),
        *(f"--- cloud/{place}/status", f"+++ robot/{place}/status"),
    ]
    changed = {line for line in out.splitlines() if line[:1] in "+-" and line[:3] not in ("---", "+++")}
    assert {"-  x: 7", "+  x: 1", "+  labels:", "+    l: '1'", "+status:", "+  phase: DONE"} <= changed
    assert OURS not in out
    assert "local" not in out
    assert "managedFields" not in out
    assert "\x1b" not in out
    content = json.loads((await diff(bed, "--json", code=1))[0])
    assert content["schema"] == "crsyncer.diff/v1"
    [kind] = content["kinds"]
    assert (kind["resource"], kind["objects"], kind["error"]) == (bed.resource, {"cloud": 4, "robot": 4}, None)
    assert [each["name"] for each in kind["differences"]] == ["gone", "new", "spec", "status"]
    assert kind["differences"][0]["cloud"] is None
    assert kind["differences"][1]["cloud"]["spec"] == {"z": "\x1b[2J"}
    # What it shows of an object that is missing is a manifest.
    new = out.split(f"--- cloud/{place}/new\n")[1].split("\n--- ")[0]
    manifest = yaml.safe_load("\n".join(line[1:] for line in new.splitlines() if line.startswith("-")))
    assert manifest["kind"] == bed.cloud.resource.kind
    await bed.robot.patch("same", {"metadata": {"finalizers": None}})


async def test_without_the_cloud_it_says_so_in_one_line_with_a_hint(make_bed: MakeBed):
    bed = await make_bed(start=False)
    bed.cloud.link.cut()
    out, error = await diff(bed, code=2)
    line, hint = error.splitlines()
    assert (out, line) == ("", "crsyncer: the cloud cannot be compared: connection refused")
    assert hint.startswith("hint: is the API server running")
    bed.cloud.link.restore()
    bed.cloud.link.inject("/version", status=401)
    _, error = await diff(bed, code=2)
    assert "the cloud cannot be compared: the credential is refused (401)" in error
