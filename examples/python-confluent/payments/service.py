"""The service: consumes payments, and writes bookings, accounts and its own offsets in one transaction."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from .accounts import Accounts
from .models import InvalidPayment, Payment, booking
from .settings import Settings

TIMEOUT_S = 30.0
AFTER_FATAL = (KafkaError._FATAL, KafkaError._FENCED)
log = logging.getLogger(__name__)


class ProducerLost(Exception):
    """The producer cannot go on: as a rule, since another instance has its transactional id."""


class Service:
    """One instance. before_commit: called when a transaction has everything but its end."""

    def __init__(
        self, settings: Settings, instance: str = "0", before_commit: Callable[[], None] = lambda: None
    ) -> None:
        self._settings = settings
        self._before_commit = before_commit
        self._accounts = Accounts(settings)
        self._producer = Producer(
            {
                "bootstrap.servers": settings.bootstrap_servers,
                "transactional.id": settings.transactional_id(instance),
                "transaction.timeout.ms": settings.transaction_timeout_ms,
                "linger.ms": 2,
            }
        )
        self._consumer = Consumer(
            {
                "bootstrap.servers": settings.bootstrap_servers,
                "group.id": settings.group,
                "client.id": instance,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "session.timeout.ms": settings.session_timeout_ms,
                "heartbeat.interval.ms": settings.heartbeat_interval_ms,
            }
        )

    def partitions(self) -> list[int]:
        return self._accounts.partitions()

    def run(self, stop: threading.Event) -> None:
        """Book until `stop` is set. Raises ProducerLost."""
        try:
            self._producer.init_transactions(TIMEOUT_S)
            self._consumer.subscribe(
                [self._settings.payments], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
            )
            while not stop.is_set():
                messages = self._consumer.consume(self._settings.batch_size, self._settings.batch_wait_s)
                payments = [message for message in messages if message.error() is None]
                if payments:
                    self._book(payments)
        except KafkaException as error:
            reason = error.args[0]
            if reason.fatal() or reason.code() in AFTER_FATAL:
                raise ProducerLost(reason.str()) from error
            raise
        finally:
            self._consumer.close()

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Load the accounts, once no transaction of a former owner is open: `committed` waits for its end."""
        committed = consumer.committed(partitions, TIMEOUT_S)
        self._accounts.load(each.partition for each in partitions)
        consumer.assign(committed)

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._accounts.forget(each.partition for each in partitions)

    def _book(self, messages: list[Message]) -> None:
        self._producer.begin_transaction()
        try:
            for message in messages:
                self._book_one(message)
            for partition, name, account in self._accounts.pending():
                self._producer.produce(self._settings.accounts, account.to_bytes(), name.encode(), partition)
            self._producer.send_offsets_to_transaction(
                _next_offsets(messages), self._consumer.consumer_group_metadata(), TIMEOUT_S
            )
            self._producer.flush(TIMEOUT_S)  # the commit would do it; before_commit is promised that it is done
            self._before_commit()
            self._producer.commit_transaction(TIMEOUT_S)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            log.warning("a transaction is aborted: %s", error)
            self._abort(messages)
        except Exception as error:
            log.warning("a transaction is aborted: %r", error)
            self._abort(messages)
        else:
            self._accounts.commit()

    def _book_one(self, message: Message) -> None:
        partition = message.partition()
        try:
            payment = Payment.from_bytes(message.value())
        except InvalidPayment as error:
            origin = f"{message.topic()}/{partition}/{message.offset()}"
            headers = [("reason", str(error).encode()), ("origin", origin.encode())]
            self._producer.produce(self._settings.dead_letters, message.value(), message.key(), headers=headers)
            return
        account = self._accounts.get(partition, payment.account)
        if payment.id in account.booked:
            status = "duplicate"
        elif account.balance + payment.amount < 0:
            status = "declined"
        else:
            status, account = "booked", account.after(payment)
            self._accounts.put(partition, payment.account, account)
        value = booking(payment, status, account.balance)
        self._producer.produce(self._settings.bookings, value, payment.account.encode(), partition)

    def _abort(self, messages: list[Message]) -> None:
        """Take everything back, and read the same payments again."""
        self._producer.abort_transaction(TIMEOUT_S)
        self._accounts.abort()
        for message in reversed(messages):
            self._consumer.seek(TopicPartition(message.topic(), message.partition(), message.offset()))


def _next_offsets(messages: list[Message]) -> list[TopicPartition]:
    last = {(message.topic(), message.partition()): message.offset() for message in messages}
    return [TopicPartition(topic, partition, offset + 1) for (topic, partition), offset in last.items()]
