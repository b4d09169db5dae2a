"""What tests of whole kinds do: annotate CRDs, bring a second kind, give the agent a small account in the cloud."""

from dataclasses import replace
from typing import Any

from crsyncer.sandbox.resource import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CRD, Resource
from tests.api import Api
from tests.core.sync_policies import MINIMAL
from tests.system.bed import SECONDS, SYNCER, Bed, SideBed, crd, eventually


async def annotate(bed: Bed, *, resource: str = "", **annotations: str | None) -> None:
    """Change the predecessor's annotations of a CRD on the robot, `_` for `-`; None removes one."""
    change = {SYNCER + key.replace("_", "-"): value for key, value in annotations.items()}
    await bed.robot.api.patch(CRD.object(resource or bed.resource), {"metadata": {"annotations": change}})


def policy_of(bed: Bed, **spec: Any) -> dict[str, Any]:
    """A SyncPolicy of the kind under test."""
    resource = {"group": bed.group, "resource": bed.robot.resource.plural}
    return {**MINIMAL, "metadata": {"name": bed.group}, "spec": {"resource": resource, **spec}}


async def set_policy(api: Api, bed: Bed, **spec: Any) -> dict[str, Any]:
    """Give the kind under test a policy, and wait until it is synced by that."""
    policy = await api.create(policy_of(bed, **spec))
    await until_row(bed, state="syncing", policy=bed.group)
    return policy


async def another(bed: Bed, plural: str = "tasks", **keywords: Any) -> tuple[SideBed, SideBed]:
    """A second kind beside the one under test: cloud, robot. Keywords as of `crd`."""
    raw = crd(bed.group, plural=plural, **keywords)
    resource = Resource.of_crd(raw)
    for side in (bed.cloud, bed.robot):
        await side.api.apply_crd(raw)
    return replace(bed.cloud, resource=resource), replace(bed.robot, resource=resource)


def one_sided(side: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Keywords of `make_bed`: only this side has a schema, and from the start.

    After an edit the server goes on watching by the old one for a second, and the agent looks at everything anew then,
    and again seconds later: whoever counts requests or dead letters would count those too, or not.
    """
    return {"schema": schema, "cloud_crd": {"schema": None}} if side == "robot" else {"cloud_crd": {"schema": schema}}


async def row(bed: Bed, plural: str = "goals") -> dict[str, Any] | None:
    """A kind's row in `status`; None when it has none."""
    status = await bed.agent.ask()
    assert status is not None, bed.agent.tail()
    return next((k for k in status["kinds"] if k["resource"] == f"{plural}.{bed.group}"), None)


async def until_row(bed: Bed, plural: str = "goals", *, seconds: float = SECONDS, **fields: Any) -> dict[str, Any]:
    """Wait until a kind's row has these values, and return it."""

    async def check() -> dict[str, Any] | None:
        found = await row(bed, plural)
        return found if found and all(found[key] == value for key, value in fields.items()) else None

    what = f"{plural} with {fields}; {await row(bed, plural)}"
    found: dict[str, Any] = await eventually(check, seconds=seconds, what=what)
    return found


async def account(api: Api, name: str, rules: list[dict[str, Any]]) -> str:
    """A token of a new account that has these rights in the whole cluster, and what everybody has."""
    token = await api.service_account_token("default", name)
    api_group = "rbac.authorization.k8s.io"
    await api.create(CLUSTER_ROLE.object(name, rules=rules))
    await api.create(
        CLUSTER_ROLE_BINDING.object(
            name,
            roleRef={"apiGroup": api_group, "kind": "ClusterRole", "name": name},
            subjects=[{"kind": "ServiceAccount", "namespace": "default", "name": name}],
        )
    )
    for rule in rules:
        await until_may(api, name, rule)
    return token


async def until_may(api: Api, name: str, rule: dict[str, Any], *, allowed: bool = True) -> None:
    """Wait until an account has the right that a rule names first, or has it no more: a server hears of it by watch."""
    resource, _, subresource = rule["resources"][0].partition("/")
    right = {"group": rule["apiGroups"][0], "resource": resource, "subresource": subresource, "verb": rule["verbs"][0]}
    who = f"system:serviceaccount:default:{name}"
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": who, "resourceAttributes": right | {"name": next(iter(rule.get("resourceNames", [])), "")}},
    }

    async def so() -> bool:
        _, answer = await api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", json=review)
        return bool(answer["status"]["allowed"]) is allowed

    await eventually(so, what=f"{who} {'may' if allowed else 'may not'} {right}")


def account_name(group: str) -> str:
    """What a robot's account is called in this test."""
    return f"robot-{group.partition('.')[0]}"


def rules(group: str, *status_verbs: str) -> list[dict[str, Any]]:
    """The rights of an existing robot's account in the cloud, and not one more."""
    return [
        {"apiGroups": [group], "resources": ["goals", "tasks"], "verbs": ["list", "watch"]},
        {"apiGroups": [group], "resources": ["goals/status", "tasks/status"], "verbs": list(status_verbs)},
    ]
