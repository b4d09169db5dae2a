"""What operators are told of related objects on virtual time: `explain` and `diff` (C1.5, C5)."""

import asyncio
from types import SimpleNamespace
from typing import Any

from crsyncer.adapters.expressions import Expressions
from crsyncer.console.compare import lister
from crsyncer.console.compare.cluster_diff import compare
from crsyncer.console.compare.identities import identified
from crsyncer.core.model import Json, Side
from tests.model.scenes.config_maps import data, delete_map, put_map
from tests.model.scenes.policies import apply_policy, edit_policy, senders
from tests.model.scenes.related import BOTH, EDGE, diff, ends, entry, explained, related, said


@BOTH
def test_C5_1_explain_shows_what_goes_with_an_object_and_where_the_copies_are(origin: str) -> None:
    with related(origin) as world:
        here, there = ends(world, origin)
        on = {"cloud": "in the cloud", "robot": "on the robot"}
        world.cloud.create("g", spec={"maps": ["a", "b", "none"]})
        world.cloud.create("h", spec={})
        for name in "abx":
            put_map(here, name, x="1")
        world.settle()
        found = explained(world, "goals", "g")
        assert (found["state"], found["primaries"]) == ("in-sync", [])
        [entry] = found["related"]
        assert (entry["id"], entry["resource"], entry["origin"]) == ("maps", "configmaps", origin)
        copied = [{"namespace": "default", "name": name, "state": "seen"} for name in "ab"]
        assert [each["copy"] for each in entry["objects"]][:2] == copied
        assert [(each["name"], each["original"]) for each in entry["objects"]] == [
            *(("a", "seen"), ("b", "seen")),
            ("none", "absent"),
        ]
        assert said(found, "C5.1") == [(True, f"related maps: {on[here.side]} there is no configmaps default/none")]
        assert said(found, "C5.3") == [
            (True, f"related maps: configmaps default/a, default/b: copied, {on[there.side]}")
        ]
        none = explained(world, "goals", "h")
        assert said(none, "C5.1") == [(True, "related maps: it refers to no configmaps")]
        world.cut(there.side)
        put_map(here, "none", x="late")
        world.pass_time(10)
        late = explained(world, "goals", "g")
        assert (None, f"related maps: configmaps default/none: not yet {on[there.side]}") in said(late, "C5.3")


@BOTH
def test_C5_1_explain_shows_what_a_related_object_goes_with_or_that_it_goes_with_none(origin: str) -> None:
    with related(origin) as world:
        here, there = ends(world, origin)
        for name in "ab":
            put_map(here, name, x="1")
        world.add("g", spec={"maps": ["a"]})
        found = explained(world, "configmaps", "a")
        assert (found["state"], found["related"]) == ("in-sync", [])
        assert found["primaries"] == [
            {"resource": "goals.lab.example.com", "namespace": "default", "name": "g", "policy": "p", "id": "maps"}
        ]
        assert (True, "goals.lab.example.com default/g refers to it (maps of SyncPolicy p)") in said(found, "C5.1")
        none = explained(world, "configmaps", "b")
        text = "no object of goals.lab.example.com refers to it, so it is not synced"
        assert (none["state"], none["summary"], said(none, "C5.4")) == ("not-synced", text, [(False, text)])
        world.edit("g", spec={"maps": []})
        assert data(there) == {}
        assert explained(world, "configmaps", "a")["state"] == "not-synced"


def test_C5_4_explain_says_that_a_copy_is_kept_and_of_a_selection_what_it_selects() -> None:
    with related(object=EDGE, cleanup="keep") as world:
        put_map(world.cloud, "a", labels={"tier": "edge"}, x="1")
        world.add("g", spec={})
        found = explained(world, "goals", "g")
        assert [each["name"] for each in found["related"][0]["objects"]] == ["a"]
        assert explained(world, "configmaps", "a")["primaries"][0]["name"] == "g"
        world.remove("g")
        kept = explained(world, "configmaps", "a")
        assert kept["summary"].endswith("refers to it, so it is not synced; its copy stays (cleanup: keep)")


def test_C5_3_explain_says_of_a_kind_that_is_not_synced_that_it_is_not() -> None:
    with related(resource={"group": "", "resource": "none"}) as world:
        world.add("g", spec={"maps": ["a"]})
        found = explained(world, "goals", "g")
        text = "related maps: none is not synced; crsyncer status says why"
        assert said(found, "C5.3") == [(None, text)]


@BOTH
def test_C5_1_diff_compares_the_originals_that_objects_refer_to(origin: str) -> None:
    with related(origin) as world:
        here, there = ends(world, origin)
        for name in "abc":
            put_map(here, name, x="1")
        put_map(there, "local", x="1")
        world.add("g", spec={"maps": ["a", "b"]})
        found = diff(world, "configmaps")
        assert (found["differences"], found["error"]) == ([], None)
        assert diff(world, "goals.lab.example.com")["differences"] == []
        world.stop()
        put_map(here, "a", x="2")
        delete_map(there, "b")
        world.cloud.create("h", spec={"maps": ["c"]})
        world.cloud.set("g", spec={"maps": ["a", "b"]})
        names = [each["name"] for each in diff(world, "configmaps")["differences"]]
        assert names == (["a", "b", "c"] if origin == "cloud" else ["a", "b"])  # the copy of h is not there yet


@BOTH
def test_C5_4_diff_does_not_compare_a_copy_that_stays_because_its_entry_is_gone(origin: str) -> None:
    with related(origin) as world:
        here, there = ends(world, origin)
        for name in "ab":
            put_map(here, name, x="1")
        world.cloud.create("g", spec={"maps": ["a"], "other": "b"})
        apply_policy(
            world.robot, related=[entry(origin), entry(origin, id="other", object={"reference": "/spec/other"})]
        )
        world.settle()
        edit_policy(world, related=[entry(origin)])
        assert set(data(there)) == {"a", "b"}
        assert diff(world, "configmaps")["differences"] == []
        world.stop()
        delete_map(here, "a")
        assert [each["name"] for each in diff(world, "configmaps")["differences"]] == ["a"]


def test_C5_1_diff_says_of_what_it_cannot_be_told_what_it_refers_to() -> None:
    with related() as world:
        world.add("g", spec={"maps": [7]})
        odd = diff(world, "configmaps")
        assert "what default/g of goals.lab.example.com refers to cannot be told: " in odd["error"]


def test_C5_1_diff_compares_what_is_selected_and_says_where_that_is_too_much() -> None:
    with related(object=EDGE) as world:
        for number in range(3):
            put_map(world.cloud, f"a{number}", labels={"tier": "edge"}, x="1")
        put_map(world.cloud, "b", x="1")
        world.add("g", spec={})
        world.stop()
        put_map(world.cloud, "a0", labels={"tier": "edge"}, x="2")
        found = diff(world, "configmaps")
        assert ([each["name"] for each in found["differences"]], found["error"]) == (["a0"], None)
        for number in range(100):
            put_map(world.cloud, f"c{number}", labels={"tier": "edge"}, x="1")
        assert diff(world, "configmaps")["error"] == "there are 103 of them; allowed: 100"


@BOTH
def test_C4_1_C5_1_diff_knows_the_cluster_that_steps_and_related_objects_name(origin: str) -> None:
    steps = [{"path": "/spec/hash", "template": "{hash}"}, {"path": "/spec/of", "template": "{cluster}"}]
    with related(origin, start=False, object={"name": "{hash}"}) as world:
        entries = [entry(origin, object={"name": "{hash}"})]
        apply_policy(world.robot, related=entries, naming={"name": "copy-{name}"}, mutations={"down": steps})
        world.cloud.create("a")
        world.begin()
        put_map(ends(world, origin)[0], world.robot.objects()["copy-a"]["spec"]["hash"], x="1")
        world.settle()
        assert len(data(ends(world, origin)[1])) == 1
        send = senders(world)
        clusters: Any = {side: SimpleNamespace(request=send[side], server="", fallback_identity="") for side in Side}

        async def compared(known: dict[Side, str]) -> list[Json]:
            found = await lister.configuration(send[Side.ROBOT], Expressions)
            kinds = await identified(found.kinds("robot-1"), clusters, known)
            return [await compare(kinds[name], send, kinds=kinds) for name in ("goals.lab.example.com", "configmaps")]

        both = {side.value: 1 for side in Side}
        for known in ({}, {Side.CLOUD: world.status()["sides"]["cloud"]["identity"]}):
            rows = asyncio.run(compared(known))
            assert [(each["objects"], each["differences"], each["error"]) for each in rows] == [(both, [], None)] * 2
