"""`pykbroker spark audit`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .command import ClientCommand
from .examples import examples
from .output import Column, print_table
from .spark_options import EXIT_PROBLEMS, run_pipeline, selection_options, size_text, spark_options

if TYPE_CHECKING:
    from pykbroker.spark.archiving.selection import Selection
    from pykbroker.spark.auditing.report import AuditReport, Comparison, Difference, ReplayReport, TopicReport
    from pykbroker.spark.session import SessionOptions
    from pykbroker.spark.source import Source

_COLUMNS = (
    Column("PARTITION", 9, right=True),
    *(
        Column(title, 8, right=True)
        for title in (
            "RECORDS", "BYTES", "FIRST-OFFSET", "LAST-OFFSET", "MISSING", "TWICE", "NULL-KEYS", "STEPS-BACK",
            "CHECKSUM",
        )
    ),
)  # fmt: skip


@click.command(
    "audit",
    cls=ClientCommand,
    epilog=examples(
        ("What is in a topic", "pykbroker spark audit --topic orders"),
        ("Compare it with its archive", "pykbroker spark audit --topic orders --archive ./archive --html audit.html"),
    ),
)
@spark_options
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="A topic; may be repeated.")
@click.option("--topics-matching", metavar="REGEX", help="All topics whose whole names match, but internal ones.")
@click.option(
    "--archive", metavar="DIRECTORY", help="Compare the topics with this archive; all of its topics by default."
)
@click.option("--archive-only", is_flag=True, help="Look at the archive, and ask no cluster.")
@click.option(
    "--replayed-from",
    metavar="TOPIC",
    help="The topic of the archive that was replayed to this one: all of it, or --offsets, --from, --until.",
)
@selection_options
@click.option("--compare-with", metavar="TOPIC", help="Compare keys, values and headers with those of another topic.")
@click.option("--compare-bootstrap-server", metavar="HOST:PORT", help="Where that topic is, if elsewhere.")
@click.option(
    "--isolation-level",
    type=click.Choice(["read_committed", "read_uncommitted"]),
    default="read_committed",
    show_default=True,
    help="Whether records of aborted transactions are left out.",
)
@click.option(
    "--listed",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="How many of the largest records, keys, gaps and differences are listed.",
)
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write a page with plots."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--dry-run", is_flag=True, help="Tell what there is to read, and read nothing.")
def command(
    source: Source,
    session: SessionOptions,
    topics: tuple[str, ...],
    topics_matching: str | None,
    archive: str | None,
    archive_only: bool,
    replayed_from: str | None,
    selection: Selection,
    compare_with: str | None,
    compare_bootstrap_server: str | None,
    isolation_level: str,
    listed: int,
    html: Path | None,
    as_json: bool,
    dry_run: bool,
) -> None:
    """Read whole topics: gaps, duplicates, keys, sizes, times, open transactions; compare them with others.

    The exit code is 3 where something must not be: offsets that are there twice, sides that differ, an archive whose
    files are not what its manifest says.
    """
    from pykbroker.spark.auditing import AuditOptions, audit
    from pykbroker.spark.auditing.page import write_page

    options = AuditOptions(
        source=None if archive_only else source,
        topics=topics,
        topics_matching=topics_matching,
        archive=archive,
        compare_with=compare_with,
        compare_source=replace(source, bootstrap_servers=compare_bootstrap_server)
        if compare_bootstrap_server
        else None,
        replayed_from=replayed_from,
        selection=selection,
        isolation_level=isolation_level,
        listed=listed,
        dry_run=dry_run,
        session=session,
    )
    report = run_pipeline(lambda listener: audit(options, listener=listener))
    if html is not None and not dry_run:
        write_page(report, html)
    if as_json:
        click.echo(json.dumps(report.as_json()))
    else:
        _print(report)
    if report.problems:
        raise SystemExit(EXIT_PROBLEMS)


def _print(report: AuditReport) -> None:
    for topic in report.topics:
        _print_topic(topic)
    for comparison in report.comparisons:
        _print_comparison(comparison)
    for replay in report.replays:
        _print_replay(replay)
    for line in report.problems:
        click.echo(f"PROBLEM: {line}")


def _print_topic(topic: TopicReport) -> None:
    click.echo(f"{topic.name} ({topic.origin}): {topic.records:,} records, {size_text(topic.size_bytes)}")
    print_table(
        _COLUMNS,
        [
            (
                *map(str, (each.partition, each.records, each.size_bytes, each.first_offset, each.last_offset)),
                *map(
                    str, (each.missing_offsets, each.duplicate_offsets, each.null_keys, each.backwards, each.checksum)
                ),
            )
            for each in topic.partitions
        ],
    )
    keys = topic.keys
    click.echo(
        f"{keys.distinct:,} keys, {keys.in_several_partitions:,} of them in several partitions; the fullest partition "
        f"has {topic.skew:.2f} times the mean"
    )
    for record in topic.largest[:3]:
        click.echo(f"{size_text(record.size_bytes)} at offset {record.offset} of partition {record.partition}")
    for gap in topic.gaps[:3]:
        click.echo(f"Offsets {gap.first_offset} to {gap.last_offset} of partition {gap.partition} have no records")
    for each in topic.open_transactions:
        click.echo(
            f"A transaction of producer {each.producer_id} is open in partition {each.partition} since offset "
            f"{each.start_offset}"
        )
    click.echo()


def _print_comparison(comparison: Comparison) -> None:
    equal = sum(each.equal for each in comparison.partitions)
    verdict = "equal" if comparison.equal else f"{equal} of {len(comparison.partitions)} partitions are equal"
    newer = f"; {comparison.newer_offsets:,} offsets are newer" if comparison.newer_offsets else ""
    click.echo(f"{comparison.left} beside {comparison.right}: {verdict}{newer}")
    _print_differences(comparison.differences)


def _print_replay(replay: ReplayReport) -> None:
    expected = sum(each.records for each in replay.partitions)
    there = sum(each.replayed for each in replay.partitions)
    times = "" if replay.timestamps_compared else "; its timestamps are its own, and were not compared"
    others = f"; {replay.other_records:,} records are from elsewhere" if replay.other_records else ""
    click.echo(
        f"{replay.name} at {replay.origin} beside {replay.archived_topic} in {replay.archive}: "
        f"{'equal' if replay.equal else 'different'}, {there:,} of {expected:,} records are there, {replay.twice:,} of "
        f"them again, {replay.steps_back:,} steps back{others}{times}"
    )
    _print_differences(replay.differences)


def _print_differences(differences: Sequence[Difference]) -> None:
    for each in differences:
        click.echo(
            f"  partition {each.partition}, offsets {each.first_offset} to {each.last_offset}: {each.records} records, "
            f"there {each.other_records}"
        )
