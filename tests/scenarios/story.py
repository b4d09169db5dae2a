"""Tells a story: each line that begins with `> ` is an event, what follows is what came of it.

    > cloud creates a {"spec": {"x": 1}}
    > all settles
      robot: create a

Between events nothing moves; `all settles` and `60 s pass` let the agent go on, and print every write it made, why, and
what became of its health. `# ` begins a remark. The first line that begins with `kinds ` says what is synced.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterator

from crsyncer.core.content.object_content import APPLIED
from crsyncer.core.model import Json, Key, Side
from crsyncer.core.pair.actions import Update
from crsyncer.core.reports.text import plain
from tests.model.simulation.api_server import CRDS
from tests.model.simulation.plane import GROUP, NAMESPACE, Plane
from tests.model.simulation.storage import Snapshot
from tests.model.simulation.weather import Fate
from tests.model.simulation.world import World, Write
from tests.system.bed import crd

EVENT = "> "
_PARTS = ("apiVersion", "kind", "metadata")


class Story:
    """One world, and the verbs that a transcript may use."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._told = 0
        self._health = "no agent"
        self._snapshots: dict[Side, Snapshot] = {}
        self._why: dict[int, str] = {}
        world.witnesses.append(self._witness)

    def tell(self, event: str) -> list[str]:
        """Do what an event says; the lines that come of it. Raises AssertionError for an event that is not known."""
        for pattern, verb in self._verbs():
            match = re.fullmatch(pattern, event)
            if match:
                verb(*match.groups())
                return [*self._writes(), *self._changes()]
        raise AssertionError(f"not an event: {event}")

    def outcome(self) -> Iterator[str]:
        """What both sides have in the end, and what is still waiting."""
        for side, plane in self._world.planes.items():
            for kind in self._world.kinds:
                shown = {name: self._shown(obj) for name, obj in sorted(plane.objects(kind).items())}
                yield from [f"{side} has {name} {text}" for name, text in shown.items()] or [f"{side} has no {kind}"]
        document = self._world.status()
        for kind in document.get("kinds", []):
            waiting = {half: n for half, n in kind["pending"].items() if n}
            if waiting:
                yield f"waiting: {waiting}"
        if document:
            yield f"health: {document['health']}"

    def _verbs(self) -> list[tuple[str, Callable[..., object]]]:
        world = self._world
        side, name = "(cloud|robot)", "([a-z0-9-]+)"
        return [
            (rf"{side} creates {name}(?: (.*))?", lambda s, n, body: self._plane(s).create(n, **_json(body))),
            (rf"{side} changes {name} (.*)", lambda s, n, body: self._plane(s).set(n, **_json(body))),
            (rf"{side} labels {name} for (\S+)", lambda s, n, robot: self._plane(s).label(n, robot=robot)),
            (rf"{side} reports {name} (.*)", lambda s, n, body: self._plane(s).set_status(n, json.loads(body))),
            (rf"{side} deletes {name}", lambda s, n: self._plane(s).delete(n)),
            (rf"{side} keeps {name} with a finalizer", lambda s, n: self._plane(s).finalize(n, "lab/wait")),
            (rf"{side} lets {name} go", lambda s, n: self._plane(s).finalize(n)),
            (rf"{side} deletes the CRD", lambda s: self._plane(s).delete_kind()),
            (rf"{side} has the CRD again", lambda s: self._apply(Side(s))),
            (rf"{side} is backed up", lambda s: self._snapshots.update({Side(s): self._plane(s).snapshot()})),
            (rf"{side} is restored", lambda s: self._restore(Side(s), -1)),
            (rf"{side} is restored, and (\d+) writes ahead", lambda s, n: self._restore(Side(s), int(n))),
            (rf"{side} is rebuilt", lambda s: self._plane(s).rebuild()),
            (rf"{side} restarts", lambda s: self._plane(s).restart()),
            (rf"{side} is cut off", world.cut),
            (rf"{side} falls silent", world.silence),
            (rf"{side} is back", world.mend),
            (rf"{side} loses the next (\w+)", lambda s, v: world.inject(s, Fate.LOST, verb=v)),
            (rf"{side} loses the reply to the next (\w+)", lambda s, v: world.inject(s, Fate.REPLY_LOST, verb=v)),
            ("the agent starts", world.start),
            ("the agent stops", world.stop),
            ("the agent is killed", world.crash),
            ("the agent loses its database", world.lose_database),
            ("the operator releases (.*)", self._release),
            ("all settles", world.settle),
            (r"(\d+) s pass", lambda seconds: self._pass(int(seconds))),
        ]

    def _plane(self, side: str) -> Plane:
        return self._world.planes[Side(side)]

    def _pass(self, seconds: int) -> None:
        """In steps, as a CRD that is being deleted goes on at its own pace."""
        for _ in range(seconds):
            for plane in self._world.planes.values():
                for kind in self._world.kinds:
                    if _dying(plane, kind):
                        plane.sweep(kind)
            self._world.pass_time(1)

    def _apply(self, side: Side) -> None:
        for plural, keywords in self._world.kinds.items():
            self._world.planes[side].apply(crd(GROUP, plural=plural, **keywords))

    def _restore(self, side: Side, ahead: int) -> None:
        self._world.planes[side].restore(self._snapshots[side], overtaken_by=ahead)

    def _release(self, hold: str) -> None:
        self._world.order("release", id=hold)
        self._world.pass_time(1)

    def _witness(self, write: Write) -> None:
        """Remember why, as long as it is true."""
        assert self._world.life is not None
        row = self._world.life.engine.kinds.entries.get(write.resource)
        if row is None or row.kind is None or write.side is not row.kind.policy.downstream:
            return
        action = row.kind.reconciler.plan(Key(NAMESPACE, write.name)).content
        why = getattr(action, "why", None)
        if why is not None and not (isinstance(action, Update) and why == "changed"):
            self._why[id(write)] = str(why)

    def _writes(self) -> Iterator[str]:
        """The writes since the last event, object by object: in which order they take turns means nothing."""
        fresh, self._told = self._world.writes[self._told :], len(self._world.writes)
        yield from (f"  {self._line(write)}" for write in sorted(fresh, key=lambda write: write.name))

    def _line(self, write: Write) -> str:
        why = self._why.get(id(write))
        value = ""
        if write.verb == "status" and write.status < 300:
            value = f" {json.dumps((write.after or {}).get('status'), sort_keys=True)}"
        refused = f" ({write.status})" if write.status >= 300 else ""
        return f"{write.side}: {write.verb} {write.name}{value}{f', {why}' if why else ''}{refused}"

    def _changes(self) -> Iterator[str]:
        """What became of the agent's health, when it is another than before."""
        document = self._world.status()
        health = f"health: {document['health']}" if document else "no agent"
        reasons = [f"  {r['code']}: {plain(r['message'])}" for r in document.get("reasons", [])]
        holds = [f"  {h['id']}: {h['objects']} held, {h['reason']}" for h in document.get("holds", [])]
        now = "\n".join([health, *reasons, *holds])
        if now != self._health:
            self._health = now
            yield from (f"  {line}" for line in now.splitlines())

    def _shown(self, obj: Json) -> str:
        parts = {key: value for key, value in obj.items() if key not in _PARTS}
        dying = ", being deleted" if "deletionTimestamp" in obj["metadata"] else ""
        copy = ", a copy" if APPLIED in obj["metadata"].get("annotations", {}) else ""
        return json.dumps(parts, sort_keys=True) + copy + dying


def told(text: str) -> str:
    """A transcript with everything that comes of its events told anew."""
    lines = [line for line in text.splitlines() if line.startswith((EVENT, "# ", "kinds ")) or not line]
    while lines and not lines[-1]:
        lines.pop()
    result = []
    with World(kinds=_kinds(next(line for line in lines if line.startswith("kinds ")))) as world:
        story = Story(world)
        for line in lines:
            result.append(line)
            if line.startswith(EVENT):
                result += story.tell(line.removeprefix(EVENT))
        result += ["", *story.outcome()]
        assert world.troubles == []
    return "\n".join(result) + "\n"


def _dying(plane: Plane, kind: str) -> bool:
    crd = plane.server.storage.of(CRDS).get(("", f"{kind}.{GROUP}"))
    return crd is not None and "deletionTimestamp" in crd["metadata"]


def _kinds(line: str) -> dict[str, dict[str, str]]:
    """`kinds goals source=cloud filtered=true`: the keywords of `bed.crd`."""
    _, plural, *pairs = shlex.split(line)
    return {plural: dict(pair.split("=", 1) for pair in pairs)}


def _json(body: str | None) -> Json:
    fields: Json = json.loads(body) if body else {}
    return fields
