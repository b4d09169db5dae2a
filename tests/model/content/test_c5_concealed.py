"""C5.6 on virtual time: whatever a policy asks for, no value of a Secret is told or stored, nor what is made of one."""

import math

import pytest

from crsyncer.core.model import Json, Pending, Side
from tests.model.scenes.config_maps import maps, put_map
from tests.model.scenes.policies import EDGE, apply_policy, delete_policy, edit_policy, policy_rows, ready
from tests.model.scenes.secrets import (
    AS_SECRETS,
    FIRST,
    LABELS,
    SECOND,
    as_secrets,
    holds,
    passwords,
    put,
    told,
    with_secrets,
)
from tests.model.simulation.answers import invalid
from tests.model.simulation.plane import GROUP
from tests.model.simulation.scene import restart
from tests.model.simulation.world import World

GOALS = f"goals.{GROUP}"
UP: Json = {"up": [{"path": "/status/phase", "template": "{/data/password}"}]}
MAPS = {"group": "", "resource": "configmaps"}


def goal(world: World) -> Json:
    return world.robot.objects()["a"]


def misconfigured(world: World) -> str:
    """Why the only policy is not followed."""
    [(state, message)] = policy_rows(world).values()
    assert (state, ready(world.robot)[1]) == ("misconfigured", "Misconfigured")
    return message or ""


@pytest.mark.parametrize("source", ["cloud", "robot"])
def test_C5_6_steps_for_the_status_of_a_sensitive_kind_are_misconfigured(source: str) -> None:
    with as_secrets(source=source, mutations=UP) as world:
        if source == "cloud":
            put(world.cloud, FIRST)
        else:
            world.robot.create("a", labels=LABELS, data={"password": FIRST})
        world.begin()
        allowed = "allowed for secrets: mutations.down only, no status of them is synced"
        assert misconfigured(world) == f"spec.mutations.up of SyncPolicy p is set; {allowed}"
        assert FIRST not in told(world, GOALS)


@pytest.mark.parametrize("source", ["cloud", "robot"])
def test_C5_6_the_status_of_a_sensitive_kind_stays_where_it_is(source: str) -> None:
    with as_secrets(source=source) as world:
        if source == "cloud":
            put(world.cloud, FIRST)
        else:
            world.robot.create("a", labels=LABELS, data={"password": FIRST})
        world.begin()
        world.report("a", {"echo": FIRST})
        assert (passwords(world.cloud), goal(world)["data"]) == ({"a": FIRST}, {"password": FIRST})
        assert goal(world)["status"] == {"echo": FIRST}
        assert "status" not in maps(world.cloud, kind="secrets")["a"]
        assert (FIRST in told(world, GOALS), holds(world), world.status()["outbox"]["depth"]) == (False, [], 0)
        restart(world)
        world.settle()
        assert FIRST not in told(world, GOALS)


def test_C5_6_what_was_stored_before_the_kind_became_sensitive_is_taken_from_the_disk() -> None:
    with as_secrets() as world:
        put(world.cloud, SECOND)
        world.begin()
        world.stop()
        raw = {"metadata": {"name": "a", "uid": "u-1", "resourceVersion": "5"}, "data": {"password": FIRST}}
        [view] = [row[3][0] for row in world.disk.rows if row[0] == "copy" and row[2][0] is Side.ROBOT]
        key = next(row[2][1] for row in world.disk.rows if row[0] == "copy")
        stored = Pending(1, "u-1", "digest", raw, 1.0, error=FIRST, raw=True)
        world.disk.rows += [
            ("copy", GOALS, (Side.ROBOT, key), (view, str(raw).replace("'", '"'))),
            ("pending", GOALS, key, stored),
        ]
        world.disk.durable = len(world.disk.rows)
        world.cut("cloud")
        for followed in (False, True):
            apply_policy(world.robot, projection=AS_SECRETS, filter=EDGE, mutations={} if followed else UP)
            assert FIRST in str(world.disk.rows) or followed
            world.begin(seconds=5)
            world.stop()
        world.mend("cloud")
        world.start()
        assert FIRST not in str(world.disk.rows)
        world.settle()
        assert (FIRST in told(world, GOALS), goal(world)["data"]) == (False, {"password": SECOND})


@pytest.mark.parametrize("where", ["reference", "name", "namespace"])
@pytest.mark.parametrize("origin", ["cloud", "robot"])
def test_C5_6_related_objects_are_not_found_by_what_is_in_a_secret(where: str, origin: str) -> None:
    objects = {
        "reference": {"reference": "/data/password"},
        "name": {"name": "x-{/data/password}"},
        "namespace": {"name": "x", "namespace": "{/data/password}"},
    }
    entry = {"id": "maps", "origin": origin, "resource": MAPS, "object": objects[where]}
    with with_secrets(related=[entry]) as world:
        place = f"spec.related[0].object.{where} of SyncPolicy p"
        assert misconfigured(world) == f"{place} reads /data/password of a Secret; allowed: /metadata/labels/KEY"
        assert FIRST not in told(world)


def test_C5_6_related_objects_of_a_secret_are_found_by_its_labels() -> None:
    entry = {"id": "maps", "origin": "cloud", "resource": MAPS, "object": {"reference": "/metadata/labels/map"}}
    with with_secrets(related=[entry]) as world:
        put_map(world.cloud, "m", x="1")
        put_map(world.cloud, "b", labels={**LABELS, "map": "m"}, kind="secrets", password=SECOND)
        world.settle()
        assert set(maps(world.robot)) == {"m"}
        restart(world, kill=True)
        world.settle()
        assert set(maps(world.robot)) == {"m"}
        put_map(world.cloud, "b", labels={**LABELS, "map": "Not_A_Name"}, kind="secrets", password=SECOND)
        world.settle()
        assert holds(world) == ["RelatedFailed"]
        [hold] = world.status()["holds"]
        assert "/metadata/labels/map has 10 characters that are not the name of an object" in hold["message"]
        assert "Not_A_Name" not in hold["message"]


def test_C5_6_offline_related_copies_of_a_secret_outlive_a_restart() -> None:
    entry = {"id": "maps", "origin": "cloud", "resource": MAPS, "object": {"reference": "/metadata/labels/map"}}
    with with_secrets(related=[entry]) as world:
        put_map(world.cloud, "m", x="1")
        put_map(world.cloud, "a", labels={**LABELS, "map": "m"}, kind="secrets", password=SECOND)
        world.settle()
        world.cut("cloud")
        restart(world, kill=True, seconds=120)
        assert set(maps(world.robot)) == {"m"}
        world.heal("cloud")
        assert set(maps(world.robot)) == {"m"}


def test_C5_6_a_server_that_quotes_what_it_refuses_of_a_finalizer_is_not_quoted() -> None:
    with as_secrets(source="robot", deletion={"mode": "blocking"}) as world:
        world.start()
        world.inject("robot", invalid(FIRST), verb="patch", part="/goals", times=math.inf, seconds=60)
        world.robot.create("a", labels=LABELS, data={"password": FIRST})
        world.pass_time(30)
        assert world.status()["outbox"]["deadLetters"] == 1
        assert FIRST not in told(world, GOALS)


def test_C5_6_a_secret_with_a_finalizer_of_ours_loses_it_when_its_policy_is_gone() -> None:
    with with_secrets(deletion={"mode": "blocking"}) as world:
        assert len(maps(world.cloud, kind="secrets")["a"]["metadata"]["finalizers"]) == 1
        delete_policy(world.robot)
        world.settle()
        assert not maps(world.cloud, kind="secrets")["a"]["metadata"].get("finalizers")


@pytest.mark.parametrize("how", ["gone", "misconfigured and gone", "not a Secret any more"])
def test_C5_6_a_kind_that_is_no_secret_any_more_leaves_nothing_in_memory(how: str) -> None:
    with as_secrets() as world:
        put(world.cloud, FIRST)
        world.begin()
        assert world.life is not None
        vault = world.life.engine.context.vault()
        assert FIRST in str(vars(vault)["_bodies"])
        if how == "misconfigured and gone":
            edit_policy(world, projection=AS_SECRETS, filter=EDGE, mutations=UP, seconds=5)
            assert FIRST in str(vars(vault)["_bodies"])
        if how == "not a Secret any more":
            apply_policy(world.robot, filter=EDGE)
        else:
            world.robot.delete_kind()
        world.pass_time(5)
        assert FIRST not in str(vars(vault)["_bodies"])
