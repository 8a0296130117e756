"""A transactional producer that goes on for as long as a test wants; every fifth transaction is aborted."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException, Producer

from compat_tests.brokers import Bootstrap
from compat_tests.steady_producers import read_numbers

CALL_TIMEOUT_S = 30.0
_LAST_ONE_S = 180.0


class SteadyTransactions:
    """Each transaction writes its number to every partition. The same producer for all of them, unless it is told that
    it is done for; then what became of its last one is not known, and another takes its place.
    """

    def __init__(self, broker: Bootstrap, topic: str, partitions: int, transactional_id: str) -> None:
        self.committed: set[int] = set()
        self.aborted: set[int] = set()
        self.unknown: set[int] = set()
        self._broker, self._topic, self._partitions = broker, topic, partitions
        self._id = transactional_id
        self._failure: BaseException | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        self._stopping.set()
        self._thread.join(_LAST_ONE_S)
        assert not self._thread.is_alive(), "the transactional producer does not end"
        assert self._failure is None, repr(self._failure)

    def assert_whole(self) -> None:
        """All of what was committed is to be read, once, and nothing of what was aborted."""
        found = read_numbers(self._broker, self._topic, self._partitions, "read_committed")
        read = [{number for number, at, _ in found if at == partition} for partition in range(self._partitions)]
        assert len(found) == sum(map(len, read)), "something is stored twice"
        assert all(each == read[0] for each in read), "a transaction is torn"
        assert self.committed <= read[0], f"lost: {sorted(self.committed - read[0])}"
        assert read[0] <= self.committed | self.unknown, f"not committed: {sorted(read[0] - self.committed)}"

    def _run(self) -> None:
        numbers = itertools.count()
        try:
            while not self._stopping.is_set():
                with suppress(KafkaException):
                    self._live(numbers)
        except BaseException as failure:
            self._failure = failure

    def _live(self, numbers: itertools.count[int]) -> None:
        """Raises KafkaException when this producer can't go on."""
        producer = Producer(
            {
                "bootstrap.servers": self._broker.bootstrap,
                "transactional.id": self._id,
                "transaction.timeout.ms": 60_000,
                "linger.ms": 0,
                "reconnect.backoff.max.ms": 500,
                "metadata.recovery.strategy": "none",
                "log_level": 0,
            }
        )
        _retrying(lambda: producer.init_transactions(CALL_TIMEOUT_S))
        while not self._stopping.is_set():
            self._transaction(producer, next(numbers))
            self._stopping.wait(0.02)

    def _transaction(self, producer: Producer, number: int) -> None:
        self.unknown.add(number)
        producer.begin_transaction()
        try:
            for partition in range(self._partitions):
                producer.produce(self._topic, b"%d" % number, partition=partition)
            if number % 5 != 4:
                _retrying(lambda: producer.commit_transaction(CALL_TIMEOUT_S))
                self.committed.add(number)
                self.unknown.remove(number)
                return
        except KafkaException as failed:
            if not failed.args[0].txn_requires_abort():
                raise
        _retrying(lambda: producer.abort_transaction(CALL_TIMEOUT_S))
        self.aborted.add(number)
        self.unknown.remove(number)


def _retrying(call: Callable[[], object]) -> None:
    """Raises KafkaException where that is of no use."""
    while True:
        try:
            call()
        except KafkaException as failed:
            error = failed.args[0]
            if not isinstance(error, KafkaError) or not error.retriable():
                raise
        else:
            return
