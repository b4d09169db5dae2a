"""Label selectors, as objects of Kubernetes write them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crsyncer.core.content.fields import Fields, Text, fields_at, text_at
from crsyncer.errors import ConfigError

_WORD = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = Text(317, 1, rf"([a-z0-9]([-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_WORD}", "the key of a label")
_VALUE = Text(63, 0, f"({_WORD})?", "the value of a label")
_MOST = 16
_FIELDS = ("matchLabels", "matchExpressions")
_WITH_VALUES = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on a label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The condition as the parameter labelSelector has it."""
        values = f"({','.join(sorted(self.values))})"
        match self.operator:
            case "In":
                return f"{self.key} in {values}"
            case "NotIn":
                return f"{self.key} notin {values}"
            case "Exists":
                return self.key
            case _:
                return f"!{self.key}"

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet the condition. An object without the label meets NotIn, as API servers have it."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels


@dataclass(frozen=True, slots=True)
class Selector:
    """Labels with their values, and conditions; an object meets all of them."""

    labels: tuple[tuple[str, str], ...] = ()
    requirements: tuple[Requirement, ...] = ()

    @property
    def text(self) -> str:
        """The parameter labelSelector; that of equal selectors is the same."""
        return ",".join(
            sorted([*(f"{key}={value}" for key, value in self.labels), *(r.text for r in self.requirements)])
        )

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(labels.get(key) == value for key, value in self.labels) and all(
            each.matches(labels) for each in self.requirements
        )

    @property
    def keys(self) -> frozenset[str]:
        """The labels that matter."""
        return frozenset([*(key for key, _ in self.labels), *(each.key for each in self.requirements)])


def read_selector(fields: Fields) -> Selector | None:
    """What the field `selector` says, if it is there. Raises ConfigError."""
    return fields.inner_or("selector", _FIELDS, _selector, None)


def selector_at(place: str, value: Any) -> Selector:
    """What a selector at a place says, such as an item of a list. Raises ConfigError."""
    return _selector(fields_at(place, value, _FIELDS))


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
