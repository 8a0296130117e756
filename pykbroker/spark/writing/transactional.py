"""Transactions of a task, which commit beside the records where the source goes on: nothing is written twice.

A task that is tried again begins with the same transactional id: that ends what the earlier one left open, and fences
it. Then the position of the group says which records are there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import WriteFailed
from .job import WriteJob

if TYPE_CHECKING:
    from confluent_kafka import Producer

RECORDS = 20_000
LONGEST_S = 5.0
"""Of one transaction."""
TAKEN_OVER = "Another run writes the same records to this topic, and has taken over"
_CALL_S = 10.0
_PATIENCE_S = 120.0
_PAUSE_S = 0.1


class _Group:
    """The group whose position says how far a run has come with a partition of the source, and which run that is.

    stable: a position that an open transaction would change is waited for; else it is what was committed last.
    """

    def __init__(self, job: WriteJob, partition: int, *, stable: bool = True) -> None:
        from confluent_kafka import Consumer

        assert job.transactions is not None
        self._topic = job.topic
        self._run_id = job.transactions.run_id
        level = "read_committed" if stable else "read_uncommitted"
        self._consumer = Consumer(job.group_properties(partition) | {"isolation.level": level})
        self._metadata = self._consumer.consumer_group_metadata()

    def position(self) -> int:
        """The offset at which this run goes on. Raises WriteFailed where another one has taken over."""
        from confluent_kafka import TopicPartition

        asked = [TopicPartition(self._topic, 0)]
        (place,) = patiently(lambda: self._consumer.committed(asked, timeout=_CALL_S))
        if place.error is not None:
            raise WriteFailed(f"The position of a group cannot be read: {place.error.str()}")
        if place.metadata != self._run_id:
            raise WriteFailed(TAKEN_OVER)
        return int(place.offset)

    def commit(self, producer: Producer, offset: int) -> None:
        """Set the position in the transaction of the producer, and commit this. Raises WriteFailed."""
        from confluent_kafka import TopicPartition

        place = TopicPartition(self._topic, 0, offset, self._run_id)
        patiently(lambda: producer.send_offsets_to_transaction([place], self._metadata, _CALL_S))
        patiently(lambda: producer.commit_transaction(_CALL_S))

    def close(self) -> None:
        self._consumer.close()


def take_over(job: WriteJob, partition: int) -> None:
    """Let nobody but this run write from a partition of the source: what others have left open is aborted, and whoever
    would go on is fenced, or finds another run's id. Raises WriteFailed.
    """
    from confluent_kafka import Producer

    producer = Producer(job.producer_properties(partition))
    group = _Group(job, partition)
    try:
        patiently(lambda: producer.init_transactions(_CALL_S))
        patiently(producer.begin_transaction)
        group.commit(producer, 0)
    finally:
        group.close()


def _check_not_taken_over(job: WriteJob, partition: int) -> None:
    """Raises WriteFailed: a run that has been taken over fences nobody.

    What an earlier try of the task has left open is ended by the fence only, or by its timeout, a minute later.
    """
    group = _Group(job, partition, stable=False)
    try:
        group.position()
    finally:
        group.close()


class PartitionTransactions:
    """The transactions of one task with one partition of the source. next_offset: the first that is not committed.

    Raises WriteFailed.
    """

    def __init__(self, producer: Producer, job: WriteJob, partition: int) -> None:
        self._producer = producer
        self._records = 0
        self._begun = 0.0
        _check_not_taken_over(job, partition)
        self._group = _Group(job, partition)
        patiently(lambda: producer.init_transactions(_CALL_S))
        self.next_offset = self._group.position()

    def before(self, offset: int) -> None:
        """Make room for the record with this offset, which is sent next."""
        if self._records >= RECORDS or (self._records and time.monotonic() - self._begun > LONGEST_S):
            self.commit()
        if not self._records:
            patiently(self._producer.begin_transaction)
            self._begun = time.monotonic()
        self._records += 1
        self.next_offset = offset + 1

    def commit(self) -> None:
        if not self._records:
            return
        try:
            self._group.commit(self._producer, self.next_offset)
        except WriteFailed:
            self.abort()
            raise
        self._records = 0

    def abort(self) -> None:
        """Try to abort; the next producer with this id aborts what is left."""
        from confluent_kafka import KafkaException

        self._records = 0
        try:
            self._producer.abort_transaction(_CALL_S)
        except KafkaException:
            return

    def close(self) -> None:
        self._group.close()


def patiently(call: Callable[[], Any]) -> Any:
    """Call again where librdkafka says so, or a coordinator is on its way. Raises WriteFailed."""
    from confluent_kafka import KafkaError, KafkaException

    fenced, passing = (
        {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH},
        {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
         KafkaError._TIMED_OUT, KafkaError._WAIT_COORD, KafkaError._TRANSPORT, KafkaError.REQUEST_TIMED_OUT,
         KafkaError.UNSTABLE_OFFSET_COMMIT},
    )  # fmt: skip
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return call()
        except KafkaException as exception:
            error = exception.args[0]
            if error.code() in fenced:
                raise WriteFailed(TAKEN_OVER) from None
            again = error.retriable() or (error.code() in passing and not error.txn_requires_abort())
            if not again or time.monotonic() > end:
                raise WriteFailed(error.str()) from None
            time.sleep(_PAUSE_S)
