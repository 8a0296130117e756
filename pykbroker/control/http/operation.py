"""An operation is one thing that a program asks of a broker's control: a path over HTTP, a command of `pykbroker ctl`.

Both doors are made from it, so that they take the same names. Values are those of JSON.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

if TYPE_CHECKING:
    from pykbroker.control.control import Control

Json: TypeAlias = Any
"""A dictionary, list, string, number, truth value or None, all the way down."""
Method: TypeAlias = Literal["GET", "POST", "DELETE"]


class BadRequest(ValueError):
    """A request says what cannot be done; the message is one line for people."""


class Kind(StrEnum):
    """The values that a parameter takes."""

    TEXT = "text"
    WHOLE = "whole number"
    NUMBER = "number"
    FLAG = "true or false"
    FILE = "the text of a file"
    ANY = "a text, or values of JSON"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named value of a request. help: of the command line."""

    name: str
    help: str
    kind: Kind = Kind.TEXT
    is_required: bool = False

    def value_of(self, given: Json) -> Json:
        """Return a value as the operation takes it. given: JSON, or text of a query. Raises BadRequest."""
        match self.kind:
            case Kind.ANY:
                return given
            case Kind.TEXT | Kind.FILE:
                if isinstance(given, str):
                    return given
            case Kind.FLAG:
                if isinstance(given, bool):
                    return given
                if given in ("true", "false"):
                    return given == "true"
            case Kind.WHOLE | Kind.NUMBER:
                number = _number(given, int if self.kind is Kind.WHOLE else float)
                if number is not None:
                    return number
        raise BadRequest(f"'{self.name}' takes {_ARTICLES.get(self.kind, '')}{self.kind}, not {_shown(given)}")


_ARTICLES: Final = {Kind.WHOLE: "a ", Kind.NUMBER: "a "}


@dataclass(frozen=True, slots=True)
class Stream:
    """A long answer, in parts. content_type: that of HTTP."""

    content_type: str
    parts: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class Farewell:
    """An answer behind which something else is done. answer: JSON."""

    answer: Json
    then: Callable[[], None]


Work: TypeAlias = "Callable[[Control, Mapping[str, Any]], Awaitable[Json | Stream | Farewell]]"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation. command: the words behind `pykbroker ctl`. path: with `{name}` for parameters that are part of it.

    does: the coroutine that does it in the broker's process, as `module:function`, which is imported there alone.
    is_stream: its answer is a `Stream`.
    """

    command: str
    method: Method
    path: str
    summary: str
    does: str
    parameters: Sequence[Parameter] = ()
    is_stream: bool = False

    def work(self) -> Work:
        """Import what does it."""
        module, _, function = self.does.partition(":")
        return cast("Work", getattr(import_module(module), function))

    def arguments(self, given: Mapping[str, Json]) -> dict[str, Any]:
        """Return the checked arguments of a request. Raises BadRequest."""
        known = {each.name: each for each in self.parameters}
        for name in given:
            if name not in known:
                close = get_close_matches(name, known, n=1)
                hint = f"did you mean '{close[0]}'?" if close else f"there is {', '.join(known) or 'none'}"
                raise BadRequest(f"'{name}' is no parameter of {self.command}; {hint}")
        for name, parameter in known.items():
            if parameter.is_required and name not in given:
                raise BadRequest(f"{self.command} needs '{name}': {parameter.help}")
        return {name: known[name].value_of(value) for name, value in given.items() if value is not None}


def _number(given: Json, kind: type[int] | type[float]) -> float | None:
    if isinstance(given, bool) or not isinstance(given, (int, float, str)):
        return None
    if kind is int and isinstance(given, float):
        return None
    try:
        return kind(given)
    except (ValueError, OverflowError):
        return None


def _shown(given: Json) -> str:
    text = repr(given)
    return text if len(text) <= 60 else f"{text[:60]}…"
