"""Label selectors, as objects of Kubernetes write them."""

from dataclasses import dataclass
from typing import Any

from crsyncer.core.fields import Fields, Text, fields_at, text_at
from crsyncer.errors import ConfigError

_WORD = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = Text(317, 1, rf"([a-z0-9]([-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_WORD}", "the key of a label")
_VALUE = Text(63, 0, f"({_WORD})?", "the value of a label")
_MOST = 16
_WITH_VALUES = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on a label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Selector:
    """Labels with their values, and conditions; an object meets all of them."""

    labels: tuple[tuple[str, str], ...] = ()
    requirements: tuple[Requirement, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        """The labels that matter."""
        return frozenset([*(key for key, _ in self.labels), *(each.key for each in self.requirements)])


def read_selector(fields: Fields) -> Selector | None:
    """What the field `selector` says, if it is there. Raises ConfigError."""
    return fields.inner_or("selector", ("matchLabels", "matchExpressions"), _selector, None)


def _selector(fields: Fields) -> Selector:
    labels = fields_at(fields.at("matchLabels"), fields.content.get("matchLabels") or {}, ())
    return Selector(
        labels=tuple((text_at(labels.place, key, _KEY), labels.text(key, _VALUE)) for key in labels.content),
        requirements=tuple(_requirement(*item) for item in fields.items("matchExpressions", _MOST)),
    )


def _requirement(place: str, item: Any) -> Requirement:
    fields = fields_at(place, item, ("key", "operator", "values"))
    operator = fields.choice("operator", {name: name for name in _WITH_VALUES})
    values = tuple(text_at(where, value, _VALUE) for where, value in fields.items("values"))
    if bool(values) is not _WITH_VALUES[operator]:
        allowed = "at least one value" if _WITH_VALUES[operator] else "no values"
        raise ConfigError(f"{fields.at('values')} has {len(values)}; allowed with {operator}: {allowed}")
    return Requirement(fields.text("key", _KEY), operator, values)
