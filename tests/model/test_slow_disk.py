"""Hazards of a disk that takes its time: what happens elsewhere meanwhile counts."""

from crsyncer.ports import Reply
from tests.model.scene import changes, copy, original, synced
from tests.model.world import World


def test_S4_4_a_status_that_is_acknowledged_while_the_disk_is_waited_for_reaches_the_new_copy() -> None:
    for seed in range(40):
        with synced(seed) as world:
            world.disk.commit_seconds = 1.0
            world.inject("cloud", Reply(500, {"message": "storm"}), part="/status")
            world.robot.set_status("a", {"phase": "DONE"})
            world.robot.delete("a")
            world.settle()
            assert (copy(world).get("status"), original(world)["status"]) == ({"phase": "DONE"}, {"phase": "DONE"})


def test_S6_1_what_upstream_deletes_while_the_disk_is_waited_for_is_not_copied(world: World) -> None:
    world.cut("robot")
    world.cloud.create("b", spec={"x": 1})
    world.cloud.set_status("b", {"phase": "DONE"})
    world.pass_time(30)
    world.disk.commit_seconds = 100.0
    world.mend("robot")
    world.pass_time(10)
    world.cloud.delete("b")
    world.pass_time(300)
    world.settle()
    assert [write for write in changes(world) if " b " in write] == []


def test_S5_what_upstream_has_again_when_the_disk_was_waited_for_is_not_deleted(world: World) -> None:
    world.disk.commit_seconds = 100.0
    backup = world.cloud.snapshot()
    world.cloud.delete("a")
    world.pass_time(1)
    world.cloud.restore(backup)
    world.mend("cloud")
    world.pass_time(300)
    world.settle()
    assert set(world.robot.objects()) == {"a"}
    assert [write for write in changes(world) if "delete" in write] == []
