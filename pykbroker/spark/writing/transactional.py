"""Transactions of a task, which commit beside the records where the source goes on: nothing is written twice.

A task that is tried again begins with the same transactional id: that ends what the earlier one left open, and fences
it. Then the position of the group says which records are there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import TakenOver, WriteFailed
from .job import Route, Transactions, WriteJob
from .offset_syncs import CopyPosition, OffsetSync, thinned

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

    def __init__(self, job: WriteJob, transactions: Transactions, *, stable: bool = True) -> None:
        from confluent_kafka import Consumer

        self._topic, self._partition = transactions.topic, transactions.partition
        level = "read_committed" if stable else "read_uncommitted"
        self._consumer = Consumer(job.group_properties(transactions) | {"isolation.level": level})
        self._metadata = self._consumer.consumer_group_metadata()

    def position(self) -> CopyPosition | None:
        """The last one that was committed. Raises WriteFailed."""
        from confluent_kafka import TopicPartition

        asked = [TopicPartition(self._topic, self._partition)]
        (place,) = patiently(lambda: self._consumer.committed(asked, timeout=_CALL_S))
        if place.error is not None:
            raise WriteFailed(f"The position of a group cannot be read: {place.error.str()}")
        if place.offset < 0:
            return None
        try:
            return CopyPosition.of(int(place.offset), place.metadata or "")
        except ValueError:
            raise WriteFailed(f"The position of a group is not one of this program: {place.metadata!r}") from None

    def own_position(self, run_id: str | None) -> CopyPosition:
        """The one at which this run goes on. Raises TakenOver, WriteFailed."""
        position = self.position()
        if position is None or position.run_id != run_id:
            raise TakenOver(TAKEN_OVER)
        return position

    def commit(self, producer: Producer, position: CopyPosition) -> None:
        """Set the position in the transaction of the producer, and commit this. Raises WriteFailed."""
        from confluent_kafka import TopicPartition

        place = TopicPartition(self._topic, self._partition, position.next_offset, position.metadata)
        patiently(lambda: producer.send_offsets_to_transaction([place], self._metadata, _CALL_S))
        patiently(lambda: producer.commit_transaction(_CALL_S))

    def close(self) -> None:
        self._consumer.close()


def take_over(job: WriteJob, route: Route, *, anew: bool = False) -> CopyPosition:
    """Let nobody but this run write from a partition of the source: what others have left open is aborted, and whoever
    would go on is fenced, or finds another run's id. The position is that of the others, or where the route begins.

    anew: the positions of other runs do not count. Raises WriteFailed.
    """
    from confluent_kafka import Producer

    transactions = _of(route)
    producer = Producer(job.producer_properties(transactions))
    group = _Group(job, transactions)
    try:
        patiently(lambda: producer.init_transactions(_CALL_S))
        begin, before = transactions.begin, None if anew else group.position()
        position = before or CopyPosition(begin.source, "", syncs=(begin,) if job.journal is not None else ())
        position = replace(position, run_id=job.run_id or "")
        patiently(producer.begin_transaction)
        _note(job, transactions, producer, position)
        group.commit(producer, position)
    finally:
        group.close()
    return position


def _check_not_taken_over(job: WriteJob, transactions: Transactions) -> None:
    """Raises WriteFailed: a run that has been taken over fences nobody.

    What an earlier try of the task has left open is ended by the fence only, or by its timeout, a minute later.
    """
    group = _Group(job, transactions, stable=False)
    try:
        group.own_position(job.run_id)
    finally:
        group.close()


class PartitionTransactions:
    """The transactions of one task with one partition of the source. next_offset: the first that is not committed.

    Raises WriteFailed.
    """

    def __init__(self, producer: Producer, job: WriteJob, route: Route) -> None:
        self._producer = producer
        self._job = job
        self._route = route
        self._transactions = _of(route)
        self._records = 0
        self._begun = 0.0
        self._first = self._last = 0
        self._first_target: int | None = None
        self._last_target = 0
        _check_not_taken_over(job, self._transactions)
        self._group = _Group(job, self._transactions)
        patiently(lambda: producer.init_transactions(_CALL_S))
        self._position = self._group.own_position(job.run_id)

    @property
    def next_offset(self) -> int:
        return self._position.next_offset

    @property
    def is_full(self) -> bool:
        """True where it is to be committed before the next record comes."""
        return self._records >= RECORDS or (self._records > 0 and time.monotonic() - self._begun > LONGEST_S)

    def before(self, offset: int) -> None:
        """Make room for the record with this offset, which is sent next."""
        if not self._records:
            patiently(self._producer.begin_transaction)
            self._begun = time.monotonic()
            self._first, self._first_target = offset, None
        self._records += 1
        self._last = offset

    def delivered(self, offset: int) -> None:
        """Note the offset of the next record in the target."""
        if self._first_target is None:
            self._first_target = offset
        self._last_target = offset

    def commit(self, *, at_end: bool = False) -> None:
        """Commit what was sent; with a journal it has been acknowledged. at_end: the source is read up to its end."""
        if not self._records:
            return
        position = self._next_position(at_end)
        try:
            _note(self._job, self._transactions, self._producer, position)
            self._group.commit(self._producer, position)
        except WriteFailed:
            self.abort()
            raise
        self._position = position
        self._records = 0

    def _next_position(self, at_end: bool) -> CopyPosition:
        position = replace(self._position, next_offset=self._last + 1)
        if self._job.journal is None:
            return position
        if at_end:
            position = replace(position, next_offset=max(self._last + 1, self._route.end))
        syncs = [*position.syncs, *self._new_syncs()]
        return replace(position, leader_epoch=self._route.leader_epoch, syncs=thinned(syncs))

    def _new_syncs(self) -> list[OffsetSync]:
        first, last = self._first_target, self._last_target
        assert first is not None
        if self._last - self._first == last - first == self._records - 1:
            return [OffsetSync(self._first, first, self._records)]
        syncs = [OffsetSync(self._first, first, 1)]
        return syncs if self._records == 1 else [*syncs, OffsetSync(self._last, last, 1)]

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


def _of(route: Route) -> Transactions:
    assert route.transactions is not None
    return route.transactions


def _note(job: WriteJob, transactions: Transactions, producer: Producer, position: CopyPosition) -> None:
    """Write the position to the journal, in the transaction that commits it."""
    if job.journal is not None:
        producer.produce(job.journal, partition=0, key=journal_key(transactions), value=str(position.next_offset))


def journal_key(transactions: Transactions) -> str:
    return f"{transactions.group}:{transactions.partition}"


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
                raise TakenOver(TAKEN_OVER) from None
            again = error.retriable() or (error.code() in passing and not error.txn_requires_abort())
            if not again or time.monotonic() > end:
                raise WriteFailed(error.str()) from None
            time.sleep(_PAUSE_S)
