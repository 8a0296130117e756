"""`pykbroker spark archive`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from .command import ClientCommand
from .examples import examples
from .output import Column, print_table
from .spark_options import copy_options, dry_run_option, json_option, run_pipeline, size_text, spark_options

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


@click.command(
    "archive",
    cls=ClientCommand,
    epilog=examples(
        ("A topic, and what came since the last run", "pykbroker spark archive --topic orders --to ./archive"),
    ),
)
@spark_options
@copy_options
@click.option("--to", "path", required=True, metavar="DIRECTORY", help="The archive: a directory, hdfs://…, s3a://…")
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
@json_option
@dry_run_option
def command(
    source: Source,
    session: SessionOptions,
    copied: dict[str, Any],
    path: str,
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
        target_file_bytes=target_file_mb << 20,
        codec=compression,
        dry_run=dry_run,
        session=session,
        **copied,
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
