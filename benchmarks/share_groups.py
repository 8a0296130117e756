"""Share groups: how fast four consumers read a topic together, and how long an acknowledgement takes (KIP-932)."""

from __future__ import annotations

import re
from pathlib import Path
from uuid import uuid4

from benchmarks.bench import PARTITIONS, Bench, Figures, Measure
from benchmarks.java_tools import ToolFailed

TOPIC = "shared"
RECORDS = 1_000_000
RECORD_BYTES = 1_000
CONSUMERS = 4
ACKNOWLEDGED = 40_000
AT_ONCE = 10
"""Records that a consumer takes and acknowledges at a time where the time of an acknowledgement is measured."""
_PROGRAM = Path(__file__).parent / "java" / "ShareAcknowledgements.java"


def read_together(bench: Bench) -> Figures:
    """4 consumers read 1 kB records, with acknowledgements in the background (Kafka's `ShareConsumerPerformance`)."""
    records = bench.count(RECORDS)
    bench.create_topic(TOPIC, PARTITIONS)
    bench.tools.produce(bench.broker.bootstrap, TOPIC, records, RECORD_BYTES, {"batch.size": "65536", "linger.ms": "5"})
    group = _new_group(bench)
    return bench.with_cpu(
        lambda: {"records/s": bench.tools.share_consume(bench.broker.bootstrap, TOPIC, group, records, CONSUMERS)}
    )


def acknowledge(bench: Bench) -> Figures:
    """4 consumers acknowledge ten records each, and wait for that."""
    group = _new_group(bench)
    arguments = (bench.broker.bootstrap, TOPIC, group, CONSUMERS, AT_ONCE, bench.count(ACKNOWLEDGED))
    return bench.with_cpu(lambda: _figures(bench.tools.run(str(_PROGRAM), *map(str, arguments))))


def _figures(output: str) -> Figures:
    found = re.search(r"([\d.]+) records/s, p50 ([\d.]+) ms, p99 ([\d.]+) ms", output)
    if not found:
        raise ToolFailed(f"ShareAcknowledgements printed no figures:\n{output}")
    rate, p50, p99 = map(float, found.groups())
    return {"records/s": rate, "p50 ms": p50, "p99 ms": p99}


def _new_group(bench: Bench) -> str:
    """A group that begins at the first record."""
    group = f"share-{uuid4()}"
    bench.tools.configure_group(bench.broker.bootstrap, group, {"share.auto.offset.reset": "earliest"})
    return group


SHARES: dict[str, Measure] = {"share group, 4 consumers": read_together, "share group, acknowledgements": acknowledge}
