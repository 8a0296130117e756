"""A conversation with a broker, written down as a transcript.

A scenario (`scenarios.py`) talks to a `Broker`: the real Apache Kafka when transcripts are recorded, our handlers and
coordinator when they are checked. What is different in every run (ids, times) is replaced by names.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Mapping
from enum import IntEnum
from itertools import chain, groupby
from typing import Any, Protocol

from pykbroker.groups.common.records import CoordinatorRecord, decode_record
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_group_records import ConsumerGroupTargetAssignmentMemberKey
from pykbroker.protocol.messages.group_admin import ListGroupsResponse
from pykbroker.protocol.messages.group_records import GroupMetadataKey, OffsetCommitKey
from pykbroker.protocol.messages.streams_group_records import StreamsGroupTargetAssignmentMemberKey
from pykbroker.protocol.schema import NO_UUID, Message, Struct

_MEMBER_ID = re.compile(r"(?<![\w.])([\w.]*)-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_UUID = re.compile(r"[A-Za-z0-9_-]{22}")
"""A member id that Kafka gave to a consumer."""
_UNTOLD = {"throttle_time_ms"}
_TARGETS = (ConsumerGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberKey)


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
    async def make_topic(self, name: str, partitions: int) -> None: ...
    async def add_partitions(self, name: str, total: int) -> None: ...
    async def drop_topic(self, name: str) -> None: ...
    async def configure_group(self, group: str, configs: Mapping[str, str]) -> None: ...

    def records(self) -> list[tuple[bytes | None, bytes | None]]:
        """Keys and values in `__consumer_offsets`, partition by partition."""
        ...


class Session:
    """lines: the transcript so far.

    without_records: groups whose records are not told; the one that has no name is used by several scenarios.
    """

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.lines: list[str] = []
        self.without_records = {""}
        self.tells_words = False
        """Whether the words of errors are compared, too."""
        self._names: dict[str, str] = {}
        self._parked: dict[str, Awaitable[Message]] = {}
        self._groups: set[str] = set()

    async def call(self, client: str, request: Message, version: int) -> Any:
        self._tell(client, ">", request, version)
        response = await self.broker.call(client, request, version)
        if isinstance(response, ListGroupsResponse):
            response.groups = [group for group in response.groups if group.group_id in self._groups - {""}]
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

    def tell_records(self) -> None:
        """What the conversation left in the coordinator's log."""
        found = [decode_record(key, value) for key, value in self.broker.records()]
        groups = self._groups - self.without_records
        told = sorted((each for each in found if group_of(each) in groups), key=group_of)
        for record in chain.from_iterable(_ordered(list(run)) for _, run in groupby(told, lambda each: type(each.key))):
            _, value = record.encode()
            version = "" if value is None else f" v{int.from_bytes(value[:2], 'big')}"
            shown = "tombstone" if record.value is None else self._struct(record.value)
            self.lines.append(f"log: {type(record.key).__name__} {self._struct(record.key)}:{version} {shown}")

    def _tell(self, client: str, direction: str, message: Message, version: int | None) -> None:
        self._groups.add(getattr(message, "group_id", ""))
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
                return "[" + ", ".join(self._value(name, each) for each in sorted(value, key=self._sort_key)) + "]"
            case str() if name == "error_message" and self._hides(value):
                return "<words>"
            case str():
                return repr(self._named(value))
            case bytes() if len(value) == len(NO_UUID) and value in self.broker.topic_ids.values():
                return next(f"<id of {topic}>" for topic, known in self.broker.topic_ids.items() if known == value)
            case int() if name == "port" and value > 0:
                return "<port>"
            case int() if name == "metadata_hash":
                return "<hash>"
            case int() if name == "error_code":
                return ErrorCode(value).name
            case int() if name.endswith("timestamp"):
                return "<time>"
            case IntEnum():
                return value.name
            case _:
                return repr(value)

    def _hides(self, words: str) -> bool:
        return not self.tells_words and " " in words and not words.startswith("Group ")

    def _sort_key(self, value: object) -> str:
        """Member ids begin with what tells clients apart; topic ids do not."""
        text = repr(value)
        for topic, topic_id in self.broker.topic_ids.items():
            text = text.replace(repr(topic_id), topic)
        return text

    def _named(self, text: str) -> str:
        if _UUID.fullmatch(text):
            return self._names.setdefault(text, f"member#{len(self._names) + 1}")
        return _MEMBER_ID.sub(
            lambda found: self._names.setdefault(found[0], f"{found[1]}#{len(self._names) + 1}"), text
        )


def _ordered(run: list[CoordinatorRecord]) -> list[CoordinatorRecord]:
    """In which order Kafka's hash map has members nobody could rely on: in their targets, and where all of them go."""
    are_gone = all(record.value is None for record in run)
    if are_gone or isinstance(run[0].key, _TARGETS):
        run.sort(key=lambda record: getattr(record.key, "member_id", ""))
    return run


def group_of(record: CoordinatorRecord) -> str:
    key = record.key
    return key.group if isinstance(key, OffsetCommitKey | GroupMetadataKey) else key.group_id
