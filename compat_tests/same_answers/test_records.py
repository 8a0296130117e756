"""Produce, Fetch, places in a log, producer ids."""

from typing import Any

from compat_tests.hostile.scene import Scene
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.messages.transactions import InitProducerIdRequest

from .interview import T0, Interview, batch


def test_producing_and_fetching(interview: Interview) -> None:
    topic, ask = interview.topic, interview.ask
    topic_id = interview.create(topic, 2)

    def producing(data: bytes, partition: int = 0, **fields: Any) -> ProduceRequest:
        rows = [PartitionProduceData(index=partition, records=data)]
        named = TopicProduceData(name=topic, topic_id=topic_id, partition_data=rows)
        return ProduceRequest(**({"acks": -1, "timeout_ms": 5000, "topic_data": [named]} | fields))

    def fetching(offset: int, partition: int = 0, **fields: Any) -> FetchRequest:
        wanted = FetchPartition(
            partition=partition,
            fetch_offset=offset,
            partition_max_bytes=fields.pop("partition_max_bytes", 2**20),
            current_leader_epoch=fields.pop("leader_epoch", -1),
            last_fetched_epoch=fields.pop("last_fetched_epoch", -1),
        )
        rows = [FetchTopic(topic=topic, topic_id=topic_id, partitions=[wanted])]
        return FetchRequest(**({"max_wait_ms": 100, "min_bytes": 1, "topics": rows} | fields))

    ask("three records", producing(batch(b"a", b"b", b"c")))
    ask("acks 1", producing(batch(b"x"), 1, acks=1))
    ask("acks 5", producing(batch(b"x"), acks=5))
    ask("an unknown partition", producing(batch(b"x"), 7))
    ask("no topics", producing(batch(b"x"), topic_data=[]))
    unknown = TopicProduceData(
        name=f"{topic}-unknown", topic_id=b"x" * 16, partition_data=[PartitionProduceData(records=batch(b"x"))]
    )
    ask("an unknown topic", producing(b"", topic_data=[unknown]))
    ask("with a transactional id", producing(batch(b"x"), transactional_id="t"))
    ask("from the beginning", fetching(0, max_bytes=2**20))
    ask("the second batch", fetching(4))
    ask("the end", fetching(33), 4, 11, 12, 16)
    ask("beyond the end", fetching(1000))
    ask("an unknown partition", fetching(0, 9))
    ask("one byte", fetching(0, partition_max_bytes=1))
    ask("one byte in all", fetching(0, max_bytes=1))
    ask("no bytes in all", fetching(0, max_bytes=0))
    ask("committed", fetching(0, isolation_level=1))
    ask("an epoch to come", fetching(0, leader_epoch=50))
    ask("the present epoch", fetching(0, leader_epoch=0))
    ask("what diverged", fetching(0, last_fetched_epoch=9), 12, 16)
    ask("nothing", FetchRequest(max_wait_ms=100, min_bytes=1), 4, 12, 13, 17)
    ask("a session that there is not", fetching(0, session_id=99, session_epoch=1))
    ask("a session that ends", fetching(0, session_id=0, session_epoch=-1))
    other = [
        FetchTopic(topic=f"{topic}-unknown", topic_id=b"y" * 16, partitions=[FetchPartition(partition_max_bytes=9)])
    ]
    ask("an unknown topic", fetching(0, topics=other))


def test_places_in_a_log(interview: Interview) -> None:
    topic, ask = interview.topic, interview.ask
    interview.create(topic)
    assert Scene(interview.broker).produce(batch(b"a", b"b", b"c"), topic) == "NONE"

    def listing(timestamp: int, partition: int = 0, **fields: Any) -> ListOffsetsRequest:
        wanted = ListOffsetsPartition(
            partition_index=partition, timestamp=timestamp, current_leader_epoch=fields.pop("leader_epoch", -1)
        )
        topics = [ListOffsetsTopic(name=fields.pop("name", topic), partitions=[wanted])]
        return ListOffsetsRequest(**({"replica_id": -1, "topics": topics} | fields))

    for timestamp in (-1, -2, -3, -4, -5, -6, -7, -100, 0, T0, T0 + 1, T0 + 5):
        ask(f"time {timestamp if timestamp < T0 else timestamp - T0}", listing(timestamp))
    ask("an unknown partition", listing(-1, 5))
    ask("an unknown topic", listing(-1, name=f"{topic}-unknown"))
    ask("committed", listing(-1, isolation_level=1))
    ask("an epoch to come", listing(-1, leader_epoch=9))
    ask("the present epoch", listing(-1, leader_epoch=0))
    ask("as a debugging replica", listing(-1, replica_id=-2))
    ask("as a replica", listing(-1, replica_id=7))

    def epochs(epoch: int, partition: int = 0, **fields: Any) -> OffsetForLeaderEpochRequest:
        wanted = OffsetForLeaderPartition(
            partition=partition, leader_epoch=epoch, current_leader_epoch=fields.pop("leader_epoch", -1)
        )
        return OffsetForLeaderEpochRequest(
            topics=[OffsetForLeaderTopic(topic=fields.pop("name", topic), partitions=[wanted])]
        )

    for epoch in (0, 1, -1, 99):
        ask(f"epoch {epoch}", epochs(epoch))
    ask("an unknown partition", epochs(0, 5))
    ask("an unknown topic", epochs(0, name=f"{topic}-unknown"))
    ask("a leader epoch to come", epochs(0, leader_epoch=9))


def test_producer_ids(interview: Interview) -> None:
    Scene(interview.broker).producer_id()  # the first may have to wait
    ask = interview.ask
    ask("an idempotent producer", InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000))
    ask(
        "with an epoch of its own",
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000, producer_id=5, producer_epoch=3),
    )
    ask("with half an id", InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000, producer_id=5))
    ask("with a timeout of -1", InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1))
    ask("with an empty transactional id", InitProducerIdRequest(transactional_id="", transaction_timeout_ms=60_000))
