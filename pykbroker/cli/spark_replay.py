"""`pykbroker spark replay`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from .command import ClientCommand, key_values
from .examples import examples
from .spark_options import (
    dry_run_option,
    json_option,
    producer_property_option,
    run_pipeline,
    selection_options,
    size_text,
    spark_options,
)

if TYPE_CHECKING:
    from pykbroker.spark.archiving.selection import Selection
    from pykbroker.spark.session import SessionOptions
    from pykbroker.spark.source import Source


@click.command(
    "replay",
    cls=ClientCommand,
    epilog=examples(
        ("Into a new topic", "pykbroker spark replay --archive ./archive --topic orders --to-topic orders-again"),
    ),
)
@spark_options
@click.option("--archive", required=True, metavar="DIRECTORY", help="The archive: a directory, hdfs://…, s3a://…")
@click.option("--topic", required=True, metavar="TOPIC", help="The topic, as the archive has it.")
@click.option("--to-topic", metavar="TOPIC", help="Where the records go, if its name is another one. It has to exist.")
@selection_options
@click.option(
    "--repartition", is_flag=True, help="Spread the records by their keys, instead of keeping their partitions."
)
@click.option(
    "--rate", type=click.FloatRange(min=0, min_open=True), metavar="RECORDS", help="So many records a second."
)
@click.option("--exactly-once", is_flag=True, help="Write in transactions.")
@click.option(
    "--max-batch-records",
    type=click.IntRange(min=1),
    default=2_000_000,
    show_default=True,
    help="So many records are sorted and written in one job of Spark.",
)
@producer_property_option
@json_option
@dry_run_option
def command(
    source: Source,
    session: SessionOptions,
    archive: str,
    topic: str,
    to_topic: str | None,
    selection: Selection,
    repartition: bool,
    rate: float | None,
    exactly_once: bool,
    max_batch_records: int,
    producer_properties: Sequence[str],
    as_json: bool,
    dry_run: bool,
) -> None:
    """Write records of an archive to a topic, those that it does not have.

    Each record keeps its key, value, headers, timestamp and partition, and the order in its partition; a header
    (pykbroker.identity) says where it comes from. A run that was killed is simply run again.
    """
    from pykbroker.spark.replaying import ReplayOptions, replay

    options = ReplayOptions(
        target=source,
        archive=archive,
        topic=topic,
        to_topic=to_topic,
        selection=selection,
        same_partitions=not repartition,
        rate=rate or 0.0,
        exactly_once=exactly_once,
        max_batch_records=max_batch_records,
        producer_properties=key_values(producer_properties, "--producer-property"),
        dry_run=dry_run,
        session=session,
    )
    summary = run_pipeline(lambda listener: replay(options, listener=listener))
    if as_json:
        click.echo(json.dumps(asdict(summary)))
    else:
        click.echo(
            f"Wrote {summary.records:,} records, {size_text(summary.size_bytes)}, in {summary.batches} batches. "
            f"{summary.there:,} of {summary.selected:,} were there before."
        )
