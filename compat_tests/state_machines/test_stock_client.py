"""librdkafka's producers, transactions and consumers: what they are told, and what they read, is the model's."""

from __future__ import annotations

from dataclasses import dataclass, field

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, Producer, TopicPartition
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, precondition, rule

from compat_tests.brokers import Broker
from compat_tests.waiting import DEADLINE_S, until
from tests.examples import examples

from .client import GROUP, TRANSACTION
from .machine import BrokerMachine, explore

PARTITIONS = 2
TRANSACTIONAL_ID = "id"

partition_indexes = st.integers(0, PARTITIONS - 1)


@dataclass(eq=False)
class TransactionalProducer:
    """written: of the open transaction, partition and value. is_fenced: another one has its transactional id now."""

    producer: Producer
    is_open: bool = False
    is_fenced: bool = False
    written: list[tuple[int, bytes]] = field(default_factory=list)
    offset: int | None = None


class StockClientMachine(BrokerMachine):
    transactional = Bundle("transactional")

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.topic = self.name("topic")
        self.group = self.name("group")
        self.committed: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.end_offsets = [0] * PARTITIONS
        self.written = 0
        self.committed_offset: int | None = None
        self.owner: TransactionalProducer | None = None

    @initialize(target=transactional, codec=st.sampled_from(("none", "gzip", "snappy", "lz4", "zstd")))
    def begin(self, codec: str) -> TransactionalProducer:
        error, _ = self.client.create_topic(self.topic, PARTITIONS, {"retention.ms": "-1"})
        assert error == "NONE"
        self.client.wait_for_coordinator(self.group, GROUP)
        self.client.wait_for_coordinator(self.name(TRANSACTIONAL_ID), TRANSACTION)
        self.plain = Producer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "enable.idempotence": True,
                "compression.type": codec,
                "log_level": 0,
            }
        )
        return self._new_transactional()

    # Writing

    @rule(partition=partition_indexes, count=st.integers(1, 5))
    def produce(self, partition: int, count: int) -> None:
        """Acknowledged at the offsets that follow."""
        values = [self._value() for _ in range(count)]
        offsets: list[int] = []
        for value in values:
            self.plain.produce(
                self.topic,
                value,
                partition=partition,
                on_delivery=lambda error, message: offsets.append(message.offset()),
            )
        assert self.plain.flush(DEADLINE_S) == 0
        assert offsets == [*range(self.end_offsets[partition], self.end_offsets[partition] + count)]
        self.end_offsets[partition] += count
        self.committed[partition] += values

    def _value(self) -> bytes:
        self.written += 1
        return b"%d" % self.written

    @rule(target=transactional)
    def new_transactional(self) -> TransactionalProducer:
        """A process that fences the one before; what that one wrote last is aborted."""
        return self._new_transactional()

    def _new_transactional(self) -> TransactionalProducer:
        if self.owner is not None:
            self._end(self.owner, commit=False)
            self.owner.is_fenced = True
        producer = Producer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "transactional.id": self.name(TRANSACTIONAL_ID),
                "log_level": 0,
            }
        )
        producer.init_transactions(DEADLINE_S)
        self.owner = TransactionalProducer(producer)
        return self.owner

    def _end(self, owner: TransactionalProducer, *, commit: bool) -> None:
        """The markers, and what readers of committed records have of it."""
        for partition in {partition for partition, _ in owner.written}:
            self.end_offsets[partition] += 1
        if commit:
            for partition, value in owner.written:
                self.committed[partition].append(value)
                self.committed[partition].sort(key=int)  # as they were written: others came while it was open
            if owner.offset is not None:
                self.committed_offset = owner.offset
        owner.is_open, owner.written, owner.offset = False, [], None

    @precondition(lambda self: self.owner is not None)
    @rule(partition=partition_indexes, count=st.integers(1, 3))
    def produce_in_transaction(self, partition: int, count: int) -> None:
        owner = self._owner_in_transaction()
        for _ in range(count):
            value = self._value()
            owner.producer.produce(self.topic, value, partition=partition)
            owner.written.append((partition, value))
        assert owner.producer.flush(DEADLINE_S) == 0
        self.end_offsets[partition] += count

    def _owner_in_transaction(self) -> TransactionalProducer:
        assert self.owner is not None
        if not self.owner.is_open:
            self.owner.producer.begin_transaction()
            self.owner.is_open = True
        return self.owner

    @precondition(lambda self: self.owner is not None)
    @rule(offset=st.integers(0, 9))
    def send_offset(self, offset: int) -> None:
        owner = self._owner_in_transaction()
        consumer = self._consumer()
        owner.producer.send_offsets_to_transaction(
            [TopicPartition(self.topic, 0, offset)], consumer.consumer_group_metadata(), DEADLINE_S
        )
        consumer.close()
        owner.offset = offset

    @precondition(lambda self: self.owner is not None and self.owner.is_open)
    @rule(commit=st.booleans())
    def end_transaction(self, commit: bool) -> None:
        owner = self._owner_in_transaction()
        if commit:
            owner.producer.commit_transaction(DEADLINE_S)
        else:
            owner.producer.abort_transaction(DEADLINE_S)
        self._end(owner, commit=commit)

    @rule(producer=transactional)
    def zombie_cannot_commit(self, producer: TransactionalProducer) -> None:
        if not producer.is_fenced:
            return
        try:
            producer.producer.begin_transaction()
            producer.producer.produce(self.topic, b"zombie", partition=0)
            producer.producer.commit_transaction(DEADLINE_S)
        except KafkaException:
            return
        raise AssertionError("a fenced producer committed")

    # Reading

    def _consumer(self, isolation: str = "read_committed") -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "group.id": self.group,
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "enable.partition.eof": False,
            }
        )

    @rule(partition=partition_indexes)
    def read_committed(self, partition: int) -> None:
        """From the beginning up to the last stable offset, by position: markers have no records."""
        stable = self.client.list_offsets(self.topic, [(partition, -1)], 1)[partition].offset
        is_open = self.owner is not None and any(each == partition for each, _ in self.owner.written)
        assert is_open or stable == self.end_offsets[partition]
        values: list[bytes | None] = []
        consumer = self._consumer()
        consumer.assign([TopicPartition(self.topic, partition, 0)])

        def has_read() -> bool:
            message = consumer.poll(0.1)
            if message is not None:
                assert message.error() is None, message.error()
                values.append(message.value())
            (position,) = consumer.position([TopicPartition(self.topic, partition)])
            return stable == 0 or position.offset >= stable

        until(has_read, f"the position is {stable}")
        consumer.close()
        known = self.committed[partition]
        assert values == known[: len(values)]
        assert is_open or values == known

    @precondition(lambda self: self.owner is None or self.owner.offset is None)
    @rule()
    def offset_of_group(self) -> None:
        """librdkafka waits for offsets of a transaction until that ends."""
        consumer = self._consumer()
        (found,) = consumer.committed([TopicPartition(self.topic, 0)], DEADLINE_S)
        consumer.close()
        assert found.offset == (OFFSET_INVALID if self.committed_offset is None else self.committed_offset)


def test_stock_client_is_served_as_the_model_says(broker: Broker) -> None:
    explore(StockClientMachine, broker, examples(8, stateful_step_count=15))
