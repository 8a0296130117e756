"""Asks one broker in every version, and makes its answers comparable with those of the other.

Left out of the comparison are only ids, ports and the wording of error messages; that there is a message, and where
something is null, is compared.
"""

import time
from collections.abc import Iterator
from typing import Any

from compat_tests.brokers import Broker
from compat_tests.referee_versions import newest_of_the_referee
from compat_tests.test_api_versions import advertised
from compat_tests.topics import create_topic
from compat_tests.wire import Closed, Silent, Wire
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.compile import encode
from pykbroker.protocol.errors import UnsupportedVersion
from pykbroker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
)
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches, iter_records
from pykbroker.protocol.schema import NO_UUID, Message, Struct

T0 = int(time.time() * 1000) - 3_600_000
REDACTED = {
    "port",
    "host",
    "cluster_id",
    "producer_id",
    "member_id",
    "leader",
    "throttle_time_ms",
    "log_append_time_ms",
}
TEXTS = {"error_message", "batch_index_error_message"}


def plain(value: Any, name: str = "") -> Any:
    """Dictionaries and lists; what cannot be the same is replaced by its type."""
    if isinstance(value, Message | Struct):
        return {field.name: plain(getattr(value, field.name), field.name) for field in type(value).__schema__.fields}
    if isinstance(value, list):
        return sorted((plain(each, name) for each in value), key=repr)
    if name == "topic_id":
        return "none" if value == NO_UUID else "an id"
    if name == "records":
        return None if value is None else [plain_record(each) for each in _records(bytes(value))]
    if name == "timestamp":
        return plain_time(value)
    if value is not None and (name in REDACTED or name in TEXTS):
        return f"a {name}"
    return bytes(value) if isinstance(value, memoryview) else value


def _records(data: bytes) -> Iterator[Record]:
    return (record for found in iter_batches(data) for record in iter_records(found))


def plain_record(record: Record) -> dict[str, Any]:
    return record._asdict() | {"timestamp": plain_time(record.timestamp)}


def plain_time(timestamp_ms: int) -> int | str:
    """A time of this interview, without the day on which it was held."""
    return f"T0 + {timestamp_ms - T0}" if 0 <= timestamp_ms - T0 < 1000 else timestamp_ms


class Interview:
    """Asks one broker, and keeps its answers by question."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self.broker = broker
        self.topic = topic
        """A name that is the same on every broker."""
        self.answers: dict[str, Any] = {}
        self._advertised = advertised(broker)

    def ask(self, question: str, request: Message, *versions: int) -> Any:
        """In these versions, or in all that can carry it; returns the last answer."""
        answer = None
        for version in versions or self._versions(request):
            try:
                encode(request, version)
            except (UnsupportedVersion, ValueError):  # a field, or a null, that this version does not have
                continue
            try:
                with Wire(self.broker.address) as wire:
                    answer = wire.call(request, version)
                shown = plain(answer)
            except Closed:
                shown = "closed"
            except Silent:
                shown = "silent"
            self.answers[f"{type(request).__name__} {version}, {question}"] = shown
        return answer

    def _versions(self, request: Message) -> range:
        api_key = type(request).__schema__.api_key
        oldest, newest = self._advertised[ApiKey(api_key)]
        newest = newest_of_the_referee(ApiKey(api_key), newest)
        return range(max(oldest, 3) if api_key == ApiKey.PRODUCE else oldest, newest + 1)

    def create(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        """A topic that can be used; returns its id."""
        create_topic(self.broker, name, partitions, {key.replace("_", "."): value for key, value in configs.items()})
        with Wire(self.broker.address) as wire:
            answer: Any = wire.call(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 12)
        return bytes(answer.topics[0].topic_id)


def batch(*values: bytes, **fields: Any) -> bytes:
    return encode_batch([Record(b"k", value, timestamp=T0 + at) for at, value in enumerate(values)], **fields)
