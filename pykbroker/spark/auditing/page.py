"""The result of an audit as one HTML page, which loads nothing from elsewhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from .report import AuditReport, Comparison, Difference, ReplayReport, TopicReport

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_PLOTTED_TOPICS = 50
_PLOTTED_PARTITIONS = 20
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #1c2430 }
table { border-collapse: collapse; margin: .5rem 0 1.5rem }
td, th { padding: .2rem .8rem; border-bottom: 1px solid #dde3ea }
td { text-align: right; font-variant-numeric: tabular-nums } td:first-child, th { text-align: left }
.bad { color: #b3261e } .good { color: #1b7f3b }
"""


def write_page(report: AuditReport, path: Path) -> None:
    path.write_text(page_of(report), encoding="utf-8")


def page_of(report: AuditReport) -> str:
    """The page, about 5 MB of it the library that draws the plots."""
    from plotly.offline import get_plotlyjs

    at = datetime.fromtimestamp(report.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    cluster = f", cluster {escape(report.cluster_id)}" if report.cluster_id else ""
    problems = report.problems
    verdict = (
        "".join(f'<li class="bad">{escape(line)}</li>' for line in problems)
        if problems
        else '<li class="good">Nothing that must not be</li>'
    )
    topics = "".join(_topic(topic, plotted=place < _PLOTTED_TOPICS) for place, topic in enumerate(report.topics))
    comparisons = "".join([*map(_comparison, report.comparisons), *map(_replay, report.replays)])
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Audit of topics</title>"
        f"<style>{_STYLE}</style><script>{get_plotlyjs()}</script></head><body>"
        f"<h1>Audit of topics</h1><p>{at}{cluster}</p><ul>{verdict}</ul>{comparisons}{topics}</body></html>"
    )


def _topic(topic: TopicReport, *, plotted: bool) -> str:
    partitions = _table(
        "Partition|Records|Bytes|First offset|Last offset|Missing|Twice|Null keys|Null values|Steps back|"
        "Longest step back|First|Last",
        (
            (
                each.partition, each.records, each.size_bytes, each.first_offset, each.last_offset,
                each.missing_offsets, each.duplicate_offsets, each.null_keys, each.null_values, each.backwards,
                f"{each.largest_step_back_ms} ms",
                _time(each.first_timestamp_ms), _time(each.last_timestamp_ms),
            )
            for each in topic.partitions
        ),
    )  # fmt: skip
    keys = topic.keys
    parts = [
        f"<h2>{escape(topic.name)}</h2><p>{escape(topic.origin)}: {topic.records:,} records, {topic.size_bytes:,} "
        f"bytes of keys and values; the fullest partition has {topic.skew:.2f} × the mean. {keys.distinct:,} keys, "
        f"{keys.in_several_partitions:,} of them in several partitions.</p>",
        _plots(topic) if plotted and topic.partitions else "",
        partitions,
        _titled("Largest records", "Partition|Offset|Bytes|Key",
                [(each.partition, each.offset, each.size_bytes, each.key) for each in topic.largest]),
        _titled("Heaviest keys", "Key|Partitions|Records|Bytes",
                [(each.key, each.partitions, each.records, each.size_bytes) for each in keys.heaviest]),
        _titled("Keys in several partitions", "Key|Partitions|Records",
                [(each.key, each.partitions, each.records) for each in keys.scattered]),
        _titled("Longest gaps", "Partition|From offset|To offset|Offsets",
                [(each.partition, each.first_offset, each.last_offset, each.last_offset - each.first_offset + 1)
                 for each in topic.gaps]),
        _titled("Open transactions", "Partition|Producer id|Epoch|From offset|Last record",
                [(each.partition, each.producer_id, each.producer_epoch, each.start_offset,
                  _time(each.last_timestamp_ms)) for each in topic.open_transactions]),
    ]  # fmt: skip
    return "".join(parts)


def _comparison(comparison: Comparison) -> str:
    verdict = '<b class="good">equal</b>' if comparison.equal else '<b class="bad">different</b>'
    newer = f", {comparison.newer_offsets:,} offsets are newer" if comparison.newer_offsets else ""
    rows = [
        ("all" if each.partition is None else each.partition, each.records, each.other_records, each.checksum,
         each.other_checksum)
        for each in comparison.partitions
    ]  # fmt: skip
    return (
        f"<h2>{escape(comparison.left)} beside {escape(comparison.right)}</h2><p>{verdict}{newer}</p>"
        + _table("Partition|Records|Records there|Checksum|Checksum there", rows)
        + _differences(comparison.differences)
    )


def _replay(replay: ReplayReport) -> str:
    good = replay.equal and not replay.problems
    verdict = '<b class="good">equal</b>' if good else '<b class="bad">different</b>'
    times = "" if replay.timestamps_compared else " The topic has timestamps of its own: they were not compared."
    rows = [
        (each.partition, each.records, each.replayed, each.twice, each.checksum, each.replayed_checksum)
        for each in replay.partitions
    ]
    return (
        f"<h2>{escape(replay.name)} at {escape(replay.origin)} beside {escape(replay.archived_topic)} in "
        f"{escape(replay.archive)}</h2><p>{verdict}; {replay.steps_back:,} steps back, {replay.other_records:,} "
        f"records from elsewhere.{times}</p>"
        + _table("Partition of the archive|Records|Replayed|Again|Checksum|Checksum there", rows)
        + _differences(replay.differences)
    )


def _differences(differences: Sequence[Difference]) -> str:
    rows = [
        (each.partition, each.first_offset, each.last_offset, each.records, each.other_records) for each in differences
    ]
    return _titled("Where they differ", "Partition|From offset|To offset|Records|Records there", rows)


def _plots(topic: TopicReport) -> str:
    from plotly.graph_objects import Bar, Figure, Scatter

    by_partition: dict[int, list[tuple[datetime, int]]] = defaultdict(list)
    shown = {each.partition for each in sorted(topic.partitions, key=lambda each: -each.records)[:_PLOTTED_PARTITIONS]}
    others: dict[datetime, int] = defaultdict(int)
    for row in topic.periods:
        at = _moment(row.start_ms)
        if row.partition in shown:
            by_partition[row.partition].append((at, row.records))
        else:
            others[at] += row.records
    over_time = Figure()
    for partition, rows in sorted(by_partition.items()):
        over_time.add_trace(
            Scatter(
                x=[at for at, _ in rows],
                y=[count for _, count in rows],
                name=str(partition),
                stackgroup="all",
                mode="lines+markers",
            )
        )
    if others:
        rows = sorted(others.items())
        over_time.add_trace(
            Scatter(x=[at for at, _ in rows], y=[count for _, count in rows], name="others", stackgroup="all")
        )
    sizes = Figure()
    names = [str(each.partition) for each in topic.partitions]
    sizes.add_trace(Bar(x=names, y=[each.records for each in topic.partitions], name="records"))
    sizes.add_trace(Bar(x=names, y=[each.size_bytes for each in topic.partitions], name="bytes", yaxis="y2"))
    sizes.update_layout(
        barmode="group", yaxis2={"overlaying": "y", "side": "right"}, xaxis={"type": "category", "title": "partition"}
    )
    period = f"{topic.period_hours} hours" if topic.period_hours > 1 else "hour"
    return _figure(over_time, f"Records per {period} and partition") + _figure(sizes, "Records and bytes per partition")


def _figure(figure: Figure, title: str) -> str:
    figure.update_layout(title=title, height=340, margin={"t": 50, "b": 40, "l": 60, "r": 60}, template="plotly_white")
    return str(figure.to_html(full_html=False, include_plotlyjs=False, config={"displaylogo": False}))


def _titled(title: str, head: str, rows: Sequence[Sequence[object]]) -> str:
    return f"<h3>{title}</h3>{_table(head, rows)}" if rows else ""


def _table(head: str, rows: Iterable[Sequence[object]]) -> str:
    titles = "".join(f"<th>{title}</th>" for title in head.split("|"))
    body = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{titles}</tr>{body}</table>"


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else escape(str(value))


def _time(timestamp_ms: int) -> str:
    return _moment(timestamp_ms).strftime("%Y-%m-%d %H:%M:%S")


def _moment(timestamp_ms: int) -> datetime:
    """The time, or the first or the last that there is: a producer may send any."""
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.max.replace(tzinfo=UTC) if timestamp_ms > 0 else datetime.min.replace(tzinfo=UTC)
