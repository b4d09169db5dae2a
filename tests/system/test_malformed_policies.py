"""C1.3 on a real API server: twenty policies that its schema lets through, and that cannot be followed."""

import asyncio
from typing import Any

from tests.api import Api
from tests.core.sync_policies import MINIMAL
from tests.system.bed import Bed, crd
from tests.system.conftest import MakeBed
from tests.system.kinds import until_row

LABEL = "/metadata/labels/cloudrobotics.com~1robot-name"


def down(path: str = "/spec/x", **verb: Any) -> dict[str, Any]:
    return {"mutations": {"down": [{"path": path, **verb}]}}


def related(**changes: Any) -> dict[str, Any]:
    resource = {"group": "", "resource": "configmaps"}
    entry = {"id": "x", "origin": "cloud", "resource": resource, "object": {"name": "x"}}
    return {"related": [{**entry, **changes}]}


def selector(**labels: Any) -> dict[str, Any]:
    return {"filter": {"selector": labels}}


MALFORMED: dict[str, tuple[dict[str, Any], str]] = {
    "patterns": (down(regex={"pattern": "(", "replacement": ""}), "regex.pattern: missing )"),
    "looks": (down(regex={"pattern": "(?=x)", "replacement": ""}), "invalid perl operator"),
    "groups": (down(regex={"pattern": "(a)", "replacement": "$2"}), "replacement has $2; allowed: $0 to $1"),
    "programs": (down(cel="value +"), "mutations.down[0].cel: line 1"),
    "others": (down(cel="other.spec.x"), "mutations.down[0].cel: line 1"),
    "macros": (down(cel="self.spec.//\nmap(x, x)"), "mutations.down[0].cel"),
    "words": (down(template="{nonsense}"), "template has {nonsense}; allowed: "),
    "braces": (down(template="{robot"), 'template has a single "{"'),
    "eaches": (down(template="{/spec/*}"), "template has {/spec/*}; allowed: "),
    "labels": ({**down(LABEL, set={"value": "x"}), "filter": {"byRobotName": True}}, "labels that the filter does not"),
    "names": ({"naming": {"name": "{/spec/x}"}}, "spec.naming.name has {/spec/x}; allowed: "),
    "places": ({"naming": {"namespace": "{place}"}}, "spec.naming.namespace has {place}; allowed: "),
    "versions": ({"resource": {"version": "v9"}}, 'spec.resource.version of SyncPolicy versions is "v9"'),
    "sources": ({"specSource": "robot"}, "spec.specSource of SyncPolicy sources is robot, but the annotation"),
    "subtrees": ({"subtree": "mine"}, "spec.subtree of SyncPolicy subtrees is mine, but the annotation"),
    "keys": (selector(matchLabels={"a b": "c"}), "spec.filter.selector.matchLabels"),
    "values": (selector(matchExpressions=[{"key": "a", "operator": "In"}]), "spec.filter.selector.matchExpressions[0]"),
    "themselves": (related(resource={}), "is synced by itself; allowed: other kinds"),
    "fields": (related(object={"name": "{field}"}), "spec.related[0].object.name has {field}; allowed: "),
    "deeps": (down(set={"value": {}}), "nested more than 200 levels deep"),
}
"""By the plural of the kind: what makes its policy malformed, and what is said of that."""


def policy(bed: Bed, plural: str) -> dict[str, Any]:
    """The policy of a kind, with its own mistake."""
    spec = {"specSource": "cloud", **MALFORMED[plural][0]}
    spec["resource"] = {"group": bed.group, "resource": plural, **spec.get("resource", {})}
    if plural == "themselves":
        spec["related"][0]["resource"] = {"group": bed.group, "resource": "goals"}
    if plural == "deeps":
        deep: Any = 1
        for _ in range(250):
            deep = [deep]
        spec["mutations"]["down"][0]["set"]["value"] = deep
    return {**MINIMAL, "metadata": {"name": plural}, "spec": spec}


async def test_C1_3_twenty_malformed_policies_are_a_line_each_and_no_other_kind_notices(
    policy_api: Api, make_bed: MakeBed
) -> None:
    assert len(MALFORMED) == 20
    bed = await make_bed()
    for plural in MALFORMED:
        await policy_api.create(policy(bed, plural))
    annotated = {"sources": {"source": "cloud"}, "subtrees": {"source": "cloud", "subtree": "theirs"}}
    crds = [crd(bed.group, plural=each, **annotated.get(each, {"source": None})) for each in MALFORMED]
    try:
        # A policy that is read after the CRD of its kind would meet one that runs by its annotations.
        await bed.agent.until(lambda status: len(status["policies"]) == len(MALFORMED))
        await asyncio.gather(*(policy_api.create(each) for each in crds))

        def told(status: dict[str, Any]) -> bool:
            rows = {row["name"]: row for row in status["policies"]}
            kinds = {row["resource"].partition(".")[0]: row["state"] for row in status["kinds"]}
            return all(
                rows[name]["state"] == kinds.get(name) == "misconfigured" and line in rows[name]["message"]
                for name, (_, line) in MALFORMED.items()
            )

        status = await bed.agent.until(told)
        assert [row["message"] for row in status["policies"] if "\n" in row["message"]] == []
        await until_row(bed, state="syncing")
        await bed.cloud.create("a", spec={"x": 1})
        await bed.robot.shows("a", spec={"x": 1})
        _, screen, _ = await bed.agent.crsyncer("status")
        assert screen.startswith("ATTENTION: ")
    finally:
        await asyncio.gather(*(policy_api.delete(each) for each in crds))
        for plural in MALFORMED:
            await policy_api.delete(policy(bed, plural))
