"""C5.6 on virtual time: Secrets, which are in memory only."""

import asyncio
import json
import math
from dataclasses import replace

import pytest

from crsyncer.console.compare.cluster_diff import compare
from tests.model.scenes.config_maps import delete_map, maps, put_map
from tests.model.scenes.policies import EDGE, put_policy, senders, serve_policies
from tests.model.scenes.related import related
from tests.model.scenes.secrets import (
    FIRST,
    LABELS,
    LOCAL,
    SECOND,
    THIRD,
    holds,
    passwords,
    put,
    secrets_policy,
    told,
    with_secrets,
)
from tests.model.simulation.answers import NAMESPACE_TERMINATING, invalid
from tests.model.simulation.scene import restart, scene


def test_C5_6_the_value_of_a_config_map_is_told() -> None:
    with scene() as world:
        serve_policies(world.robot)
        named = {"group": "", "resource": "configmaps"}
        put_policy(world.robot, "p", {"resource": named, "specSource": "cloud", "filter": EDGE})
        put_map(world.cloud, "a", labels=LABELS, password=FIRST)
        world.begin()
        assert FIRST in json.dumps(world.order("explain", resource="configmaps", name="a"))
        assert FIRST in str(world.disk.rows)


@pytest.mark.parametrize("source", ["cloud", "robot"])
def test_C5_6_secrets_are_synced_and_their_values_are_told_nowhere(source: str) -> None:
    with with_secrets(source=source) as world:
        up, down = (world.cloud, world.robot) if source == "cloud" else (world.robot, world.cloud)
        assert passwords(down) == {"a": FIRST}
        put(up, SECOND)
        world.pass_time(2)
        assert passwords(down) == {"a": SECOND}
        put(down, LOCAL)
        world.pass_time(2)
        assert passwords(down) == {"a": SECOND}
        text = told(world)
        assert [value in text for value in (FIRST, SECOND, LOCAL)] == [False, False, False]
        delete_map(up, "a", kind="secrets")
        world.settle()
        assert passwords(down) == {}


def test_C5_6_offline_a_secret_is_enforced_until_the_agent_restarts() -> None:
    with with_secrets() as world:
        world.cut("cloud")
        delete_map(world.robot, "a", kind="secrets")
        world.pass_time(60)
        assert passwords(world.robot) == {"a": FIRST}
        restart(world, kill=True, seconds=60)
        assert (passwords(world.robot), holds(world)) == ({"a": FIRST}, [])
        delete_map(world.robot, "a", kind="secrets")
        world.pass_time(60)
        assert (passwords(world.robot), holds(world)) == ({}, ["SecretUnknown"])
        assert world.status()["health"] == "degraded"
        put(world.robot, LOCAL)
        world.pass_time(60)
        assert passwords(world.robot) == {"a": LOCAL}
        world.heal("cloud", seconds=90)
        assert holds(world) in ([], ["NameTaken"])


def test_C4_1_C5_6_changed_steps_are_applied_to_secrets() -> None:
    with with_secrets() as world:
        for number in range(2):
            secrets_policy(
                world, mutations={"down": [{"path": "/data/password", "set": {"value": f"c3RlcA=={number}"}}]}
            )
            world.settle()
            assert (passwords(world.robot), holds(world)) == ({"a": f"c3RlcA=={number}"}, [])
        with world.down(kill=True):
            secrets_policy(world)
        world.settle()
        assert (passwords(world.robot), holds(world)) == ({"a": FIRST}, [])


def test_C4_1_C5_6_without_the_cloud_changed_steps_are_applied_to_secrets_until_the_agent_restarts() -> None:
    with with_secrets() as world:
        world.cut("cloud")
        secrets_policy(world, mutations={"down": [{"path": "/data/password", "set": {"value": THIRD}}]})
        world.pass_time(60)
        assert (passwords(world.robot), holds(world)) == ({"a": THIRD}, [])
        delete_map(world.robot, "a", kind="secrets")
        world.pass_time(60)
        assert passwords(world.robot) == {"a": THIRD}
        with world.down(kill=True):
            secrets_policy(world, mutations={"down": [{"path": "/data/password", "set": {"value": SECOND}}]})
        world.pass_time(60)
        assert passwords(world.robot) == {"a": THIRD}
        world.heal("cloud", seconds=90)
        assert (passwords(world.robot), holds(world)) == ({"a": SECOND}, [])


def test_C5_6_a_lost_key_costs_one_write_per_copy() -> None:
    with with_secrets() as world:
        before = int(maps(world.robot, kind="secrets")["a"]["metadata"]["resourceVersion"])
        with world.down():
            world.settings = replace(world.settings, digest_key=b"another")
        world.settle()
        assert int(maps(world.robot, kind="secrets")["a"]["metadata"]["resourceVersion"]) == before + 1
        assert passwords(world.robot) == {"a": FIRST}


def test_C5_6_a_server_that_quotes_what_it_refuses_is_not_quoted() -> None:
    with with_secrets() as world:
        world.inject("robot", invalid(SECOND), verb="update", part="/secrets", times=1_000)
        put(world.cloud, SECOND)
        world.pass_time(30)
        assert world.status()["outbox"]["deadLetters"] == 1
        text = told(world)
        assert SECOND not in text


def test_S10_a_namespace_that_is_being_deleted_is_no_matter_of_the_credential_for_secrets_either() -> None:
    with with_secrets() as world:
        world.inject("robot", NAMESPACE_TERMINATING, verb="create", part="/secrets", times=math.inf, seconds=60)
        delete_map(world.robot, "a", kind="secrets")
        world.pass_time(55.0)
        assert (passwords(world.robot), world.status()["health"]) == ({}, "healthy")
        world.pass_time(70.0)
        assert passwords(world.robot) == {"a": FIRST}


def test_C5_6_diff_names_the_step_that_fails_on_a_secret_and_does_not_quote_it() -> None:
    step = {"path": "/data/password", "cel": "int(value)"}
    with with_secrets(mutations={"down": [step]}) as world:
        assert holds(world) == ["MutationFailed"]
        policy = world.life.engine.kinds.entries["secrets"].policy if world.life else None
        assert policy is not None
        found = asyncio.run(compare(policy, senders(world)))
        assert found["error"] == "default/a cannot be compared: spec.mutations.down[0], /data/password"
        assert FIRST not in told(world)


def test_C2_5_a_secret_of_the_robots_own_is_adopted_only_if_it_is_equal() -> None:
    with with_secrets() as world:
        with world.down():
            for name, value in (("equal", FIRST), ("other", LOCAL)):
                put(world.robot, value, name)
                put(world.cloud, FIRST, name)
        world.settle()
        assert passwords(world.robot) == {"a": FIRST, "equal": FIRST, "other": LOCAL}
        [hold] = world.status()["holds"]
        assert (hold["reason"], hold["names"]) == ("NameTaken", ["default/other"])


@pytest.mark.parametrize("change", ["deleted", "made equal"])
def test_C2_5_a_related_secret_is_copied_once_the_secret_of_its_name_is_gone_or_equal(change: str) -> None:
    """The watch shows copies by their marks, so nothing tells of this one: it is looked at again after a while."""
    with related(resource={"group": "", "resource": "secrets"}) as world:
        put(world.cloud, FIRST)
        put(world.robot, LOCAL)
        world.cloud.create("g", spec={"maps": ["a"]})
        world.settle()
        assert (passwords(world.robot), holds(world)) == ({"a": LOCAL}, ["NameTaken"])
        if change == "deleted":
            delete_map(world.robot, "a", kind="secrets")
        else:
            put(world.robot, FIRST)
        world.pass_time(300)
        assert (passwords(world.robot), holds(world)) == ({"a": FIRST}, [])
        put(world.cloud, SECOND)
        world.settle()
        assert passwords(world.robot) == {"a": SECOND}
