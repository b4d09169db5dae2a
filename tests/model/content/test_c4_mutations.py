"""C4 on virtual time: a policy's steps on the way down and up, changed steps, and steps that fail."""

import pytest

from crsyncer.core.model import Json, Side
from tests.model.scenes.policies import apply_policy, edit_policy
from tests.model.scenes.shapes import reshape, setting, shaped, unshape
from tests.model.scenes.statuses import sent
from tests.model.simulation.scene import SOURCES, copy, full_lists, holds, original, restart, roles

BOTH = pytest.mark.parametrize("source", SOURCES)
HOUR = 3600.0
URL: Json = {"path": "/spec/url", "regex": {"pattern": "^http:", "replacement": "https:"}}
NEXT: Json = {"path": "/spec/x", "cel": "value + 1"}
WORD: Json = {"path": "/status/word", "template": "{robot} {/status/n}"}


@BOTH
def test_C4_1_a_copy_is_what_the_steps_make_and_is_kept_so(source: str) -> None:
    down_steps = [
        URL,
        {"path": "/spec/secret", "remove": True},
        {"path": "/metadata/labels/who", "template": "{robot}-{namespace}-{name}-{/spec/x}"},
        NEXT,
        {"path": "/spec/x", "cel": "value * self.spec.x"},
    ]
    with shaped(source=source, down=down_steps) as world:
        up, down = roles(world, source)
        world.begin("a", source=source, spec={"x": 3, "url": "http://b", "secret": 1})
        wanted = {"x": 12, "url": "https://b"}
        assert down.objects()["a"]["spec"] == wanted
        assert down.objects()["a"]["metadata"]["labels"]["who"] == "robot-1-default-a-3"
        assert up.objects()["a"]["spec"] == {"x": 3, "url": "http://b", "secret": 1}
        down.set("a", spec={"x": 3, "url": "http://b", "secret": 1})
        world.pass_time(2)
        assert down.objects()["a"]["spec"] == wanted
        before = len(world.writes)
        world.pass_time(HOUR)
        restart(world)
        restart(world, kill=True)
        assert len(world.writes) == before
        world.edit("a", spec={"x": 1}, source=source)
        assert down.objects()["a"]["spec"] == {"x": 2}


@BOTH
@pytest.mark.parametrize("kill", [False, True])
def test_C4_1_changed_steps_are_applied_to_the_stored_objects_and_nothing_is_listed(source: str, kill: bool) -> None:
    with shaped(source=source, down=[setting("one")]) as world:
        _, down = roles(world, source)
        world.begin("a", "b", "c", source=source)
        assert down.objects()["a"]["spec"] == {"x": 1, "mode": "one"}
        begun = world.clock.now
        with world.down(kill, kill=True):
            reshape(world, down=[setting("two"), NEXT])
        world.settle()
        assert [each["spec"] for each in down.objects().values()] == [{"x": 2, "mode": "two"}] * 3
        unshape(world)
        world.settle()
        assert [each["spec"] for each in down.objects().values()] == [{"x": 1}] * 3
        assert [full_lists(world, side, begun) for side in Side] == [[], []]
        before = len(world.writes)
        restart(world)
        assert len(world.writes) == before


@BOTH
@pytest.mark.parametrize("forgotten", ["subtree", "database"])
def test_C4_1_changed_steps_are_applied_at_once_also_where_no_record_says_what_was_applied(
    source: str, forgotten: str
) -> None:
    with shaped(source=source, down=[setting("one")]) as world:
        _, down = roles(world, source)
        world.begin("a", source=source)
        if forgotten == "subtree":
            apply_policy(world.robot, mutations={"down": [setting("one")]}, subtree="phase")
        else:
            with world.down():
                world.lose_database()
        world.settle()
        begun = world.clock.now
        world.cut("cloud", seconds=60)
        more = {"subtree": "phase"} if forgotten == "subtree" else {}
        edit_policy(world, mutations={"down": [setting("two")]}, **more, seconds=30)
        if source == "cloud":
            assert down.objects()["a"]["spec"] == {"x": 1, "mode": "two"}
        world.heal("cloud")
        assert down.objects()["a"]["spec"] == {"x": 1, "mode": "two"}
        assert [full_lists(world, side, begun) for side in Side] == [[], []]


@pytest.mark.parametrize("steps", range(1, 25))
def test_C4_1_a_crash_while_steps_change_mixes_nothing_also_where_they_are_changed_back(steps: int) -> None:
    one, two = [setting("one")], [setting("two")]
    with shaped(down=one, seed=steps) as world:
        world.begin(*"abcd")
        world.crash_after(steps)
        reshape(world, down=two)
        world.pass_time(5)
        world.crash()
        for wanted in (one, two) if steps % 2 else (two, one):
            reshape(world, down=wanted)
            world.begin()
            value = wanted[0]["set"]["value"]
            assert [each["spec"]["mode"] for each in world.robot.objects().values()] == [value] * 4
            before = len(world.writes)
            for name in "abcd":
                world.cloud.set_status(name, {"touched": value})
            world.settle()
            assert len(world.writes) == before
            world.crash()


@BOTH
def test_C4_1_a_status_goes_up_as_the_steps_make_it_and_its_echo_is_agreed(source: str) -> None:
    with shaped(source=source, up=[WORD, {"path": "/status/private", "remove": True}]) as world:
        up, down = roles(world, source)
        world.begin("a", source=source)
        assert "status" not in up.objects()["a"]
        world.report("a", {"n": 1, "private": 2}, source=source)
        assert up.objects()["a"]["status"] == {"n": 1, "word": "robot-1 1"}
        assert down.objects()["a"]["status"] == {"n": 1, "private": 2}
        world.pass_time(12 * HOUR)
        restart(world)
        restart(world, kill=True)
        world.report("a", {"n": 1, "private": 3}, source=source)
        assert len(sent(world, source)) == 1
        world.report("a", {"n": 2, "private": 3}, source=source)
        assert (up.objects()["a"]["status"], len(sent(world, source))) == ({"n": 2, "word": "robot-1 2"}, 2)


def test_C4_1_steps_run_before_the_subtree_is_taken() -> None:
    with shaped(subtree="robot", up=[{"path": "/status/robot/copied", "cel": "self.status.raw"}]) as world:
        world.cloud.create("a", spec={"x": 1})
        world.cloud.set_status("a", {"cloud": 1})
        world.begin()
        world.report("a", {"raw": 5, "robot": {"n": 1}})
        assert original(world)["status"] == {"cloud": 1, "robot": {"n": 1, "copied": 5}}
        world.report("a", {"raw": 6, "robot": {"n": 1}})
        assert original(world)["status"] == {"cloud": 1, "robot": {"n": 1, "copied": 6}}
        assert copy(world)["status"] == {"raw": 6, "robot": {"n": 1}}


def test_C4_1_observed_generations_are_mapped_after_the_steps() -> None:
    with shaped(observed_generation="map", up=[setting("up", "/status/word")], down=[setting("down")]) as world:
        world.begin("a")
        world.edit("a", spec={"x": 2})
        copied = copy(world)["metadata"]["generation"]
        world.robot.set("a", spec={"x": 9})
        world.settle()
        assert copy(world)["metadata"]["generation"] == copied + 2
        world.report("a", {"observedGeneration": copied + 2})
        assert original(world)["status"] == {"observedGeneration": 2, "word": "up"}


@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("before", [[], [setting("old", "/status/word")]])
def test_C4_1_a_status_that_waits_is_sent_by_the_steps_of_now(kill: bool, gone: bool, before: list[Json]) -> None:
    with shaped(up=before, down=[setting("down")]) as world:
        world.begin("a", spec={"x": 7})
        world.cut("cloud", seconds=5)
        world.report("a", {"n": 1}, seconds=5)
        if gone:
            world.robot.delete("a")
            world.pass_time(5)
        with world.down(kill, kill=True):
            reshape(world, down=[setting("down")], up=[{"path": "/status/word", "template": "{name} {/status/n}"}])
        world.pass_time(30)
        world.heal("cloud")
        assert original(world)["status"] == {"n": 1, "word": "a 1"}
        assert copy(world)["spec"] == {"x": 7, "mode": "down"}
        world.pass_time(HOUR)
        assert len(sent(world)) == 1
        unshape(world)
        world.settle()
        assert original(world)["status"] == {"n": 1}


def test_C4_1_a_status_that_waits_is_sent_with_all_that_new_steps_may_use() -> None:
    with shaped() as world:
        world.begin("a", spec={"mode": "m"})
        world.cut("cloud", seconds=5)
        world.report("a", {"mode": "m"}, seconds=5)
        reshape(world, up=[{"path": "/status/mode", "cel": "self.spec.mode"}])
        world.pass_time(5)
        world.heal("cloud")
        assert (original(world)["status"], world.status()["health"]) == ({"mode": "m"}, "healthy")


@pytest.mark.parametrize("step", [{"template": "{cluster}"}, {"cel": "cluster"}])
def test_C4_1_the_clusters_name_is_known_to_steps_from_the_first_object_on(step: Json) -> None:
    with shaped(down=[{"path": "/spec/cluster", **step}]) as world:
        world.cloud.create("a", spec={})
        world.cut("cloud")
        world.begin(seconds=60)
        world.heal("cloud")
        cluster = copy(world)["spec"]["cluster"]
        assert (len(cluster), holds(world)) == (16, [])
        world.cloud.rebuild()
        world.pass_time(120)
        assert world.status()["sides"]["cloud"]["state"] == "identity-changed"
        assert copy(world)["spec"]["cluster"] == cluster
        world.order("release", id="cloud")
        world.settle()
        world.add("b", spec={})
        other = copy(world, "b")["spec"]["cluster"]
        assert (len(other), other == cluster) == (16, False)


def test_C4_2_remove_and_regex_skip_what_is_absent_and_the_others_set_it() -> None:
    steps: list[Json] = [URL, {"path": "/spec/gone", "remove": True}, setting(1, "/spec/deep/set")]
    steps += [{"path": "/spec/text", "template": "{name}"}, {"path": "/spec/cel", "cel": "value == null"}]
    with shaped(down=steps) as world:
        world.begin("a")
        assert copy(world)["spec"] == {"x": 1, "deep": {"set": 1}, "text": "a", "cel": True}
        assert holds(world) == []
