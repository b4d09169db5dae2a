"""Label selectors as API servers read them (kubernetes.io, "Labels and Selectors")."""

import re
from collections.abc import Mapping

from crsyncer.core.model import Json

_TERMS = re.compile(r",(?![^(]*\))")
_SET = re.compile(r"(\S+) (in|notin) \((.*)\)")


def selected(obj: Json, selector: str) -> bool:
    """Whether a label selector, or an empty one, selects an object."""
    return matches(selector, obj["metadata"].get("labels") or {})


def matches(selector: str, labels: Mapping[str, str]) -> bool:
    """Whether labels meet every requirement of a selector."""
    return not selector or all(_meets(term, labels) for term in _TERMS.split(selector))


def _meets(term: str, labels: Mapping[str, str]) -> bool:
    if found := _SET.fullmatch(term):
        among = labels.get(found[1]) in found[3].split(",")
        return among is (found[2] == "in")
    if term.startswith("!"):
        return term[1:] not in labels
    key, equals, value = term.partition("=")
    return labels.get(key) == value if equals else key in labels
