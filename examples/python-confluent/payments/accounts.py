"""The accounts of the partitions that an instance has, as a compacted topic keeps them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from .models import Account
from .settings import Settings

TIMEOUT_S = 30.0


class Accounts:
    """The accounts by partition; changes are pending until their transaction has ended."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._committed: dict[int, dict[str, Account]] = {}
        self._pending: dict[tuple[int, str], Account] = {}

    def partitions(self) -> list[int]:
        return sorted(self._committed)

    def get(self, partition: int, name: str) -> Account:
        return self._pending.get((partition, name)) or self._committed[partition].get(name) or Account()

    def put(self, partition: int, name: str, account: Account) -> None:
        self._pending[partition, name] = account

    def pending(self) -> list[tuple[int, str, Account]]:
        return [(partition, name, account) for (partition, name), account in self._pending.items()]

    def commit(self) -> None:
        for partition, name, account in self.pending():
            self._committed[partition][name] = account
        self._pending.clear()

    def abort(self) -> None:
        self._pending.clear()

    def forget(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            self._committed.pop(partition, None)

    def load(self, partitions: Iterable[int]) -> None:
        """Read the partitions from their beginning to what is committed now."""
        loaded: dict[int, dict[str, Account]] = {partition: {} for partition in partitions}
        consumer = Consumer(
            {
                "bootstrap.servers": self._settings.bootstrap_servers,
                "group.id": f"{self._settings.group}-load-{uuid.uuid4().hex}",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 20,
            }
        )
        try:
            consumer.assign([TopicPartition(self._settings.accounts, partition, 0) for partition in loaded])
            unread, deadline = set(loaded), time.monotonic() + TIMEOUT_S
            while unread:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the accounts of partitions {sorted(unread)} are not read in {TIMEOUT_S} s")
                message = consumer.poll(1.0)
                if message is None:
                    continue
                if message.error() is None:
                    _apply(loaded[message.partition()], message.key().decode(), message.value())
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    unread.discard(message.partition())
                else:
                    raise KafkaException(message.error())
        finally:
            consumer.close()
        self._committed.update(loaded)


def _apply(accounts: dict[str, Account], name: str, value: bytes | None) -> None:
    if value is None:
        accounts.pop(name, None)
    else:
        accounts[name] = Account.from_bytes(value)
