"""Transactions: what coordinators, logs and groups say of them is what the model says, whoever is fenced meanwhile.

Each transactional id has the first or the second protocol (KIP-890). Producers that were fenced go on with all they
can ask for. A machine that ends a transaction goes on when its markers are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, invariant, rule

from compat_tests.brokers import Broker
from compat_tests.waiting import until
from pykbroker.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from pykbroker.protocol.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    TopicRequest,
)
from pykbroker.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from pykbroker.protocol.records.batch import Record, encode_batch
from tests.examples import examples

from .client import GROUP, NOT_READY, READ_COMMITTED, READ_UNCOMMITTED, TRANSACTION, TopicName, error_name
from .machine import BrokerMachine, explore
from .partition_model import PartitionModel, StoredBatch, StoredRecord

T0 = 1_700_000_000_000
PARTITIONS = 2
NO_EPOCH = -1
OFFSETS_TOPIC = "__consumer_offsets"
TIMEOUT_MS = 900_000
PROTOCOLS = {"first": 1, "second": 2}
"""The transactional ids, and the protocol of their producers."""
PRODUCE_VERSIONS = {1: 11, 2: 12}
END_VERSIONS = {1: 4, 2: 5}
OFFSET_COMMIT_VERSIONS = {1: 4, 2: 5}

nouns = st.sampled_from(tuple(PROTOCOLS))
partition_indexes = st.sampled_from((0, 0, 1))


@dataclass(eq=False)
class TransactionModel:
    """One transactional id, as its coordinator has it. partitions: those of the open transaction; -1 for offsets."""

    transactional_id: str
    protocol: int
    producer_id: int
    epoch: int
    last_epoch: int = NO_EPOCH
    """The epoch before, with which a request may come again; NO_EPOCH where it is that of another producer."""
    state: str = "Empty"
    partitions: set[int] = field(default_factory=set)

    def raise_epoch(self) -> None:
        self.last_epoch = self.epoch
        self.epoch += 1


@dataclass(eq=False)
class Instance:
    """A producer with the id and epoch that it was told; others may have begun with its transactional id since."""

    noun: str
    protocol: int
    producer_id: int
    epoch: int


@dataclass
class GroupOffsets:
    """Committed offsets of one group by partition, and those of open transactions by producer id."""

    committed: dict[int, int] = field(default_factory=dict)
    pending: dict[int, dict[int, int]] = field(default_factory=dict)
    producer_epochs: dict[int, int] = field(default_factory=dict)
    """The epochs that the log of the group's partition knows."""


class TransactionsMachine(BrokerMachine):
    instances = Bundle("instances")

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.partitions = [PartitionModel(broker.kind) for _ in range(PARTITIONS)]
        self.transactions: dict[str, TransactionModel] = {}
        self.verifications: dict[tuple[int, int], tuple[int, int]] = {}
        """By partition and producer id: the epoch and the lowest sequence of batches that were to be verified."""
        self.offsets = GroupOffsets()
        self.group = self.name("group")
        self.topic: TopicName

    @initialize(target=instances, noun=nouns)
    def begin(self, noun: str) -> Instance:
        error, self.topic = self.client.create_topic(self.name("topic"), PARTITIONS, {"retention.ms": "-1"})
        assert error == "NONE"
        self.client.wait_for_coordinator(self.group, GROUP)
        for each in PROTOCOLS:
            self.client.wait_for_coordinator(self.name(each), TRANSACTION)
        return self._new_instance(noun)

    # Producers come and go

    @rule(target=instances, noun=nouns)
    def new_instance(self, noun: str) -> Instance:
        """A process starts: it knows its transactional id alone, and fences who had it."""
        return self._new_instance(noun)

    def _new_instance(self, noun: str) -> Instance:
        answer = self._init(noun, -1, -1)
        assert error_name(answer.error_code) == "NONE"
        transaction = self.transactions.get(noun)
        if transaction is None:
            transaction = TransactionModel(self.name(noun), PROTOCOLS[noun], answer.producer_id, 0)
            self.transactions[noun] = transaction
        else:
            if transaction.state == "Ongoing":
                self._abort(transaction)
            transaction.raise_epoch()
            transaction.last_epoch = NO_EPOCH
            transaction.state = "Empty"
        assert (answer.producer_id, answer.producer_epoch) == (transaction.producer_id, transaction.epoch)
        return Instance(noun, transaction.protocol, answer.producer_id, answer.producer_epoch)

    @rule(instance=instances)
    def raise_epoch(self, instance: Instance) -> None:
        """A producer whose transaction failed begins anew with the id and epoch it has (KIP-360).

        An open transaction is aborted whatever the epoch: the coordinator looks at the id alone before that
        (`TransactionCoordinator.prepareInitProducerIdTransit`).
        """
        answer = self._init(instance.noun, instance.producer_id, instance.epoch)
        transaction = self.transactions[instance.noun]
        if transaction.state == "Ongoing":
            self._abort(transaction)
        if instance.epoch not in (transaction.epoch, transaction.last_epoch):
            assert error_name(answer.error_code) == "PRODUCER_FENCED"
            return
        assert error_name(answer.error_code) == "NONE"
        if instance.epoch == transaction.epoch:
            transaction.raise_epoch()
        transaction.state = "Empty"
        instance.epoch = transaction.epoch
        assert (answer.producer_id, answer.producer_epoch) == (instance.producer_id, instance.epoch)

    def _abort(self, transaction: TransactionModel) -> None:
        """An abort that no EndTxn asked for."""
        transaction.raise_epoch()
        self._write_markers(transaction, commit=False)

    def _init(self, noun: str, producer_id: int, epoch: int) -> Any:
        """The answer when an earlier transaction is over."""
        request = InitProducerIdRequest(
            transactional_id=self.name(noun),
            transaction_timeout_ms=TIMEOUT_MS,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        answers: list[Any] = []

        def is_answered() -> bool:
            answers.append(self.client.call(request, 5))
            return error_name(answers[-1].error_code) not in ("CONCURRENT_TRANSACTIONS", *NOT_READY)

        until(is_answered, "an answer to InitProducerId")
        return answers[-1]

    # What belongs to a transaction

    def _coordinator_error(self, instance: Instance) -> str:
        return "NONE" if instance.epoch == self.transactions[instance.noun].epoch else "PRODUCER_FENCED"

    @rule(instance=instances, partitions=st.sets(st.integers(0, PARTITIONS), min_size=1))
    def add_partitions(self, instance: Instance, partitions: set[int]) -> None:
        """Where one of them is not there, none is added."""
        answer = self.client.call(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.name(instance.noun),
                v3_and_below_producer_id=instance.producer_id,
                v3_and_below_producer_epoch=instance.epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=self.topic.name, partitions=sorted(partitions))],
            ),
            3,
        )
        (topic,) = answer.results_by_topic_v3_and_below
        found = {each.partition_index: error_name(each.partition_error_code) for each in topic.results_by_partition}
        if PARTITIONS in partitions:
            expected = dict.fromkeys(partitions, "OPERATION_NOT_ATTEMPTED") | {PARTITIONS: "UNKNOWN_TOPIC_OR_PARTITION"}
        else:
            expected = dict.fromkeys(partitions, self._coordinator_error(instance))
        assert found == expected
        if set(found.values()) == {"NONE"}:
            self._add(instance, partitions)

    def _add(self, instance: Instance, partitions: set[int]) -> None:
        transaction = self.transactions[instance.noun]
        transaction.state = "Ongoing"
        transaction.partitions |= partitions

    def _verification(self, instance: Instance, partition: int) -> str:
        """What the coordinator says to a broker that has a batch, or offsets, of no transaction it knows of."""
        if self._coordinator_error(instance) != "NONE":
            return "INVALID_PRODUCER_EPOCH"
        transaction = self.transactions[instance.noun]
        if instance.protocol == 2:
            self._add(instance, {partition})
        elif partition not in transaction.partitions:
            return "TRANSACTION_ABORTABLE"
        return "NONE"

    @rule(
        instance=instances,
        partitions=st.sets(partition_indexes, min_size=1),
        count=st.integers(1, 3),
        sequence=st.sampled_from(("next", "next", "next", "next", "again", "a gap")),
    )
    def produce(self, instance: Instance, partitions: set[int], count: int, sequence: str) -> None:
        sequences = {index: self._sequence(self.partitions[index], instance, sequence) for index in partitions}
        records = [Record(b"k", b"%d" % at, timestamp=T0 + at) for at in range(count)]
        batches = {
            index: encode_batch(
                records,
                producer_id=instance.producer_id,
                producer_epoch=instance.epoch,
                base_sequence=base_sequence,
                is_transactional=True,
            )
            for index, base_sequence in sequences.items()
        }
        answers = self.client.produce(
            self.topic,
            batches,
            version=PRODUCE_VERSIONS[instance.protocol],
            transactional_id=self.name(instance.noun),
        )
        assert not isinstance(answers, str)
        for index in sorted(partitions):
            partition = self.partitions[index]
            error, offset = self._expected(instance, index, sequences[index], count)
            answer = answers[index]
            assert (answer.error, answer.base_offset) == (error, offset)
            if error == "NONE" and offset == partition.end:
                self.verifications.pop((index, instance.producer_id), None)
                stored = tuple(StoredRecord(each.key, each.value, each.timestamp) for each in records)
                partition.append(
                    StoredBatch(
                        offset,
                        stored,
                        instance.producer_id,
                        instance.epoch,
                        sequences[index],
                        is_transactional=True,
                    )
                )

    def _sequence(self, partition: PartitionModel, instance: Instance, sequence: str) -> int:
        known = partition.producers.get(instance.producer_id)
        is_known = known is not None and known.epoch == instance.epoch
        next_sequence = known.last_sequence + 1 if known is not None and is_known else 0
        if sequence == "again" and known is not None and is_known and known.batches:
            return known.batches[-1][0]
        return next_sequence + 5 * (sequence == "a gap")

    def _expected(self, instance: Instance, index: int, sequence: int, count: int) -> tuple[str, int]:
        partition = self.partitions[index]
        known = partition.producers.get(instance.producer_id)
        is_open = known is not None and known.first_offset is not None and known.epoch == instance.epoch
        if not is_open:
            self._verify_from(index, instance, sequence)
            error = self._verification(instance, index)
            if error != "NONE":
                return error, -1
            if known is None and instance.protocol == 2 and sequence > 0:
                return "OUT_OF_ORDER_SEQUENCE_NUMBER", -1
        error, offset = partition.sequence_error(instance.producer_id, instance.epoch, sequence, count)
        _, lowest = self.verifications.get((index, instance.producer_id), (0, sequence))
        if (error, offset) == ("NONE", partition.end) and sequence > lowest:
            return "OUT_OF_ORDER_SEQUENCE_NUMBER", -1
        return error, offset

    def _verify_from(self, index: int, instance: Instance, sequence: int) -> None:
        """A log keeps the lowest sequence it has seen since a transaction was to be verified.

        A batch that overtook the one before it must not be the first (`VerificationStateEntry`).
        """
        epoch, lowest = self.verifications.get((index, instance.producer_id), (instance.epoch, sequence))
        if instance.epoch > epoch:
            epoch, lowest = instance.epoch, sequence
        elif instance.epoch == epoch:
            lowest = min(lowest, sequence)
        self.verifications[index, instance.producer_id] = (epoch, lowest)

    @rule(instance=instances)
    def add_offsets(self, instance: Instance) -> None:
        answer = self.client.call(
            AddOffsetsToTxnRequest(
                transactional_id=self.name(instance.noun),
                producer_id=instance.producer_id,
                producer_epoch=instance.epoch,
                group_id=self.group,
            ),
            4,
        )
        error = error_name(answer.error_code)
        assert error == self._coordinator_error(instance)
        if error == "NONE":
            self._add(instance, {-1})

    @rule(instance=instances, partition=st.integers(0, PARTITIONS - 1), offset=st.integers(0, 9))
    def commit_offset(self, instance: Instance, partition: int, offset: int) -> None:
        commit = TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        answer = self.client.call(
            TxnOffsetCommitRequest(
                transactional_id=self.name(instance.noun),
                group_id=self.group,
                producer_id=instance.producer_id,
                producer_epoch=instance.epoch,
                topics=[TxnOffsetCommitRequestTopic(name=self.topic.name, partitions=[commit])],
            ),
            OFFSET_COMMIT_VERSIONS[instance.protocol],
        )
        (topic,) = answer.topics
        error = error_name(topic.partitions[0].error_code)
        known_epoch = self.offsets.producer_epochs.get(instance.producer_id)
        is_open = instance.producer_id in self.offsets.pending and known_epoch == instance.epoch
        assert error == ("NONE" if is_open else self._verification(instance, -1))
        if error == "NONE":
            self.offsets.pending.setdefault(instance.producer_id, {})[partition] = offset
            self.offsets.producer_epochs[instance.producer_id] = instance.epoch

    # Ends

    @rule(instance=instances, commit=st.booleans())
    def end(self, instance: Instance, commit: bool) -> None:
        transaction = self.transactions[instance.noun]
        answer = self._end(instance, commit)
        error = error_name(answer.error_code)
        is_repeated = instance.protocol == 2 and instance.epoch + 1 == transaction.epoch
        outcome = "CompleteCommit" if commit else "CompleteAbort"
        if is_repeated and transaction.state.startswith("Complete"):
            assert error == ("NONE" if transaction.state == outcome else "INVALID_TXN_STATE")
        elif instance.epoch != transaction.epoch:
            assert error == "PRODUCER_FENCED"
        elif transaction.state == "Ongoing" or (instance.protocol == 2 and not commit):
            assert error == "NONE"
            if instance.protocol == 2:
                transaction.raise_epoch()
            self._write_markers(transaction, commit=commit)
        else:
            is_told_again = instance.protocol == 1 and transaction.state == outcome
            assert error == ("NONE" if is_told_again else "INVALID_TXN_STATE")
        if error == "NONE" and instance.protocol == 2:
            instance.epoch = transaction.epoch
            assert (answer.producer_id, answer.producer_epoch) == (instance.producer_id, instance.epoch)

    @rule(instance=instances, commit=st.booleans())
    def end_without_hearing_of_it(self, instance: Instance, commit: bool) -> None:
        """The answer is lost: the producer still has the epoch before."""
        epoch = instance.epoch
        self.end(instance, commit)
        instance.epoch = epoch

    def _end(self, instance: Instance, commit: bool) -> Any:
        answer = self.client.call(
            EndTxnRequest(
                transactional_id=self.name(instance.noun),
                producer_id=instance.producer_id,
                producer_epoch=instance.epoch,
                committed=commit,
            ),
            END_VERSIONS[instance.protocol],
        )
        until(lambda: not self._described(instance.noun).transaction_state.startswith("Prepare"), "markers")
        return answer

    def _write_markers(self, transaction: TransactionModel, *, commit: bool) -> None:
        for index in transaction.partitions - {-1}:
            self.verifications.pop((index, transaction.producer_id), None)
            self.partitions[index].end_transaction(transaction.producer_id, transaction.epoch, commit=commit)
        if -1 in transaction.partitions:
            pending = self.offsets.pending.pop(transaction.producer_id, {})
            self.offsets.producer_epochs[transaction.producer_id] = transaction.epoch
            if commit:
                self.offsets.committed |= pending
        transaction.partitions = set()
        transaction.state = "CompleteCommit" if commit else "CompleteAbort"

    @rule(partition=st.integers(0, PARTITIONS - 1), offset=st.integers(-1, 8))
    def delete_records(self, partition: int, offset: int) -> None:
        found = self.client.delete_records(self.topic.name, partition, offset)
        assert found == self.partitions[partition].delete_records(offset)

    # What is to be seen

    @invariant()
    def all_is_seen(self) -> None:
        self._coordinator_tells_of_transactions()
        self._logs_are_the_models()
        self._groups_have_committed_offsets()
        self._transactions_are_listed()
        for index in range(PARTITIONS):
            self._producers_are_described(index)

    def _described(self, noun: str) -> Any:
        request = DescribeTransactionsRequest(transactional_ids=[self.name(noun)])
        return self.client.call(request, 0).transaction_states[0]

    def _coordinator_tells_of_transactions(self) -> None:
        for noun in PROTOCOLS:
            transaction = self.transactions.get(noun)
            found = self._described(noun)
            if transaction is None:
                assert error_name(found.error_code) == "TRANSACTIONAL_ID_NOT_FOUND"
                continue
            assert (found.transaction_state, found.producer_id, found.producer_epoch, found.transaction_timeout_ms) == (
                transaction.state,
                transaction.producer_id,
                transaction.epoch,
                TIMEOUT_MS,
            )
            assert (found.transaction_start_time_ms > 0) == (transaction.state != "Empty")
            topics = {each.topic: set(each.partitions) for each in found.topics}
            assert topics.pop(self.topic.name, set()) == transaction.partitions - {-1}
            assert set(topics) == ({OFFSETS_TOPIC} if -1 in transaction.partitions else set())

    def _transactions_are_listed(self) -> None:
        own = {each.producer_id: each for each in self.transactions.values()}
        request = ListTransactionsRequest(producer_id_filters=[*own] or [2**40])
        listed = self.client.call(request, 1).transaction_states
        assert {(each.transactional_id, each.producer_id, each.transaction_state) for each in listed} == {
            (each.transactional_id, each.producer_id, each.state) for each in own.values()
        }

    def _producers_are_described(self, index: int) -> None:
        topic = TopicRequest(name=self.topic.name, partition_indexes=[index])
        (found,) = self.client.call(DescribeProducersRequest(topics=[topic]), 0).topics[0].partitions
        assert error_name(found.error_code) == "NONE"
        partition = self.partitions[index]
        assert {
            (
                each.producer_id,
                each.producer_epoch,
                each.last_sequence,
                each.coordinator_epoch >= 0,
                each.current_txn_start_offset,
            )
            for each in found.active_producers
        } == {
            (
                producer_id,
                known.epoch,
                known.last_sequence,
                known.coordinator_epoch >= 0,
                -1 if known.first_offset is None else known.first_offset,
            )
            for producer_id, known in partition.producers.items()
        }

    def _logs_are_the_models(self) -> None:
        for index, partition in enumerate(self.partitions):
            for isolation in (READ_UNCOMMITTED, READ_COMMITTED):
                found = self.client.read(self.topic, index, partition.log_start, isolation)
                assert (found.error, found.high_watermark, found.last_stable_offset, found.log_start_offset) == (
                    "NONE",
                    partition.end,
                    partition.last_stable,
                    partition.log_start,
                )
                assert found.batches == partition.readable(partition.log_start, isolation)
            assert found.aborted == sorted(
                (producer_id, first)
                for producer_id, first, last in partition.aborted
                if last >= partition.log_start and first < partition.last_stable
            )

    def _groups_have_committed_offsets(self) -> None:
        for is_stable in (False, True):
            found = self._offsets(require_stable=is_stable)
            pending = {partition for offsets in self.offsets.pending.values() for partition in offsets}
            for partition in range(PARTITIONS):
                if is_stable and partition in pending:
                    assert found[partition] == ("UNSTABLE_OFFSET_COMMIT", -1)
                else:
                    assert found[partition] == ("NONE", self.offsets.committed.get(partition, -1))

    def _offsets(self, *, require_stable: bool) -> Mapping[int, tuple[str, int]]:
        topics = [OffsetFetchRequestTopics(name=self.topic.name, partition_indexes=[*range(PARTITIONS)])]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=self.group, topics=topics)], require_stable=require_stable
        )
        (group,) = self.client.call(request, 9).groups
        assert error_name(group.error_code) == "NONE"
        return {
            each.partition_index: (error_name(each.error_code), each.committed_offset)
            for each in group.topics[0].partitions
        }


def test_transactions_are_those_of_the_model(broker: Broker) -> None:
    explore(TransactionsMachine, broker, examples(60, stateful_step_count=25))
