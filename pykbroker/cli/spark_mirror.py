"""`pykbroker spark mirror`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .command import ClientCommand, key_values
from .examples import examples
from .output import Column, print_table
from .spark_options import (
    copy_options,
    dry_run_option,
    json_option,
    producer_property_option,
    run_pipeline,
    size_text,
    source_of,
    spark_options,
)

if TYPE_CHECKING:
    from pykbroker.spark.mirroring import MirrorSummary
    from pykbroker.spark.session import SessionOptions
    from pykbroker.spark.source import Source

_COLUMNS = (
    Column("TOPIC"),
    Column("PARTITION", 9, right=True),
    Column("NEXT-OFFSET", right=True),
    Column("TARGET-OFFSET", right=True),
)


@click.command(
    "mirror",
    cls=ClientCommand,
    epilog=examples(
        (
            "All topics of one region",
            "pykbroker spark mirror --topics-matching 'eu-.*' --target-bootstrap-server other:9092",
        ),
    ),
)
@spark_options
@click.option(
    "--target-bootstrap-server", required=True, metavar="HOST:PORT[,…]", help="The brokers of the target to ask first."
)
@click.option(
    "--target-command-config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Properties file with client settings for the target.",
)
@copy_options
@click.option("--prefix", default="", metavar="TEXT", help="The beginning of the topics' names in the target.")
@click.option(
    "--groups-matching",
    default=".*",
    show_default=True,
    metavar="REGEX",
    help="The groups whose offsets are translated to the target's.",
)
@click.option("--no-groups", is_flag=True, help="Translate no offsets.")
@click.option(
    "--groups-interval",
    type=click.FloatRange(min=0.1),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How often --follow translates the offsets of groups.",
)
@click.option(
    "--replication-factor",
    type=click.IntRange(min=1),
    metavar="N",
    help="Of topics that are created; the target's default.replication.factor by default.",
)
@click.option("--append", is_flag=True, help="Write behind records of the target that no mirror has written.")
@producer_property_option
@json_option
@dry_run_option
def command(
    source: Source,
    session: SessionOptions,
    copied: dict[str, Any],
    target_bootstrap_server: str,
    target_command_config: Path | None,
    prefix: str,
    groups_matching: str,
    no_groups: bool,
    groups_interval: float,
    replication_factor: int | None,
    append: bool,
    producer_properties: Sequence[str],
    as_json: bool,
    dry_run: bool,
) -> None:
    """Copy topics from one cluster to another, exactly once, with the offsets of their groups.

    Topics are created with their partitions and configs. Each record keeps its key, value, headers, timestamp and
    partition. A run that was killed is simply run again.
    """
    from pykbroker.spark.mirroring import MirrorOptions, mirror
    from pykbroker.spark.mirroring.options import BROKER_DEFAULT

    options = MirrorOptions(
        source=source,
        target=source_of(target_bootstrap_server, target_command_config),
        prefix=prefix,
        append=append,
        groups_matching=None if no_groups else groups_matching,
        groups_interval_s=groups_interval,
        replication_factor=replication_factor or BROKER_DEFAULT,
        producer_properties=key_values(producer_properties, "--producer-property"),
        dry_run=dry_run,
        session=session,
        **copied,
    )
    summary = run_pipeline(lambda listener: mirror(options, listener=listener))
    if as_json:
        click.echo(json.dumps(asdict(summary)))
    else:
        _print_summary(summary)


def _print_summary(summary: MirrorSummary) -> None:
    print_table(
        _COLUMNS,
        [
            (topic, str(partition), str(row.next_offset), str(row.target_offset))
            for topic, rows in sorted(summary.partitions.items())
            for partition, row in sorted(rows.items())
        ],
    )
    click.echo(
        f"Copied {summary.records:,} records, {size_text(summary.size_bytes)}, in {summary.batches} batches. "
        f"{summary.left:,} offsets are left; {summary.group_offsets} offsets of groups have moved."
    )
