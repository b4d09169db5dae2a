"""What two sides that agree have in common, once nothing stands between them any more."""

from crsyncer.core.model import Json, Side
from tests.model.check import Checker, Spec, labels, signed, stamp
from tests.model.world import World


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
