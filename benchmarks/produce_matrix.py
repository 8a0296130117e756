"""Producing with the Java client: record sizes, codecs and acknowledgements, each with each."""

from __future__ import annotations

from itertools import product

from benchmarks.bench import PARTITIONS, Bench, Figures, Measure

SIZES = {"100 B": (100, 1_500_000), "1 kB": (1_000, 500_000), "10 kB": (10_000, 80_000)}
"""Bytes of a record, and how many make some seconds' work."""
CODECS = ("none", "lz4", "zstd")
ACKS = ("1", "all")


def _cell(size: int, records: int, codec: str, acks: str) -> Measure:
    def measure(bench: Bench) -> Figures:
        topic = f"matrix-{size}-{codec}-{acks}"
        bench.create_topic(topic, PARTITIONS)
        config = {"acks": acks, "compression.type": codec}
        bootstrap = bench.broker.bootstrap
        figures = bench.with_cpu(
            lambda: {"MB/s": bench.tools.produce(bootstrap, topic, bench.count(records), size, config)}
        )
        bench.delete_topic(topic)
        return figures

    return measure


MATRIX: dict[str, Measure] = {
    f"produce {name}, {codec}, acks={acks}": _cell(size, records, codec, acks)
    for (name, (size, records)), codec, acks in product(SIZES.items(), CODECS, ACKS)
}
"""ProducerPerformance with the client's defaults but for codec and acks, 6 partitions."""
