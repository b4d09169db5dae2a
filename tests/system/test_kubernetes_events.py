"""Kubernetes Events on a real API server: it takes them, counts them, and `kubectl describe` finds them."""

from typing import Any

from crsyncer.sandbox.resource import Resource
from tests.system.bed import Bed, eventually
from tests.system.commands import ask

EVENT = Resource("events.k8s.io", "v1", "events", "Event")


async def events(bed: Bed, reason: str) -> list[dict[str, Any]]:
    """The Events of our agents with a reason."""
    items = (await bed.robot.api.list(EVENT))["items"]
    resource = bed.robot.resource
    return [
        item
        for item in items
        if item["reason"] == reason
        and item["reportingController"] == "crsyncer.cloudrobotics.com/agent"
        and (item["regarding"]["kind"], item["regarding"].get("apiVersion")) == (resource.kind, resource.api_version)
    ]


async def test_drift_is_an_event_of_the_copy_that_is_counted_and_listed_by_the_agent(bed: Bed) -> None:
    await bed.cloud.create("a", spec={"x": 1})
    copy = await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.patch("a", {"spec": {"x": 2}})

    async def found() -> list[dict[str, Any]]:
        return await events(bed, "Reverted")

    (event,) = await eventually(found, what="an Event for the drift")
    assert event["regarding"]["uid"] == copy["metadata"]["uid"]
    assert (event["type"], event["metadata"]["namespace"]) == ("Normal", "default")
    assert event["note"] == "reverted: it was changed downstream (S3.5)"
    content = await ask(bed, "events", bed.resource, "-o", "json")
    assert ("a", "reverted") in [(row["name"], row["action"]) for row in content["events"]]
    async with bed.stopped(kill=True):
        await bed.robot.patch("a", {"spec": {"x": 3}})

    async def counted() -> bool:
        return [each.get("series", {}).get("count") for each in await events(bed, "Reverted")] == [2]

    await eventually(counted, what="the same Event, counted twice")
