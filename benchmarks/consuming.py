"""Reading a topic with librdkafka, and putting a topic's files out of the page cache."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from benchmarks.bench import PARTITIONS

IDLE_LIMIT_S = 60.0


def new_consumer(bootstrap: str, **config: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **{key.replace("_", "."): value for key, value in config.items()},
        }
    )


def partitions_of(topic: str, offset: int = 0) -> list[TopicPartition]:
    return [TopicPartition(topic, index, offset) for index in range(PARTITIONS)]


def end_offsets(consumer: Consumer, topic: str) -> list[int]:
    return [consumer.get_watermark_offsets(partition, timeout=30)[1] for partition in partitions_of(topic)]


def consume(
    bootstrap: str, topic: str, *, records: int | None = None, config: Mapping[str, str] | None = None
) -> float:
    """Reads so many records, or all there are; returns MB/s of record values (1 MB = 2**20 bytes), from the first
    record on. config: of librdkafka, where a connection needs more than an address.
    """
    own = {"fetch.message.max.bytes": 8 << 20, "queued.max.messages.kbytes": 256 << 10}
    consumer = new_consumer(bootstrap, **own, **(config or {}))
    try:
        remaining = sum(end_offsets(consumer, topic)) if records is None else records
        assert remaining, f"{topic} is empty"
        consumer.assign(partitions_of(topic))
        started = 0.0
        size = 0
        while remaining > 0:
            messages = consumer.consume(min(remaining, 10_000) if started else 1, timeout=IDLE_LIMIT_S)
            if not messages:
                raise TimeoutError(f"{remaining} records of {topic} did not come within {IDLE_LIMIT_S:g} s")
            remaining -= len(messages)
            if started:
                size += sum(len(message) for message in messages)
            else:
                started = time.perf_counter()
        return size / (time.perf_counter() - started) / 2**20
    finally:
        consumer.close()


def evict(data_directory: Path, topic: str) -> None:
    """The next read of the topic's files comes from the disk."""
    for path in sorted(data_directory.glob(f"{topic}-*/*")):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # dirty pages are not dropped
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
