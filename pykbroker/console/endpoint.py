"""One endpoint of the console's API: a row of the table `endpoints`, and what a function gets that does its work.

    async def topic(asking: Asking, given: Arguments) -> Topic:
        name = given.text("name")
        …

The result is JSON, or a dataclass of what JSON has, or a `Download`. Errors of `pykbroker.client` go through: each has
one answer for all endpoints (`failures`). Arguments come from the path, the query and, where something is changed, a
JSON object.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol, TypeAlias, TypeVar, TypeVarTuple, Unpack

import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import BadInput

from .settings import ConsoleSettings

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Json: TypeAlias = Any

LONGEST_WORK_S: Final = 20.0
MOST_BODY_BYTES: Final = 64 * 1024
_MOST_WHOLE: Final = 2**63 - 1
_LONGEST_TEXT: Final = 1024


class Threads(Protocol):
    """Threads for what computes long, away from the event loop of the broker."""

    async def run(self, fn: Callable[[Unpack[Ts]], T], *args: *Ts) -> T: ...


class Events(Protocol):
    """The way of events to a browser that listens. `send` waits for a slow browser, and ends with one that has gone."""

    async def send(self, event: str, value: Json) -> None: ...


@dataclass(frozen=True, slots=True)
class Asking:
    """The user that asks, and connections for it. user: None where the broker knows none.

    cluster: the session's, whose connections all its requests share: for work that is soon done. new_cluster: one of
    one's own, an async context manager, for a fetch, whose large answer would keep the others waiting. fetches: the few
    fetches of all sessions that may run at once.
    """

    user: str | None
    cluster: Cluster
    new_cluster: Callable[[], Cluster]
    settings: ConsoleSettings
    threads: Threads
    fetches: trio.CapacityLimiter


@dataclass(frozen=True, slots=True)
class Download:
    """A result that is a file, not JSON. The browser keeps it, and never shows it. name: of letters, digits, `.-_`."""

    content: bytes
    name: str


class Arguments:
    """The arguments of a request, by name. Every method raises BadInput for what is missing, or is of another kind."""

    def __init__(self, given: Mapping[str, Json]) -> None:
        self._given = given

    def text(self, name: str, default: str | None = None, *, longest: int = _LONGEST_TEXT) -> str:
        value = self._value(name, default)
        if not isinstance(value, str) or len(value) > longest:
            raise BadInput(f"'{name}' is a text of {longest} characters at most")
        return value

    def whole(self, name: str, default: int | None = None, *, least: int = 0, most: int = _MOST_WHOLE) -> int:
        value = self._value(name, default)
        if isinstance(value, str) and len(value) <= 20 and value.removeprefix("-").isdecimal() and value.isascii():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise BadInput(f"'{name}' is a whole number from {least} to {most}")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self._value(name, default)
        found = {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value
        if not isinstance(found, bool):
            raise BadInput(f"'{name}' is true or false")
        return found

    def one_of(self, name: str, allowed: Sequence[str], default: str | None = None) -> str:
        value = self._value(name, default)
        if value not in allowed:
            raise BadInput(f"'{name}' is one of {', '.join(allowed)}")
        return str(value)

    def texts(self, name: str, *, most: int = 1000) -> list[str]:
        """Return a list of texts; of the query, one for each time that the name is given; none where it is not."""
        value = self._given.get(name, [])
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or len(values) > most or not all(isinstance(each, str) for each in values):
            raise BadInput(f"'{name}' is a list of {most} texts at most")
        return values

    def mapping(self, name: str, *, most: int = 1000) -> dict[str, str]:
        """Return an object of texts; an empty one where it is not given."""
        value = self._given.get(name, {})
        if (
            not isinstance(value, dict)
            or len(value) > most
            or not all(isinstance(each, str) for each in value.values())
        ):
            raise BadInput(f"'{name}' is an object of {most} texts at most")
        return value

    def has(self, name: str) -> bool:
        return self._given.get(name) is not None

    def _value(self, name: str, default: Json) -> Json:
        value = self._given.get(name)
        if value is None:
            if default is None:
                raise BadInput(f"'{name}' is missing")
            return default
        return value


Work: TypeAlias = Callable[[Asking, Arguments], Awaitable[Json | Download]]
StreamWork: TypeAlias = Callable[[Asking, Arguments, Events], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A row of the table. path: below `/api`, with its parameters in braces; where: `module:function`, imported when
    the endpoint is asked for the first time. GET reads; every other method changes something, and is refused to other
    sites and where the console is read-only. is_stream: the function sends events as long as the browser listens.
    """

    method: str
    path: str
    where: str
    is_stream: bool = False
    longest_s: float = LONGEST_WORK_S
    most_body_bytes: int = MOST_BODY_BYTES

    @property
    def is_change(self) -> bool:
        return self.method != "GET"

    def work(self) -> Any:
        """Return the function: `Work`, or `StreamWork` of a stream."""
        module, _, name = self.where.partition(":")
        return getattr(import_module(module), name)
