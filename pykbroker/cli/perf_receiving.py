"""The counts of a consumer's measurement, and the lines and JSON that tell them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import perf_counter
from typing import Final

from pykbroker.client.fetched import ConsumedRecord

from .output import Column
from .perf_dates import date_text
from .perf_sending import MEGABYTE

_FIGURES: Final = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
TOTAL_HEADER: Final = f"start.time, end.time, {_FIGURES}"
SHARE_HEADER: Final = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, fetch.time.ms"
)
WINDOW_HEADER: Final = f"time, threadId, {_FIGURES}"
RATE_COLUMNS: Final = tuple(Column(title, 9, right=True) for title in ("RECORDS", "RECORDS/S", "MB", "MB/S"))


@dataclass(slots=True)
class ReceiveMeter:
    """Counts records and the bytes of their keys and values. rebalancing_s: the time without an assignment."""

    date_pattern: str
    records: int = 0
    size_bytes: int = 0
    rebalancing_s: float = 0.0
    is_started: bool = False
    began: datetime = field(default_factory=datetime.now)
    _began_s: float = field(default_factory=perf_counter)
    _ended_s: float | None = None
    _window: tuple[float, int, int, float] = (0.0, 0, 0, 0.0)
    """When the window began, and what had been counted by then."""

    def start(self) -> None:
        self.is_started = True
        self.began = datetime.now()
        self._began_s = perf_counter()
        self._window = (self._began_s, 0, 0, 0.0)

    def stop(self) -> None:
        """End the time of the run, unless it has ended."""
        if self._ended_s is None:
            self._ended_s = perf_counter()

    def add(self, records: list[ConsumedRecord]) -> None:
        self.records += len(records)
        self.size_bytes += sum(len(each.key or b"") + len(each.value or b"") for each in records)

    @property
    def elapsed_s(self) -> float:
        return max((perf_counter() if self._ended_s is None else self._ended_s) - self._began_s, 1e-9)

    @property
    def megabytes(self) -> float:
        return self.size_bytes / MEGABYTE

    def total_line(self) -> str:
        """The line at the end, as Kafka's tool has it."""
        end = self.began + timedelta(seconds=self.elapsed_s)
        megabytes, records = self.megabytes, self.records
        figures = _figures(megabytes, megabytes, records, records, self.elapsed_s, self.rebalancing_s)
        return f"{date_text(self.began, self.date_pattern)}, {date_text(end, self.date_pattern)}, {figures}"

    def window_line(self) -> str:
        """The line on the way, as Kafka's tool has it: sums, and the rates since the last line."""
        began_s, records, size_bytes, rebalancing_s = self._window
        now = perf_counter()
        self._window = (now, self.records, self.size_bytes, self.rebalancing_s)
        figures = _figures(
            self.megabytes,
            (self.size_bytes - size_bytes) / MEGABYTE,
            self.records,
            self.records - records,
            now - began_s,
            self.rebalancing_s - rebalancing_s,
        )
        return f"{date_text(datetime.now(), self.date_pattern)}, 0, {figures}"

    def share_total_line(self) -> str:
        """The line at the end, as Kafka's tool for share consumers has it."""
        return self._share_line(self.began, self.elapsed_s, self.megabytes, self.records)

    def share_window_line(self) -> str:
        """The line on the way, as Kafka's tool for share consumers has it: sums, and the rates since the last line."""
        began_s, records, size_bytes, _ = self._window
        now = perf_counter()
        self._window = (now, self.records, self.size_bytes, 0.0)
        elapsed_s = max(now - began_s, 1e-9)
        began = datetime.now() - timedelta(seconds=elapsed_s)
        return self._share_line(began, elapsed_s, (self.size_bytes - size_bytes) / MEGABYTE, self.records - records)

    def _share_line(self, began: datetime, elapsed_s: float, new_megabytes: float, new_records: int) -> str:
        end = began + timedelta(seconds=elapsed_s)
        return (
            f"{date_text(began, self.date_pattern)}, {date_text(end, self.date_pattern)}, {self.megabytes:.4f}, "
            f"{new_megabytes / elapsed_s:.4f}, {new_records / elapsed_s:.4f}, {self.records}, {elapsed_s * 1000:.0f}"
        )

    def rate_cells(self) -> tuple[str, ...]:
        """The cells of `RATE_COLUMNS`."""
        figures = self.as_json()
        return (
            f"{self.records:,}",
            f"{figures['records_per_s']:,.0f}",
            f"{self.megabytes:,.2f}",
            f"{figures['mb_per_s']:,.2f}",
        )

    def as_json(self) -> dict[str, float]:
        fetching_s = max(self.elapsed_s - self.rebalancing_s, 1e-9)
        return {
            "records": self.records,
            "bytes": self.size_bytes,
            "elapsed_s": round(self.elapsed_s, 6),
            "records_per_s": round(self.records / self.elapsed_s, 3),
            "mb_per_s": round(self.megabytes / self.elapsed_s, 6),
            "rebalance_s": round(self.rebalancing_s, 6),
            "fetch_records_per_s": round(self.records / fetching_s, 3),
            "fetch_mb_per_s": round(self.megabytes / fetching_s, 6),
        }


def _figures(
    megabytes: float, new_megabytes: float, records: int, new_records: int, elapsed_s: float, rebalancing_s: float
) -> str:
    elapsed_s = max(elapsed_s, 1e-9)
    fetching_s = elapsed_s - rebalancing_s
    per_fetching_s = 1 / fetching_s if fetching_s > 0 else 0.0
    return (
        f"{megabytes:.4f}, {new_megabytes / elapsed_s:.4f}, {records}, {new_records / elapsed_s:.4f}, "
        f"{rebalancing_s * 1000:.0f}, {max(fetching_s, 0) * 1000:.0f}, "
        f"{new_megabytes * per_fetching_s:.4f}, {new_records * per_fetching_s:.4f}"
    )
