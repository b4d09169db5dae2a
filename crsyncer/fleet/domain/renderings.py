"""The rendering of each replica, by the FieldStrips and properties of the moment (F4); equal ones are made once."""

from collections.abc import Hashable, Mapping
from typing import NamedTuple

from crsyncer.core.content.pointer import Pointer
from crsyncer.core.content.selector import Selector
from crsyncer.core.model import Json
from crsyncer.core.reports.text import some
from crsyncer.errors import ConfigError
from crsyncer.fleet.domain.properties import Properties, Undefined, properties, property_of
from crsyncer.fleet.domain.read_objects import strip_of
from crsyncer.fleet.domain.rendering import render
from crsyncer.fleet.domain.values import Placement, Property, Reason, RenderFailed, Rendering, Robot, Source


class _Strip(NamedTuple):
    """What a FieldStrip removes of a kind; `problem`: what is wrong about it."""

    resource: str
    paths: tuple[Pointer, ...]
    problem: str = ""


_RECENT = 32
"""How many renderings of placements that use properties are kept: each may be another, and all do not fit in memory.

A replica is looked at, written, and looked at twice again within moments, with 16 writes at a time.
"""


ALL_ROBOTS = Robot("", "")
"""For whom the copies of Shared sources are."""


class _Made(NamedTuple):
    """A rendering of a source for robots that are alike, and what it was made of."""

    source: Source
    placement: Placement
    strips: tuple[_Strip, ...]
    found: Rendering | RenderFailed


class _Uses(NamedTuple):
    """What of a robot the renderings of a placement depend on."""

    placement: Placement
    selectors: tuple[Selector, ...]
    expand: bool
    properties: tuple[str, ...]
    """The names of those that overrides set; with `expand` any may be used."""


class Renderings:
    """What replicas must contain. No I/O."""

    def __init__(self) -> None:
        self._config_maps: dict[str, Properties | Undefined] = {}
        """By robot."""
        self._strips: dict[str, _Strip] = {}
        """By name."""
        self._by_kind: dict[str, tuple[_Strip, ...]] = {}
        self._uses: dict[str, _Uses] = {}
        """By placement."""
        self._made: dict[Hashable, _Made] = {}
        """The latest of each source for robots that are alike to a placement without properties."""
        self._recent: dict[Hashable, _Made] = {}
        """Those of placements with properties, the latest last."""
        self._stamped: dict[str, Rendering] = {}
        """The latest by their stamps."""

    def put_properties(self, robot: str, found: Properties | Undefined) -> bool:
        """Take up what the ConfigMap of a robot says; whether that is news."""
        if self._config_maps.get(robot, {}) == found:
            return False
        self._config_maps[robot] = found
        if not found:
            del self._config_maps[robot]
        return True

    def properties_of(self, robot: Robot) -> Properties:
        """All properties of a robot, without those of a ConfigMap that is too large."""
        known = self._config_maps.get(robot.name, {})
        return properties(robot, {} if isinstance(known, Undefined) else known)

    def put_strip(self, raw: Json) -> set[str]:
        """Take up a FieldStrip; the kinds that it changes. With an unreadable one, its kind is not rendered."""
        name = raw["metadata"]["name"]
        try:
            new = _Strip(*strip_of(raw))
        except ConfigError as error:
            spec = raw.get("spec") or {}
            resource = f"{spec.get('resource')}.{spec.get('group')}".removesuffix(".")
            new = _Strip(resource, (), f"FieldStrip {name}: {error}")
        old = self._strips.get(name)
        self._strips[name] = new
        return self._stripped({each.resource for each in (old, new) if each is not None} if old != new else set())

    def drop_strip(self, name: str) -> set[str]:
        """A FieldStrip is gone; the kinds that it changes."""
        old = self._strips.pop(name, None)
        return self._stripped(set() if old is None else {old.resource})

    def strip_warnings(self, name: str) -> list[str]:
        """`status.warnings` of a FieldStrip: what is wrong about it, and the others of its kind, which act as well."""
        strip = self._strips[name]
        others = sorted(other for other, each in self._strips.items() if other != name and each[0] == strip.resource)
        shared = [f"other FieldStrips of {strip.resource}: {some(others)}; all of them act"] if others else []
        return [*([strip.problem] if strip.problem else []), *shared]

    def _stripped(self, resources: set[str]) -> set[str]:
        for resource in resources:
            self._by_kind[resource] = tuple(each for each in self._strips.values() if each.resource == resource)
        return resources

    def rendered(self, placement: Placement, source: Source, robot: Robot) -> Rendering | RenderFailed:
        """The replica of a source for a robot. For robots that are alike to a placement it is made once."""
        uses = self._uses_of(placement)
        alike: Hashable = tuple([selector.matches(robot.labels) for selector in uses.selectors])
        known: Properties | Undefined = {}
        kept = self._made
        if uses.expand or uses.properties:
            known = self._config_maps.get(robot.name, {})
            if isinstance(known, Undefined):
                return self._render(placement, source, robot, known)
            alike, kept = (alike, _used(uses, robot, known)), self._recent
        strips = self._by_kind.get(source.key.resource, ())
        made = kept.pop(place := (placement.text, source.key, alike), None)
        if made is None or made.source is not source or made.placement is not placement or made.strips is not strips:
            made = _Made(source, placement, strips, self._render(placement, source, robot, known))
            if isinstance(made.found, Rendering):
                self._stamped[made.found.stamp] = made.found
                if len(self._stamped) > _RECENT:
                    del self._stamped[next(iter(self._stamped))]
        kept[place] = made
        if len(self._recent) > _RECENT:
            del self._recent[next(iter(self._recent))]
        return made.found

    def _uses_of(self, placement: Placement) -> _Uses:
        known = self._uses.get(placement.text)
        if known is None or known.placement is not placement:
            selectors = tuple(override.selector for override in placement.overrides)
            known = self._uses[placement.text] = _Uses(placement, selectors, placement.expand, _names(placement))
        return known

    def stamped(self, stamp: str) -> Rendering | None:
        """The rendering of this stamp, if it was made lately: what is equal to it need not be digested."""
        return self._stamped.get(stamp)

    def _render(
        self, placement: Placement, source: Source, robot: Robot, known: Mapping[str, str] | Undefined
    ) -> Rendering | RenderFailed:
        strips = self._by_kind.get(source.key.resource, ())
        problem = next((each.problem for each in strips if each.problem), "")
        if problem or isinstance(known, Undefined):
            return RenderFailed(Reason.RENDER_FAILED, problem or str(known))
        paths = [path for each in strips for path in each.paths]
        return render(source, placement, paths, robot=robot, config_map=known)

    def forget(self, placement: str) -> None:
        """A placement is gone: keep no rendering of it."""
        self._uses.pop(placement, None)
        for kept in (self._made, self._recent):
            for place in [place for place, made in kept.items() if made.placement.text == placement]:
                del kept[place]


def uses_properties(placement: Placement) -> bool:
    """Whether renderings of a placement depend on properties of the robots."""
    return placement.expand or bool(_names(placement))


def _names(placement: Placement) -> tuple[str, ...]:
    """The properties that overrides of a placement set."""
    verbs = (step.verb for override in placement.overrides for step in override.steps)
    return tuple(verb.name for verb in verbs if isinstance(verb, Property))


def _used(uses: _Uses, robot: Robot, config_map: Properties) -> Hashable:
    """The properties that renderings of a placement depend on; with `expand` any of them may be used."""
    if uses.expand:
        return frozenset(properties(robot, config_map).items())
    return tuple([property_of(robot, config_map, name) for name in uses.properties])
