"""Copies a topic to another one in transactions, with confluent-kafka: consume, produce, send the offsets, commit.

`python -m compat_tests.exactly_once.copier BOOTSTRAP INPUT OUTPUT NAME`, until it is killed. Every record goes to the
partition it came from. What a transaction cannot recover from ends the process with exit code 1: whoever runs it starts
it again. NAME is group and transactional id.
"""

import sys
from collections.abc import Callable, Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

TRANSACTION_RECORDS = 200
CALL_TIMEOUT_S = 30.0


class Copier:
    def __init__(self, bootstrap: str, source: str, target: str, name: str) -> None:
        # Bootstrapping anew when every broker is down leaves librdkafka with a coordinator that it waits for for ever.
        common = {
            "bootstrap.servers": bootstrap,
            "reconnect.backoff.max.ms": 500,
            "metadata.recovery.strategy": "none",
        }
        self._consumer = Consumer(
            common
            | {
                "group.id": name,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6_000,
            }
        )
        self._producer = Producer(common | {"transactional.id": name, "transaction.timeout.ms": 60_000, "linger.ms": 1})
        self._source, self._target = source, target

    def run(self) -> None:
        """Raises KafkaException."""
        self._producer.init_transactions(CALL_TIMEOUT_S)
        self._consumer.subscribe([self._source])
        while True:
            messages = self._consumer.consume(TRANSACTION_RECORDS, timeout=0.5)
            records = [message for message in messages if message.error() is None]
            if records:
                self._copy(records)

    def _copy(self, records: Sequence[Message]) -> None:
        self._producer.begin_transaction()
        try:
            for record in records:
                self._producer.produce(self._target, record.value(), record.key(), partition=record.partition() or 0)
            positions = self._consumer.position(self._consumer.assignment())
            read = [each for each in positions if each.offset >= 0]
            metadata = self._consumer.consumer_group_metadata()
            self._retrying(lambda: self._producer.send_offsets_to_transaction(read, metadata, CALL_TIMEOUT_S))
            self._retrying(lambda: self._producer.commit_transaction(CALL_TIMEOUT_S))
        except KafkaException as failed:
            error = failed.args[0]
            if not isinstance(error, KafkaError) or not error.txn_requires_abort():
                raise
            self._retrying(lambda: self._producer.abort_transaction(CALL_TIMEOUT_S))
            self._rewind()

    def _retrying(self, call: Callable[[], None]) -> None:
        while True:
            try:
                return call()
            except KafkaException as failed:
                error = failed.args[0]
                if not isinstance(error, KafkaError) or not error.retriable():
                    raise

    def _rewind(self) -> None:
        """To what is committed: the aborted transaction's records are to be read again."""
        for each in self._consumer.committed(self._consumer.assignment(), CALL_TIMEOUT_S):
            offset = each.offset if each.offset >= 0 else OFFSET_BEGINNING
            self._consumer.seek(TopicPartition(each.topic, each.partition, offset))


def main() -> None:
    try:
        Copier(*sys.argv[1:5]).run()
    except KafkaException as failed:
        sys.exit(f"the copier gives up: {failed}")


if __name__ == "__main__":
    main()
