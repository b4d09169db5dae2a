"""How each kind is synced by all that configures a robot, and what related objects need (C1, C5)."""

from typing import Any

import pytest

from crsyncer.console.confinement.admission_policies import kind_policy
from crsyncer.console.confinement.manifests import Plan, Profile, confinable, manifests, rules, unconfined
from crsyncer.core.accounts.access import needs, needs_text
from crsyncer.core.accounts.forbidden_acts import forbidden_acts
from crsyncer.core.content.annotations import SPEC_SOURCE
from crsyncer.core.content.object_content import UPSTREAM_UID
from crsyncer.core.kinds.built_in_kind import unknown
from crsyncer.core.kinds.configured import configured_kind, without_crd
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.merge_settings import PolicyObject
from crsyncer.core.kinds.namespaces import EVERYWHERE
from crsyncer.core.model import Json, Side
from crsyncer.core.related.relate import related_entries, related_policy
from tests.core.builders import crd
from tests.core.policy_objects import policy_object, read

GOALS, TASKS, MAPS = "goals.lab.example.com", "tasks.lab.example.com", "configmaps"


def entry(*, plural: str = MAPS, group: str = "", origin: str = "cloud", **more: Any) -> Json:
    resource = {"group": group, "resource": plural}
    return {"id": "x", "origin": origin, "resource": resource, "object": {"name": "x"}, **more}


def built_in(plural: str = MAPS) -> Json:
    found = unknown(Resource("", plural))
    found["spec"]["versions"] = [{"name": "v1", "served": True, "storage": True, "subresources": {}}]
    return found


def configured(raw: Json, *objects: PolicyObject, **annotated: bool) -> KindPolicy | None:
    """What comes of a CRD; `annotated` has the plurals of the CRDs of the robot."""
    crds = {f"{plural}.lab.example.com": value for plural, value in annotated.items()}

    def each(other: Json, entries: Any) -> KindPolicy | None:
        return configured_kind(
            other,
            "robot-1",
            namespaces=EVERYWHERE,
            objects=lambda name: [found for found in objects if found.is_for(name)],
            annotated=crds.get,
            policies=objects,
            entries=entries,
        )

    primary = each(crd({}), ())
    return each(raw, [] if primary is None else related_entries(primary))


def test_C5_a_kind_is_synced_by_itself_or_as_the_kind_of_related_objects_or_not_at_all():
    own = policy_object(specSource="cloud", related=[entry()])
    goals, maps = configured(crd({}), own), configured(built_in(), own)
    assert goals is not None
    assert maps is not None
    assert (goals.problem, [each.resource for each in related_entries(goals)]) == ("", [MAPS])
    assert (maps.problem, [each.primary for each in maps.related], maps.upstream) == ("", [GOALS], Side.CLOUD)
    assert (goals.rule, maps.rule) == ("C1.3", "C1.3")
    assert configured(built_in("secrets"), own) is None
    assert configured(crd({})) is None
    plain = configured(crd({SPEC_SOURCE: "robot"}))
    assert plain is not None
    assert (plain.upstream, plain.related, plain.rule) == (Side.ROBOT, (), "")


@pytest.mark.parametrize("how", ["annotated", "named"])
def test_C5_3_a_kind_that_is_synced_by_itself_cannot_be_related(how):
    own = policy_object(specSource="cloud", related=[entry(plural="tasks", group="lab.example.com")])
    task = policy_object("b", resource={"group": "lab.example.com", "resource": "tasks"}, specSource="cloud")
    objects = (own, task) if how == "named" else (own,)
    found = configured(crd({}), *objects, goals=False, tasks=how == "annotated")
    assert found is not None
    assert f"{TASKS} is synced by itself; allowed: other kinds" in found.problem
    allowed = configured(crd({}), own, goals=False, tasks=False)
    assert allowed is not None
    assert allowed.problem == ""


def test_C1_6_a_copy_names_related_kinds_with_a_crd_only():
    spec = {"resource": {"group": "lab.example.com", "resource": "goals"}, "specSource": "cloud", "related": [entry()]}
    own = read({"metadata": {"name": "a", "annotations": {UPSTREAM_UID: "u"}}, "spec": spec})
    found = configured(crd({}), own)
    assert found is not None
    assert "it is a copy and names configmaps, which has no CRD" in found.problem


def test_C1_4_kinds_without_a_crd_are_looked_for_but_for_those_whose_crd_is_to_come():
    own = policy_object(specSource="cloud", related=[entry(), entry(plural="jobs", group="batch", id="y")])
    api = policy_object("b", resource={"group": "x.example.com", "resource": "ys"}, api={"source": "cloud"})
    broken = policy_object("c", specSource="moon")
    found = without_crd([own, api, broken], {GOALS})
    assert found.built_in == {MAPS: Resource("", MAPS), "jobs.batch": Resource("batch", "jobs")}
    assert found.to_come == {"ys.x.example.com"}
    assert without_crd([own, api], {GOALS, "ys.x.example.com", MAPS, "jobs.batch"}).built_in == {}


# What accounts need for it, and may not


def related(plural: str = MAPS, *, origin: str = "cloud", **more: Any) -> KindPolicy:
    own = policy_object(specSource="cloud", related=[entry(plural=plural, origin=origin, **more)])
    primary = configured(crd({}), own)
    assert primary is not None
    found = related_policy(built_in(plural), related_entries(primary), "robot-1")
    assert found.problem == ""
    return found


def test_C5_4_originals_are_read_and_copies_written():
    assert needs_text(needs(related(), Side.CLOUD)) == "list, watch configmaps"
    assert needs_text(needs(related(), Side.ROBOT)) == "list, watch, get, create, update, delete configmaps"
    assert needs_text(needs(related(cleanup="keep"), Side.ROBOT)) == "list, watch, get, create, update configmaps"
    assert needs_text(needs(related(origin="robot"), Side.ROBOT)) == "list, watch configmaps"
    assert needs_text(needs(related(origin="robot"), Side.CLOUD)) == "list, watch, create, update, delete configmaps"


@pytest.mark.parametrize("origin", ["cloud", "robot"])
@pytest.mark.parametrize("plural", [MAPS, "secrets"])
def test_C5_the_roles_of_related_objects_have_what_the_agent_needs_and_nothing_that_is_forbidden(origin, plural):
    kind = related(plural, origin=origin)
    for profile in Profile:
        [rule] = rules(kind, profile)
        assert rule["resources"] == [plural]
        acts = [act for need in needs(kind, Side.CLOUD) for act in need.acts]
        assert {act.verb for act in acts} == set(rule["verbs"])
    for each in forbidden_acts([kind], robot="r1", namespaces=("robot-r1",)):
        if each.act.resource == plural and each.namespace:
            assert each.act.verb not in rule["verbs"], str(each)


def test_C5_6_that_secrets_are_synced_is_said_and_a_robot_makes_no_tokens_of_them():
    def expressions(kind: KindPolicy) -> str:
        return str(kind_policy(kind)["spec"]["validations"])

    assert "service-account-token" in expressions(related("secrets", origin="robot"))
    assert "service-account-token" not in expressions(related(origin="robot"))
    assert "'expression': 'false'" in expressions(related("secrets"))
    [sentence] = unconfined(Plan(("r1",), (related("secrets"),)))
    assert sentence == "a robot reads all Secrets of the namespaces that it syncs"
    [sentence] = unconfined(Plan(("r1",), (related("secrets"),), two_accounts=True))
    assert sentence.endswith(", and with them the token of crsyncer-enroll")
    assert unconfined(Plan(("r1",), (related(),))) == []
    [reads, _] = unconfined(Plan(("r1",), (related("secrets"),), two_accounts=True, profile=Profile.SHARED))
    assert reads == "a robot reads all Secrets of the namespaces that it syncs"


def test_C5_built_in_kinds_are_not_labelled_by_force_for_the_control_plane_makes_some():
    filtered = related(filterByRobotName=True)
    assert filtered.filtered
    names = [each.content["metadata"]["name"] for each in manifests(Plan(("r1",), (filtered,)))]
    assert not [name for name in names if name.startswith("crsyncer-label-matches")]


def test_C5_of_built_in_kinds_only_those_that_are_data_are_confined():
    for plural in (MAPS, "secrets"):
        read_by = confinable(built_in(plural), Profile.NAMESPACE, place="-", read=lambda *_: related())
        assert read_by.resource == MAPS


def test_C7_two_kinds_are_not_one_in_the_cloud():
    resource = {"group": "lab.example.com", "resource": "errands"}
    one = policy_object(projection={"resource": "tasks"})
    other = policy_object("b", resource=resource, projection={"resource": "tasks"})
    broken = policy_object("c", resource=resource | {"resource": "jobs"}, deletion={"mode": "?"})
    alone = configured(crd({}), one, tasks=False)
    assert alone is not None
    assert "in the cloud" not in alone.problem
    both = configured(crd({}), one, other, broken)
    annotated = configured(crd({}), one, tasks=True)
    assert both is not None
    assert annotated is not None
    assert "goals.lab.example.com and errands.lab.example.com are both tasks.lab.example.com" in both.problem
    assert "goals.lab.example.com and tasks.lab.example.com are both tasks.lab.example.com" in annotated.problem


def test_C7_kinds_of_related_objects_are_not_one_with_another_kind_in_the_cloud():
    tasks = {"resource": "tasks", "group": "lab.example.com"}
    maps = policy_object(specSource="cloud", related=[entry(projection=tasks)])
    errands = {"group": "lab.example.com", "resource": "errands"}
    others = {
        "errands.lab.example.com": policy_object("b", resource=errands, specSource="cloud", projection=tasks),
        "secrets": policy_object("b", resource=errands, related=[entry(plural="secrets", projection=tasks)]),
        "tasks.lab.example.com": policy_object(
            "b", resource=errands, related=[entry(plural="tasks", group="lab.example.com")]
        ),
    }
    for name, other in others.items():
        found = configured(crd({}), maps, other)
        assert found is not None
        assert f"spec.related of SyncPolicy a: configmaps and {name} are both {TASKS} in the cloud" in found.problem
    alike = policy_object("b", resource=errands, specSource="cloud", related=[entry(projection=tasks)])
    for objects in ((maps,), (maps, alike)):
        found = configured(crd({}), *objects)
        assert found is not None
        assert found.problem == ""
    annotated = configured(crd({}), maps, goals=False, tasks=True)
    assert annotated is not None
    assert f"configmaps and {TASKS} are both" in annotated.problem
