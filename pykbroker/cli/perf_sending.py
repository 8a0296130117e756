"""The counts of a producer's measurement, and the lines and JSON that tell them."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Final

from pykbroker.client.batch import Delivery, ProducerBatch

from .output import Column
from .perf_histogram import ERROR, LatencyHistogram

MEGABYTE: Final = 1 << 20
"""The MB of Kafka's tools."""
PERCENTILES: Final = (50, 95, 99, 99.9)
SUMMARY_COLUMNS: Final = tuple(
    Column(title, 9, right=True)
    for title in ("RECORDS", "RECORDS/S", "MB/S", "AVG MS", *(f"P{each:g} MS" for each in PERCENTILES), "MAX MS")
)


@dataclass(slots=True)
class SendStats:
    """The records of one span of time that were acknowledged. began_ns: by `perf_counter_ns`."""

    began_ns: int
    size_bytes: int = 0
    latencies: LatencyHistogram = field(default_factory=LatencyHistogram)
    ended_ns: int | None = None

    @property
    def records(self) -> int:
        return self.latencies.count

    @property
    def elapsed_s(self) -> float:
        ended_ns = perf_counter_ns() if self.ended_ns is None else self.ended_ns
        return max((ended_ns - self.began_ns) / 1e9, 1e-9)

    @property
    def records_per_s(self) -> float:
        return self.records / self.elapsed_s

    @property
    def megabytes_per_s(self) -> float:
        return self.size_bytes / MEGABYTE / self.elapsed_s

    def add(self, latencies_us: list[int], size_bytes: int) -> None:
        self.latencies.add(latencies_us)
        self.size_bytes += size_bytes

    def window_line(self) -> str:
        """The line on the way, in the words of Kafka's tool."""
        return (
            f"{self.records} records sent, {self.records_per_s:.1f} records/sec ({self.megabytes_per_s:.2f} MB/sec), "
            f"{self.latencies.mean_ms:.1f} ms avg latency, {self.latencies.max_ms:.1f} ms max latency."
        )

    def total_line(self, what: str = "records") -> str:
        """The line at the end, in the words of Kafka's tool, which gives percentiles in whole milliseconds."""
        percentiles = ", ".join(f"{self.latencies.percentile_ms(each):.0f} ms {each:g}th" for each in PERCENTILES)
        return (
            f"{self.records} {what} sent, {self.records_per_s:f} records/sec ({self.megabytes_per_s:.2f} MB/sec), "
            f"{self.latencies.mean_ms:.2f} ms avg latency, {self.latencies.max_ms:.2f} ms max latency, {percentiles}."
        )

    def cells(self) -> list[str]:
        """A row of the table on a terminal."""
        latencies = [self.latencies.mean_ms, *map(self.latencies.percentile_ms, PERCENTILES), self.latencies.max_ms]
        return [
            f"{self.records:,}",
            f"{self.records_per_s:,.0f}",
            f"{self.megabytes_per_s:,.2f}",
            *(f"{each:,.2f}" for each in latencies),
        ]

    def as_json(self) -> dict[str, object]:
        return {
            "records": self.records,
            "bytes": self.size_bytes,
            "elapsed_s": round(self.elapsed_s, 6),
            "records_per_s": round(self.records_per_s, 3),
            "mb_per_s": round(self.megabytes_per_s, 6),
            "latency_ms": latencies_json(self.latencies),
        }


def latencies_json(latencies: LatencyHistogram) -> dict[str, float]:
    """Mean, percentiles and maximum, with the share by which a percentile may be too high."""
    return {
        "avg": round(latencies.mean_ms, 3),
        **{f"p{each:g}": latencies.percentile_ms(each) for each in PERCENTILES},
        "max": latencies.max_ms,
        "percentile_error": ERROR,
    }


class SendMeter:
    """Counts of the records of a producer, from `send` to their acknowledgement.

    Only records that are under way are kept. The producer's `on_done` is `batch_done`.
    """

    def __init__(self, warmup_records: int) -> None:
        self.total = SendStats(perf_counter_ns())
        self.window = SendStats(perf_counter_ns())
        self.steady: SendStats | None = None
        self.is_started = False
        self.failed = 0
        self._warmup_records = self._warmup_records_left = warmup_records
        self._under_way: dict[ProducerBatch, _UnderWay] = {}

    def start(self) -> None:
        """Begin the time of the run and of the first window."""
        self.is_started = True
        self.total.began_ns = self.window.began_ns = perf_counter_ns()

    def stop(self) -> None:
        """End the time of the run, unless it has ended."""
        now_ns = perf_counter_ns()
        for each in (self.total, self.steady):
            if each is not None and each.ended_ns is None:
                each.ended_ns = now_ns

    def next_window(self) -> SendStats:
        """Return the window that ends now, and begin another."""
        ended, self.window = self.window, SendStats(perf_counter_ns())
        ended.ended_ns = self.window.began_ns
        return ended

    def sent_at(self, began_ns: int, delivery: Delivery, size_bytes: int) -> None:
        """Count a record that the producer has taken; with acks=0 it may be done by now."""
        batch = delivery.batch
        under_way = self._under_way.get(batch)
        if under_way is None:
            under_way = self._under_way[batch] = _UnderWay()
        under_way.began_ns.append(began_ns)
        under_way.size_bytes += size_bytes
        if self._warmup_records_left > 0:
            self._warmup_records_left -= 1
            under_way.warmup_records += 1
            under_way.warmup_bytes += size_bytes
        elif self._warmup_records and self.steady is None:
            self.steady = SendStats(began_ns)
        if batch.done.is_set():
            self.batch_done(batch)

    def batch_done(self, batch: ProducerBatch) -> None:
        under_way = self._under_way.pop(batch, None)
        if under_way is None:
            return
        if batch.error is not None:
            self.failed += len(under_way.began_ns)
            return
        now_ns = perf_counter_ns()
        latencies_us = [(now_ns - began_ns) // 1000 for began_ns in under_way.began_ns]
        if self.steady is not None:
            first = under_way.warmup_records
            self.steady.add(latencies_us[first:], under_way.size_bytes - under_way.warmup_bytes)
        self.total.add(latencies_us, under_way.size_bytes)
        self.window.add(latencies_us, under_way.size_bytes)


@dataclass(slots=True)
class _UnderWay:
    """The records of one batch; the first ones may belong to the warm-up."""

    began_ns: list[int] = field(default_factory=list)
    size_bytes: int = 0
    warmup_records: int = 0
    warmup_bytes: int = 0
