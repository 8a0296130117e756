"""A consumer that asks for something else while its Fetch waits, as Spark does behind each partition that it reads.

Apache Kafka answers the Fetch when its time is over, and the other request behind it. pykbroker does not let the other
one wait.
"""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.brokers import Broker
from compat_tests.topics import create_topic
from compat_tests.wire import Wire, decode_answer
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykbroker.protocol.messages.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

FETCH_VERSION = 12
LIST_OFFSETS_VERSION = 7
LATEST_TIMESTAMP = -1


def long_poll(topic: str, max_wait_ms: int) -> FetchRequest:
    wanted = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**20)]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=wanted)])


def end_of(topic: str) -> ListOffsetsRequest:
    wanted = [ListOffsetsPartition(partition_index=0, timestamp=LATEST_TIMESTAMP)]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)])


def receive_fetched(wire: Wire) -> list[int]:
    """The error codes of the partitions in the answer."""
    answer: Any = decode_answer(wire.receive(), ApiKey.FETCH, FETCH_VERSION)
    return [row.error_code for each in answer.responses for row in each.partitions]


def receive_offset(wire: Wire) -> int:
    answer: Any = decode_answer(wire.receive(), ApiKey.LIST_OFFSETS, LIST_OFFSETS_VERSION)
    offset: int = answer.topics[0].partitions[0].offset
    return offset


def assert_answered_in_order(broker: Broker, topic: str, max_wait_ms: int) -> None:
    create_topic(broker, topic, 1)
    with Wire(broker.address) as wire:
        wire.send(long_poll(topic, max_wait_ms), FETCH_VERSION)
        wire.send(end_of(topic), LIST_OFFSETS_VERSION)
        assert receive_fetched(wire) == [0]
        assert receive_offset(wire) == 0


def test_a_fetch_that_waits_is_answered_first_and_then_what_stands_behind_it(broker: Broker, topic: str) -> None:
    assert_answered_in_order(broker, topic, max_wait_ms=300)


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_a_fetch_does_not_keep_another_request_waiting(broker: Broker, topic: str) -> None:
    """The Fetch could wait for longer than this client does."""
    assert_answered_in_order(broker, topic, max_wait_ms=600_000)
