"""Looks at a robot that still runs the Go cr-syncer, for `crsyncer doctor --from-cr-syncer`. Reads only."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

from crsyncer.console.compare import lister
from crsyncer.console.screens.reasons import kind_hint
from crsyncer.console.set_up.doctor_report import Check, Mark
from crsyncer.console.set_up.moving_report import (
    HOME,
    LABEL,
    Forecast,
    Pairs,
    Predecessor,
    forecast,
    judge_cost,
    judge_flags,
    judge_pairs,
    judge_predecessor,
    judge_reading,
)
from crsyncer.core.content.object_content import key_of
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.namespaces import Namespaces
from crsyncer.core.kinds.read_kind import read_policy
from crsyncer.core.model import Json, Side
from crsyncer.core.pair import object_calls
from crsyncer.core.pair.project import objection
from crsyncer.core.requests.calls import JSON, PARTIAL_LIST, Call
from crsyncer.engine.kinds.negotiation import Disagreement, negotiate
from crsyncer.errors import NotAllowed, SyncError
from crsyncer.ports import Send

_DEPLOYMENTS = Call("list", "GET", "/apis/apps/v1/deployments", (("labelSelector", LABEL),))
_PODS = Call("list", "GET", "/api/v1/pods", (("labelSelector", LABEL),))


@dataclass(frozen=True, slots=True)
class Robot:
    """The robot as crsyncer is set up for it. `server` is the cloud's address."""

    name: str
    namespaces: Namespaces
    server: str
    agent_runs: bool


async def examine_move(senders: Mapping[Side, Send], robot: Robot, *, seconds: float) -> list[Check]:
    """What changes when crsyncer takes over, first the Go cr-syncer itself, then each kind; within `seconds`.

    A side that does not answer leaves `unknown` what depends on it.
    """
    checks: list[Check] = []
    try:
        async with asyncio.timeout(seconds):
            await _examine(senders, robot, checks)
    except TimeoutError:
        checks.append(Check("time", Mark.UNKNOWN, "not everything could be compared in time", "try again"))
    except SyncError as error:
        message = f"what changes for the kinds is not known: {error}"
        checks.append(Check("copies", Mark.UNKNOWN, message, error.hint or "see the checks of the robot", Side.ROBOT))
    return checks


async def _examine(senders: Mapping[Side, Send], robot: Robot, checks: list[Check]) -> None:
    found = Predecessor(*await asyncio.gather(*(_items(senders[Side.ROBOT], call) for call in (_DEPLOYMENTS, _PODS))))
    checks.append(judge_predecessor(found, agent_runs=robot.agent_runs))
    checks += judge_flags(found, robot=robot.name, server=robot.server)
    compared: dict[str, tuple[Pairs, Forecast]] = {}
    for crd in await lister.crds(senders[Side.ROBOT]):
        checks += judge_reading(crd, robot.name)
        policy = read_policy(crd, robot.name, namespaces=robot.namespaces)
        if policy is None or policy.problem:
            continue
        try:
            pairs = await _pairs(policy, senders)
        except SyncError as error:
            hint = error.hint or "see the checks of this kind"
            checks.append(Check("copies", Mark.UNKNOWN, f"cannot be compared: {error}", hint, None, policy.resource))
            continue
        compared[policy.resource] = pairs, forecast(pairs)
        checks += judge_pairs(*compared[policy.resource], namespaces=robot.namespaces.on(Side.CLOUD))
    checks.append(judge_cost(compared))


async def _items(send: Send, call: Call) -> list[Json] | None:
    """The items of a list; None where it is refused or has no answer."""
    try:
        reply = await send(call)
    except SyncError:
        return None
    return None if reply.error() is not None else [*(reply.body.get("items") or ())]


async def _pairs(policy: KindPolicy, senders: Mapping[Side, Send]) -> Pairs:
    """Both lists of a kind. Raises SyncError, whose hint says what to do."""
    agreed = await negotiate(policy, senders[Side.CLOUD])
    if isinstance(agreed, Disagreement):
        raise SyncError(agreed.message, hint=kind_hint(agreed.state))
    pairs = Pairs(agreed)
    for side in Side:
        for namespace in agreed.places:
            await _list(pairs, side, senders[side], namespace=namespace)
    return pairs


async def _list(pairs: Pairs, side: Side, send: Send, *, namespace: str) -> None:
    """List the cloud as a gateway allows, metadata only; the robot whole, with objects of other robots."""
    policy = pairs.policy
    endpoint = policy.endpoint(side)
    collection = object_calls.collection(policy, side, namespace)
    if side is Side.ROBOT:
        collection = replace(collection, selector="")
    try:
        async for raw in lister.objects(send, collection, accept=PARTIAL_LIST if side is Side.CLOUD else JSON):
            raw |= {"apiVersion": endpoint.api_version, "kind": endpoint.kind}  # metadata alone are of another kind
            if objection(raw, replace(policy, filtered=False), side, namespace=collection.namespace):
                continue
            if (key := policy.key_of(side, key_of(raw))) is not None:
                pairs.take(side, key, raw)
    except NotAllowed as error:
        hint = f"a gateway may let only one namespace through: --namespace {HOME}" if not namespace else ""
        raise SyncError(f"the {side} forbids to list it ({error})", hint=hint or kind_hint("forbidden")) from None
    except SyncError as error:
        raise SyncError(f"the {side}'s list is incomplete: {error}", hint=error.hint) from None
