"""One consumer in a process of its own, so that it can be killed: `python -m compat_tests.member_program CLIENT …`.

It writes what happens to it as lines of JSON, each with the wall clock's milliseconds, and leaves its group on SIGTERM.
`member_processes` starts it and reads it.
"""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

POLL_S = 0.2
KAFKA_PYTHON_POLL_MS = 5_000
"""Not shorter, for the reason of `clients.MEMBER_POLL_MS`; not longer, since the member leaves after it."""
SESSION_TIMEOUT_MS = 6_000
HEARTBEAT_INTERVAL_MS = 500

_is_leaving = False


def main() -> None:
    client, bootstrap, group, topic = sys.argv[1:]
    signal.signal(signal.SIGTERM, _leave)
    CLIENTS[client](bootstrap, group, topic)


def _leave(*_: Any) -> None:
    global _is_leaving
    _is_leaving = True


def tell(event: str, partitions: Iterable[int] = (), **fields: Any) -> None:
    line = {"event": event, "at_ms": int(time.time() * 1000), "partitions": sorted(partitions), **fields}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def tell_record(partition: int, offset: int) -> None:
    tell("read", [partition], offset=offset)


def librdkafka(protocol: str) -> Callable[[str, str, str], None]:
    def run(bootstrap: str, group: str, topic: str) -> None:
        from confluent_kafka import Consumer

        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 1000,
        }
        if protocol == "classic":
            settings["session.timeout.ms"] = SESSION_TIMEOUT_MS
            settings["heartbeat.interval.ms"] = HEARTBEAT_INTERVAL_MS
            settings["partition.assignment.strategy"] = "range"
        consumer = Consumer(settings)

        def revoked(_: Any, partitions: list[Any]) -> None:
            tell("revoked", [each.partition for each in partitions])

        consumer.subscribe(
            [topic],
            on_assign=lambda _, partitions: tell("assigned", [each.partition for each in partitions]),
            on_revoke=revoked,
            on_lost=revoked,
        )
        while not _is_leaving:
            message = consumer.poll(POLL_S)
            if message is not None and message.error() is None:
                tell_record(message.partition(), message.offset())
        consumer.close()

    return run


def kafka_python(bootstrap: str, group: str, topic: str) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            tell("revoked", [each.partition for each in revoked])

        def on_partitions_assigned(self, assigned: Any) -> None:
            tell("assigned", [each.partition for each in assigned])

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    consumer.subscribe([topic], listener=Listener())
    while not _is_leaving:
        for records in consumer.poll(KAFKA_PYTHON_POLL_MS).values():
            for record in records:
                tell_record(record.partition, record.offset)
    consumer.close()


def aio(bootstrap: str, group: str, topic: str) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            tell("revoked", [each.partition for each in revoked])

        def on_partitions_assigned(self, assigned: Any) -> None:
            tell("assigned", [each.partition for each in assigned])

    async def read() -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        consumer.subscribe([topic], listener=Listener())
        async with consumer:
            while not _is_leaving:
                for records in (await consumer.getmany(timeout_ms=int(POLL_S * 1000))).values():
                    for record in records:
                        tell_record(record.partition, record.offset)

    asyncio.run(read())


CLIENTS: dict[str, Callable[[str, str, str], None]] = {
    "librdkafka-classic": librdkafka("classic"),
    "librdkafka-consumer": librdkafka("consumer"),
    "kafka-python": kafka_python,
    "aiokafka": aio,
}

if __name__ == "__main__":
    main()
