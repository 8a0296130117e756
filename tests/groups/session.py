"""A conversation with a broker, written down as a transcript.

A scenario (`scenarios.py`) talks to a `Broker`: the real Apache Kafka when transcripts are recorded, our handlers and
coordinator when they are checked. What is different in every run (ids, times) is replaced by names.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from enum import IntEnum
from typing import Any, Protocol

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_admin import ListGroupsResponse
from pykbroker.protocol.schema import NO_UUID, Message, Struct

_MEMBER_ID = re.compile(r"([\w.]*)-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_UNTOLD = {"throttle_time_ms"}


class Broker(Protocol):
    """topic_ids: of the topics that exist, by name."""

    topic_ids: dict[str, bytes]

    async def call(self, client: str, request: Message, version: int) -> Message:
        """One request of one client; clients are connections whose client id is their name."""
        ...

    def start(self, client: str, request: Message, version: int) -> Awaitable[Message]:
        """Sends the request now; its response is awaited later."""
        ...

    async def sleep(self, ms: int) -> None: ...


class Session:
    """lines: the transcript so far."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.lines: list[str] = []
        self._names: dict[str, str] = {}
        self._parked: dict[str, Awaitable[Message]] = {}
        self._groups: set[str | None] = set()

    async def call(self, client: str, request: Message, version: int) -> Any:
        self._tell(client, ">", request, version)
        response = await self.broker.call(client, request, version)
        if isinstance(response, ListGroupsResponse):
            response.groups = [group for group in response.groups if group.group_id in self._groups]
        self._tell(client, "<", response, version)
        return response

    async def start(self, client: str, request: Message, version: int) -> None:
        """For a request whose answer comes later."""
        self._tell(client, ">", request, version)
        self._parked[client] = self.broker.start(client, request, version)
        await self.broker.sleep(30)

    async def finish(self, client: str) -> Any:
        response = await self._parked.pop(client)
        self._tell(client, "<", response, None)
        return response

    async def sleep(self, ms: int) -> None:
        self.lines.append(f"... {ms} ms")
        await self.broker.sleep(ms)

    def note(self, text: str) -> None:
        self.lines.append(f"# {text}")

    def _tell(self, client: str, direction: str, message: Message, version: int | None) -> None:
        self._groups.add(getattr(message, "group_id", None))
        in_version = "" if version is None else f" v{version}"
        self.lines.append(f"{client} {direction} {type(message).__name__}{in_version} {self._struct(message)}")

    def _struct(self, struct: Struct) -> str:
        shown = []
        for field in type(struct).__schema__.fields:
            value = getattr(struct, field.name)
            if field.name not in _UNTOLD and value != field.new_default():
                shown.append(f"{field.name}={self._value(field.name, value)}")
        return "{" + ", ".join(shown) + "}"

    def _value(self, name: str, value: Any) -> str:
        match value:
            case Struct():
                return self._struct(value)
            case list():
                # Kafka's hash maps have no order that anyone could rely on.
                return "[" + ", ".join(self._value(name, each) for each in sorted(value, key=repr)) + "]"
            case str() if name == "error_message" and " " in value and not value.startswith("Group "):
                return "<words>"
            case str():
                return repr(self._named(value))
            case bytes() if len(value) == len(NO_UUID) and value in self.broker.topic_ids.values():
                return next(f"<id of {topic}>" for topic, known in self.broker.topic_ids.items() if known == value)
            case int() if name == "port" and value > 0:
                return "<port>"
            case int() if name == "error_code":
                return ErrorCode(value).name
            case IntEnum():
                return value.name
            case _:
                return repr(value)

    def _named(self, text: str) -> str:
        return _MEMBER_ID.sub(
            lambda found: self._names.setdefault(found[0], f"{found[1]}#{len(self._names) + 1}"), text
        )
