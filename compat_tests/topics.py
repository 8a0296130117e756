"""Topics that a scenario can use at once, on either broker."""

from collections.abc import Mapping

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

from .brokers import Broker
from .waiting import until
from .wire import Wire

LATEST = -1


def create_topic(broker: Broker, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics([NewTopic(name, partitions, 1, topic_configs=dict(configs or {}))])
    admin.close()
    wait_for_leaders(broker, name, partitions)


def fill_topic(broker: Broker, name: str, partitions: int, records: int) -> None:
    """A new topic with numbers in it, an equal share in each partition."""
    create_topic(broker, name, partitions)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    sent = [producer.send(name, b"%d" % number, partition=number % partitions) for number in range(records)]
    producer.flush()
    assert all(future.succeeded() for future in sent)
    producer.close()


def wait_for_leaders(broker: Broker, topic: str, partitions: int) -> None:
    """Apache Kafka answers CreateTopics a moment before its partitions lead. pykbroker does not, and gets no time."""
    if broker.kind != "pykbroker":
        until(lambda: _all_lead(broker, topic, partitions), f"{topic} has leaders")


def _all_lead(broker: Broker, topic: str, partitions: int) -> bool:
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in range(partitions)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)])
    with Wire(broker.address) as wire:
        answer = wire.call(request, 7)
    assert isinstance(answer, ListOffsetsResponse)
    return all(partition.error_code == 0 for partition in answer.topics[0].partitions)
