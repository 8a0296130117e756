"""Consumers with `group.protocol=consumer` (KIP-848), where the broker assigns: librdkafka's and Java's."""

import subprocess
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, ConsumerGroupState
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer

from .apache_kafka.jars import class_path
from .apache_kafka.java import find_java
from .brokers import Broker
from .conftest import FreshBroker
from .members import Member
from .topics import create_topic, fill_topic, wait_for_leaders
from .waiting import DEADLINE_S, until

PARTITIONS = 6
RECORDS = 600

Unique = Callable[[str], str]


@pytest.fixture
def filled_topic(broker: Broker, topic: str) -> str:
    fill_topic(broker, topic, PARTITIONS, RECORDS)
    return topic


@pytest.fixture
def group(unique: Unique) -> str:
    return unique("consumers")


def new_member(broker: Broker, group: str, topic: str, **config: str) -> Member:
    return Member(broker, group, topic, group_protocol="consumer", **config)


@pytest.fixture
def members() -> Iterator[list[Member]]:
    joined: list[Member] = []
    yield joined
    for member in joined:
        member.leave()


def shares(members: list[Member]) -> list[int]:
    return sorted(len(member.assigned) for member in members)


def committed(broker: Broker, group: str, topic: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    asked = [ConfluentTopicPartition(topic, index) for index in range(PARTITIONS)]
    offsets = [each.offset for each in consumer.committed(asked, timeout=DEADLINE_S)]
    consumer.close()
    return offsets


def test_consumers_share_the_partitions_as_they_come_and_go(
    broker: Broker, filled_topic: str, group: str, members: list[Member]
) -> None:
    """Each record is read once, as all that is revoked is committed before."""
    members.append(new_member(broker, group, filled_topic))
    until(lambda: shares(members) == [6], "one member has all")
    members.append(new_member(broker, group, filled_topic))
    until(lambda: shares(members) == [3, 3], "two members share")
    assert set.union(*(set(member.assigned) for member in members)) == set(range(PARTITIONS))
    gone = members.pop(0)
    gone.leave()
    until(lambda: shares(members) == [6], "the other takes over")
    values = [*gone.values, *members[0].values]
    until(lambda: len({*gone.values, *members[0].values}) == RECORDS, "all is read")
    assert len(values) == len(set(values)), "nothing is read twice"
    last = members.pop()
    last.leave()
    assert not [*gone.errors, *last.errors]
    assert committed(broker, group, filled_topic) == [RECORDS // PARTITIONS] * PARTITIONS


def test_a_static_consumer_keeps_its_place_while_it_is_away(
    broker: Broker, filled_topic: str, group: str, members: list[Member]
) -> None:
    members.append(new_member(broker, group, filled_topic, group_instance_id="static"))
    until(lambda: shares(members) == [6], "one member has all")
    members.append(new_member(broker, group, filled_topic))
    until(lambda: shares(members) == [3, 3], "two members share")
    static = members.pop(0)
    had = static.assigned
    static.leave()
    members.append(new_member(broker, group, filled_topic, group_instance_id="static"))
    until(lambda: members[-1].assigned == had, "the static member has its own again")
    assert len(members[0].assigned) == 3, "nobody took it meanwhile"


def test_administrators_see_consumer_groups(
    broker: Broker, filled_topic: str, group: str, members: list[Member]
) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    members.append(new_member(broker, group, filled_topic, client_id="observed"))
    until(lambda: shares(members) == [6], "one member has all")
    described = admin.describe_consumer_groups([group])[group].result(DEADLINE_S)
    assert described.state is ConsumerGroupState.STABLE
    assert described.partition_assignor == "uniform"
    (member,) = described.members
    assert member.client_id == "observed"
    assert {each.partition for each in member.assignment.topic_partitions} == set(range(PARTITIONS))
    listed = admin.list_consumer_groups(request_timeout=DEADLINE_S).result(DEADLINE_S)
    (found,) = (each for each in listed.valid if each.group_id == group)
    assert found.type.name == "CONSUMER"


def test_members_go_on_where_they_were_when_the_broker_was_killed(
    fresh_broker: FreshBroker, group: str, members: list[Member]
) -> None:
    """The group is in the log: nobody has to join again, and nobody loses a partition."""
    broker = fresh_broker()
    topic = "killed"
    create_topic(broker, topic, PARTITIONS)
    members += [new_member(broker, group, topic), new_member(broker, group, topic)]
    until(lambda: shares(members) == [3, 3], "two members share")
    had = [member.assigned for member in members]
    broker.kill()
    broker.start()
    wait_for_leaders(broker, topic, PARTITIONS)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    for number in range(PARTITIONS):
        producer.send(topic, b"%d" % number, partition=number)
    producer.flush()
    producer.close()
    for member, partitions in zip(members, had, strict=True):
        expected = {b"%d" % index for index in partitions}
        until(lambda: expected <= set(member.values), "each member reads on in its partitions")  # noqa: B023
    assert [member.assigned for member in members] == had


@pytest.mark.java
def test_a_java_consumer_reads_as_a_member(broker: Broker, filled_topic: str, group: str) -> None:
    command = [find_java(), "-Xmx256m", "-cp", class_path(), "org.apache.kafka.tools.consumer.ConsoleConsumer"]
    options = ["--bootstrap-server", broker.bootstrap, "--topic", filled_topic, "--group", group, "--from-beginning"]
    options += ["--command-property", "group.protocol=consumer", "--max-messages", str(RECORDS)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=2 * DEADLINE_S, check=False)
    assert sorted(map(int, done.stdout.split())) == list(range(RECORDS)), done.stderr
    assert committed(broker, group, filled_topic) == [RECORDS // PARTITIONS] * PARTITIONS
