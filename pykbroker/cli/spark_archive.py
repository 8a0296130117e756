"""`pykbroker spark archive`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from .command import ClientCommand
from .output import Column, print_table
from .spark_options import milliseconds, run_pipeline, size_text, spark_options

if TYPE_CHECKING:
    from pykbroker.spark.archiving.options import ArchiveSummary
    from pykbroker.spark.session import SessionOptions
    from pykbroker.spark.source import Source

_COLUMNS = (
    Column("TOPIC"),
    Column("PARTITION", 9, right=True),
    Column("START-OFFSET", right=True),
    Column("NEXT-OFFSET", right=True),
    Column("RECORDS", right=True),
    Column("CHECKSUM", 16),
)


@click.command("archive", cls=ClientCommand)
@spark_options
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="A topic; may be repeated.")
@click.option("--topics-matching", metavar="REGEX", help="All topics whose whole names match, but internal ones.")
@click.option("--to", "path", required=True, metavar="DIRECTORY", help="The archive: a directory, hdfs://…, s3a://…")
@click.option(
    "--until",
    default="now",
    show_default=True,
    metavar="now|TIME",
    help="Up to which records: those that are there, or older than a time (2026-11-25T12:00:00+00:00).",
)
@click.option("--follow", is_flag=True, help="Go on until Ctrl-C, and look for new records every --poll-interval.")
@click.option("--poll-interval", type=click.FloatRange(min=0.1), default=10.0, show_default=True, metavar="SECONDS")
@click.option(
    "--isolation-level",
    type=click.Choice(["read_committed", "read_uncommitted"]),
    default="read_committed",
    show_default=True,
    help="Whether records of aborted transactions are left out.",
)
@click.option(
    "--max-batch-records",
    type=click.IntRange(min=1),
    default=5_000_000,
    show_default=True,
    help="So many offsets go into one commit.",
)
@click.option("--accept-loss", is_flag=True, help="Note what the topic deleted before it was read, and go on.")
@click.option(
    "--target-file-mb",
    type=click.IntRange(min=0),
    default=128,
    show_default=True,
    help="Small files of a topic and a date are merged up to this size; 0: never.",
)
@click.option(
    "--compression",
    type=click.Choice(["zstd", "snappy", "lz4", "gzip", "none"]),
    default="zstd",
    show_default=True,
    help="Of the Parquet files.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("--dry-run", is_flag=True, help="Tell what there is to do, and change nothing.")
def command(
    source: Source,
    session: SessionOptions,
    topics: tuple[str, ...],
    topics_matching: str | None,
    path: str,
    until: str,
    follow: bool,
    poll_interval: float,
    isolation_level: str,
    max_batch_records: int,
    accept_loss: bool,
    target_file_mb: int,
    compression: str,
    as_json: bool,
    dry_run: bool,
) -> None:
    """Copy topics to Parquet files, exactly once, and go on where the last run ended.

    The archive has each record once, with all of its fields, below topic=…/date=…; its manifest (_pykbroker) says how
    far each partition is, with checksums. A run that was killed is simply run again.
    """
    from pykbroker.spark.archiving import ArchiveOptions, archive

    options = ArchiveOptions(
        source=source,
        path=path,
        topics=topics,
        topics_matching=topics_matching,
        until=until if until == "now" else milliseconds(until, "--until expects 'now' or"),
        follow=follow,
        isolation_level=isolation_level,
        max_batch_records=max_batch_records,
        poll_interval_s=poll_interval,
        accept_loss=accept_loss,
        target_file_bytes=target_file_mb << 20,
        codec=compression,
        dry_run=dry_run,
        session=session,
    )
    summary = run_pipeline(lambda listener: archive(options, listener=listener))
    if as_json:
        click.echo(json.dumps(asdict(summary)))
    else:
        _print_summary(summary)


def _print_summary(summary: ArchiveSummary) -> None:
    print_table(
        _COLUMNS,
        [
            (topic, str(partition), str(row.start_offset), str(row.next_offset), str(row.records), row.checksum)
            for topic, rows in sorted(summary.partitions.items())
            for partition, row in sorted(rows.items())
        ],
    )
    click.echo(
        f"Added {summary.records:,} records, {size_text(summary.size_bytes)}, in {summary.commits} commits: "
        f"{summary.files} files, {size_text(summary.file_bytes)}. {summary.left:,} offsets are left."
    )
