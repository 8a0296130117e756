"""Transactions: records of several partitions that count together, and copies that have each record once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from tests.history.recorder import Recording

from .calls import close, failure_of
from .ends import Over, name_of
from .groups import COPIERS
from .reading import last_offsets
from .stage import (
    CALL_TIMEOUT_S,
    COPY,
    ORDERS,
    PLAIN,
    TOPICS,
    Stage,
    encode,
    found_in,
    key_of,
    partitions,
    pause,
)
from .truncation import TruncationReported

TRANSACTION_TIMEOUT_MS = 10_000
MOST_COPIED = 500
"""In one transaction."""
_COPIERS_OWN_LIFE_S = 30.0


class TransactionalClient:
    """One incarnation of a transactional id."""

    def __init__(self, stage: Stage, transactional_id: str) -> None:
        self.stage = stage
        self.proc = stage.recorder.new_process()
        self._undelivered: set[tuple[Recording, int]] = set()
        self.producer = Producer(
            stage.config(
                transactional_id=transactional_id,
                transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
                message_timeout_ms=TRANSACTION_TIMEOUT_MS,
                linger_ms=0,
            )
        )
        self.retrying(lambda: self.producer.init_transactions(CALL_TIMEOUT_S))

    def begin(self) -> Recording:
        """Raises Over."""
        try:
            self.producer.begin_transaction()
        except KafkaException as failed:
            raise Over(name_of(failed)) from None
        return self.stage.recorder.invoke(self.proc, "txn")

    def send(self, recording: Recording, topic: str, partition: int, value: Any) -> None:
        """Raises KafkaException."""
        number = recording.sending(f"{topic}-{partition}", value)
        undelivered = (
            self._undelivered
        )  # not self: librdkafka holds the callback, and would keep its own producer alive
        undelivered.add((recording, number))

        def note(error: Any, message: Any) -> None:
            if error is None:
                undelivered.discard((recording, number))
                if not recording.is_ended:
                    recording.sent(number, message.offset())

        self.producer.produce(topic, encode(value), partition=partition, on_delivery=note)

    def end(self, recording: Recording, work: Callable[[], None], *, is_commit: bool) -> bool:
        """After `work`; whether it was committed. Raises Over where it is not known, or nothing can follow.

        librdkafka 2.16 gives the sequence numbers of records that it purges in an abort to those of the next
        transaction, though a broker may have the purged ones, its answer being lost: the next ones are then taken for
        duplicates and are nowhere, with Apache Kafka as well. Nothing follows after such an abort.
        """
        try:
            work()
            if is_commit:
                recording.decided()
                self.retrying(lambda: self.producer.commit_transaction(CALL_TIMEOUT_S))
                recording.ok()
                return True
            self.producer.flush(CALL_TIMEOUT_S)
            self.retrying(lambda: self.producer.abort_transaction(CALL_TIMEOUT_S))
            recording.fail()
        except Over:
            recording.info()
            raise
        except KafkaException as failed:
            self._abort(recording, failed)
        self.producer.poll(0)
        if self._undelivered:
            raise Over("purged records in an abort")
        return False

    def _abort(self, recording: Recording, failed: KafkaException) -> None:
        """Raises Over where that is not possible."""
        error = failed.args[0]
        if not (isinstance(error, KafkaError) and error.txn_requires_abort()):
            recording.info()
            raise Over(name_of(failed))
        try:
            self.retrying(lambda: self.producer.abort_transaction(CALL_TIMEOUT_S))
        except (KafkaException, Over) as unable:
            recording.info()
            raise Over(f"{name_of(failed)}, and {name_of(unable)} in the abort") from None
        recording.fail()

    def retrying(self, call: Callable[[], object]) -> None:
        """Raises KafkaException, or Over when it has been tried for long enough.

        librdkafka 2.16 gives up the handle of a broker that Metadata leaves out, and a call that was about to be sent
        there waits for that handle for ever, when the broker has long been back: its producer is left alone then.
        """
        until_s = time.monotonic() + 6 * CALL_TIMEOUT_S
        while failed := failure_of(call):
            error = failed.args[0] if isinstance(failed, KafkaException) else None
            if not isinstance(error, KafkaError) or not error.retriable():
                raise failed
            if time.monotonic() > until_s:
                raise Over(f"{name_of(failed)} for a minute") from None


def transact(stage: Stage, rng: random.Random) -> None:
    while stage.writing.is_set():
        try:
            client = TransactionalClient(stage, "orders")
            while stage.writing.is_set():
                _transaction(client, rng)
                pause(rng, 0.1)
        except (Over, KafkaException) as ended:
            stage.progress.note_end(ended)
            pause(rng, 1.0)


def _transaction(client: TransactionalClient, rng: random.Random) -> None:
    recording = client.begin()

    def work() -> None:
        for _ in range(rng.randint(1, 4)):
            client.send(recording, ORDERS, rng.randrange(TOPICS[ORDERS]), client.stage.new_value())

    if client.end(recording, work, is_commit=rng.random() < 0.8):
        client.stage.progress.note()


def copy_as_one(stage: Stage, rng: random.Random) -> None:
    _copy(stage, rng, "copier-1")


def copy_as_another(stage: Stage, rng: random.Random) -> None:
    _copy(stage, rng, "copier-2")


def _copy(stage: Stage, rng: random.Random, transactional_id: str) -> None:
    """Consume, transform, produce; one life after another."""
    while stage.reading.is_set():
        consumer = Consumer(
            stage.consumer_config(
                group_id=COPIERS,
                auto_offset_reset="error",  # to begin again somewhere else would be to copy again
                isolation_level="read_committed",
                session_timeout_ms=6_000,
                heartbeat_interval_ms=1_000,
            )
        )
        try:
            client = TransactionalClient(stage, transactional_id)
            stage.recorder.tell(client.proc, "subscribe")
            consumer.subscribe([PLAIN])
            until_s = time.monotonic() + (0.3 + rng.random()) * _COPIERS_OWN_LIFE_S
            while stage.reading.is_set() and time.monotonic() < until_s:
                if found := found_in(consumer.consume(MOST_COPIED, timeout=0.3)):
                    _copy_some(client, consumer, found)
        except TruncationReported as reported:
            reported.refute(stage.bootstrap)
        except (Over, KafkaException) as ended:
            stage.progress.note_end(ended)
            pause(rng, 1.0)
        finally:
            close(stage, consumer)


def _copy_some(client: TransactionalClient, consumer: Consumer, found: dict[str, list[tuple[int, Any]]]) -> None:
    recording = client.begin()
    recording.polled(found)
    offsets = {int(key.rpartition("-")[2]): records[-1][0] + 1 for key, records in found.items()}

    def work() -> None:
        for key, records in found.items():
            for _, value in records:
                client.send(recording, COPY, int(key.rpartition("-")[2]), [value, client.stage.new_value()])
        recording.commits(COPIERS, {f"{PLAIN}-{partition}": offset for partition, offset in offsets.items()})
        positions = [TopicPartition(PLAIN, partition, offset) for partition, offset in offsets.items()]
        metadata = consumer.consumer_group_metadata()
        client.retrying(lambda: client.producer.send_offsets_to_transaction(positions, metadata, CALL_TIMEOUT_S))

    if client.end(recording, work, is_commit=True):
        client.stage.progress.note()
    else:
        _rewind(consumer)


def _rewind(consumer: Consumer) -> None:
    """To what is committed: the records of an aborted transaction are to be read again. Raises KafkaException."""
    for each in consumer.committed(consumer.assignment(), CALL_TIMEOUT_S):
        consumer.seek(TopicPartition(each.topic, each.partition, each.offset if each.offset >= 0 else OFFSET_BEGINNING))


def is_all_copied(stage: Stage) -> bool:
    """The copiers' group has committed the end of every partition."""
    try:
        ends = last_offsets(stage, partitions(PLAIN), 1)
        return _committed(stage, partitions(PLAIN)) == ends
    except KafkaException:
        return False


def _committed(stage: Stage, wanted: Sequence[TopicPartition]) -> dict[str, int]:
    consumer = Consumer(stage.config(group_id=COPIERS))
    try:
        return {key_of(each): max(each.offset, 0) for each in consumer.committed(list(wanted), timeout=CALL_TIMEOUT_S)}
    finally:
        consumer.close()
