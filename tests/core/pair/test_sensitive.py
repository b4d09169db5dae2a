"""Secrets: digests that nobody can guess by, values that nobody is shown (C5.6)."""

import json
from dataclasses import replace

import pytest

from crsyncer.console.compare.differences import difference
from crsyncer.console.explained.explanation import ObjectFacts, explain
from crsyncer.core.content.object_content import LAST_APPLIED, concealed, key_of
from crsyncer.core.content.shape import MutationFailed, Shape
from crsyncer.core.content.template import Names
from crsyncer.core.kinds.built_in_kind import unknown
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Gap, Key, Observation, Record, Side
from crsyncer.core.pair.actions import NAME_TAKEN, SECRET_UNKNOWN, Create, Update, Why
from crsyncer.core.pair.compose import compose_copy
from crsyncer.core.pair.decide import decide
from crsyncer.core.pair.project import view_of, without_values
from crsyncer.core.related.relate import RelatedFailed, references_of, related_entries
from crsyncer.core.requests.answers import judge, without_words
from tests.core.builders import policy, stored
from tests.core.policy_objects import merged_of, policy_object

VALUE = "aHVudGVyMg=="
SECRETS = policy(group="", plural="secrets", kind="Secret", versions=("v1",), version="v1", digest_key=b"k")


RESOURCE = {"group": "", "resource": "secrets"}


def related(object_: dict) -> dict:
    """An entry of a policy's `related` for ConfigMaps."""
    return {"id": "x", "origin": "cloud", "resource": {"group": "", "resource": "configmaps"}, "object": object_}


def down(path: str, **verb: object) -> dict:
    """The mutations of a policy, one step."""
    return {"mutations": {"down": [{"path": path, **verb}]}}


def secret(value: str = VALUE, **metadata: object) -> dict:
    own = {"name": "a", "namespace": "default", "uid": "u-1", "resourceVersion": "5", **metadata}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": own, "type": "Opaque", "data": {"password": value}}


def copied(value: str = VALUE, kind: KindPolicy = SECRETS) -> dict:
    raw = secret(value)
    return stored(compose_copy(raw, view_of(raw, kind, Side.CLOUD), kind, downstream=None))


def test_C5_6_secrets_of_the_core_group_are_sensitive_and_nothing_else():
    assert SECRETS.sensitive
    assert not policy(group="lab.example.com", plural="secrets").sensitive
    assert not policy(group="", plural="configmaps").sensitive


def test_C5_6_without_the_key_a_digest_shows_nothing():
    ours, theirs = (view_of(secret(), replace(SECRETS, digest_key=key), Side.CLOUD).content for key in (b"k", b"j"))
    assert ours != theirs
    assert view_of(secret(), SECRETS, Side.CLOUD).content == ours
    assert "'k'" not in repr(SECRETS)


def test_C5_6_a_copy_has_the_values_and_its_annotations_have_a_digest():
    copy = copied()
    assert copy["data"] == {"password": VALUE}
    assert VALUE not in json.dumps(copy["metadata"])


def test_C5_6_C1_7_a_copy_says_that_it_is_of_a_secret_also_once_its_kind_is_none():
    copy, plain = copied(), policy(group="", plural="configmaps", kind="ConfigMap", versions=("v1",), version="v1")
    copy["metadata"]["annotations"]["theirs"] = VALUE
    shown = without_values(copy, plain, Side.ROBOT)
    assert VALUE not in json.dumps(shown)
    assert view_of(shown, plain, Side.ROBOT).stamp == view_of(copy, plain, Side.ROBOT).stamp
    for kind, side in ((SECRETS, Side.ROBOT), (plain, Side.CLOUD)):
        assert without_values(copy, kind, side) is copy
    del copy["metadata"]["annotations"]
    assert without_values(copy, plain, Side.ROBOT) is copy


@pytest.mark.parametrize(
    ("copy", "unknown", "content"),
    [
        (Gap.ABSENT, False, Create()),
        (Gap.ABSENT, True, SECRET_UNKNOWN),
        (view_of(copied("b3RoZXI="), SECRETS, Side.ROBOT), True, SECRET_UNKNOWN),
        (view_of(copied(), SECRETS, Side.ROBOT), True, None),
    ],
)
def test_C5_6_what_is_known_by_its_digest_only_is_compared_and_not_written(copy, unknown, content):
    up = Observation(view_of(secret(), SECRETS, Side.CLOUD))
    assert decide(up, Observation(copy), SECRETS, Record(), unknown=unknown).content == content


@pytest.mark.parametrize(("value", "content"), [("b3RoZXI=", NAME_TAKEN), (VALUE, None)])
def test_C2_5_a_secret_that_is_no_copy_is_adopted_only_if_it_is_equal(value, content):
    up = Observation(view_of(secret(), SECRETS, Side.CLOUD))
    own = view_of(secret(value, uid="d-1"), SECRETS, Side.ROBOT)
    found = decide(up, Observation(own), SECRETS, Record()).content
    assert found == (content or Update("d-1", "5", Why.ADOPT))


def test_C5_6_concealed_values_differ_where_values_do():
    one, other = concealed({"a": ["x", 1, None], "b": True}, b"k"), concealed({"a": ["x", 2, None], "b": True}, b"k")
    assert (one["a"][0], one["a"][2], one["b"]) == (other["a"][0], None, other["b"])
    assert one["a"][1] != other["a"][1]


def test_C5_6_diff_and_explain_show_digests_instead_of_values():
    up = secret("b3RoZXI=", annotations={LAST_APPLIED: VALUE})
    down = copied()
    shown = difference(up, down, SECRETS, key=key_of(up))
    assert shown is not None
    assert "password" in json.dumps(shown[Side.CLOUD])
    views = {side: view_of(raw, SECRETS, side) for side, raw in ((Side.CLOUD, up), (Side.ROBOT, down))}
    facts = ObjectFacts(
        "secrets",
        Key("default", "a"),
        kind={"resource": "secrets", "state": "syncing", "message": None, "policy": "p"},
        policy=SECRETS,
        connections=dict.fromkeys(Side, "connected"),
        observations=views,
        bodies={Side.CLOUD: up, Side.ROBOT: down},
    )
    explained = explain(facts)
    assert [each["path"] for each in explained["differences"]] == ["data.password"]
    told = json.dumps([shown, explained])
    assert (VALUE in told, "b3RoZXI=" in told) == (False, False)


def test_C5_6_a_refusal_is_told_without_the_servers_words():
    body = {"kind": "Status", "code": 422, "reason": "Invalid", "message": VALUE, "details": {"causes": [VALUE]}}
    assert str(judge(422, without_words(body))) == "answered 422"
    for causes in ([], [{"reason": "NamespaceTerminating", "message": VALUE}], [{"reason": "Invalid", "field": VALUE}]):
        refused = body | {"details": {"name": VALUE, "causes": causes}}
        assert VALUE not in json.dumps(without_words(refused))
        for status in (403, 422):
            told, kept = (judge(status, each, patch=True) for each in (without_words(refused), refused))
            assert type(told) is type(kept)


def test_C5_6_a_step_that_fails_is_named_and_quotes_nothing():
    def fails(*_):
        raise MutationFailed("spec.mutations.down[0], /data/password", f"{VALUE} is no number")

    shaped = replace(SECRETS, shape=Shape(steps="x", down=fails))
    assert view_of(secret(), shaped, Side.CLOUD).failure == "spec.mutations.down[0], /data/password"
    plain = replace(shaped, on_robot=policy().on_robot, in_cloud=policy().in_cloud)
    assert VALUE in view_of(secret(), plain, Side.CLOUD).failure


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        ({"mutations": {"up": [{"remove": True, "path": "/status/x"}]}}, "spec.mutations.up of SyncPolicy a is set"),
        ({"related": [related({"reference": "/data/map"})]}, "spec.related[0].object.reference of SyncPolicy a reads"),
        (
            {"related": [related({"name": "x-{/data/map}"})]},
            "reads /data/map of a Secret; allowed: /metadata/labels/KEY",
        ),
        ({"related": [related({"name": "x", "namespace": "{/type}"})]}, "related[0].object.namespace of SyncPolicy a"),
        (down("/metadata/labels/x", template="{/data/password}"), "spec.mutations.down[0] of SyncPolicy a puts"),
        (down("/metadata/annotations/x", cel="self.data.password"), "allowed for secrets: templates that read"),
        (down("/metadata/labels/x", template="{name}-{/metadata/labels/y}"), ""),
        (down("/metadata/labels/x", set={"value": "y"}), ""),
        (down("/data/x", template="{/data/password}"), ""),
        ({"related": [related({"reference": "/metadata/labels/map"})]}, ""),
        ({"related": [related({"selector": {}})]}, ""),
    ],
)
def test_C5_6_a_policy_for_secrets_asks_for_nothing_that_would_show_a_value(spec, wrong):
    own = policy_object(resource=RESOURCE, specSource="cloud", filter={"byRobotName": True}, **spec)
    problem = merged_of(unknown(Resource("", "secrets")), own).problem
    assert wrong in problem
    assert bool(wrong) is bool(problem)


def test_C5_6_what_a_secret_refers_to_is_told_by_the_number_of_its_characters():
    own = policy_object(
        resource=RESOURCE,
        specSource="cloud",
        filter={"byRobotName": True},
        related=[related({"reference": "/data/map"})],
    )
    kind = replace(merged_of(unknown(Resource("", "secrets")), own), problem="")
    [entry] = related_entries(kind)
    primary = secret() | {"data": {"map": VALUE}}
    with pytest.raises(RelatedFailed) as failure:
        references_of(primary, entry, Names("default", "a"), namespaced=True)
    assert str(failure.value) == "related object x: /data/map has 12 characters that are not the name of an object"
