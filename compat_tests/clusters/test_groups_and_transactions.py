"""Coordinators move with their partitions: groups and transactions go on when the broker that has them ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from compat_tests.clients import READERS, WRITERS, Message
from compat_tests.members import Member
from compat_tests.waiting import DEADLINE_S, until
from compat_tests.wire import Wire, decode_answer
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from pykbroker.protocol.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse

from .cluster import Cluster
from .layout import KAFKA
from .nodes import Node
from .topics import create_replicated_topic
from .view import NoAnswer

GROUP, TRANSACTION = 0, 1
OFFSET_FETCH = 9
PROTOCOLS: Mapping[str, Mapping[str, Any]] = {"classic": {}, "consumer": {"group_protocol": "consumer"}}


def coordinator(cluster: Cluster, key: str, key_type: int) -> int:
    """As soon as there is one that answers."""
    found: list[int] = []

    def is_found() -> bool:
        for node in cluster.brokers():
            if node.answers:
                try:
                    with Wire(node.address) as wire:
                        answer = wire.call(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]), 4)
                except OSError as error:
                    raise NoAnswer(str(error)) from error
                assert isinstance(answer, FindCoordinatorResponse)
                if not answer.coordinators[0].error_code:
                    found.append(answer.coordinators[0].node_id)
                    return cluster.nodes[found[-1]].answers
        return False

    until(is_found, f"{key} has a coordinator")
    return found[-1]


def test_a_coordinator_that_was_frozen_does_not_go_back_behind_its_successor(
    cluster: Cluster, cluster_kind: str, topic: str, unique: Callable[[str], str]
) -> None:
    """What lies in its sockets when it goes on is answered before it has heard that another one leads. Apache Kafka's
    node tells then what it has in memory.
    """
    create_replicated_topic(cluster, topic, 1)
    group = unique("group")
    frozen = coordinator(cluster, group, GROUP)
    until(lambda: _commit(cluster, frozen, group, topic, 1_000), "an offset is committed")
    assert _told(cluster.nodes[frozen], group, topic) == 1_000
    with Wire(cluster.nodes[frozen].address) as wire:
        cluster.pause(frozen)
        cluster.wait_until_fenced(frozen)
        until(
            lambda: (
                (found := coordinator(cluster, group, GROUP)) != frozen and _commit(cluster, found, group, topic, 2_000)
            ),
            "a successor has another offset committed",
        )
        wire.send(_offsets_of(group, topic), 8)
        cluster.resume(frozen)
        answer = decode_answer(wire.receive(), OFFSET_FETCH, 8)
    assert isinstance(answer, OffsetFetchResponse)
    allowed: set[int | ErrorCode] = {2_000, ErrorCode.NOT_COORDINATOR}
    assert _in(answer) in allowed | ({1_000} if cluster_kind == KAFKA else set())


def _commit(cluster: Cluster, node_id: int, group: str, topic: str, offset: int) -> bool:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=topics)
    with Wire(cluster.nodes[node_id].address) as wire:
        answer = wire.call(request, 8)
    assert isinstance(answer, OffsetCommitResponse)
    return not answer.topics[0].partitions[0].error_code


def _offsets_of(group: str, topic: str) -> OffsetFetchRequest:
    topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)])


def _told(node: Node, group: str, topic: str) -> int | ErrorCode:
    with Wire(node.address) as wire:
        answer = wire.call(_offsets_of(group, topic), 8)
    assert isinstance(answer, OffsetFetchResponse)
    return _in(answer)


def _in(answer: OffsetFetchResponse) -> int | ErrorCode:
    (group,) = answer.groups
    return ErrorCode(group.error_code) if group.error_code else group.topics[0].partitions[0].committed_offset


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_goes_on_when_its_coordinator_is_killed(
    cluster: Cluster, topic: str, unique: Callable[[str], str], protocol: str
) -> None:
    create_replicated_topic(cluster, topic, 3)
    group = unique("group")
    settings = PROTOCOLS[protocol] | {"auto_commit_interval_ms": 500}
    members = [Member(cluster, group, topic, **settings) for _ in range(2)]
    try:
        until(lambda: sorted(each for member in members for each in member.assigned) == [0, 1, 2], "all are assigned")
        WRITERS["confluent-kafka"](cluster.bootstrap, topic, _messages("before"))
        until(lambda: sum(len(member.values) for member in members) >= 30, "the first are read")
        cluster.kill(coordinator(cluster, group, GROUP))
        WRITERS["confluent-kafka"](cluster.bootstrap, topic, _messages("after"), idempotent=True)
        wanted = {each.value for each in _messages("before") + _messages("after")}
        until(lambda: {value for member in members for value in member.values} == wanted, "all are read")
        # Not what they commit as they leave: that is tried once, and a coordinator that rebalances refuses it.
        until(lambda: sum(_committed(cluster, group, topic)) == 60, "they commit what they have read")
    finally:
        for member in members:
            member.leave()


def _messages(text: str) -> list[Message]:
    return [Message(f"{text} {number}".encode(), partition=number % 3) for number in range(30)]


def _committed(cluster: Cluster, group: str, topic: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    try:
        told = consumer.committed([TopicPartition(topic, partition) for partition in range(3)], timeout=DEADLINE_S)
        return [max(each.offset, 0) for each in told]
    finally:
        consumer.close()


def test_transactions_go_on_when_their_coordinator_is_killed(
    cluster: Cluster, topic: str, unique: Callable[[str], str]
) -> None:
    create_replicated_topic(cluster, topic, 2)
    name = unique("transactions")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(60)
    wanted: list[bytes] = []
    for number in range(6):
        is_commit = number % 3 != 1
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce(topic, b"%d" % number, partition=partition)
        producer.flush(DEADLINE_S)
        if number in (1, 3):
            cluster.kill(coordinator(cluster, name, TRANSACTION))
        if is_commit:
            _retrying(lambda: producer.commit_transaction(60))
            wanted += [b"%d" % number] * 2
        else:
            _retrying(lambda: producer.abort_transaction(60))
        if number in (1, 3):
            cluster.start()
    read = READERS["confluent-kafka"](cluster.bootstrap, topic, 2, len(wanted), isolation_level="read_committed")
    assert sorted(each.message.value or b"" for each in read) == sorted(wanted)


def _retrying(call: Callable[[], None]) -> None:
    while True:
        try:
            return call()
        except KafkaException as failed:
            if not failed.args[0].retriable():
                raise


def test_a_reader_is_sent_to_the_replica_in_its_rack(cluster: Cluster, topic: str) -> None:
    """KIP-392: the leader names a follower in sync, which serves what is below its high watermark."""
    create_replicated_topic(cluster, topic, assignment=[[1, 2]])
    WRITERS["confluent-kafka"](cluster.bootstrap, topic, [Message(b"%d" % number) for number in range(10)])
    until(lambda: fetch(cluster, 1, topic, "rack-2").preferred_read_replica == 2, "the leader sends its reader away")
    assert fetch(cluster, 1, topic, "rack-1").preferred_read_replica == -1
    assert fetch(cluster, 1, topic, "rack-3").preferred_read_replica == -1
    until(lambda: fetch(cluster, 2, topic, "rack-2").high_watermark == 10, "the follower knows the high watermark")
    served = fetch(cluster, 2, topic, "rack-2")
    assert served.error_code == 0
    assert served.records
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "unused", "client.rack": "rack-2"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    try:
        until(lambda: _consume(consumer, found) == 10, "all is read from the follower")
    finally:
        consumer.close()


def _consume(consumer: Consumer, found: list[bytes]) -> int:
    found += [message.value() or b"" for message in consumer.consume(100, timeout=0.2) if message.error() is None]
    return len(found)


def fetch(cluster: Cluster, node_id: int, topic: str, rack: str) -> Any:
    """What that node answers of partition 0, from its beginning."""
    request = FetchRequest(
        max_wait_ms=100,
        rack_id=rack,
        topics=[FetchTopic(topic=topic, partitions=[FetchPartition(fetch_offset=0, partition_max_bytes=100_000)])],
    )
    with Wire(cluster.nodes[node_id].address) as wire:
        answer = wire.call(request, 12)
    assert isinstance(answer, FetchResponse)
    return answer.responses[0].partitions[0]
