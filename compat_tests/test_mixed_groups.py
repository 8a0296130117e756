"""Members of every client, and of both group protocols, in one group: they join, leave and are killed (KIP-848)."""

from collections.abc import Callable, Iterator

import pytest
from kafka import KafkaProducer

from pykbroker.protocol.messages.group_admin import ListGroupsRequest, ListGroupsResponse

from .brokers import Broker
from .conftest import FreshBroker
from .member_processes import MemberProcess, overlaps
from .topics import create_topic
from .waiting import DEADLINE_S, until
from .wire import Wire

PARTITIONS = 12
BATCH = 600
TOPIC, GROUP = "read-by-all", "of-all-kinds"
PROPERTIES = {
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}


@pytest.fixture
def broker(fresh_broker: FreshBroker) -> Broker:
    broker = fresh_broker(PROPERTIES)
    create_topic(broker, TOPIC, PARTITIONS)
    return broker


@pytest.fixture
def start(broker: Broker) -> Iterator[Callable[[str], MemberProcess]]:
    started: list[MemberProcess] = []

    def start_member(client: str) -> MemberProcess:
        started.append(MemberProcess(client, broker, GROUP, TOPIC))
        return started[-1]

    yield start_member
    for member in started:
        member.kill()


class Writer:
    """Fills all partitions evenly."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.written = 0

    def write(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self._broker.bootstrap, acks="all")
        sent = [producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS) for number in range(BATCH)]
        assert all(future.get(DEADLINE_S) for future in sent)
        producer.close()
        self.written += BATCH

    @property
    def everything(self) -> set[tuple[int, int]]:
        return {(partition, offset) for partition in range(PARTITIONS) for offset in range(self.written // PARTITIONS)}


def share(*members: MemberProcess) -> None:
    """Waits until everybody has something, and each partition is somebody's."""
    until(
        lambda: (
            all(member.partitions for member in members)
            and sorted(partition for member in members for partition in member.partitions) == list(range(PARTITIONS))
        ),
        f"{', '.join(member.client for member in members)} share the partitions",
    )


def group_type(broker: Broker) -> str:
    with Wire(broker.address) as wire:
        answer = wire.call(ListGroupsRequest(), 5)
    assert isinstance(answer, ListGroupsResponse)
    return next(group.group_type.lower() for group in answer.groups if group.group_id == GROUP)


@pytest.mark.java
def test_a_group_lives_through_members_of_every_client_and_both_protocols(
    broker: Broker, start: Callable[[str], MemberProcess]
) -> None:
    writer = Writer(broker)
    writer.write()
    librdkafka, kafka_python, aio = start("librdkafka-classic"), start("kafka-python"), start("aiokafka")
    share(librdkafka, kafka_python, aio)
    assert group_type(broker) == "classic"
    java, new_librdkafka = start("java-consumer"), start("librdkafka-consumer")
    share(librdkafka, kafka_python, aio, java, new_librdkafka)
    assert group_type(broker) == "consumer"
    writer.write()
    aio.kill()
    new_librdkafka.kill()
    old_java = start("java-classic")
    share(librdkafka, kafka_python, java, old_java)
    writer.write()
    librdkafka.leave()
    java.leave()
    share(kafka_python, old_java)
    assert group_type(broker) == "classic"
    writer.write()
    members = [librdkafka, kafka_python, aio, java, new_librdkafka, old_java]
    until(lambda: set.union(*(member.read for member in members)) == writer.everything, "every record is read")
    assert not overlaps(members)
