"""Committed offsets and the log they point into, when a broker is killed while members read and commit."""

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from .clients import poll_member
from .conftest import FreshBroker
from .topics import create_topic, wait_for_leaders
from .waiting import until

PARTITIONS = 3
TOPIC, GROUP = "read", "readers"


def test_what_a_killed_broker_remembers_as_committed_is_never_above_the_log_end(fresh_broker: FreshBroker) -> None:
    broker = fresh_broker()
    create_topic(broker, TOPIC, PARTITIONS)
    partitions = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    clients = {"bootstrap_servers": broker.bootstrap, "reconnect_backoff_max_ms": 500}
    producer = KafkaProducer(**clients)
    member = KafkaConsumer(TOPIC, group_id=GROUP, auto_offset_reset="earliest", enable_auto_commit=False, **clients)
    confirmed = dict.fromkeys(partitions, 0)

    def read_and_commit(goal: int) -> bool:
        for number in range(100):
            producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS)
        if poll_member(member):
            member.commit()
            confirmed.update({each: member.position(each) for each in member.assignment()})
        return min(confirmed.values()) >= goal

    for goal in (200, 400):
        until(lambda: read_and_commit(goal), f"{goal} records of each partition are committed")  # noqa: B023
        broker.kill()
        broker.start()
        wait_for_leaders(broker, TOPIC, PARTITIONS)
        onlooker = KafkaConsumer(group_id=GROUP, enable_auto_commit=False, **clients)
        ends = onlooker.end_offsets(partitions)
        for partition in partitions:
            committed = onlooker.committed(partition)
            assert committed is not None
            assert confirmed[partition] <= committed <= ends[partition], partition
        onlooker.close()
    producer.close()
    member.close()
