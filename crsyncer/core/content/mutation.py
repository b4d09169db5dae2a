"""What a SyncPolicy's mutations make of an object (C4): pure, and the same for the same object."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NewType, Protocol, TypeVar, assert_never

from crsyncer.core.content.fields import json_problem
from crsyncer.core.content.pointer import Pointer, changed
from crsyncer.core.content.shape import AS_RECEIVED, Change, MutationFailed, Shape
from crsyncer.core.content.steps import Cel, Mutations, Regex, Remove, Render, Set, Step
from crsyncer.core.content.template import LARGEST, TOO_LARGE, Names, text_of
from crsyncer.core.model import Json, Key
from crsyncer.errors import ConfigError, SyncError

T = TypeVar("T")
VARIABLES: Mapping[str, type] = MappingProxyType({"self": object, "value": object, "robot": str, "cluster": str})
"""What the expressions of a policy may use (C4.2)."""
Bound = NewType("Bound", object)
"""Values that are checked and ready for expressions over their variables."""


class ExpressionError(SyncError):
    """An expression does not compile, or has no result."""


class Match(Protocol):
    """One match of a pattern."""

    def group(self, number: int, /) -> str | None:
        """The text of a group, 0 for all; None where it took no part."""
        ...


class Pattern(Protocol):
    """A regular expression."""

    @property
    def groups(self) -> int:
        """How many groups it has."""
        ...

    def sub(self, replacement: Callable[[Match], str], text: str) -> str:
        """The text with every match replaced. Raises ExpressionError."""
        ...


class Program(Protocol):
    """A compiled expression."""

    def uses(self, fixed: Iterable[str] = ()) -> frozenset[str]:
        """The variables that it depends on. Fields of variables that are `fixed`, as in `robot.name`, do not count."""
        ...

    def result(self, bound: Bound, *, most: int = LARGEST) -> Any:
        """Its result, in Python's types. Raises ExpressionError, also where it takes too long.

        A result of more than `most` characters and items is an error, too.
        """
        ...

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """The result for these values. Raises ExpressionError."""
        ...


class Expressions(Protocol):
    """The two languages that policies may use. Methods raise ExpressionError, and ConfigError where one is missing."""

    def pattern(self, text: str) -> Pattern:
        """Compile an RE2 pattern."""
        ...

    def program(self, text: str, variables: Mapping[str, type]) -> Program:
        """Compile a CEL expression over these variables: `object` for any value, `str` for texts.

        One that calls `map` or `filter` does not compile: their results have no stable order (C4.3).
        """
        ...

    def bind(self, values: Mapping[str, Any], variables: Mapping[str, type]) -> Bound:
        """Values for all programs over these variables. Raises ExpressionError where they are not fit for it."""
        ...


@dataclass(frozen=True, slots=True)
class _Received:
    """The object as it was received, which every step sees, and what placeholders mean for it."""

    content: Json
    names: Names


@dataclass(frozen=True, slots=True)
class Compiled:
    """A step that is ready to run."""

    step: Step
    pointer: Pointer
    creates: bool
    """Whether it sets what is absent."""
    result: Callable[[Any, _Received], Any]
    """From what is at the path to what shall be there; None: nothing. Raises ValueError and ExpressionError."""


def compile_steps(steps: tuple[Step, ...], expressions: Expressions) -> tuple[Compiled, ...]:
    """The steps, ready to run. Raises ConfigError with the place of what does not compile (C4.3)."""
    return tuple(_compiled(step, expressions) for step in steps)


def shape_of(mutations: Mutations, *, keep_local: bool, expressions: Callable[[], Expressions]) -> Shape:
    """The shape that a policy gives to objects, of whichever robot. Raises ConfigError as `compile_steps` does."""
    steps = (*mutations.down, *mutations.up)
    if not steps:
        return Shape(keep_local=True) if keep_local else AS_RECEIVED
    languages = expressions()
    return Shape(
        steps=str(mutations),
        keep_local=keep_local,
        down=_change(compile_steps(mutations.down, languages), mutate_content),
        up=_change(compile_steps(mutations.up, languages), mutate_status),
    )


def _change(steps: tuple[Compiled, ...], mutate: Callable[[Json, tuple[Compiled, ...], Names], Json]) -> Change | None:
    def change(raw: Json, key: Key, robot: str, identity: str) -> Json:
        return mutate(raw, steps, Names(key.namespace, key.name, robot=robot, identity=identity))

    return change if steps else None


def mutate_content(raw: Json, steps: tuple[Compiled, ...], names: Names) -> Json:
    """The object after all steps, one after the other; `raw` stays as it is. Raises MutationFailed (C4.4)."""
    received = _Received(raw, names)
    for compiled in steps:
        try:
            raw = _applied(compiled, raw, received)
        except (ValueError, ExpressionError) as error:
            step = compiled.step
            raise MutationFailed(f"{step.place}, {step.path}", str(error)) from None
    return raw


def mutate_status(raw: Json, steps: tuple[Compiled, ...], names: Names) -> Json:
    """The same for a status on its way up. Where there is none, none is sent (S4.3), so none is made."""
    return mutate_content(raw, steps, names) if raw.get("status") else raw


def _applied(compiled: Compiled, raw: Json, received: _Received) -> Json:
    room = LARGEST

    def change(value: Any) -> Any:
        nonlocal room
        new = compiled.result(value, received)
        if problem := json_problem(new, "the result"):
            raise ValueError(problem)
        if new is not None and compiled.pointer[0] == "metadata" and not isinstance(new, str):
            raise ValueError("the result is no text, as labels and annotations are")
        room -= _size(new)
        if room < 0:
            raise ValueError(TOO_LARGE)
        return new

    new: Json = changed(raw, compiled.pointer, change, create=compiled.creates)
    return new


def _size(value: Any) -> int:
    """How many characters and items there are in a value. Without recursion: it may be deep."""
    size, waiting = 0, [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            size += sum(map(len, each))
            waiting += each.values()
        elif isinstance(each, list):
            size += len(each)
            waiting += each
        elif isinstance(each, str):
            size += len(each)
    return size


def _compiled(step: Step, expressions: Expressions) -> Compiled:
    match step.verb:
        case Set(value):
            creates, result = True, _constant(value)
        case Remove():
            creates, result = False, _constant(None)
        case Regex():
            creates, result = False, _regex(step.verb, step.place, expressions)
        case Render(template):
            creates, result = True, lambda _, received: template.render(received.names, received.content)
        case Cel():
            creates, result = True, _cel(step.verb, step.place, expressions)
        case never:
            assert_never(never)
    return Compiled(step, step.pointer, creates, result)


def _constant(value: Any) -> Callable[[Any, _Received], Any]:
    return lambda _, __: value


def _regex(verb: Regex, place: str, expressions: Expressions) -> Callable[[Any, _Received], Any]:
    pattern = _at(f"{place}.regex", "pattern", lambda: expressions.pattern(verb.pattern))
    highest = max((part for part in verb.replacement if isinstance(part, int)), default=0)
    if highest > pattern.groups:
        raise ConfigError(f"{place}.regex.replacement has ${highest}; allowed: $0 to ${pattern.groups}")

    def result(value: Any, _: _Received) -> str:
        room = LARGEST

        def replacement(match: Match) -> str:
            nonlocal room
            groups = {part: match.group(part) or "" for part in verb.replacement if isinstance(part, int)}
            texts = [part if isinstance(part, str) else groups[part] for part in verb.replacement]
            room -= sum(map(len, texts))
            if room < 0:
                raise ValueError(TOO_LARGE)
            return "".join(texts)

        return pattern.sub(replacement, text_of(value))

    return result


def _cel(verb: Cel, place: str, expressions: Expressions) -> Callable[[Any, _Received], Any]:
    program = _at(place, "cel", lambda: expressions.program(verb.expression, VARIABLES))

    def result(value: Any, received: _Received) -> Any:
        names = {"robot": received.names.robot, "cluster": received.names.cluster}
        known = {name: text for name, text in names.items() if text}
        return program.evaluate({"self": received.content, "value": value, **known})

    return result


def _at(place: str, field: str, compile_: Callable[[], T]) -> T:
    """What is compiled from a field of a policy; errors name its place."""
    try:
        return compile_()
    except (ExpressionError, ConfigError) as error:
        raise ConfigError(f"{place}.{field}: {error}", hint=error.hint) from None
