"""Objects as API servers show them, policies, and Hypothesis strategies for both."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from crsyncer.core.content.annotations import OURS, ROBOT_LABEL, SYNCER
from crsyncer.core.content.object_content import LAST_APPLIED
from crsyncer.core.kinds.endpoint import Endpoint
from crsyncer.core.kinds.kind_policy import KindPolicy, Version
from crsyncer.core.model import Json, Side
from crsyncer.core.pair.compose import compose_copy
from crsyncer.core.pair.project import view_of

ROBOT_NAME = "robot-1"
_OF_ENDPOINTS = {"group", "plural", "kind", "namespaced", "version"}
some = settings(deadline=None, max_examples=50)
many = settings(deadline=None, max_examples=150)


def endpoint(**changes) -> Endpoint:
    """How a side serves a kind."""
    return replace(Endpoint("lab.example.com", "goals", "Goal", namespaced=True, version="v1"), **changes)


def policy(upstream: Side = Side.CLOUD, *, status: bool = True, cloud: Json | None = None, **changes) -> KindPolicy:
    """The policy of a kind; `status`: it has the status subresource. `cloud`: how the cloud's endpoint differs."""
    on_robot = endpoint(status=status, **{name: changes.pop(name) for name in _OF_ENDPOINTS & changes.keys()})
    whole = KindPolicy(
        on_robot=on_robot,
        in_cloud=replace(on_robot, **(cloud or {})),
        versions=(Version("v1", True, True, status),),
        upstream=upstream,
        robot=ROBOT_NAME,
    )
    return replace(whole, **changes)


def spoken(kind: KindPolicy, version: str = "v1") -> KindPolicy:
    """The policy once a version is agreed on."""
    on_robot, in_cloud = (replace(each, version=version) for each in (kind.on_robot, kind.in_cloud))
    return replace(kind, on_robot=on_robot, in_cloud=in_cloud)


def crd(annotations=None, **spec) -> Json:
    """A CRD as the robot's API server shows it."""
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "metadata": {"name": "goals.lab.example.com", "annotations": annotations},
        "spec": {
            "group": "lab.example.com",
            "names": {"plural": "goals", "kind": "Goal"},
            "scope": "Namespaced",
            "versions": [version],
            **spec,
        },
    }


def goal(*, uid: str = "u-1", version: str = "1", status: Any = None, metadata: Json | None = None, **content) -> Json:
    """An object as its API server shows it."""
    whole = {
        "apiVersion": "lab.example.com/v1",
        "kind": "Goal",
        "metadata": {
            "name": "a",
            "namespace": "default",
            "uid": uid,
            "resourceVersion": version,
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **(metadata or {}),
        },
        **(content or {"spec": {"x": 1}}),
    }
    return whole if status is None else whole | {"status": status}


def stored(body: Json, *, uid: str = "c-1", version: str = "10", generation: int = 1, **content) -> Json:
    """What downstream makes of a body that it was sent."""
    server = {"uid": uid, "resourceVersion": version, "generation": generation}
    return {**body, **content, "metadata": {**body["metadata"], **server}}


def copy_of(upstream: Json, kind: KindPolicy, **changes) -> Json:
    """The copy that the agent creates, as downstream then shows it."""
    body = compose_copy(upstream, view_of(upstream, kind, kind.upstream), kind, downstream=None)
    return stored(body, **changes)


texts = st.text(max_size=6)
names = st.text("abcxyz", min_size=1, max_size=3)
numbers = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0, 1, 2**53 + 1])
)
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
json_values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=10,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)
synced_texts = st.dictionaries(names, names, max_size=3)
"""Labels, or annotations that travel; few keys, so that two of them have keys in common."""
staying_annotations = st.dictionaries(
    st.sampled_from(
        (
            *(LAST_APPLIED, SYNCER + "spec-source", "kcp.io/cluster", "internal.apis.kcp.io/x"),
            *(OURS + "upstream-uid", OURS + "applied", OURS + "else"),
        )
    ),
    st.one_of(texts, st.just('{"digest": "d", "labels": ["a"], "annotations": ["b"]}')),
    max_size=3,
)
"""Annotations that never travel."""
contents = st.dictionaries(st.sampled_from(["spec", "data", "roleRef", "other"]), json_values, max_size=3)
statuses = st.one_of(st.none(), json_objects)


@st.composite
def upstream_goals(draw: st.DrawFn, *, filtered: bool = False) -> Json:
    """An upstream object with everything that may and may not travel."""
    labels = draw(synced_texts) | ({ROBOT_LABEL: ROBOT_NAME} if filtered else {})
    annotations = draw(synced_texts) | draw(staying_annotations)
    metadata = {
        "labels": labels,
        "annotations": annotations,
        "finalizers": draw(st.lists(names, max_size=2)),
        "ownerReferences": draw(st.lists(st.fixed_dictionaries({"uid": names}), max_size=2)),
        "managedFields": [{"manager": "kubectl"}],
        "generateName": "a-",
        "generation": draw(st.integers(1, 9)),
    }
    empty = {k for k in ("labels", "annotations") if not metadata[k] and draw(st.booleans())}
    raw = goal(status=draw(statuses), metadata={k: v for k, v in metadata.items() if k not in empty})
    del raw["spec"]
    return raw | draw(contents)


policies = st.builds(
    policy,
    st.sampled_from(Side),
    status=st.booleans(),
    filtered=st.booleans(),
    subtree=st.sampled_from([None, "robot"]),
    map_generation=st.booleans(),
    keep_drift=st.booleans(),
    keep_orphans=st.booleans(),
)


def line(event_type: Any, raw: Any) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": event_type, "object": raw}).encode()


def error(**status: Any) -> bytes:
    """A line of a watch that says what went wrong."""
    return line("ERROR", {"kind": "Status", **status})
