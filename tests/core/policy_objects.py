"""SyncPolicies as a list has them, and what comes of them."""

from typing import Any

from crsyncer.adapters.expressions import Expressions
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.merge_settings import PolicyObject, policy_of_kind, read_object
from crsyncer.core.model import Json


def read(raw: Json, *trust: str) -> PolicyObject:
    """The SyncPolicy in an object."""
    return read_object(raw, Expressions, trust)


def policy_object(name: str = "a", *, resource: Json | None = None, **spec: Any) -> PolicyObject:
    """A SyncPolicy for goals, as a list has it."""
    named = resource or {"group": "lab.example.com", "resource": "goals"}
    return read({"metadata": {"name": name}, "spec": {"resource": named, **spec}})


def merged_of(raw: Json, *objects: PolicyObject, robot: str = "robot-1") -> KindPolicy:
    """What comes of a CRD, or of what stands for one."""
    found = policy_of_kind(raw, robot, objects=objects)
    assert found is not None
    return found
