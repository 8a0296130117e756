"""Compaction: how fast a gigabyte with a tenth of it alive is cleaned, and what producers feel of it."""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from benchmarks.bench import Bench, Figures
from compat_tests.latency_probe import LatencyProbe

TOPIC = "keyed"
PROBE_TOPIC = "probe"
VERSIONS_PER_KEY = 10
RECORD_BYTES = 1000
SEGMENTS = 10
IDLE_S = 10.0
DEADLINE_S = 300.0
CHECKPOINT = "cleaner-offset-checkpoint"

PROPERTIES = {"log.cleaner.backoff.ms": "100"}
"""The cleaner looks for work ten times a second instead of each 15 s: its sleep is not what is measured."""


def compaction(bench: Bench) -> Figures:
    """1,000,000 records of 1 kB, ten of each key, one partition; MB/s of what is cleaned, and p99 of produce requests
    to another topic before and meanwhile.
    """
    records = bench.count(1_000_000)
    bench.create_topic(TOPIC, 1, {"segment.bytes": str(records * RECORD_BYTES // SEGMENTS)})
    bench.create_topic(PROBE_TOPIC, 1)
    _write(bench, records)
    directory = bench.broker.data_directory
    *inactive, active = sorted((directory / f"{TOPIC}-0").glob("*.log"))
    cleaned_bytes = sum(path.stat().st_size for path in inactive)
    with LatencyProbe(bench.broker, PROBE_TOPIC) as probe:
        time.sleep(1)  # the probe's own start is not measured
        idle_from = time.monotonic()
        time.sleep(IDLE_S)
        cleaning_from = time.monotonic()
        figures = bench.with_cpu(lambda: _clean(bench, int(active.stem), cleaned_bytes))
        cleaning_to = time.monotonic()
        idle_ms = probe.p99_ms(idle_from, cleaning_from)
        busy_ms = probe.p99_ms(cleaning_from, cleaning_to)
    return {**figures, "p99 ms idle": idle_ms, "p99 ms": busy_ms, "p99 cleaning / idle": busy_ms / idle_ms}


def _write(bench: Bench, records: int) -> None:
    keys = records // VERSIONS_PER_KEY
    producer = Producer({"bootstrap.servers": bench.broker.bootstrap, "linger.ms": 20, "batch.size": 131072})
    padding = bytes(RECORD_BYTES - 10)
    for number in range(records):
        value = b"%010d" % number + padding
        while True:
            try:
                producer.produce(TOPIC, value, b"key-%09d" % (number % keys))
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(60) == 0


def _clean(bench: Bench, until_offset: int, size: int) -> Figures:
    """From the change of the topic's policy to the checkpoint that says that its full segments are clean."""
    admin = AdminClient({"bootstrap.servers": bench.broker.bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, TOPIC)
    for name, value in (("min.cleanable.dirty.ratio", "0.01"), ("cleanup.policy", "compact")):
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource.add_incremental_config(entry)
    started = time.perf_counter()
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)
    while _cleaned_offset(bench.broker.data_directory / CHECKPOINT) < until_offset:
        assert time.perf_counter() - started < DEADLINE_S, f"nothing was cleaned within {DEADLINE_S:g} s"
        time.sleep(0.02)
    return {"MB/s": size / (time.perf_counter() - started) / 2**20}


def _cleaned_offset(checkpoint: Path) -> int:
    lines = checkpoint.read_text().splitlines() if checkpoint.exists() else []
    offsets = [int(line.split()[2]) for line in lines[2:] if line.startswith(f"{TOPIC} 0 ")]
    return offsets[0] if offsets else -1
