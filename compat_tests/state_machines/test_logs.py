"""Logs of partitions: whatever is written, deleted and asked for, a broker answers as the model of its logs does."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, consumes, initialize, invariant, rule

from compat_tests.brokers import Broker
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.records.compression import Compression
from tests.examples import examples

from .client import EARLIEST, LATEST, MAX_TIMESTAMP, READ_UNCOMMITTED, TOPIC, Fetched, TopicName
from .machine import BrokerMachine, explore
from .partition_model import NO_PRODUCER, PartitionModel, StoredBatch, StoredRecord

T0 = int(time.time() * 1000) - 3_600_000
"""When the records were made: an hour ago. Their producers are remembered for a day."""
KEPT_FOR_EVER = {"retention.ms": "-1", "min.cleanable.dirty.ratio": "1.0"}
CONFIGS = (
    ("message.timestamp.type", "LogAppendTime"),
    ("max.message.bytes", "1000"),
    ("compression.type", "gzip"),
    ("compression.type", "uncompressed"),
    ("segment.bytes", "1048576"),
    ("min.insync.replicas", "2"),
    ("cleanup.policy", "compact"),
    ("message.timestamp.before.max.ms", "60000"),
)
SMALL, MEDIUM, LARGE = 10, 2_000, 300_000
"""Bytes of a value. Medium ones are too large where `max.message.bytes` is 1000, four large ones fill a segment."""

sizes = st.sampled_from((SMALL, SMALL, SMALL, MEDIUM, LARGE))
partition_indexes = st.sampled_from((0, 0, 0, 1, 1, 2))
seldom = st.sampled_from((False, False, True))
configs = st.one_of(st.just({}), st.sampled_from(CONFIGS).map(lambda config: dict([config])))


class BatchSpec(NamedTuple):
    """Records to be written: their times, keys and sizes, and how they are compressed."""

    times: list[int]
    has_keys: bool
    size: int
    compression: Compression

    def records(self) -> list[Record]:
        return [
            Record(b"k" if self.has_keys else None, b"%d" % at * self.size, timestamp=T0 + time)
            for at, time in enumerate(self.times)
        ]

    def encode(self, producer: tuple[int, int, int] = NO_PRODUCER) -> bytes:
        producer_id, epoch, sequence = producer
        return encode_batch(
            self.records(),
            compression=self.compression,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )


specs = st.builds(
    BatchSpec,
    st.lists(st.integers(0, 4), min_size=1, max_size=3),
    st.booleans(),
    sizes,
    st.sampled_from((Compression.NONE, Compression.NONE, Compression.GZIP, Compression.LZ4, Compression.ZSTD)),
)


@dataclass(eq=False)
class TopicModel:
    topic: TopicName
    partitions: list[PartitionModel]
    configs: dict[str, str]

    def error_of(self, spec: BatchSpec) -> str:
        """What is wrong with a batch, whoever sends it, in the order in which Kafka looks (`UnifiedLog.append`).

        More in-sync replicas than there are replicas are not asked for (`Partition.effectiveMinIsr`).
        """
        limit = int(self.configs.get("max.message.bytes", 2**20))
        if len(spec.encode()) > limit:
            return "MESSAGE_TOO_LARGE"
        if self.configs.get("cleanup.policy") == "compact" and not spec.has_keys:
            return "INVALID_RECORD"
        if "message.timestamp.before.max.ms" in self.configs and not self.has_append_time:
            return "INVALID_TIMESTAMP"
        if len(spec._replace(compression=self.compression_of(spec)).encode()) > limit:
            return "MESSAGE_TOO_LARGE"
        return "NONE"

    @property
    def has_append_time(self) -> bool:
        return self.configs.get("message.timestamp.type") == "LogAppendTime"

    def compression_of(self, spec: BatchSpec) -> Compression:
        """Of a batch in the log. It may be larger there than it was sent."""
        match self.configs.get("compression.type"):
            case "gzip":
                return Compression.GZIP
            case "uncompressed":
                return Compression.NONE
            case _:
                return spec.compression

    def stored(
        self, spec: BatchSpec, producer: tuple[int, int, int], offset: int, append_time: int, leader_epoch: int
    ) -> StoredBatch:
        return StoredBatch(
            offset,
            tuple(
                StoredRecord(each.key, each.value, append_time if self.has_append_time else each.timestamp)
                for each in spec.records()
            ),
            *producer,
            leader_epoch=leader_epoch,
            compression=self.compression_of(spec),
        )


@dataclass(eq=False)
class ProducerIds:
    """A producer without a transactional id, which raises its epoch itself (KIP-360)."""

    producer_id: int
    epoch: int


@dataclass(eq=False)
class Session:
    """A fetch session (KIP-227). partitions: offset to fetch, and what was last said of high watermark and start."""

    topic: TopicName
    id: int
    epoch: int
    is_open: bool = True
    partitions: dict[int, SessionPartition] = field(default_factory=dict)


@dataclass
class SessionPartition:
    offset: int
    has_name: bool
    """Whether its topic was there when it came into the session."""
    told: tuple[int, int] = (-1, -1)


class LogsMachine(BrokerMachine):
    topics = Bundle("topics")
    producers = Bundle("producers")
    sessions = Bundle("sessions")

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.by_name: dict[str, TopicModel] = {}
        self.by_id: dict[bytes, TopicModel] = {}
        self.open_sessions: list[Session] = []

    def teardown(self) -> None:
        try:
            for session in self.open_sessions:
                self.client.fetch([], session=(session.id, -1))
        finally:
            super().teardown()

    # Topics

    @initialize(target=topics, partitions=st.integers(1, 2), config=configs)
    def begin(self, partitions: int, config: dict[str, str]) -> TopicName:
        return self._create("first", partitions, config)

    @initialize(target=producers)
    def first_producer(self) -> ProducerIds:
        return ProducerIds(*self.client.new_producer_id())

    @rule(target=topics, noun=st.sampled_from(("first", "second")), partitions=st.integers(1, 2), config=configs)
    def create_topic(self, noun: str, partitions: int, config: dict[str, str]) -> TopicName:
        return self._create(noun, partitions, config)

    def _create(self, noun: str, partitions: int, config: dict[str, str]) -> TopicName:
        name = self.name(noun)
        error, topic = self.client.create_topic(name, partitions, KEPT_FOR_EVER | config)
        if name in self.by_name:
            assert error == "TOPIC_ALREADY_EXISTS"
            return self.by_name[name].topic
        assert error == "NONE"
        assert topic.topic_id not in self.by_id
        model = TopicModel(topic, [PartitionModel() for _ in range(partitions)], dict(config))
        self.by_name[name] = self.by_id[topic.topic_id] = model
        return topic

    @rule(topic=topics, by_id=st.booleans(), is_meant=seldom)
    def delete_topic(self, topic: TopicName, by_id: bool, is_meant: bool) -> None:
        if not is_meant:
            return
        model = self._model(topic, by_id)
        error = self.client.delete_topic(model.topic if model is not None else topic, by_id=by_id)
        if model is None:
            assert error == ("UNKNOWN_TOPIC_ID" if by_id else "UNKNOWN_TOPIC_OR_PARTITION")
            return
        assert error == "NONE"
        del self.by_name[topic.name], self.by_id[model.topic.topic_id]

    @rule(topic=topics, change=st.one_of(st.integers(1, 3), st.tuples(st.sampled_from(CONFIGS), st.booleans())))
    def change_topic(self, topic: TopicName, change: int | tuple[tuple[str, str], bool]) -> None:
        """change: how many partitions there shall be, or a configuration and whether it is set or taken away."""
        if isinstance(change, int):
            self._create_partitions(topic, change)
        else:
            self._alter_config(topic, *change[0], is_set=change[1])

    def _create_partitions(self, topic: TopicName, count: int) -> None:
        error = self.client.create_partitions(topic.name, count)
        model = self.by_name.get(topic.name)
        if model is None:
            assert error == "UNKNOWN_TOPIC_OR_PARTITION"
        elif count <= len(model.partitions):
            assert error == "INVALID_PARTITIONS"
        else:
            assert error == "NONE"
            model.partitions += [PartitionModel() for _ in range(count - len(model.partitions))]

    def _alter_config(self, topic: TopicName, key: str, value: str, *, is_set: bool) -> None:
        model = self.by_name.get(topic.name)
        error = self.client.alter_config(TOPIC, topic.name, key, value if is_set else None, self.prefix)
        if model is None:
            assert error == "UNKNOWN_TOPIC_OR_PARTITION"
            return
        assert error == "NONE"
        model.configs.pop(key, None)
        if is_set:
            model.configs[key] = value

    def _model(self, topic: TopicName, by_id: bool) -> TopicModel | None:
        return self.by_id.get(topic.topic_id) if by_id else self.by_name.get(topic.name)

    def _partition(self, topic: TopicName, partition: int) -> PartitionModel | None:
        model = self.by_name.get(topic.name)
        return model.partitions[partition] if model is not None and partition < len(model.partitions) else None

    # Writing

    @rule(
        topic=topics,
        batches=st.dictionaries(partition_indexes, specs, min_size=1, max_size=3),
        acks=st.sampled_from((-1, 1, 0)),
        by_id=st.booleans(),
    )
    def produce(self, topic: TopicName, batches: dict[int, BatchSpec], acks: int, by_id: bool) -> None:
        self._produce(topic, {index: (spec, NO_PRODUCER) for index, spec in batches.items()}, acks, by_id)

    @rule(target=producers)
    def new_producer(self) -> ProducerIds:
        return ProducerIds(*self.client.new_producer_id())

    @rule(
        producer=producers,
        topic=topics,
        batches=st.dictionaries(partition_indexes, specs, min_size=1, max_size=2),
        acks=st.sampled_from((-1, -1, 1, 0)),
        sequence=st.sampled_from(("next", "next", "next", "first", "a gap")),
        epoch=st.sampled_from((0, 0, 0, 0, -1, 1)),
    )
    def produce_in_sequence(
        self,
        producer: ProducerIds,
        topic: TopicName,
        batches: dict[int, BatchSpec],
        acks: int,
        sequence: str,
        epoch: int,
    ) -> None:
        """epoch: what is added to that of the producer; it keeps a raised one."""
        used = max(producer.epoch + epoch, 0)
        producer.epoch = max(producer.epoch, used)
        sent = {}
        for index, spec in batches.items():
            partition = self._partition(topic, index)
            known = partition.producers.get(producer.producer_id) if partition is not None else None
            is_first = sequence == "first" or known is None or known.epoch != used
            base_sequence = 0 if is_first or known is None else known.last_sequence + 1
            sent[index] = (spec, (producer.producer_id, used, base_sequence + 5 * (sequence == "a gap")))
        self._produce(topic, sent, acks, by_id=False)

    @rule(producer=producers, topic=topics, partition=partition_indexes, back=st.integers(1, 6))
    def repeat(self, producer: ProducerIds, topic: TopicName, partition: int, back: int) -> None:
        """The batch that was the last one, or up to five before it; of those six the last five are known."""
        model = self._partition(topic, partition)
        if model is None:
            return
        own = [each for each in model.batches if each.producer_id == producer.producer_id]
        if len(own) < back:
            return
        batch = own[-back]
        spec = BatchSpec([0] * len(batch.records), True, SMALL, Compression.NONE)
        sent = {partition: (spec, (batch.producer_id, batch.producer_epoch, batch.base_sequence))}
        self._produce(topic, sent, 1, by_id=False)

    def _produce(
        self, topic: TopicName, sent: Mapping[int, tuple[BatchSpec, tuple[int, int, int]]], acks: int, by_id: bool
    ) -> None:
        batches = {index: spec.encode(producer) for index, (spec, producer) in sent.items()}
        answers = self.client.produce(topic, batches, acks=acks, by_id=by_id)
        errors = []
        for index, (spec, producer) in sent.items():
            answer = answers[index] if not isinstance(answers, str) else None
            errors.append(self._append(self._model(topic, by_id), index, spec, producer, answer, by_id))
        if isinstance(answers, str):
            assert answers == ("sent" if set(errors) == {"NONE"} else "closed"), errors

    def _append(
        self,
        model: TopicModel | None,
        index: int,
        spec: BatchSpec,
        producer: tuple[int, int, int],
        answer: Any,
        by_id: bool,
    ) -> str:
        """What the model makes of a batch; fails where the answer, if there is one, is another."""
        if model is None:
            expected = "UNKNOWN_TOPIC_ID" if by_id else "UNKNOWN_TOPIC_OR_PARTITION"
        elif index >= len(model.partitions):
            expected = "UNKNOWN_TOPIC_OR_PARTITION"
        else:
            expected = model.error_of(spec)
        offset = -1
        partition = None
        if expected == "NONE":
            assert model is not None
            partition = model.partitions[index]
            expected, offset = partition.sequence_error(*producer, len(spec.times))
        if answer is not None:
            assert (answer.error, answer.base_offset) == (expected, offset)
        if expected != "NONE":
            return expected
        assert partition is not None
        assert model is not None
        if answer is not None:
            assert answer.log_start_offset == partition.log_start
        if offset == partition.end:
            append_time = answer.log_append_time_ms if answer is not None else self._append_time(model, index)
            assert (append_time != -1) == model.has_append_time
            partition.append(model.stored(spec, producer, offset, append_time, partition.leader_epoch))
        return expected

    def _append_time(self, model: TopicModel, index: int) -> int:
        """The time of a batch that was written without an answer."""
        if not model.has_append_time:
            return -1
        partition = model.partitions[index]
        fetched = self.client.read(model.topic, index, partition.end, READ_UNCOMMITTED)
        return fetched.batches[0].records[0].timestamp

    @rule(topic=topics, partition=partition_indexes, place=st.integers(-1, 5), from_end=st.booleans())
    def delete_records(self, topic: TopicName, partition: int, place: int, from_end: bool) -> None:
        model = self._partition(topic, partition)
        offset = place if not from_end or model is None else model.end - place + 1
        answer = self.client.delete_records(topic.name, partition, offset)
        if model is None:
            assert answer == ("UNKNOWN_TOPIC_OR_PARTITION", -1)
        elif self.by_name[topic.name].configs.get("cleanup.policy") == "compact":
            assert answer == ("POLICY_VIOLATION", -1)
        else:
            assert answer == model.delete_records(offset)

    # Reading

    @rule(
        topic=topics,
        partition=partition_indexes,
        place=st.integers(-1, 5),
        from_end=st.booleans(),
        isolation=st.sampled_from((0, 1)),
        by_id=st.booleans(),
        leader_epoch=st.sampled_from((-1, -1, -1, 0, 1)),
    )
    def fetch(
        self,
        topic: TopicName,
        partition: int,
        place: int,
        from_end: bool,
        isolation: int,
        by_id: bool,
        leader_epoch: int,
    ) -> None:
        model = self._model(topic, by_id)
        is_there = model is not None and partition < len(model.partitions)
        offset = model.partitions[partition].end - place if from_end and is_there else place
        answer = self.client.fetch(
            [(topic, partition, offset)], by_id=by_id, isolation=isolation, leader_epoch=leader_epoch
        )
        found = answer.partitions[partition]
        if model is None:
            assert found.error == ("UNKNOWN_TOPIC_ID" if by_id else "UNKNOWN_TOPIC_OR_PARTITION")
        elif not is_there:
            assert found.error == "UNKNOWN_TOPIC_OR_PARTITION"
        elif leader_epoch not in (-1, model.partitions[partition].leader_epoch):
            assert found.error == self._epoch_error(leader_epoch, model.partitions[partition])
        else:
            assert_fetched(found, model.partitions[partition], offset, isolation)

    @rule(
        topic=topics,
        partition=partition_indexes,
        when=st.sampled_from((EARLIEST, LATEST, MAX_TIMESTAMP, *range(6))),
        isolation=st.sampled_from((0, 1)),
        leader_epoch=st.sampled_from((-1, -1, -1, 0, 1)),
    )
    def list_offsets(self, topic: TopicName, partition: int, when: int, isolation: int, leader_epoch: int) -> None:
        """when: one of Kafka's places, or a time after T0 - 1."""
        timestamp = when if when < 0 else T0 - 1 + when
        found = self.client.list_offsets(topic.name, [(partition, timestamp)], isolation, leader_epoch)[partition]
        model = self._partition(topic, partition)
        if model is None:
            assert found.error == "UNKNOWN_TOPIC_OR_PARTITION"
        elif leader_epoch not in (-1, model.leader_epoch):
            assert found.error == self._epoch_error(leader_epoch, model)
        elif timestamp == EARLIEST:
            assert found == model.earliest()
        elif timestamp == LATEST:
            assert found == model.latest(isolation)
        elif timestamp == MAX_TIMESTAMP:
            assert found == model.max_timestamp(isolation)
        else:
            assert found == model.at_or_after(timestamp, isolation)

    @rule(topic=topics, partition=partition_indexes, epoch=st.integers(-1, 2), current=st.integers(-1, 1))
    def offset_for_leader_epoch(self, topic: TopicName, partition: int, epoch: int, current: int) -> None:
        found = self.client.end_of_epoch(topic.name, partition, epoch, current)
        model = self._partition(topic, partition)
        if model is None:
            assert found[0] == "UNKNOWN_TOPIC_OR_PARTITION"
        elif current not in (-1, model.leader_epoch):
            assert found[0] == self._epoch_error(current, model)
        else:
            assert found == ("NONE", *model.end_of_epoch(epoch))

    def _epoch_error(self, epoch: int, partition: PartitionModel) -> str:
        return "UNKNOWN_LEADER_EPOCH" if epoch > partition.leader_epoch else "FENCED_LEADER_EPOCH"

    # Fetch sessions

    @rule(target=sessions, topic=topics, offsets=st.dictionaries(partition_indexes, st.integers(0, 3), min_size=1))
    def begin_session(self, topic: TopicName, offsets: dict[int, int]) -> Session:
        answer = self.client.fetch([(topic, *each) for each in offsets.items()], session=(0, 0))
        assert answer.error == "NONE"
        assert answer.session_id > 0
        session = Session(topic, answer.session_id, 1)
        has_name = topic.topic_id in self.by_id
        session.partitions = {index: SessionPartition(offset, has_name) for index, offset in offsets.items()}
        self.open_sessions.append(session)
        self._check_session(session, answer.partitions)
        return session

    @rule(
        session=sessions,
        changed=st.dictionaries(partition_indexes, st.integers(0, 3), max_size=2),
        forgotten=st.sets(partition_indexes, max_size=1),
        epoch=st.sampled_from((0, 0, 0, 0, 1, -1)),
    )
    def fetch_in_session(self, session: Session, changed: dict[int, int], forgotten: set[int], epoch: int) -> None:
        """epoch: what is added to the right one, which counts from 1."""
        used = session.epoch + epoch or session.epoch + 1
        answer = self.client.fetch(
            [(session.topic, *each) for each in changed.items()],
            session=(session.id, used),
            forgotten=[(session.topic, index) for index in forgotten],
        )
        if not session.is_open:
            assert answer.error == "FETCH_SESSION_ID_NOT_FOUND"
            return
        if used != session.epoch:
            assert answer.error == "INVALID_FETCH_SESSION_EPOCH"
            return
        assert answer.error == "NONE"
        for index, offset in changed.items():
            asked = SessionPartition(offset, session.topic.topic_id in self.by_id)
            session.partitions.setdefault(index, asked).offset = offset
        for index in forgotten:
            session.partitions.pop(index, None)
        if not session.partitions:
            assert answer.session_id == 0
            self._is_over(session)
            return
        assert answer.session_id == session.id
        session.epoch += 1
        self._check_session(session, answer.partitions)

    def _check_session(self, session: Session, found: dict[int, Fetched]) -> None:
        """A partition is in the answer where there is something new to tell of it."""
        for index, asked in session.partitions.items():
            model = self.by_id.get(session.topic.topic_id)
            if model is None or index >= len(model.partitions):
                assert found.pop(index).error == self._missing(session.topic, index, asked)
                asked.told = (-1, asked.told[1])
                continue
            partition = model.partitions[index]
            is_in_range = partition.is_in_range(asked.offset)
            state = (partition.end, partition.log_start)
            if is_in_range and not partition.readable(asked.offset) and asked.told == state:
                assert index not in found
                continue
            assert_fetched(found.pop(index), partition, asked.offset, READ_UNCOMMITTED)
            asked.told = state if is_in_range else (-1, -1)
        assert not found

    def _missing(self, topic: TopicName, index: int, asked: SessionPartition) -> str:
        """The error of a partition that is not there. The session keeps the name that an id had."""
        if not asked.has_name:
            return "UNKNOWN_TOPIC_ID"
        successor = self.by_name.get(topic.name)
        if successor is None or successor.topic == topic or index >= len(successor.partitions):
            return "UNKNOWN_TOPIC_OR_PARTITION"
        return "INCONSISTENT_TOPIC_ID"

    @rule(session=consumes(sessions))
    def end_session(self, session: Session) -> None:
        answer = self.client.fetch([], session=(session.id, -1))
        assert (answer.error, answer.session_id) == ("NONE", 0)
        if session.is_open:
            self._is_over(session)

    def _is_over(self, session: Session) -> None:
        session.is_open = False
        self.open_sessions.remove(session)

    # What holds

    @invariant()
    def logs_are_the_models(self) -> None:
        for model in self.by_name.values():
            for index, partition in enumerate(model.partitions):
                found = self.client.read(model.topic, index, partition.log_start, READ_UNCOMMITTED)
                assert found.batches == partition.readable(partition.log_start)
                assert_fetched(found, partition, partition.log_start, READ_UNCOMMITTED)


def assert_fetched(found: Fetched, partition: PartitionModel, offset: int, isolation: int) -> None:
    """One segment's batches at most are in an answer; there are some where there is something to read."""
    if not partition.is_in_range(offset):
        assert found.error == "OFFSET_OUT_OF_RANGE"
        assert not found.batches
        return
    assert found.error == "NONE"
    assert (found.high_watermark, found.last_stable_offset) == (partition.end, partition.last_stable)
    assert found.log_start_offset == partition.log_start
    expected = partition.readable(offset, isolation)
    assert found.batches == expected[: len(found.batches)]
    assert bool(found.batches) == bool(expected)


def test_logs_are_those_of_the_model(broker: Broker) -> None:
    explore(LogsMachine, broker, examples(60, stateful_step_count=25))


def test_a_batch_is_as_large_as_it_is_in_the_log(broker: Broker) -> None:
    """Found by the machine: three long values with keys are 173 bytes in ZStandard and 1,001 in gzip."""
    machine = LogsMachine(broker)
    try:
        topic = machine.begin(partitions=1, config={"max.message.bytes": "1000"})
        machine.change_topic(topic=topic, change=(("compression.type", "gzip"), True))
        for has_keys in (True, False):
            spec = BatchSpec([0, 0, 0], has_keys, LARGE, Compression.ZSTD)
            machine.produce(topic=topic, batches={0: spec}, acks=-1, by_id=False)
            assert len(machine.by_name[topic.name].partitions[0].batches) == (0 if has_keys else 1)
        machine.logs_are_the_models()
    finally:
        machine.teardown()
