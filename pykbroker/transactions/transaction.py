"""One transactional id: its producer, and the state of its newest transaction. Kafka's `TransactionMetadata`.

Every change of state is a method here; the rules that choose among them are in the other modules. Two of Kafka's
states are never rested in: a producer is fenced and its transaction aborted in one step (PREPARE_EPOCH_FENCE), and an
expired id is simply gone (DEAD).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum

from pykbroker.protocol.messages.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.state_machine import BadRecord

from .records import TransactionRecord

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1
LAST_EPOCH = 2**15 - 1
NO_TIMEOUT_MS = 2**31 - 1
"""The transaction timeout of a two-phase commit: somebody else decides (KIP-939)."""

EPOCH_BUMP_VERSION = 2
"""From this transaction.version on a producer has a new epoch after each transaction (KIP-890)."""

_FLEXIBLE_RECORD_VERSION = 1
_LAST_PRODUCER_EPOCH_TAG = 20357
_LAST_PRODUCER_EPOCH = struct.Struct(">h")
"""A tagged field of this broker's own in TransactionLogValue. Kafka 4.3 has none for the epoch before the newest, skips
tags that it does not know, and numbers its own from 0 on; that of KAFKA-20357 is in no release yet.
"""


class TransactionState(IntEnum):
    """The numbers are those in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def wire_name(self) -> str:
        """`PrepareCommit` and the like, as ListTransactions and DescribeTransactions have it."""
        return _WIRE_NAMES[self]

    @property
    def is_prepared(self) -> bool:
        """Decided, and not all markers are known to be written."""
        return self in _PREPARED

    @property
    def is_at_rest(self) -> bool:
        """There is no transaction now."""
        return self in _AT_REST


_WIRE_NAMES = {state: state.name.title().replace("_", "") for state in TransactionState}
STATES_BY_WIRE_NAME = {name: state for state, name in _WIRE_NAMES.items()}

_PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
_AT_REST = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
_NEVER_WRITTEN = frozenset({TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE})

_PREVIOUS_STATES = {
    TransactionState.EMPTY: _AT_REST,
    TransactionState.ONGOING: _AT_REST | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: _AT_REST | {TransactionState.ONGOING},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
}


def is_exhausted(epoch: int) -> bool:
    """The last epoch is never given to a producer: it is for fencing the one that has the last but one."""
    return epoch >= LAST_EPOCH - 1


@dataclass(slots=True)
class Transaction:
    """One transactional id: its producer, and its newest transaction.

    partitions: of the transaction; once it is decided, those whose markers are not known to be written.
    previous_producer_id: the producer id before the newest change of state, as Kafka writes it.
    next_producer_id: the one that the producer has after this transaction, where its epochs are used up.
    last_producer_epoch: the one before the newest epoch, to recognise an InitProducerId that is repeated. The records
        of an open transaction do not keep it: the next epoch replaces it.
    client_transaction_version: of the protocol that the producer followed last: 0 or 2.
    """

    transactional_id: str
    producer_id: int
    timeout_ms: int
    last_update_timestamp_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    state: TransactionState = TransactionState.EMPTY
    partitions: dict[TopicPartition, None] = field(default_factory=dict)
    start_timestamp_ms: int = NO_TIMESTAMP
    client_transaction_version: int = 0

    def copy(self) -> Transaction:
        """One that goes its own way."""
        return replace(self, partitions=dict(self.partitions))

    @property
    def is_producer_epoch_exhausted(self) -> bool:
        return is_exhausted(self.producer_epoch)

    def is_ended_for(self, producer_id: int, producer_epoch: int) -> bool:
        """Tell whether this producer goes on after the transaction, which is decided, and not complete yet.

        The answer to EndTxn names it before all markers are written, so its next request may come before that as well.
        """
        return self.state.is_prepared and (producer_id, producer_epoch) == self.completed_producer

    @property
    def producer(self) -> str:
        return f"producer {self.producer_id} at epoch {self.producer_epoch}"

    # InitProducerId

    def begin_epoch(self, epoch: int, last_epoch: int, timeout_ms: int, timestamp_ms: int) -> None:
        """The producer goes on with this epoch, without a transaction."""
        self._initialize(self.producer_id, epoch, last_epoch, timeout_ms, timestamp_ms)

    def begin_producer_id(self, producer_id: int, last_epoch: int, timeout_ms: int, timestamp_ms: int) -> None:
        """The producer goes on with a new id."""
        self._initialize(producer_id, 0, last_epoch, timeout_ms, timestamp_ms)

    def _initialize(self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, timestamp_ms: int) -> None:
        self._transition_to(TransactionState.EMPTY, timestamp_ms)
        self.previous_producer_id, self.producer_id = self.producer_id, producer_id
        self.producer_epoch = epoch
        self.last_producer_epoch = last_epoch
        self.timeout_ms = timeout_ms
        self.partitions = {}
        self.start_timestamp_ms = NO_TIMESTAMP

    # A transaction

    def add_partitions(
        self, partitions: Iterable[TopicPartition], client_transaction_version: int, timestamp_ms: int
    ) -> None:
        if self.state.is_at_rest:
            self.start_timestamp_ms = timestamp_ms
        self._transition_to(TransactionState.ONGOING, timestamp_ms)
        self.previous_producer_id = self.producer_id
        self.partitions |= dict.fromkeys(partitions)
        self.client_transaction_version = client_transaction_version

    def fence(self) -> None:
        """Raise the epoch, so that the producer that has it now is a zombie. An abort of the first protocol follows."""
        assert self.state is TransactionState.ONGOING
        self.producer_epoch = min(self.producer_epoch + 1, LAST_EPOCH)
        self.last_producer_epoch = NO_PRODUCER_EPOCH

    def prepare(
        self, *, is_commit: bool, client_transaction_version: int, next_producer_id: int, timestamp_ms: int
    ) -> None:
        """The outcome is decided. In the second protocol the epoch rises with it."""
        if self.state.is_at_rest:
            # Nothing was added: an abort all the same, for a producer that does not know. Kafka wants a start.
            self.start_timestamp_ms = timestamp_ms
        state = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
        self._transition_to(state, timestamp_ms)
        self.previous_producer_id = self.producer_id
        if client_transaction_version >= EPOCH_BUMP_VERSION:
            self.last_producer_epoch = self.producer_epoch
            self.producer_epoch = min(self.producer_epoch + 1, LAST_EPOCH)
        self.next_producer_id = next_producer_id
        self.client_transaction_version = client_transaction_version

    @property
    def completed_producer(self) -> tuple[int, int]:
        """Id and epoch for what comes after this transaction."""
        if self.client_transaction_version >= EPOCH_BUMP_VERSION and self.next_producer_id != NO_PRODUCER_ID:
            return self.next_producer_id, 0
        return self.producer_id, self.producer_epoch

    def complete(self, timestamp_ms: int) -> None:
        """Every marker is written."""
        assert not self.partitions
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        state = TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
        self._transition_to(state, timestamp_ms)
        self.previous_producer_id = self.producer_id
        self.producer_id, self.producer_epoch = self.completed_producer
        self.next_producer_id = NO_PRODUCER_ID

    def _transition_to(self, state: TransactionState, timestamp_ms: int) -> None:
        assert self.state in _PREVIOUS_STATES[state], f"{self.transactional_id!r}: {self.state.name} -> {state.name}"
        self.state = state
        self.last_update_timestamp_ms = timestamp_ms

    # The log

    def record(self, transaction_version: int) -> TransactionRecord:
        """Return the record of this state. transaction_version: the level of the cluster, which decides its form."""
        key = TransactionLogKey(transactional_id=self.transactional_id)
        value = TransactionLogValue(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=self.state,
            transaction_partitions=None if self.state is TransactionState.EMPTY else self._partitions_by_topic(),
            transaction_last_update_timestamp_ms=self.last_update_timestamp_ms,
            transaction_start_timestamp_ms=self.start_timestamp_ms,
        )
        if transaction_version == 0:
            return TransactionRecord(key, value, 0)
        value.previous_producer_id = self.previous_producer_id
        value.next_producer_id = self.next_producer_id
        value.client_transaction_version = self.client_transaction_version
        if self.state is TransactionState.EMPTY and self.last_producer_epoch != NO_PRODUCER_EPOCH:
            data = _LAST_PRODUCER_EPOCH.pack(self.last_producer_epoch)
            value.unknown_tagged_fields = {_LAST_PRODUCER_EPOCH_TAG: data}
        return TransactionRecord(key, value, _FLEXIBLE_RECORD_VERSION)

    def _partitions_by_topic(self) -> list[PartitionsSchema]:
        return [PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in group_by_topic(self.partitions)]

    @classmethod
    def from_record(cls, key: TransactionLogKey, value: TransactionLogValue) -> Transaction:
        """Raises BadRecord."""
        try:
            state = TransactionState(value.transaction_status)
        except ValueError:
            raise BadRecord(f"unknown transaction status {value.transaction_status}") from None
        if state in _NEVER_WRITTEN:
            raise BadRecord(f"{state.name} is no status that is written")
        if value.producer_id < 0 or value.producer_epoch < 0:
            raise BadRecord(f"impossible producer {value.producer_id} with epoch {value.producer_epoch}")
        if not 0 <= value.client_transaction_version <= EPOCH_BUMP_VERSION:
            raise BadRecord(f"unknown transaction version {value.client_transaction_version}")
        return cls(
            transactional_id=key.transactional_id,
            producer_id=value.producer_id,
            previous_producer_id=value.previous_producer_id,
            next_producer_id=value.next_producer_id,
            producer_epoch=value.producer_epoch,
            last_producer_epoch=_last_producer_epoch_of(state, value),
            timeout_ms=value.transaction_timeout_ms,
            state=state,
            partitions=_partitions_of(state, value),
            start_timestamp_ms=value.transaction_start_timestamp_ms,
            last_update_timestamp_ms=value.transaction_last_update_timestamp_ms,
            client_transaction_version=value.client_transaction_version,
        )


def group_by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return list(by_topic.items())


def _last_producer_epoch_of(state: TransactionState, value: TransactionLogValue) -> int:
    """The end of a transaction of the second protocol tells the epoch; an InitProducerId has written it down."""
    data = value.unknown_tagged_fields.get(_LAST_PRODUCER_EPOCH_TAG)
    if state is TransactionState.EMPTY and data is not None:
        if len(data) != _LAST_PRODUCER_EPOCH.size:
            raise BadRecord(f"the last producer epoch has {len(data)} bytes")
        last_epoch: int = _LAST_PRODUCER_EPOCH.unpack(data)[0]
        return last_epoch
    is_bumped = value.client_transaction_version >= EPOCH_BUMP_VERSION
    if not is_bumped or state in (TransactionState.EMPTY, TransactionState.ONGOING):
        return NO_PRODUCER_EPOCH
    has_new_id = value.producer_epoch == 0 and value.previous_producer_id not in (NO_PRODUCER_ID, value.producer_id)
    return LAST_EPOCH - 1 if has_new_id else value.producer_epoch - 1


def _partitions_of(state: TransactionState, value: TransactionLogValue) -> dict[TopicPartition, None]:
    if state is TransactionState.EMPTY:
        return {}
    if value.transaction_partitions is None:
        raise BadRecord(f"{state.name} without partitions")
    return {
        TopicPartition(schema.topic, partition): None
        for schema in value.transaction_partitions
        for partition in schema.partition_ids
    }
