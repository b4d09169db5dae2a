"""Revisions of a CRD: what travels, the CRD that follows, what that breaks (C8)."""

import random
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.core.apis.revise import (
    Breaking,
    Change,
    breaking,
    follow,
    read_crd,
    read_revision,
    revise,
    shown_crd,
    sound_revision,
)
from crsyncer.core.model import Json
from crsyncer.errors import ConfigError
from tests.core.apis.crds import crd, version
from tests.core.builders import many

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
WEBHOOK = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}
KEEPS = {"x-kubernetes-preserve-unknown-fields": True}


def broken(old: dict, new: dict) -> list[str]:
    """What the new schema of the field `x` breaks."""
    return [str(each) for each in breaking(crd(version(x=old)), revise(crd(version(x=new))))]


# C8.1


def test_C8_1_the_picked_served_versions_travel_without_a_conversion_and_best_first():
    source = crd(
        version("v1beta1", storage=False),
        version("v2", storage=False),
        version("v1", storage=True),
        version("v0", served=False, storage=False),
        conversion=WEBHOOK,
    )
    assert revise(source).spec == {
        **{key: source["spec"][key] for key in ("group", "names", "scope")},
        "versions": [version("v2", storage=False), version("v1"), version("v1beta1", storage=False)],
    }
    picked = revise(source, ("v1beta1", "v2")).spec["versions"]
    assert [(each["name"], each["storage"]) for each in picked] == [("v2", True), ("v1beta1", False)]


@pytest.mark.parametrize(
    ("source", "picked", "said"),
    [
        (crd(version("v1"), version("v2", served=False)), ("v2", "v3"), "v3, v2 cannot be picked; the CRD serves v1"),
        (crd(version("v1")), (), "no version is picked; the CRD serves v1"),
        (crd(version("v1", served=False)), None, "no version is picked; the CRD serves none"),
    ],
)
def test_C8_1_a_version_that_is_picked_but_not_served_is_refused(source, picked, said):
    with pytest.raises(ConfigError, match=said):
        revise(source, picked)


def test_C8_1_equal_specs_have_equal_names_and_others_have_others():
    source = crd(version("v1", x={"type": "number", "maximum": 1}), version("v2", storage=False))
    name = revise(source).name
    hashed, rest = name.split(".", 1)
    assert (hashed[0], len(hashed), rest) == ("v", 11, "goals.lab.example.com")
    assert int(hashed[1:], 16) >= 0
    same = crd(version("v2", storage=False), version("v1", x={"type": "number", "maximum": 1.0}), conversion=WEBHOOK)
    same["metadata"] = {"name": "goals.lab.example.com"}
    for field in ("singular", "listKind"):  # a file does not have them
        del same["spec"]["names"][field]
    assert revise(same).name == name
    others = [
        revise(crd(version("v1", x={"type": "number", "maximum": 2}), version("v2", storage=False))).name,
        revise(source, ("v1",)).name,
        revise(crd(version("v1", x={"type": "number", "maximum": 1}), version("v2"), scope="Cluster")).name,
    ]
    assert len({name, *others}) == 4


# C8.2


def test_C8_2_a_crd_is_created_with_the_spec_alone():
    made = follow(None, revise(crd(version())))
    assert made["metadata"] == {"name": "goals.lab.example.com"}
    assert made["spec"] == revise(crd(version())).spec
    assert read_crd(made) == made


def test_C8_2_a_spec_is_replaced_but_conversion_metadata_and_stored_versions_stay():
    before = crd(
        version("v1alpha1", storage=False),
        version("v1beta1", storage=False, x=TEXT),
        version("v1"),
        conversion=WEBHOOK,
        stored=("v1beta1", "v1"),
        preserveUnknownFields=False,
    )
    revision = revise(crd(version("v2")))
    after = follow(before, revision)
    assert after["metadata"] == before["metadata"]
    assert after["spec"] == {
        **revision.spec,
        "conversion": WEBHOOK,
        "versions": [
            version("v2"),
            version("v1beta1", served=False, storage=False, x=TEXT),
            version("v1", served=False, storage=False),
        ],
    }
    # A file has no status; objects may be stored in the storage version all the same.
    del before["status"]
    assert [each["name"] for each in follow(before, revision)["spec"]["versions"]] == ["v2", "v1"]


NAMES = ["v1", "v2", "v1beta1", "v2alpha1", "other"]


def any_crd(chance: random.Random) -> dict:
    """A CRD with any versions, of which it serves at least one."""
    chosen = chance.sample(NAMES, chance.randint(1, 4))
    storage, served = chance.choice(chosen), chance.sample(chosen, chance.randint(1, len(chosen)))
    kinds = [TEXT, NUMBER, {"type": "array", "items": TEXT}]

    def fields() -> dict:
        return {name: chance.choice(kinds) for name in chance.sample("abc", chance.randint(0, 3))}

    versions = [version(name, served=name in served, storage=name == storage, **fields()) for name in chosen]
    return crd(*versions, stored=(storage,))


@many
@given(st.randoms(use_true_random=True))
def test_C8_a_crd_that_follows_is_at_rest_serves_what_was_picked_and_breaks_nothing_more(chance):
    source, target = any_crd(chance), any_crd(chance)
    before = deepcopy((source, target))
    revision = revise(source)
    after = follow(target, revision)
    assert (source, target) == before
    assert revise(after) == revision == revise(follow(None, revision))
    assert breaking(after, revision) == ()
    assert read_crd(after) == after
    assert follow({**after, "status": target["status"]}, revision)["spec"] == after["spec"]
    names = [each["name"] for each in after["spec"]["versions"]]
    assert len(names) == len(set(names))
    assert set(target["status"]["storedVersions"]) <= set(names)
    assert sum(each["storage"] for each in after["spec"]["versions"]) == 1
    served = {each["name"] for each in after["spec"]["versions"] if each["served"]}
    assert served == {each["name"] for each in source["spec"]["versions"] if each["served"]}
    gone = {found.version for found in breaking(target, revision) if found.change is Change.VERSION}
    assert gone == {each["name"] for each in target["spec"]["versions"] if each["served"]} - served


# C8.3


def test_C8_3_a_served_version_that_goes_and_another_scope_are_breaking():
    old = crd(version("v1"), version("v2", storage=False), version("v0", served=False, storage=False))
    new = revise(crd(version("v2"), scope="Cluster"))
    assert breaking(old, new) == (
        Breaking(Change.SCOPE, "the scope was Namespaced, and is Cluster: this is never allowed"),
        Breaking(Change.VERSION, "is no longer served", "v1"),
    )
    assert [str(each) for each in breaking(old, new)] == [
        "the scope was Namespaced, and is Cluster: this is never allowed",
        "v1: is no longer served",
    ]


def obj(**properties):
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        # What may change.
        (TEXT, TEXT | {"description": "new", "maxLength": 3}, []),
        (obj(a=TEXT), obj(a=TEXT, b=TEXT), []),
        (obj(), obj() | KEEPS, []),
        (obj(a=TEXT), {"type": "object", "additionalProperties": TEXT}, []),
        ({"type": "object", "additionalProperties": False}, {"type": "object"}, []),
        ({"type": "object", "additionalProperties": True}, {"type": "object", "additionalProperties": KEEPS}, []),
        ({"type": "array", "items": TEXT}, {"type": "array", "items": TEXT}, []),
        # A field that is gone.
        (obj(a=TEXT, b=NUMBER), obj(b=NUMBER), ["v1 /spec/x/a: is gone"]),
        (obj(**{"a/b~": TEXT}), obj(), ["v1 /spec/x/a~1b~0: is gone"]),
        (obj(a=obj(b=TEXT, c=TEXT)), obj(a=obj()), ["v1 /spec/x/a/b: is gone", "v1 /spec/x/a/c: is gone"]),
        ({"type": "array", "items": obj(a=TEXT)}, {"type": "array", "items": obj()}, ["v1 /spec/x/*/a: is gone"]),
        ({"type": "object", "additionalProperties": TEXT}, obj(), ["v1 /spec/x/*: is gone"]),
        (obj(metadata=TEXT), obj(), ["v1 /spec/x/metadata: is gone"]),
        (
            obj(metadata=TEXT, more=TEXT) | {"x-kubernetes-embedded-resource": True},
            obj() | {"x-kubernetes-embedded-resource": True},
            ["v1 /spec/x/more: is gone"],
        ),
        # A field of another type.
        (TEXT, NUMBER, ["v1 /spec/x: was string, and is integer"]),
        (
            NUMBER,
            {"x-kubernetes-int-or-string": True},
            ["v1 /spec/x: was integer, and is integer or string"],
        ),
        (KEEPS, TEXT, ["v1 /spec/x: was any, and is string"]),
        (
            {"type": "object", "additionalProperties": TEXT},
            {"type": "object", "additionalProperties": NUMBER},
            ["v1 /spec/x/*: was string, and is integer"],
        ),
        (
            obj(a=TEXT),
            {"type": "object", "additionalProperties": NUMBER},
            ["v1 /spec/x/a: was string, and is integer"],
        ),
        ({"type": "array", "items": TEXT}, {"type": "array"}, ["v1 /spec/x/*: is gone"]),
        # Unknown fields that are not kept any more.
        (obj(a=TEXT) | KEEPS, obj(a=NUMBER), [
            "v1 /spec/x: no longer keeps unknown fields",
            "v1 /spec/x/a: was string, and is integer",
        ]),
        # Nonsense in a file is no schema.
        ({"type": "object", "properties": [1]}, {"type": "object", "properties": 7}, []),
        (obj(a=TEXT), obj(a=[1]), ["v1 /spec/x/a: was string, and is any"]),
    ],
)  # fmt: skip
def test_C8_3_what_is_breaking_about_a_field(old, new, said):
    assert broken(old, new) == said


def test_C8_3_the_fields_of_every_object_need_no_schema():
    old = crd(version())
    old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].update(
        dict.fromkeys(("apiVersion", "kind", "metadata", "status"), TEXT)
    )
    assert [str(each) for each in breaking(old, revise(crd(version())))] == ["v1 /status: is gone"]
    del old["spec"]["versions"][0]["schema"]
    assert [str(each) for each in breaking(crd(version()), revise(old))] == ["v1: was object, and is any"]


@many
@given(st.randoms(use_true_random=True))
def test_C8_3_only_what_is_there_can_break(chance):
    source = any_crd(chance)
    assert breaking(source, revise(source)) == ()
    richer = deepcopy(source)
    for each in richer["spec"]["versions"]:
        each["schema"]["openAPIV3Schema"]["properties"]["more"] = chance.choice([TEXT, NUMBER])
    assert breaking(source, revise(richer)) == ()
    back = breaking(richer, revise(source))
    assert {(each.change, each.path) for each in back} == {(Change.FIELD, "/more")}
    assert revise(source) == revise(follow(richer, revise(source)))


# CRDs that people wrote


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("apiVersion", "v1", 'apiVersion is "v1"; allowed: apiextensions.k8s.io/v1'),
        ("kind", "Goal", 'kind is "Goal"; allowed: CustomResourceDefinition'),
        ("metadata", None, "metadata is missing"),
        ("metadata.name", "goals", 'metadata.name is "goals"; allowed: goals.lab.example.com'),
        ("spec.scope", "Both", 'spec.scope is "Both"; allowed: Namespaced, Cluster'),
        ("spec.group", 1, "spec.group is 1; allowed"),
        ("spec.names", [], "spec.names is a list of 0; allowed: an object"),
        ("spec.names.kind", None, "spec.names.kind is missing"),
        ("spec.versions", None, "spec.versions has no version; allowed: each once"),
        ("spec.versions", {}, "spec.versions is an object; allowed: a list"),
        ("spec.versions", [1], r"spec.versions\[0\] is 1; allowed: an object"),
        ("spec.versions", [version(), version()], "spec.versions has a version twice; allowed: each once"),
        ("spec.versions", [{"name": "v1", "served": True}], r"spec.versions\[0\].storage is missing"),
        ("spec.versions", [{"served": True, "storage": True}], r"spec.versions\[0\].name is missing"),
    ],
)
def test_what_is_no_crd_is_refused_in_one_line_with_its_place(place, value, said):
    raw = crd(version())
    parent = raw
    *path, last = place.split(".")
    for name in path:
        parent = parent[name]
    parent[last] = value
    with pytest.raises(ConfigError, match=said):
        read_crd(raw)
    with pytest.raises(ConfigError, match="the whole is nothing"):
        read_crd(None)


def test_C8_1_a_revision_has_the_content_that_its_name_stands_for():
    revision = revise(crd(version(x=TEXT)))
    raw = {"metadata": {"name": revision.name}, "spec": revision.spec}
    assert read_revision(raw) == sound_revision(raw) == revision
    for other in (
        {**raw, "spec": revise(crd(version(y=TEXT))).spec},
        {**raw, "spec": None},
        {"metadata": {"name": "x"}},
    ):
        with pytest.raises(ConfigError):
            read_revision(other)
        assert sound_revision(other) is None


def test_C8_a_crd_that_is_nested_too_deep_is_refused():
    deep: Json = {"type": "object"}
    for _ in range(200):
        deep = {"type": "object", "properties": {"a": deep}}
    with pytest.raises(ConfigError, match="more than 200 levels"):
        shown_crd(crd(version(x=deep)))


def test_C8_3_a_crd_that_keeps_all_unknown_fields_and_no_longer_does_is_breaking():
    old = crd(version(x=TEXT), preserveUnknownFields=True)
    [found] = breaking(old, revise(old))
    assert str(found) == "no longer keeps unknown fields"
    assert found.row == {"change": "UnknownFieldsDropped", "version": "", "path": "", "message": str(found)}
