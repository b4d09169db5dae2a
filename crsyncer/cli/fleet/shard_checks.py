"""Judges the facts about a fleet's shards for `fleet doctor`: each becomes a check with a hint where it is not ok."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from crsyncer.cli.fleet.fleet_checks import judge_crd, judge_rights
from crsyncer.console.set_up.doctor_report import Check, Mark
from crsyncer.core.content.annotations import ROOT, SHARD_LABEL
from crsyncer.core.model import Json, Side
from crsyncer.core.reports.text import count, some
from crsyncer.errors import SyncError
from crsyncer.fleet.domain.shown.fleet_reasons import SHARD_HINT
from crsyncer.fleet.domain.transport.keys import at
from crsyncer.fleet.domain.values import PlacedKind, Robot, Verdict

_check = partial(Check, side=Side.CLOUD)


@dataclass(frozen=True, slots=True)
class ShardSeen:
    """A shard beside the root that answers."""

    kinds: Iterable[PlacedKind] = ()
    """The placed kinds, as it serves them."""
    crds: Sequence[Json | None] = ()
    """The CRDs of what robots write; None: there is none."""
    rights: Mapping[str, Mapping[str, bool | None]] = field(default_factory=dict)
    """As `judge_rights` takes them."""


def judge_shard(shard: str, seen: ShardSeen | SyncError, *, crds: Sequence[Json]) -> Iterator[Check]:
    """Whether the controller can use a shard; `crds` are those of what robots write, as this version has them."""
    if isinstance(seen, SyncError):
        message = f"it cannot be read: {seen}"
        yield _check("shard", Mark.FAIL, message, seen.hint or SHARD_HINT, resource=shard, health="degraded")
        return
    yield _check("shard", Mark.OK, "answers", resource=shard)
    for shipped, stored in zip(crds, seen.crds, strict=True):
        yield _at(shard, judge_crd(shipped, stored))
    for kind in seen.kinds:
        check = partial(_check, "kind", resource=at(shard, kind.resource))
        if kind.verdict is Verdict.PLACEABLE:
            yield check(Mark.OK, "served, and may be placed")
        else:
            yield check(Mark.FAIL, f"{kind.verdict}: {kind.message}", "install the CRD there as the root has it")
    for each in judge_rights(seen.rights):
        yield _at(shard, each)


def _at(shard: str, check: Check) -> Check:
    return replace(check, resource=at(shard, check.resource))


def judge_labels(robots: Iterable[Robot], shards: Iterable[str]) -> Iterator[Check]:
    """Whether the label of each Robot names a shard that is known, beside the root."""
    known = {ROOT, *shards}
    lost: dict[str, list[str]] = {}
    for each in robots:
        if each.shard not in known:
            lost.setdefault(each.shard, []).append(each.name)
    for shard, names in sorted(lost.items()):
        message = f"it is not in --shard, and is the shard of {count(len(names), 'Robot')}: {some(sorted(names))}"
        hint = f"add --shard {shard}=KUBECONFIG, here and to crsyncer fleet run; or correct the label {SHARD_LABEL}"
        yield _check("shard", Mark.FAIL, message, hint, resource=shard)
