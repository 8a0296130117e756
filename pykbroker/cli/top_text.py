"""A look at a cluster as plain lines for pipes, and as JSON for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from .listing import printable
from .output import Column, plain_table
from .top_rates import ClusterView, GroupRow
from .top_requests import RequestView

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One look with what is known beside it. failure: why the cluster could not be seen this time."""

    at: datetime
    view: ClusterView
    requests: RequestView
    failure: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def problems(self) -> list[str]:
        """A line for each thing that is not as it should be, or not known, without control characters."""
        view = self.view
        lines = [] if self.failure is None else [self.failure]
        if view.down:
            lines.append(f"brokers that are down: {', '.join(map(str, view.down))}")
        lines += [f"broker {each.node_id}: {each.problem}" for each in view.brokers if each.problem is not None]
        lines += [f"log dir {each.path} of broker {each.node_id}: {each.error}" for each in view.log_dirs if each.error]
        return [printable(line) for line in (*lines, *self.notes, *view.missing, *self.requests.problems)]

    def headline(self) -> str:
        view = self.view
        controller = "unknown" if view.controller_id is None else str(view.controller_id)
        return (
            f"cluster {printable(view.cluster_id or 'unknown')}, controller {controller}, "
            f"{counted(len(view.brokers), 'broker')}, {counted(len(view.topics), 'topic')}, "
            f"{counted(view.partitions, 'partition')}, {view.under_replicated} under-replicated, {view.offline} offline"
        )

    def as_json(self) -> dict[str, object]:
        view = self.view
        return {
            "at": self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "cluster_id": view.cluster_id,
            "controller_id": view.controller_id,
            "interval_s": _rounded(view.interval_s),
            "took_s": _rounded(view.took_s),
            "records_per_s": _rounded(view.records_per_s),
            "bytes_per_s": _rounded(view.bytes_per_s),
            "partitions": view.partitions,
            "under_replicated": view.under_replicated,
            "offline": view.offline,
            "topics": [_plain(each) for each in view.topics],
            "groups": [_plain(each) for each in view.groups],
            "brokers": [_plain(each) for each in view.brokers],
            "log_dirs": [_plain(each) for each in view.log_dirs],
            "requests": [_plain(each) for each in self.requests.rows],
            "problems": self.problems,
        }

    def lines(self) -> list[str]:
        """Sections with tables, an empty line between them."""
        view = self.view
        at = self.at.isoformat(timespec="seconds").replace("+00:00", "Z")
        totals = f"{rate_text(view.records_per_s)} records/s, {bytes_text(view.bytes_per_s)}/s"
        lines = [f"{at} {self.headline()}, {totals}", *self.problems]
        for columns, rows in self._tables():
            if rows:
                lines += ["", *plain_table(columns, rows)]
        return lines

    def _tables(self) -> list[tuple[list[Column], list[list[str]]]]:
        return [
            (_columns("TOPIC PARTITIONS RECORDS/S BYTES/S SIZE UNDER-REPLICATED OFFLINE"), topic_cells(self.view)),
            (_columns("GROUP TYPE STATE LAG CONSUMED/S"), group_cells(self.view.groups)),
            (_columns("BROKER ADDRESS LEADERS ROLE"), broker_cells(self.view)),
            (_columns("BROKER LOG-DIR USED FREE TOTAL"), log_dir_cells(self.view)),
            (_columns("REQUEST PER-S P50-MS P99-MS"), request_cells(self.requests)),
        ]


def topic_cells(view: ClusterView) -> list[list[str]]:
    return [
        [
            printable(each.name),
            str(each.partitions),
            rate_text(each.records_per_s),
            bytes_text(each.bytes_per_s),
            bytes_text(each.size_bytes),
            str(each.under_replicated),
            str(each.offline),
        ]
        for each in view.topics
    ]


def group_cells(groups: Sequence[GroupRow]) -> list[list[str]]:
    return [
        [
            printable(each.name) or '""',
            printable(each.kind) or "-",
            printable(each.state) or "-",
            lag_text(each),
            rate_text(each.consumed_per_s),
        ]
        for each in groups
    ]


def broker_cells(view: ClusterView) -> list[list[str]]:
    return [
        [
            str(each.node_id),
            printable(each.address),
            str(each.leaders),
            "unreachable" if each.problem else "controller" if each.is_controller else "-",
        ]
        for each in view.brokers
    ]


def log_dir_cells(view: ClusterView) -> list[list[str]]:
    return [
        [
            str(each.node_id),
            printable(each.path),
            bytes_text(each.used_bytes),
            bytes_text(each.usable_bytes),
            bytes_text(each.total_bytes),
        ]
        for each in view.log_dirs
    ]


def request_cells(requests: RequestView) -> list[list[str]]:
    return [
        [printable(each.api), rate_text(each.per_s), _ms_text(each.p50_ms), _ms_text(each.p99_ms)]
        for each in requests.rows
    ]


def lag_text(group: GroupRow) -> str:
    """The lag as text, with `>=` where some ends are not known."""
    if group.lag is None:
        return "-"
    return f">={group.lag}" if group.is_partial else str(group.lag)


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def rate_text(per_s: float | None) -> str:
    if per_s is None:
        return "-"
    return f"{per_s:.1f}" if per_s < 100 else f"{per_s:.0f}"


def bytes_text(count: float | None) -> str:
    """A size in three digits, in powers of a thousand."""
    if count is None:
        return "-"
    value, unit = float(count), _UNITS[0]
    for unit in _UNITS:
        if abs(value) < 999.5 or unit == _UNITS[-1]:
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" or value >= 99.95 else f"{value:.1f} {unit}"


def _ms_text(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _columns(titles: str) -> list[Column]:
    return [Column(title, 9) for title in titles.split()]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _plain(row: object) -> dict[str, object]:
    fields = asdict(row)  # type: ignore[call-overload]
    return {name: _rounded(value) if isinstance(value, float) else value for name, value in fields.items()}


def now_utc() -> datetime:
    return datetime.now(UTC)
