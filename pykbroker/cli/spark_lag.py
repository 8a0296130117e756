"""`pykbroker spark lag`."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from .command import ClientCommand
from .examples import examples
from .output import Column, print_table
from .spark_options import EXIT_PROBLEMS, dry_run_option, run_pipeline, spark_options

if TYPE_CHECKING:
    from pykbroker.spark.lagging import LagReport, QueryLag
    from pykbroker.spark.session import SessionOptions
    from pykbroker.spark.source import Source

_COLUMNS = (
    Column("TOPIC"),
    Column("PARTITION", 9, right=True),
    Column("READ-OFFSET", right=True),
    Column("LOG-END-OFFSET", right=True),
    Column("LAG", right=True),
)


@click.command(
    "lag",
    cls=ClientCommand,
    epilog=examples(
        ("How far a query has read", "pykbroker spark lag --checkpoint ./checkpoint"),
        ("For a program", "pykbroker spark lag --checkpoint ./checkpoint --json"),
    ),
)
@spark_options
@click.option(
    "--checkpoint",
    "checkpoints",
    multiple=True,
    required=True,
    metavar="DIRECTORY",
    help="The checkpointLocation of a query; may be repeated.",
)
@click.option(
    "--isolation-level",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_uncommitted",
    show_default=True,
    help="read_committed: the ends are in front of open transactions.",
)
@click.option("--commit-to", metavar="GROUP", help="Commit the offsets to a group, so that tools for groups show them.")
@dry_run_option
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(
    source: Source,
    session: SessionOptions,
    checkpoints: tuple[str, ...],
    isolation_level: str,
    commit_to: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Tell how far Spark's queries have read, by their checkpoints, beside the ends of their topics.

    Spark commits to no group. A checkpoint in the local file system is read without Spark. Ends with 3 where a query
    has read what is not there, or records were deleted before it has read them.
    """
    from pykbroker.spark.lagging import LagOptions, lag

    options = LagOptions(source, checkpoints, isolation_level, commit_to, session, dry_run)
    report = run_pipeline(lambda listener: lag(options))
    if as_json:
        click.echo(json.dumps(_plain(report)))
    else:
        _print(report, commit_to, dry_run=dry_run)
    if report.problems:
        raise SystemExit(EXIT_PROBLEMS)


def _plain(report: LagReport) -> dict[str, object]:
    found = asdict(report)
    for query, plain in zip(report.queries, found["queries"], strict=True):
        plain["lag"] = query.lag
        for row, plain_row in zip(query.partitions, plain["partitions"], strict=True):
            plain_row["lag"] = row.lag
    return found


def _print(report: LagReport, commit_to: str | None, *, dry_run: bool) -> None:
    for query in report.queries:
        click.echo(_title(query))
        print_table(
            _COLUMNS,
            [
                (row.topic, str(row.partition), str(row.read_offset), _text(row.end), _text(row.lag))
                for row in query.partitions
            ],
        )
    for problem in report.problems:
        click.echo(f"WARN: {problem}", err=True)
    if commit_to is not None:
        verb = "Would commit" if dry_run else "Committed"
        click.echo(f"{verb} {report.to_commit} offsets to the group {commit_to}.")


def _title(query: QueryLag) -> str:
    if query.batch is None:
        return f"{query.checkpoint}: query {query.query_id} has read nothing yet"
    at = "" if query.at_ms is None else f" of {datetime.fromtimestamp(query.at_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
    later = "" if query.planned is None else f", batch {query.planned} has begun"
    return f"{query.checkpoint}: query {query.query_id}, batch {query.batch}{at}{later}, {query.lag:,} offsets behind"


def _text(number: int | None) -> str:
    return "-" if number is None else str(number)
