"""`POST /api/topics/{name}/records`: one record, from a form, into a topic that exists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pykbroker.client.errors import BadInput, KafkaError
from pykbroker.client.producer import open_producer
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.console.records.content import bytes_of_hex
from pykbroker.console.records.json_layout import check
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.records.batch import Header

from .topic_rows import metadata_of

MOST_CHARACTERS: Final = 2 * 1024 * 1024
MOST_HEADERS: Final = 100
KINDS: Final = ("text", "json", "hex", "null")
_DELIVERY_TIMEOUT_MS: Final = 15_000
_MOST_PARTITION: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Produced:
    """The place that a record got."""

    partition: int
    offset: str


async def produce(asking: Asking, given: Arguments) -> Produced:
    """Write one record, and return where it is. Raises BadInput, KafkaError, ClientError."""
    name = given.text("name")
    partition = given.whole("partition", most=_MOST_PARTITION) if given.has("partition") else None
    key, value = _bytes(given, "key", "null"), _bytes(given, "value", "text")
    headers = [_header(each) for each in given.texts("headers", most=MOST_HEADERS)]
    _, found = await metadata_of(asking.cluster, name)
    if found.is_internal:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is the cluster's own: the console leaves it alone")
    async with asking.new_cluster() as cluster:
        await cluster.topic(name)  # or the producer would create a topic that goes at this moment
        async with open_producer(cluster, delivery_timeout_ms=_DELIVERY_TIMEOUT_MS) as producer:
            delivery = await producer.send(name, value, key=key, headers=headers, partition=partition)
            offset = await delivery.wait()
    return Produced(delivery.partition.partition, str(offset))


def _bytes(given: Arguments, name: str, default: str) -> bytes | None:
    """Return a key or a value as its kind tells. Raises BadInput."""
    kind = given.one_of(f"{name}_kind", KINDS, default)
    if kind == "null":
        return None
    text = given.text(name, "", longest=MOST_CHARACTERS)
    if kind == "hex":
        try:
            return bytes_of_hex(text)
        except ValueError:
            raise BadInput(f"the {name} is not hex: pairs of 0-9 and a-f, such as 00 ff 1a") from None
    if kind == "json":
        try:
            check(text)
        except ValueError as error:
            raise BadInput(f"the {name} is no JSON: {error}") from None
    return text.encode()


def _header(text: str) -> Header:
    """Return the header of a line NAME=VALUE; NAME alone has null."""
    name, equals, value = text.partition("=")
    if not name.strip():
        raise BadInput(f"a header is NAME=VALUE, not '{text[:60]}'")
    return (name.strip(), value.encode() if equals else None)
