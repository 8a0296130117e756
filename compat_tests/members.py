"""Members of groups that live as long as a test wants them to."""

import threading
from typing import Any

from confluent_kafka import Consumer

from .brokers import Bootstrap
from .waiting import DEADLINE_S


class Member:
    """A librdkafka consumer polling on a thread of its own, so that several can rebalance at once."""

    def __init__(self, broker: Bootstrap, group: str, topic: str, **config: Any) -> None:
        settings = {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 1000,
        }
        if config.get("group_protocol") != "consumer":
            # By the consumer protocol the broker says how long and how often.
            settings |= {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 500}
        self.values: list[bytes] = []
        self.errors: list[Any] = []
        self.assigned: set[int] = set()
        self._consumer = Consumer(settings | {key.replace("_", "."): value for key, value in config.items()})
        self._consumer.subscribe([topic], on_assign=self._assign, on_revoke=self._revoke, on_lost=self._revoke)
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def _assign(self, _: Any, partitions: list[Any]) -> None:
        """All of them by the eager protocol, the added ones by the cooperative one."""
        self.assigned = self.assigned | {each.partition for each in partitions}

    def _revoke(self, _: Any, partitions: list[Any]) -> None:
        self.assigned = self.assigned - {each.partition for each in partitions}

    def leave(self) -> None:
        self._leaving.set()
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive(), "the member did not leave"

    def _poll(self) -> None:
        while not self._leaving.is_set():
            message = self._consumer.poll(0.1)
            if message is None:
                continue
            if message.error() is not None:
                self.errors.append(message.error())
            else:
                self.values.append(message.value())
        self._consumer.close()
