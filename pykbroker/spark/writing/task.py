"""A task of Spark that writes: records come as Arrow's batches, and go to producers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..errors import TaskLost, WriteFailed
from ..identities import HEADER
from ..python_tasks import keep_archive_lists
from .job import COLUMNS, Route, WriteJob, Written
from .pace import Pace
from .transactional import PartitionTransactions

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_FLUSH_S = 330.0
"""Longer than librdkafka tries to deliver a record."""
_LONG_PAUSE_S = 1.0
_POLL_EVERY = 1000
_ZERO_AS_MS = 1
"""librdkafka takes the timestamp 0 for the present."""

Row = tuple[int, int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]
"""The values of `COLUMNS`."""


def write_batches(job: WriteJob, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
    """Write the records of a task, and give a row of `Written` for each route.

    batches: with the columns `COLUMNS`. Raises TaskLost.
    """
    import pyarrow
    from pyspark import TaskContext

    keep_archive_lists()
    context = TaskContext.get()
    if job.run_id is None and context is not None and context.attemptNumber() > 0:
        raise TaskLost("A task was lost, and with it how far it came")
    written = write_rows(job, _rows(batches))
    schema = pyarrow.schema(
        [("route", pyarrow.int32())]
        + [(name, pyarrow.int64()) for name in Written._fields[1:4]]
        + [("failure", pyarrow.string()), ("zeros", pyarrow.int64())]
    )
    yield pyarrow.RecordBatch.from_pylist([each._asdict() for each in written], schema=schema)


def _rows(batches: Iterable[RecordBatch]) -> Iterator[Row]:
    for batch in batches:
        *columns, headers = (batch.column(name) for name in COLUMNS)
        if headers.null_count == len(headers):
            pairs: list[Any] = [None] * len(headers)
        else:
            pairs = [
                None if each is None else [(header["key"], header["value"]) for header in each]
                for each in headers.to_pylist()
            ]
        yield from zip(*(column.to_pylist() for column in columns), pairs, strict=True)


def write_rows(job: WriteJob, rows: Iterable[Row]) -> list[Written]:
    """Write rows, in which each route is in one piece and in order. A failure is the only result."""
    writer = TaskWriter(job)
    try:
        for row in rows:
            writer.write(row)
        return writer.end()
    except WriteFailed as error:
        writer.break_off()
        return [Written(-1, 0, 0, 0, str(error))]


class TaskWriter:
    """The producer of a task; in transactions each partition of the source has one of its own. Raises WriteFailed."""

    def __init__(self, job: WriteJob) -> None:
        self._job = job
        self._producer: Any = None
        self._transactions: PartitionTransactions | None = None
        self._failure: str | None = None
        self._written: list[Written] = []
        self._number = -1
        self._route = Route("", "")
        self._records = self._bytes = self._there = self._zeros = 0
        self._next_offset = 0
        self._identity: bytes | None = None
        self._options: dict[str, Any] = {}
        self._rate = 0.0
        self._pace: Pace | None = None

    def write(self, row: Row) -> None:
        number, offset, timestamp_ms, key, value, headers = row
        if number != self._number:
            self._turn_to(number)
        if offset < self._next_offset:
            self._there += 1
            return
        if headers and any("\0" in name for name, _ in headers):
            raise WriteFailed(
                f"offset {offset} of {self._route.source} has a header whose key has a NUL, where librdkafka ends it"
            )
        self._check()
        if self._pace is not None:
            self._wait(self._pace)
        if self._transactions is not None:
            if self._transactions.is_full:
                self._commit(self._transactions)
            self._transactions.before(offset)
        if self._identity is not None:
            identity = (HEADER, self._identity + b"%d" % offset)
            headers = [*headers, identity] if headers else [identity]
        self._produce(key=key, value=value, headers=headers, timestamp=timestamp_ms or _ZERO_AS_MS)
        self._records += 1
        self._bytes += len(key or b"") + len(value or b"")
        self._zeros += not timestamp_ms
        if self._rate and self._pace is None:
            self._producer.flush(_FLUSH_S)  # the time that the connection takes is not made up for
            self._pace = Pace(self._rate)
        elif self._records % _POLL_EVERY == 0:
            self._producer.poll(0)

    def end(self) -> list[Written]:
        """The result, when all of it is acknowledged."""
        self._end_route()
        self._flush()
        return self._written

    def break_off(self) -> None:
        """Throw away what was not sent yet, and abort the transaction."""
        if self._producer is not None:
            self._producer.purge(in_queue=True, in_flight=True, blocking=True)
        if self._transactions is not None:
            self._transactions.abort()
            self._transactions.close()

    # ---- partitions of the source

    def _turn_to(self, number: int) -> None:
        self._end_route()
        route = self._job.routes[number]
        self._number, self._route = number, route
        self._identity = None if route.identity is None else route.identity.encode()
        self._records = self._bytes = self._there = self._zeros = self._next_offset = 0
        self._options = {"on_delivery": self._delivered}
        if route.partition is not None:
            self._options["partition"] = route.partition
        if route.transactions is not None:
            self._flush()
            self._producer = None  # its threads end, before others begin
            self._producer = self._new_producer()
            self._pace = None
            self._transactions = PartitionTransactions(self._producer, self._job, route)
            self._next_offset = self._transactions.next_offset
            if self._job.journal is not None:
                self._options["on_delivery"] = self._delivered_at
        elif self._producer is None:
            self._producer = self._new_producer()
        if self._pace is None:  # that of all partitions of the task
            self._rate = self._job.rates.get(number, 0.0)

    def _end_route(self) -> None:
        if self._transactions is not None:
            self._commit(self._transactions, at_end=True)
            self._transactions.close()
            self._transactions = None
        if self._number >= 0:
            self._written.append(Written(self._number, self._records, self._bytes, self._there, zeros=self._zeros))

    def _new_producer(self) -> Any:
        from confluent_kafka import KafkaException, Producer

        try:
            return Producer(self._job.producer_properties(self._route.transactions))
        except KafkaException as error:
            raise WriteFailed(error.args[0].str()) from None

    # ---- records

    def _produce(self, **record: Any) -> None:
        from confluent_kafka import KafkaException

        while True:
            try:
                self._producer.produce(self._route.topic, **record, **self._options)
                return
            except BufferError:
                self._producer.poll(0.1)
                self._check()
            except KafkaException as error:
                raise WriteFailed(error.args[0].str()) from None

    def _wait(self, pace: Pace) -> None:
        pause_s = pace.pause_s()
        if not pause_s:
            return
        end = time.monotonic() + pause_s
        if pause_s > _LONG_PAUSE_S and self._transactions is not None:
            self._commit(self._transactions)
        while (left_s := end - time.monotonic()) > 0:
            self._producer.poll(left_s)

    def _commit(self, transactions: PartitionTransactions, *, at_end: bool = False) -> None:
        if self._job.journal is not None:
            self._flush()  # the position says which offsets the records have in the target
        try:
            transactions.commit(at_end=at_end)
        except WriteFailed:
            self._check()  # why a record was refused says more
            raise

    def _flush(self) -> None:
        left = self._producer.flush(_FLUSH_S) if self._producer is not None else 0
        self._check()
        if left:
            raise WriteFailed(f"{left} records were not acknowledged within {_FLUSH_S:g} s")

    def _check(self) -> None:
        if self._failure is not None:
            raise WriteFailed(self._failure)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None and self._failure is None:
            self._failure = f"{message.topic()}-{message.partition()}: {error.str()}"

    def _delivered_at(self, error: Any, message: Any) -> None:
        if error is not None:
            self._delivered(error, message)
        elif self._transactions is not None:
            self._transactions.delivered(message.offset())
