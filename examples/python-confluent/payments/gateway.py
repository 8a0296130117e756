"""The way in: payments are written in order, once, to the partition of their account."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from .models import Payment
from .settings import Settings


class Gateway:
    def __init__(self, settings: Settings) -> None:
        self._topic = settings.payments
        self._producer = Producer(
            {
                "bootstrap.servers": settings.bootstrap_servers,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "linger.ms": 2,
            }
        )
        self._failed: list[KafkaError] = []

    def submit(self, *payments: Payment) -> None:
        """Return when all are acknowledged. Raises InvalidPayment before any is written, and KafkaException."""
        for payment in payments:
            payment.ensure_valid()
        for payment in payments:
            self._producer.produce(
                self._topic, payment.to_bytes(), payment.account.encode(), on_delivery=self._on_delivery
            )
        self._producer.flush()
        if self._failed:
            failed, self._failed = self._failed, []
            raise KafkaException(failed[0])

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed.append(error)
