"""A split where robots share a source: their statuses move with them, and the clone has the copy (F10.3, G7.2)."""

from collections.abc import Iterator
from contextlib import contextmanager

from crsyncer.core.model import Json
from tests.fleet_model import oracle
from tests.fleet_model.sharded import GOALS, Sharded
from tests.fleet_model.sharing import NEW, OLD, STATUSES, mark, returned, shared
from tests.fleet_model.splitting import clone, hide, take_step
from tests.model.simulation.plane import Plane

STAYING, MOVING = ("s0", "s1"), ("m0", "m1")


@contextmanager
def to_split(shard: str) -> Iterator[Sharded]:
    """Robots at a shard, or at the root, that have told what they share; c is not there yet."""
    with shared(
        shards=sorted({shard, "c"} - {"root"}), start=False, readyWhen="returned.status.phase == 'Ready'"
    ) as fleet:
        hide(fleet, "c")
        cloud = plane_of(fleet, shard)
        for name in (*STAYING, *MOVING):
            fleet.enrol(name, shard)
            cloud.server.make_namespace(f"robot-{name}")
        fleet.world.start()
        fleet.world.agree()
        for name in (*STAYING, *MOVING):
            returned(fleet, name, {"phase": "Ready"}, at=cloud, namespace=f"robot-{name}")
        fleet.world.settle()
        assert states(fleet) == dict.fromkeys((*STAYING, *MOVING), "Ready")
        yield fleet


def plane_of(fleet: Sharded, shard: str) -> Plane:
    return fleet.world.cloud if shard == "root" else fleet[shard].cloud


def states(fleet: Sharded) -> dict[str, str]:
    """Of the robots that are split."""
    return {name: state for name, state in fleet.world.decided().items() if name in (*STAYING, *MOVING)}


def dock(fleet: Sharded, shard: str) -> Json:
    """The object that robots share, as a shard has it."""
    found = plane_of(fleet, shard).get("dock", namespace="default")
    assert found is not None
    return found


def telling(fleet: Sharded, shard: str) -> set[str]:
    """The robots whose RobotObjectStatus is at a shard."""
    found = plane_of(fleet, shard).server.storage.of(STATUSES)
    return {namespace.removeprefix("robot-") for namespace, _ in found}


def test_F10_3_G7_2_the_source_in_the_clone_of_the_root_becomes_a_copy_by_its_label():
    with to_split("root") as fleet:
        uid, marked = dock(fleet, "root")["metadata"]["uid"], mark(fleet)
        began = fleet.world.clock.now
        clone(fleet, "root", "c")
        assert [take_step(fleet, "root", "c", MOVING, number) for number in (1, 2, 3, 4, 5)] == [""] * 5
        fleet.world.settle()
        assert (telling(fleet, "root"), telling(fleet, "c")) == (set(STAYING), set(MOVING))
        identity = oracle.digest([GOALS, "default", "dock"])
        [error] = fleet.world.status()["errors"]
        assert error["reason"] == "NameTaken"
        assert f"{oracle.SOURCE}={identity}" in error["message"]
        assert states(fleet) == dict.fromkeys(STAYING, "Ready") | dict.fromkeys(MOVING, "Blocked")
        assert fleet["c"].verbs(began) == [], "the source in the clone is nobody's until somebody says so"
        fleet["c"].cloud.label("dock", namespace="default", **{oracle.SOURCE: identity})
        fleet.agree()
        assert fleet["c"].verbs(began) == ["patch"]
        assert (dock(fleet, "c")["metadata"]["uid"], dock(fleet, "c")["spec"]) == (uid, OLD), (
            "no robot replaces its own"
        )
        assert (fleet.world.status()["errors"], mark(fleet)) == ([], marked)
        assert states(fleet) == dict.fromkeys((*STAYING, *MOVING), "Ready")
        assert fleet.world.holds() == {}
        began = fleet.world.clock.now
        fleet.world.cloud.set("dock", spec=NEW)
        fleet.agree()
        assert [each.process for each in fleet.world.written(began, resource=GOALS)] == ["a@c"]


def test_F10_3_G7_2_the_copy_in_the_clone_of_a_shard_is_the_copy():
    with to_split("b") as fleet:
        uid, began = dock(fleet, "b")["metadata"]["uid"], fleet.world.clock.now
        clone(fleet, "b", "c")
        assert [take_step(fleet, "b", "c", MOVING, number) for number in (1, 2, 3, 4, 5)] == [""] * 5
        fleet.agree()
        assert (telling(fleet, "b"), telling(fleet, "c")) == (set(STAYING), set(MOVING))
        assert fleet["b"].verbs(began) == fleet["c"].verbs(began) == []
        assert dock(fleet, "b")["metadata"]["uid"] == dock(fleet, "c")["metadata"]["uid"] == uid
        assert states(fleet) == dict.fromkeys((*STAYING, *MOVING), "Ready")
        assert (fleet.world.status()["errors"], fleet.world.holds()) == ([], {})
        fleet.world.cloud.set("dock", spec=NEW)
        fleet.agree()
        assert fleet["b"].verbs(began) == fleet["c"].verbs(began) == ["patch"]
