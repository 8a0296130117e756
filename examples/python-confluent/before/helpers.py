"""What the tests ask Kafka, and how they wait for it."""

import time
import uuid

from confluent_kafka import Consumer, ConsumerGroupState, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType


class Record:
    """A message without its errors and methods."""

    def __init__(self, message):
        self.partition = message.partition()
        self.key = message.key()
        self.value = message.value()
        self.headers = message.headers() or []


def read_records(bootstrap_servers, topic, count, timeout=30, isolation_level="read_committed"):
    """Read a topic from its beginning until there are so many records, or the time is over."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": f"reader-{uuid.uuid4().hex}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": isolation_level,
        }
    )
    consumer.subscribe([topic])
    records = []
    deadline = time.monotonic() + timeout
    try:
        while len(records) < count and time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                records.append(Record(message))
    finally:
        consumer.close()
    return records


def produce(bootstrap_servers, topic, value, key=None, partition=0):
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce(topic, value, key, partition)
    producer.flush()


def lag_of(bootstrap_servers, group, topic, partitions=3):
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group, "enable.auto.commit": False})
    try:
        lag = 0
        of_topic = [TopicPartition(topic, number) for number in range(partitions)]
        for committed in consumer.committed(of_topic, timeout=30):
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, committed.partition), timeout=30)
            lag += end - max(committed.offset, 0)
        return lag
    finally:
        consumer.close()


def wait_for_lag(bootstrap_servers, group, topic, timeout=60):
    deadline = time.monotonic() + timeout
    while lag_of(bootstrap_servers, group, topic):
        assert time.monotonic() < deadline, f"{group} still lags"
        time.sleep(0.5)


def wait_for_members(bootstrap_servers, group, count, timeout=60):
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    deadline = time.monotonic() + timeout
    while True:
        description = admin.describe_consumer_groups([group])[group].result()
        if description.state == ConsumerGroupState.STABLE and len(description.members) == count:
            return
        assert time.monotonic() < deadline, f"{group} has not {count} members"
        time.sleep(0.5)


def topic_config(bootstrap_servers, topic, name):
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return admin.describe_configs([resource])[resource].result()[name].value


def set_topic_config(bootstrap_servers, topic, name, value):
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result()
    time.sleep(1)
