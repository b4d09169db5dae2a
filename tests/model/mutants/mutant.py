"""A deliberate defect: a piece of the source of one real function, replaced for a while."""

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Mutant:
    """One defect."""

    name: str
    function: Callable[..., Any]
    old: str
    new: str
    noticed_by: str
    """How the names of the hazards begin that notice it, after `test_`; of PROMISES: the name of the history."""
    says: str = ""
    """A part of what is said of it then."""

    @contextmanager
    def alive(self) -> Iterator[None]:
        """The agent has the defect inside the block; raises LookupError when the function is not as expected."""
        function = cast("FunctionType", self.function)
        source = textwrap.dedent(inspect.getsource(function))
        if source.count(self.old) != 1:
            raise LookupError(f"{self.name}: {self.old!r} is not once in {function.__qualname__}")
        scope: dict[str, Any] = {}
        exec(source.replace(self.old, self.new), function.__globals__, scope)
        sound, function.__code__ = function.__code__, scope[function.__name__].__code__
        assert _parts(sound) != _parts(function.__code__)
        try:
            yield
        finally:
            function.__code__ = sound


def _parts(code: CodeType) -> tuple[object, ...]:
    """What code does."""
    return code.co_code, code.co_consts, code.co_names
