"""A CRD of primaries that travels (C8): what people do to it, and what an agent must never do, in random histories."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from crsyncer.core.content.object_content import ROBOT as MADE_BY
from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import API_REVISIONS, API_SETS
from tests.model.histories.policy_check import PolicyChecker
from tests.model.histories.policy_history import Setup
from tests.model.histories.policy_references import GOALS
from tests.model.scenes.apis import CRD_RESOURCE, api_set, choose, crd_on, delete, revisions_on, serve_apis
from tests.model.simulation.check import Violation
from tests.model.simulation.life import ROBOT
from tests.model.simulation.plane import GROUP
from tests.model.simulation.world import World, Write
from tests.system.bed import crd

_OF_APIS = (CRD_RESOURCE, API_REVISIONS.resource, API_SETS.resource)
FORMS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("v1",), ()),
    (("v1",), ("p",)),
    (("v1",), ("p", "q")),
    (("v1", "v2"), ("p",)),
    (("v1", "v2"), ("q",)),
)
"""What the CRD may be: its versions, and the fields of spec that it knows."""


@dataclass(slots=True)
class Apis:
    """The CRD of goals in one world. Each public method up to `specification` is a step of a history."""

    world: World
    setup: Setup
    checker: PolicyChecker
    paused: bool = False
    allows: bool = False
    loose: bool = False
    """Once anything could become of the CRD: somebody chose a revision, or allowed what is breaking."""

    def define(self, which: int) -> None:
        """Somebody changes the CRD at its source."""
        versions, fields = FORMS[which]
        spec = {**_ANY, "properties": {name: {"type": "string"} for name in fields}}
        raw = crd(GROUP, source=None, versions=versions, storage="v1", schema={**_ANY, "properties": {"spec": spec}})
        self.world.planes[self._source].apply(raw)

    def choose(self, which: int) -> None:
        """Somebody edits the entry of goals, to another revision."""
        side = self._source.other
        name, found = self._set_name, revisions_on(self.world, side)
        if found and api_set(self.world, side, name) is not None:
            self.loose = True
            choose(self.world, side, found[which % len(found)], name=name)

    def drop_set(self) -> None:
        """Somebody deletes the APISet."""
        if api_set(self.world, self._source.other, self._set_name) is not None:
            delete(self.world, self._source.other, f"{API_SETS.path}/{self._set_name}")

    def specification(self) -> Json:
        """What the policy says of it."""
        if not self.setup.api:
            return {}
        return {"api": {"source": self.setup.api, "paused": self.paused, "allowBreaking": self.allows}}

    def prepare(self) -> None:
        """Only the source has the CRD."""
        if self.setup.api:
            target = self.world.planes[self._source.other]
            target.drop_kind()
            serve_apis(target)
            self.define(0)
            self.checker.watch(self._look)

    def open_ends(self) -> Iterator[str]:
        """What the two CRDs disagree on: without anything that is breaking, they are to be the same."""
        if not self.setup.api or self.loose:
            return
        here, there = (crd_on(self.world, side) for side in (self._source, self._source.other))
        wanted, found = _known(here), _known(there)
        if found - wanted:
            state = next((row["api"] for row in self.world.status()["kinds"] if row["resource"] == GOALS), None)
            if state is None or state["state"] != "held":
                yield f"the CRD has {found - wanted}, its source has not, and nothing is held: {state}"
        elif wanted != found:
            yield f"the CRD lacks {wanted - found}"

    def may_still(self, write: Write) -> bool:
        """Whether a write may come after both sides agreed: nobody waits for a CRD of which anything may become."""
        return self.loose and write.resource in _OF_APIS

    @property
    def _source(self) -> Side:
        return Side(self.setup.api)

    @property
    def _set_name(self) -> str:
        return "crsyncer" if self._source is Side.CLOUD else f"crsyncer-{ROBOT}"

    def _look(self, write: Write) -> None:
        if write.resource not in _OF_APIS or write.status >= 300:
            return
        before, after = write.before, write.after
        if write.verb == "delete" or (write.resource == API_REVISIONS.resource and before is not None):
            raise Violation(f"{write}: CRDs and revisions are never deleted, and revisions never changed (C8.1, C8.2)")
        if write.side is self._source:
            raise Violation(f"{write}: something was written at the source (C8.1)")
        if write.resource != CRD_RESOURCE or after is None:
            return
        if write.side is Side.CLOUD and (after["metadata"].get("annotations") or {}).get(MADE_BY) != ROBOT:
            raise Violation(f"{write}: in the cloud a CRD that this robot did not make is changed (C8.2)")
        gone = _known(before) - _known(after)
        if gone and not self.loose:
            raise Violation(f"{write}: {gone} is gone, and nobody allowed that (C8.3)")
        if before is not None and _metadata(before) != _metadata(after):
            raise Violation(f"{write}: metadata of a CRD was changed (C8.2)")


_ANY: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _known(found: Json | None) -> set[str]:
    """What a CRD has: served versions, and the fields of spec in each."""
    known = set()
    for version in (found or {"spec": {"versions": []}})["spec"]["versions"]:
        if version["served"]:
            fields = version["schema"]["openAPIV3Schema"].get("properties", {}).get("spec", {}).get("properties", {})
            known |= {version["name"], *(f"{version['name']} {name}" for name in fields)}
    return known


def _metadata(found: Json) -> dict[str, Any]:
    return {key: found["metadata"].get(key) for key in ("labels", "annotations", "finalizers", "uid")}
