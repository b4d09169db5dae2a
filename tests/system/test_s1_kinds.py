"""S1.5 to S1.7: which version is spoken, kinds that are missing or forbidden, scopes and namespaces."""

from dataclasses import replace

import pytest

from crsyncer.sandbox.resource import CRD, NAMESPACE
from tests.link.link import Link
from tests.system.asked import refusal
from tests.system.bed import LABEL, ROBOT, Bed, crd, eventually, writes
from tests.system.conftest import MakeBed
from tests.system.kinds import another, asked, until_row

SLOW = 90.0
"""Seconds in which a kind must have come back: longer than a few steps of an exponential back-off."""
NOT_SERVED = b"404 page not found\n"


def no_discovery(link: Link, group: str, status: int) -> None:
    """Discovery of the group is refused, as a gateway does."""
    body = refusal(403, "discovery is forbidden", reason="Forbidden") if status == 403 else NOT_SERVED
    link.inject(rf"^/apis/{group}(/v[0-9a-z]+)?$", status=status, body=body)


async def test_S1_5_the_robots_storage_version_is_spoken_where_the_cloud_serves_it(make_bed: MakeBed):
    bed = await make_bed(versions=("v1", "v2"), storage="v1", cloud_crd={"storage": "v2"})
    assert (await bed.kind())["version"] == "v1"
    await bed.cloud.create("a", spec={"x": 1})
    copy = await bed.robot.shows("a", spec={"x": 1})
    assert copy["apiVersion"].endswith("/v1")
    assert not any("/v2/" in target for target in asked(bed.cloud.link) + asked(bed.robot.link))


@pytest.mark.nightly("to be shown by the model")
async def test_S1_5_else_the_newest_version_that_both_serve_by_priority(make_bed: MakeBed):
    bed = await make_bed(
        versions=("v1alpha9", "v1beta2", "v1beta10", "v11alpha1", "v3"),
        storage="v3",
        cloud_crd={"versions": ("v1alpha9", "v1beta2", "v1beta10", "v11alpha1"), "storage": "v1beta2"},
    )
    await until_row(bed, version="v1beta10", state="syncing")
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"done": True})
    await bed.cloud.shows("a", status={"done": True})


@pytest.mark.nightly("to be shown by the model")
async def test_S1_5_no_common_version_names_both_lists_until_there_is_one(make_bed: MakeBed):
    bed = await make_bed(
        versions=("v1", "v1beta1"), storage="v1", cloud_crd={"versions": ("v2", "v3"), "storage": "v3"}, start=False
    )
    await bed.robot.create("local", spec={"x": 0})
    await bed.start(state="version-mismatch")
    cloud_tasks, robot_tasks = await another(bed)
    message = (await bed.kind())["message"]
    assert all(version in message for version in ("v1", "v1beta1", "v2", "v3")), message
    assert (await bed.agent.crsyncer("status"))[0] == 12
    await cloud_tasks.create("t", spec={"x": 1})
    await robot_tasks.shows("t", spec={"x": 1})
    assert await bed.robot.names() == {"local"}
    await bed.cloud.create("a", spec={"x": 1})
    await bed.cloud.api.apply_crd(crd(bed.group, versions=("v2", "v3", "v1beta1"), storage="v3"))
    await until_row(bed, version="v1beta1", state="syncing", seconds=SLOW)
    await bed.robot.shows("a", spec={"x": 1})


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("status", [403, 404])
async def test_S1_5_where_discovery_is_refused_the_storage_version_is_tried(make_bed: MakeBed, status: int):
    bed = await make_bed(versions=("v1", "v2"), storage="v1", start=False)
    no_discovery(bed.cloud.link, bed.group, status)
    await bed.start()
    assert (await bed.kind())["version"] == "v1"
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"done": True})
    await bed.cloud.shows("a", status={"done": True})


async def test_S1_5_a_version_that_the_cloud_stops_serving_is_left_for_one_that_it_serves(make_bed: MakeBed):
    bed = await make_bed(versions=("v1", "v2"), storage="v1", cloud_crd={"versions": ("v1",), "storage": "v1"})
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    name = CRD.object(bed.resource)
    await bed.cloud.api.apply_crd(crd(bed.group, versions=("v1", "v2"), storage="v2"))
    await bed.cloud.api.patch(name, [{"op": "replace", "path": "/spec/versions/0/served", "value": False}])
    await until_row(bed, version="v2", state="syncing", seconds=SLOW)
    await bed.robot.shows("a", spec={"x": 1})
    cloud = replace(bed.cloud, resource=replace(bed.cloud.resource, version="v2"))
    await cloud.create("b", spec={"x": 2})
    await bed.robot.shows("b", spec={"x": 2})


@pytest.mark.nightly("to be shown by the model")
async def test_S1_5_a_status_subresource_that_comes_or_goes_in_the_cloud_alone_is_noticed(make_bed: MakeBed):
    bed = await make_bed(cloud_crd={"status": False})
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    await bed.robot.set_status("a", {"n": 1})
    await bed.cloud.shows("a", status={"n": 1})
    for number, there in enumerate((True, False), start=2):
        await bed.cloud.api.apply_crd(crd(bed.group, status=there))
        # Sent where it went before, it would be dropped in silence, or refused for good.
        await bed.robot.set_status("a", {"n": number})
        await bed.cloud.shows("a", status={"n": number}, spec={"x": 1}, seconds=SLOW)
        await bed.agent.until(lambda status: status["health"] == "healthy", seconds=SLOW)


@pytest.mark.nightly("to be shown by the model")
async def test_S1_1_a_new_version_in_the_robots_crd_is_spoken_from_then_on(make_bed: MakeBed):
    bed = await make_bed(versions=("v1",), cloud_crd={"versions": ("v1", "v2"), "storage": "v1"})
    assert (await bed.kind())["version"] == "v1"
    await bed.robot.api.apply_crd(crd(bed.group, versions=("v1", "v2"), storage="v2"))
    await until_row(bed, version="v2", state="syncing", seconds=SLOW)
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})


async def test_S1_6_a_kind_that_the_cloud_does_not_serve_waits_without_harm_and_starts_when_it_comes(
    make_bed: MakeBed,
):
    bed = await make_bed(cloud_crd=False, start=False)
    await bed.robot.create("by-hand", spec={"x": 0})
    cloud_tasks, robot_tasks = await another(bed)
    await bed.start(state="kind-missing")
    await cloud_tasks.create("t", spec={"x": 1})
    await robot_tasks.shows("t", spec={"x": 1})
    assert (await until_row(bed, "tasks", state="syncing"))["relists"] == {"cloud": 1, "robot": 1}
    assert await bed.robot.names() == {"by-hand"}
    await bed.agent.until(lambda status: status["health"] == "degraded")
    pid = bed.agent.pid
    await bed.cloud.api.apply_crd(crd(bed.group))
    await bed.cloud.create("a", spec={"x": 1})
    await bed.until_kind("syncing", seconds=SLOW)
    await bed.robot.shows("a", spec={"x": 1})
    assert bed.agent.pid == pid


@pytest.mark.nightly("to be shown by the model")
@pytest.mark.parametrize("side", ["cloud", "robot"])
async def test_S1_6_a_collection_answered_in_plain_text_404_is_missing_and_deletes_nothing(bed: Bed, side: str):
    link = bed.cloud.link if side == "cloud" else bed.robot.link
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    cloud_tasks, robot_tasks = await another(bed)
    await until_row(bed, "tasks", state="syncing")
    await bed.settled()
    injection = link.inject(rf"^/apis/{bed.group}/v1/goals", status=404, body=NOT_SERVED)
    async with bed.stopped():
        pass
    missing = await bed.until_kind("kind-missing")
    assert side in missing["message"]
    await cloud_tasks.create("t", spec={"x": 1})
    await robot_tasks.shows("t", spec={"x": 1})
    await until_row(bed, "tasks", state="syncing")
    assert await bed.cloud.names() == await bed.robot.names() == {"a"}
    assert not any("/goals" in write for write in writes(bed.robot.link) if write.startswith("DELETE"))
    injection.remove()
    await bed.until_kind("syncing", seconds=SLOW)
    await bed.cloud.patch("a", {"spec": {"x": 2}})
    await bed.robot.shows("a", spec={"x": 2})


@pytest.mark.nightly("to be shown by the model")
async def test_S1_6_a_404_about_an_object_does_not_mean_that_the_kind_is_missing(make_bed: MakeBed):
    bed = await make_bed(start=False)
    body = refusal(404, 'clusters "lab" not found', reason="NotFound")
    injection = bed.cloud.link.inject(rf"^/apis/{bed.group}/v1/goals", status=404, body=body)
    await bed.agent.start()

    async def answered() -> bool:
        before = injection.count
        status = await bed.agent.ask()
        assert status is None or status["kinds"] != [] or before == 0
        return before >= 2

    await eventually(answered, what="two lists were answered")
    assert (await bed.kind())["state"] not in ("kind-missing", "syncing")
    injection.remove()
    await bed.until_kind("syncing", seconds=SLOW)


@pytest.mark.fault_36
async def test_S1_6_a_forbidden_kind_says_so_deletes_nothing_and_leaves_others_alone(bed: Bed):
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("a", spec={"x": 1})
    cloud_tasks, robot_tasks = await another(bed)
    await until_row(bed, "tasks", state="syncing")
    await bed.settled()
    body = refusal(403, "goals is forbidden: the account cannot list them", reason="Forbidden")
    injection = bed.cloud.link.inject(rf"^/apis/{bed.group}/v1/goals", status=403, body=body)
    async with bed.stopped():
        pass
    forbidden = await bed.until_kind("forbidden")
    assert "forbidden" in forbidden["message"]
    await cloud_tasks.create("t", spec={"x": 1})
    await robot_tasks.shows("t", spec={"x": 1})
    assert (await bed.agent.status())["health"] == "attention"
    assert await bed.robot.names() == {"a"}
    injection.remove()
    await bed.until_kind("syncing", seconds=SLOW)
    await bed.cloud.patch("a", {"spec": {"x": 2}})
    await bed.robot.shows("a", spec={"x": 2})


async def test_S1_7_all_namespaces_are_synced_and_one_missing_on_the_robot_is_made_and_kept(bed: Bed):
    name = f"made-{bed.group.partition('.')[0]}"
    await bed.cloud.api.ensure_namespace(name)
    for namespace in ("default", name):
        await bed.cloud.create("a", spec={"in": namespace}, namespace=namespace)
    await bed.robot.shows("a", spec={"in": "default"}, namespace="default")
    await bed.robot.shows("a", spec={"in": name}, namespace=name)
    await bed.cloud.delete("a", namespace=name)
    await bed.robot.gone("a", namespace=name)
    assert (await bed.robot.api.get(NAMESPACE.object(name)))["status"]["phase"] == "Active"


@pytest.mark.nightly("to be shown by the model")
async def test_S1_7_namespaces_can_be_restricted_and_nothing_is_asked_of_others(make_bed: MakeBed, group: str):
    one, two, other = (f"{each}-{group.partition('.')[0]}" for each in ("one", "two", "other"))
    bed = await make_bed(start=False, flags=("--namespace", one, "--namespace", two))
    for namespace in (one, two, other):
        await bed.cloud.api.ensure_namespace(namespace)
        await bed.cloud.create("a", spec={"in": namespace}, namespace=namespace)
    await bed.robot.api.ensure_namespace(other)
    await bed.robot.create("local", spec={"x": 0}, namespace=other)
    await bed.start()
    await bed.robot.shows("a", spec={"in": one}, namespace=one)
    await bed.robot.shows("a", spec={"in": two}, namespace=two)
    await bed.cloud.create("b", spec={"x": 1}, namespace=other)
    await bed.cloud.create("b", spec={"x": 1}, namespace=two)
    await bed.robot.shows("b", spec={"x": 1}, namespace=two)
    assert await bed.robot.find("a", namespace=other) is None
    assert await bed.robot.find("b", namespace=other) is None
    assert await bed.robot.find("local", namespace=other) is not None
    for link in (bed.cloud.link, bed.robot.link):
        requests = asked(link)
        assert requests
        assert all(f"/namespaces/{one}/" in r or f"/namespaces/{two}/" in r for r in requests), requests
    await until_row(bed, objects={"cloud": 3, "robot": 3})


@pytest.mark.parametrize("source", ["cloud", pytest.param("robot", marks=pytest.mark.nightly("a variation"))])
async def test_S1_7_cluster_scoped_kinds_are_synced_with_their_statuses(make_bed: MakeBed, source: str):
    bed = await make_bed(cluster=True, source=source, filtered="true")
    up, down = (bed.cloud, bed.robot) if source == "cloud" else (bed.robot, bed.cloud)
    await up.create("a", spec={"x": 1}, labels={LABEL: ROBOT})
    await down.shows("a", spec={"x": 1})
    await down.set_status("a", {"done": True})
    await up.shows("a", status={"done": True})
    assert (await bed.kind())["scope"] == "Cluster"
    await up.delete("a")
    await down.gone("a")


@pytest.mark.parametrize("cluster", [False, pytest.param(True, marks=pytest.mark.nightly("a variation"))])
async def test_S1_7_a_scope_that_differs_is_misconfigured_and_touches_nothing(make_bed: MakeBed, cluster: bool):
    bed = await make_bed(cluster=cluster, cloud_crd={"cluster": not cluster}, start=False)
    await bed.robot.create("local", spec={"x": 0})
    await bed.cloud.create("a", spec={"x": 1})
    await bed.start(state="misconfigured")
    message = (await bed.kind())["message"]
    assert "Namespaced" in message
    assert "Cluster" in message
    cloud_tasks, robot_tasks = await another(bed)
    await cloud_tasks.create("t", spec={"x": 1})
    await robot_tasks.shows("t", spec={"x": 1})
    assert await bed.robot.names() == {"local"}
    assert not any("/goals" in write for write in writes(bed.robot.link) + writes(bed.cloud.link))


@pytest.mark.nightly("to be shown by the model")
async def test_S1_7_a_scope_that_differs_deletes_nothing_even_where_its_discovery_comes_late(make_bed: MakeBed):
    bed = await make_bed(cloud_crd={"cluster": True}, start=False)
    await bed.robot.create("local", spec={"x": 0})
    late = bed.cloud.link.stall(rf"^/apis/{bed.group}$")
    await bed.agent.start()
    cloud_tasks, _ = await another(bed)

    async def both_listed() -> bool:
        return all(
            any("/goals?" in r and "watch" in r for r in asked(link)) for link in (bed.cloud.link, bed.robot.link)
        )

    await cloud_tasks.create("t", spec={"x": 1})
    await eventually(both_listed, what="both sides are watched under provisional terms")
    await bed.cloud.create("a", spec={"x": 1})
    late.remove()
    await bed.until_kind("misconfigured", seconds=SLOW)
    assert await bed.robot.names() == {"local"}
