"""What two sides that agree have in common, once nothing stands between them any more, and what is written then."""

from collections.abc import Sequence

from crsyncer.core.model import Json, Side
from tests.model.simulation.check import Checker, Spec, labels, signed
from tests.model.simulation.judge import stamp
from tests.model.simulation.world import World, Write


def open_ends(world: World, checker: Checker) -> list[str]:
    """What the two sides disagree on."""
    found = []
    for spec in checker.kinds.values():
        up, down = (world.planes[side].objects(spec.plural) for side in (spec.upstream, spec.downstream))
        for name in sorted(up.keys() | down.keys()):
            problem = _problem(spec, checker, up.get(name), down.get(name))
            if problem:
                found.append(f"{spec.plural} {name}: {problem}")
    return found


def _problem(spec: Spec, checker: Checker, up: Json | None, down: Json | None) -> str:
    if up is not None and not spec.sees(up):
        up = None
    ours = down is not None and (signed(down) if spec.downstream is Side.CLOUD else spec.sees(down))
    if up is None:
        return "the copy of nothing" if ours else ""
    if down is None:
        return "no copy"
    if not ours:
        return ""  # the name is taken
    if stamp(down) != up["metadata"]["uid"]:
        return "the copy of another object"
    if up["spec"] != down["spec"]:
        return "content"
    if not labels(up).items() <= labels(down).items():
        return "labels"
    moving_up, moving_down = spec.moving(up), spec.moving(down)
    rivalled = checker.stories[up["metadata"]["uid"]].rivalled
    if moving_down is not None and moving_up != moving_down and not rivalled:
        return f"status: {moving_up} upstream, {moving_down} downstream"
    return ""


def needless(world: World, checker: Checker, writes: Sequence[Write], rivalled: set[str]) -> list[Write]:
    """The writes that changed something although both sides agreed. `rivalled`: uids whose status somebody made.

    Not among them: a request that came late, what puts its effect right, or what somebody else made of a status
    (S4.8); and the status of a new copy, which is a request of its own (S4.4).
    """
    late = {_uid_of(write) for write in writes if write.late}
    return [
        write
        for write in writes
        if write.before != write.after
        and _uid_of(write) not in late
        and not (write.verb == "status" and _uid_of(write) in rivalled)
        and not _completes(write, world, checker.kinds[write.resource])
    ]


def _completes(write: Write, world: World, spec: Spec) -> bool:
    """Whether it gave a copy without a status the one that upstream has."""
    if write.side is spec.upstream or spec.moving(write.before) is not None:
        return False
    up = world.planes[spec.upstream].objects(spec.plural).get(write.name)
    return up is not None and spec.moving(write.after) == spec.moving(up)


def _uid_of(write: Write) -> str:
    obj = write.before or write.after
    return "" if obj is None else str(obj["metadata"]["uid"])
