"""The questions, from plain arguments to JSON values, for who asks over HTTP or from a command.

Each runs in the event loop of the brokers that it asks. ValueError is what was asked wrongly, in one line.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from pykbroker.server.node.broker import Broker
from pykbroker.server.node.node import Node

from .consumer import why_consumer
from .group import why_group
from .lso import why_lso
from .sources import Sources
from .throttle import why_throttle


class BadArguments(ValueError):
    """The arguments do not fit the question."""


def brokers_of(nodes: Iterable[Node | None]) -> list[Broker]:
    """Return the brokers among nodes that run."""
    parts = [node.parts for node in nodes if node is not None]
    return [each.broker_role.broker for each in parts if each is not None and each.broker_role is not None]


async def ask(brokers: Sequence[Broker], question: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a question by its name: group, consumer, lso, throttle.

    The arguments are those of the functions below; numbers may be given as text. Raises ValueError.
    """
    answer, known = _question(question)
    for name in arguments:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(known)}"
            raise BadArguments(f"why {question} has no argument {name}; {hint}")
    given = {name: value for name, value in arguments.items() if value is not None}
    return await answer(brokers, **{name: known[name](name, value) for name, value in given.items()})


async def group(brokers: Sequence[Broker], group: str = "") -> dict[str, Any]:
    """Return why a group is as it is."""
    return (await why_group(Sources(brokers), named("group", group))).to_json()


async def consumer(
    brokers: Sequence[Broker],
    group: str | None = None,
    client_id: str | None = None,
    topic: str | None = None,
    partition: int | None = None,
) -> dict[str, Any]:
    """Return why the consumers of a group, or a client, get what they get."""
    answer = await why_consumer(Sources(brokers), group, client_id=client_id, topic=topic, partition=partition)
    return answer.to_json()


async def lso(brokers: Sequence[Broker], topic: str = "", partition: int = 0) -> dict[str, Any]:
    """Return what holds the last stable offset of a partition."""
    return (await why_lso(Sources(brokers), named("topic", topic), partition)).to_json()


async def throttle(brokers: Sequence[Broker], client_id: str = "", user: str = "ANONYMOUS") -> dict[str, Any]:
    """Return which quotas apply to a client."""
    return (await why_throttle(Sources(brokers), user, client_id)).to_json()


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadArguments(f"{name} is a text, not {value!r:.100}")
    return value


def _number(name: str, value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadArguments(f"{name} is a number from 0 on, not {value!r:.100}")
    return value


def named(name: str, value: str) -> str:
    """Return the name of what is asked for. Raises BadArguments where it is empty."""
    if not value:
        raise BadArguments(f"name a {name}")
    return value


_Converted = Callable[[str, Any], Any]
_QUESTIONS: Final[Mapping[str, tuple[Callable[..., Awaitable[dict[str, Any]]], Mapping[str, _Converted]]]] = {
    "group": (group, {"group": _text}),
    "consumer": (consumer, {"group": _text, "client_id": _text, "topic": _text, "partition": _number}),
    "lso": (lso, {"topic": _text, "partition": _number}),
    "throttle": (throttle, {"client_id": _text, "user": _text}),
}


def _question(name: str) -> tuple[Callable[..., Awaitable[dict[str, Any]]], Mapping[str, _Converted]]:
    found = _QUESTIONS.get(name)
    if found is None:
        close = get_close_matches(name, _QUESTIONS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(_QUESTIONS)}"
        raise BadArguments(f"nobody can ask why {name!r:.100}; {hint}")
    return found
