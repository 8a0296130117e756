"""Consumer groups: members come, go, return and are fenced; offsets are committed, found again and reset."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, ConsumerGroupState, KafkaException
from confluent_kafka import ConsumerGroupTopicPartitions as GroupOffsets
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from pykbroker.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)

from .answers import TestAnswers
from .brokers import Broker
from .clients import poll_member
from .hostile.scene import Scene
from .members import Member
from .topics import fill_topic
from .waiting import DEADLINE_S, until
from .wire import Wire

PARTITIONS = 6
RECORDS = 600

Unique = Callable[[str], str]


@pytest.fixture
def filled_topic(broker: Broker, topic: str) -> str:
    fill_topic(broker, topic, PARTITIONS, RECORDS)
    return topic


@pytest.fixture
def group(unique: Unique) -> str:
    return unique("group")


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def members() -> Iterator[list[Member]]:
    joined: list[Member] = []
    yield joined
    for member in joined:
        member.leave()


def shares(members: list[Member]) -> list[int]:
    return sorted(len(member.assigned) for member in members)


def test_members_share_the_partitions_as_they_come_and_go(
    broker: Broker, filled_topic: str, group: str, members: list[Member]
) -> None:
    members.append(Member(broker, group, filled_topic))
    until(lambda: shares(members) == [6], "one member has all")
    members.append(Member(broker, group, filled_topic))
    until(lambda: shares(members) == [3, 3], "two members share")
    members.append(Member(broker, group, filled_topic))
    until(lambda: shares(members) == [2, 2, 2], "three members share")
    assert set.union(*(member.assigned for member in members)) == set(range(PARTITIONS))
    members.pop(0).leave()
    until(lambda: shares(members) == [3, 3], "the others take over")
    members.pop(0).leave()
    until(lambda: shares(members) == [6], "the last has all again")
    assert not members[0].errors


def test_every_record_is_read_at_least_once_through_rebalances(
    broker: Broker, filled_topic: str, group: str, members: list[Member]
) -> None:
    members.extend(Member(broker, group, filled_topic) for _ in range(3))
    until(lambda: len({value for member in members for value in member.values}) == RECORDS, "all records read")


@pytest.mark.parametrize("count", [12])
def test_many_members_that_join_at_once_all_get_in(
    broker: Broker, filled_topic: str, group: str, members: list[Member], count: int
) -> None:
    members.extend(Member(broker, group, filled_topic) for _ in range(count))
    until(lambda: sum(shares(members)) == PARTITIONS and max(shares(members)) == 1, "one partition for six of them")
    assert not [error for member in members for error in member.errors]


def test_cooperative_members_keep_what_they_need_not_give(
    broker: Broker, filled_topic: str, group: str, members: list[Member]
) -> None:
    config = {"partition_assignment_strategy": "cooperative-sticky"}
    members.append(Member(broker, group, filled_topic, **config))
    until(lambda: shares(members) == [6], "one member has all")
    members.append(Member(broker, group, filled_topic, **config))
    until(lambda: shares(members) == [3, 3], "two members share")
    kept = members[0].assigned
    members.append(Member(broker, group, filled_topic, **config))
    until(lambda: shares(members) == [2, 2, 2], "three members share")
    assert members[0].assigned <= kept


def test_a_static_member_returns_to_its_partitions_without_a_rebalance(
    broker: Broker, filled_topic: str, group: str, members: list[Member], admin: AdminClient
) -> None:
    first = Member(broker, group, filled_topic, group_instance_id="one", session_timeout_ms=20_000)
    members.append(Member(broker, group, filled_topic, group_instance_id="two", session_timeout_ms=20_000))
    until(lambda: shares([first, *members]) == [3, 3], "two members share")
    had, of_the_other = first.assigned, members[0].assigned
    first.leave()
    described = describe(admin, group)
    assert sorted(member.group_instance_id for member in described.members) == ["one", "two"]
    members.append(Member(broker, group, filled_topic, group_instance_id="one", session_timeout_ms=20_000))
    until(lambda: members[1].assigned == had, "it has its partitions back")
    assert members[0].assigned == of_the_other


def test_a_second_static_member_of_the_same_name_fences_the_first(
    broker: Broker, filled_topic: str, group: str, members: list[Member]
) -> None:
    members.append(Member(broker, group, filled_topic, group_instance_id="one"))
    until(lambda: shares(members) == [6], "the first has all")
    members.append(Member(broker, group, filled_topic, group_instance_id="one"))
    until(lambda: members[0].errors, "the first is told")
    assert members[0].errors[0].name() in ("_FATAL", "FENCED_INSTANCE_ID")
    until(lambda: len(members[1].assigned) == PARTITIONS, "the second has all")


def test_the_partitions_of_a_member_that_falls_silent_are_taken_over(
    broker: Broker, filled_topic: str, group: str, members: list[Member]
) -> None:
    """It joined by hand and never sends a heartbeat."""
    from .hostile.group_cases import join

    Scene(broker).group()  # the coordinator is at work
    with Wire(broker.address) as wire:
        asked = join(wire, group_id=group, session_timeout_ms=6000)
        join(wire, group_id=group, session_timeout_ms=6000, member_id=asked.member_id)
    members.append(Member(broker, group, filled_topic, partition_assignment_strategy="range"))
    until(lambda: shares(members) == [6], "the silent member was removed")


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka", "aiokafka"])
def test_a_group_resumes_where_it_committed(broker: Broker, filled_topic: str, group: str, client: str) -> None:
    first = RESUMING[client](broker.bootstrap, filled_topic, group, 200)
    rest = RESUMING[client](broker.bootstrap, filled_topic, group, RECORDS - 200)
    assert sorted(int(value) for value in first + rest) == list(range(RECORDS))


def read_some_with_kafka_python(bootstrap: str, topic: str, group: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=10,
    )
    found: list[bytes] = []
    until(lambda: found.extend(poll_member(consumer)) or len(found) >= count, "records come")
    assert len(found) == count
    consumer.commit()
    consumer.close()
    return found


def read_some_with_confluent(bootstrap: str, topic: str, group: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    found: list[bytes] = []

    def read() -> bool:
        found.extend(message.value() for message in consumer.consume(count - len(found), 0.5))
        return len(found) == count

    until(read, "records come")
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def read_some_with_aiokafka(bootstrap: str, topic: str, group: str, count: int) -> list[bytes]:
    async def read() -> list[bytes]:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        async with consumer, asyncio.timeout(DEADLINE_S):
            found = [(await consumer.getone()).value for _ in range(count)]
            await consumer.commit()
        return found

    return asyncio.run(read())


RESUMING = {
    "kafka-python": read_some_with_kafka_python,
    "confluent-kafka": read_some_with_confluent,
    "aiokafka": read_some_with_aiokafka,
}


def test_auto_commit_keeps_the_place_of_a_consumer_that_left(broker: Broker, filled_topic: str, group: str) -> None:
    settings: dict[str, Any] = {
        "bootstrap_servers": broker.bootstrap,
        "group_id": group,
        "auto_offset_reset": "earliest",
    }
    consumer = KafkaConsumer(filled_topic, **settings)
    found: list[bytes] = []
    until(lambda: found.extend(poll_member(consumer)) or len(found) == RECORDS, "all records")
    consumer.close()
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    producer.send(filled_topic, b"new", partition=3).get(DEADLINE_S)
    producer.close()
    consumer = KafkaConsumer(filled_topic, **settings)
    later: list[bytes] = []
    until(lambda: later.extend(poll_member(consumer)) or later, "the new record")
    consumer.close()
    assert later == [b"new"]


def test_commit_metadata_comes_back_as_it_was_committed(broker: Broker, filled_topic: str, group: str) -> None:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=group)
    partition = TopicPartition(filled_topic, 0)
    consumer.assign([partition])
    consumer.commit({partition: OffsetAndMetadata(42, "wörds {} \n", -1)})
    found = consumer.committed(partition, metadata=True)
    consumer.close()
    assert (found.offset, found.metadata) == (42, "wörds {} \n")


def test_offsets_of_an_unknown_group_are_minus_one_and_no_error(
    broker: Broker, filled_topic: str, answers: TestAnswers
) -> None:
    group = Scene(broker).group()
    request = OffsetFetchRequest(
        group_id=group, topics=[OffsetFetchRequestTopic(name=filled_topic, partition_indexes=[0, 77])]
    )
    with Wire(broker.address) as wire:
        answer = wire.call(request, 7)
    assert isinstance(answer, OffsetFetchResponse)
    rows = [
        (each.partition_index, each.committed_offset, each.committed_leader_epoch, each.metadata, each.error_code)
        for each in answer.topics[0].partitions
    ]
    answers.expect("partitions", (answer.error_code, rows), (0, [(0, -1, -1, "", 0), (77, -1, -1, "", 0)]))


def describe(admin: AdminClient, group: str) -> Any:
    return admin.describe_consumer_groups([group])[group].result(DEADLINE_S)


def test_groups_are_listed_described_and_deleted(
    broker: Broker, filled_topic: str, group: str, members: list[Member], admin: AdminClient
) -> None:
    members.append(Member(broker, group, filled_topic, client_id="the-client", enable_auto_commit=True))
    until(lambda: describe(admin, group).state == ConsumerGroupState.STABLE, "the group is stable")
    described = describe(admin, group)
    (member,) = described.members
    assert (member.client_id, member.host) == ("the-client", "/127.0.0.1")
    assert member.member_id.startswith("the-client-")
    assert len(member.assignment.topic_partitions) == PARTITIONS
    assert described.partition_assignor == "range"
    assert described.coordinator.id == 1
    listed = {each.group_id: each for each in admin.list_consumer_groups().result(DEADLINE_S).valid}
    assert listed[group].state == ConsumerGroupState.STABLE
    assert not listed[group].is_simple_consumer_group
    assert deletion(admin, group) == "NON_EMPTY_GROUP"
    until(lambda: len(members[0].values) == RECORDS, "all records are read")
    members.pop().leave()
    until(lambda: describe(admin, group).state == ConsumerGroupState.EMPTY, "the group is empty")
    assert deletion(admin, group) == "ok"
    assert group not in {each.group_id for each in admin.list_consumer_groups().result(DEADLINE_S).valid}
    assert deletion(admin, group) == "GROUP_ID_NOT_FOUND"


def deletion(admin: AdminClient, group: str) -> str:
    try:
        admin.delete_consumer_groups([group])[group].result(DEADLINE_S)
    except KafkaException as error:
        return str(error.args[0].name())
    return "ok"


def test_an_unknown_group_is_described_as_dead_or_not_found(
    broker: Broker, answers: TestAnswers, admin: AdminClient, group: str
) -> None:
    Scene(broker).group()
    try:
        answer = str(describe(admin, group).state)
    except KafkaException as error:
        answer = error.args[0].name()
    answers.same("an unknown group", answer)


def test_offsets_are_listed_reset_and_removed_by_an_administrator(
    broker: Broker, filled_topic: str, group: str, admin: AdminClient
) -> None:
    read_some_with_confluent(broker.bootstrap, filled_topic, group, RECORDS)
    (listed,) = admin.list_consumer_group_offsets([GroupOffsets(group)]).values()
    found = {each.partition: each.offset for each in listed.result(DEADLINE_S).topic_partitions}
    assert found == dict.fromkeys(range(PARTITIONS), 100)
    back = [ConfluentTopicPartition(filled_topic, partition, 90) for partition in range(PARTITIONS)]
    (altered,) = admin.alter_consumer_group_offsets([GroupOffsets(group, back)]).values()
    assert all(each.error is None for each in altered.result(DEADLINE_S).topic_partitions)
    assert len(read_some_with_confluent(broker.bootstrap, filled_topic, group, 60)) == 60
    kafka_python = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    kafka_python.delete_group_offsets(group, [TopicPartition(filled_topic, 0)])
    remaining = kafka_python.list_group_offsets([group])
    kafka_python.close()
    assert {partition.partition for partition in remaining[group]} == set(range(1, PARTITIONS))


def test_offsets_cannot_be_changed_under_a_running_member(
    broker: Broker, filled_topic: str, group: str, members: list[Member], admin: AdminClient
) -> None:
    members.append(Member(broker, group, filled_topic))
    until(lambda: shares(members) == [6], "the member has all")
    back = [ConfluentTopicPartition(filled_topic, 0, 0)]
    (future,) = admin.alter_consumer_group_offsets([GroupOffsets(group, back)]).values()
    (altered,) = future.result(DEADLINE_S).topic_partitions
    assert altered.error.name() == "UNKNOWN_MEMBER_ID"


def test_a_commit_of_an_old_generation_is_refused(
    broker: Broker, filled_topic: str, group: str, members: list[Member], answers: TestAnswers
) -> None:
    from pykbroker.protocol.messages.group_offsets import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
        OffsetCommitResponse,
    )

    members.append(Member(broker, group, filled_topic))
    until(lambda: shares(members) == [6], "the member has all")

    def commit(generation: int, member_id: str) -> int:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[OffsetCommitRequestTopic(name=filled_topic, partitions=[partition])],
        )
        with Wire(broker.address) as wire:
            answer = wire.call(request, 8)
        assert isinstance(answer, OffsetCommitResponse)
        return answer.topics[0].partitions[0].error_code

    unknown_member_id = 25
    answers.expect("a member that there is not", commit(1, "nobody"), unknown_member_id)
    answers.expect("nobody in particular, in a group with members", commit(-1, ""), unknown_member_id)
