"""The expressions of policies: CEL by cel-expr-python, regular expressions by google-re2 (C4.5).

Both are in the extra `expressions` and are imported on first use. Python's own `re` is no substitute: its syntax is
another one, and a pattern may take it forever.
"""

import ctypes
import importlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from crsyncer.core.content.mutation import Bound, ExpressionError, Match
from crsyncer.core.content.template import LARGEST, TOO_LARGE
from crsyncer.errors import ConfigError

_DEEPEST = 200
"""Levels of an object. At 10,000, which API servers take, the library overflows the stack and ends the process (m).
It also cuts texts at a NUL character (m)."""
_MOST_STEPS = 1_000_000_000
"""Of a pattern on one text. RE2 takes half a nanosecond for one, at worst 50: without a budget, 380 s for 100 KB and a
pattern of 200 characters (m).
"""
Names = frozenset[tuple[str, type]]
"""The variables of an expression, with their types."""
_own = ctypes.pythonapi.Py_IncRef
_own.argtypes, _own.restype = (ctypes.py_object,), None
_CONFIGURATION = "stdlib: {exclude_macros: [map, filter]}"
"""The parser does not know these macros: their results follow CEL's maps, which have no stable order (C4.3)."""
_TYPES = {object: "DYN", str: "STRING"}
_SUSPECT = re.compile(r"\\u(?:0000|d)")
"""In JSON text: a NUL character, or half of a character."""
_LONGEST_NUMBER = 19
_NO_DIGITS = {character: " " for character in range(128) if not chr(character).isdigit()}
_WHERE = re.compile(r".*?ERROR: <input>:(\d+):(\d+): ")
_CODES = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")


class Expressions:
    """Compiles patterns and programs. Methods raise ExpressionError; ConfigError without the extra."""

    def pattern(self, text: str) -> "RePattern":
        """Compile an RE2 pattern."""
        re2 = _library("re2", "google-re2")
        options = re2.Options()
        options.log_errors = False  # it would write to stderr
        try:
            return RePattern(re2.compile(text, options))
        except (re2.error, UnicodeError) as error:
            raise ExpressionError(_plain(error.args[0])) from None

    def program(self, text: str, variables: Mapping[str, type]) -> "CelProgram":
        """Compile a CEL expression over these variables: `object` for any value, `str` for texts."""
        names = frozenset(variables.items())
        environment = _environment(names)
        if problem := _unfit(text):
            raise ExpressionError(f"is {problem}")
        try:
            return CelProgram(text, names, environment.compile(text))
        except RuntimeError as error:
            if _compiles(text, _environment(names, complete=True)):
                raise ExpressionError("calls map or filter, whose order is not stable") from None
            raise ExpressionError(_plain(error)) from None

    def bind(self, values: Mapping[str, Any], variables: Mapping[str, type]) -> Bound:
        """Values for all programs over these variables. Raises ExpressionError.

        Evaluations of one row share what takes most of their time: the check of the values and their conversion.
        """
        return _bound(values, frozenset(variables.items()))


class RePattern:
    """A compiled pattern."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self.groups: int = compiled.groups

    def sub(self, replacement: Callable[[Match], str], text: str) -> str:
        """The text with every match replaced.

        RE2 looks for one match in a time that grows with the lengths of the rest of the text and of the program, and
        for the next one it begins anew: a budget of steps bounds that, the same wherever it runs (C4.3).
        """
        steps, end = 0, -1

        def spend(characters: int) -> None:
            nonlocal steps
            steps += characters * self._compiled.programsize
            if steps > _MOST_STEPS:
                raise ExpressionError(f"the pattern takes too long on a text of {len(text)} characters")

        def replaced_match(match: Any) -> str:
            nonlocal end
            spend(len(text) - match.end())
            if match.start() == match.end() == end:
                return ""  # as in RE2 itself and in Go; the library shows it all the same, and `$` twice (m)
            end = match.end()
            return replacement(match)

        try:
            spend(len(text))
            replaced: str = self._compiled.sub(replaced_match, text)
        except UnicodeError:
            raise ExpressionError("the text is not valid Unicode") from None
        return replaced


class CelProgram:
    """A compiled expression."""

    def __init__(self, text: str, names: Names, compiled: Any) -> None:
        self._text = text
        self._names = names
        self._compiled = compiled

    def uses(self, fixed: Iterable[str] = ()) -> frozenset[str]:
        """The variables without which it does not compile; the `fixed` fields of variables do not count."""
        return frozenset(
            name
            for name, kind in self._names
            if not _compiles(
                self._text,
                _environment(
                    (self._names - {(name, kind)}) | {(each, object) for each in fixed if each.startswith(f"{name}.")}
                ),
            )
        )

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """The result for these values, as `result`."""
        return self.result(_bound(variables, self._names))

    def result(self, bound: Bound, *, most: int = LARGEST) -> Any:
        """The result in Python's types, keys of objects sorted: CEL's maps have no stable order (m).

        The library returns most errors as values, and raises where the budget of 10,000 iterations is used up. A result
        of more than `most` characters and items is an error: a short expression can repeat an object many times.
        """
        cel = _cel()
        try:
            found = self._compiled.eval(activation=bound)
            value = _Conversion(most).python(found)
            failed = found.type() == cel.Type.ERROR
        except (RuntimeError, UnicodeError) as error:
            raise ExpressionError(_plain(error)) from None
        if failed:
            raise ExpressionError(_plain(value))
        return value


class _Conversion:
    """The conversion of one result, value by value: it ends before the result has used up the memory."""

    def __init__(self, most: int) -> None:
        self._most = self._room = most

    def python(self, found: Any) -> Any:
        """A value of the library in Python's types."""
        value = found.value()
        match value:
            case None:
                # The library hands out references to None without taking them (0.1.3, m): Python 3.11 ends the
                # process after some thousands of them. Later ones do not count references to None.
                _own(None)
            case dict():
                self._spend(sum(len(str(key)) for key in value))
                return {key: self.python(value[key]) for key in sorted(value, key=str)}
            case list():
                self._spend(len(value))
                return [self.python(item) for item in value]
            case str():
                self._spend(len(value))
        return value

    def _spend(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            words = f"the result has more than {self._most} characters and items"
            raise ExpressionError(TOO_LARGE if self._most == LARGEST else words)


def _bound(values: Mapping[str, Any], names: Names) -> Bound:
    environment = _environment(names)
    if problem := _not_for_cel(list(values.values())):
        raise ExpressionError(problem)
    return Bound(environment.Activation(data=dict(values)))


def _not_for_cel(layer: list[Any]) -> str:
    """Why values cannot be given to CEL; empty: they can. Without recursion: they may be deep."""
    if _is_plain(layer):
        return ""
    for _ in range(_DEEPEST):
        if problem := next(filter(None, map(_unfit, layer)), ""):
            return f"the object has {problem}"
        keys = [key for each in layer if isinstance(each, dict) for key in each]
        items = [item for each in layer if isinstance(each, list) for item in each]
        layer = keys + items + [item for each in layer if isinstance(each, dict) for item in each.values()]
        if not layer:
            return ""
    return f"the object is nested more than {_DEEPEST} levels deep"


def _is_plain(values: list[Any]) -> bool:
    """Whether values are fit for CEL at first sight: three times as fast as looking at each of them (m)."""
    try:
        text = json.dumps(values)
    except (RecursionError, ValueError, TypeError):
        return False
    if text.count("[") + text.count("{") > _DEEPEST or _SUSPECT.search(text):
        return False
    return max(map(len, text.translate(_NO_DIGITS).split()), default=0) < _LONGEST_NUMBER


def _unfit(value: Any) -> str:
    """Why a single value cannot be given to CEL: the library fails on some with words of its own, or crashes (m)."""
    match value:
        case str() if "\0" in value:
            return "a text with a NUL character"
        case str() if not _is_unicode(value):
            return "a text that is not valid Unicode"
        case int() if not -(2**63) <= value < 2**64:
            return "a number out of range: it has more than 64 bits"
    return ""


def _is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogates, which JSON can say."""
    try:
        text.isascii() or text.encode()
    except UnicodeError:
        return False
    return True


def _plain(error: object) -> str:
    """The first line of what a library says, without its codes."""
    text = error.decode(errors="replace") if isinstance(error, bytes) else str(error)
    line = _WHERE.sub(r"line \1, column \2: ", text.partition("\n")[0])
    return _CODES.sub("", _CODES.sub("", line))


@cache
def _environment(names: Names, *, complete: bool = False) -> Any:
    """What compiles over these variables; `complete`: with the macros that are refused."""
    cel = _cel()
    variables = {name: getattr(cel.Type, _TYPES[kind]) for name, kind in names}
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml("" if complete else _CONFIGURATION), variables=variables)


def _compiles(text: str, environment: Any) -> bool:
    try:
        environment.compile(text)
    except RuntimeError:
        return False
    return True


def _cel() -> Any:
    return _library("cel_expr_python.cel", "cel-expr-python")


def _library(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ConfigError(
            f"needs {package}, which is not installed",
            hint='install crsyncer with its extra: pip install ".[expressions]"',
        ) from None
