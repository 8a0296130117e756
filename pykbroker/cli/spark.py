"""`pykbroker spark`: bulk work on topics by Apache Spark. Each sub-command is a module of its own."""

from __future__ import annotations

import click

from .examples import examples
from .lazy_group import LazyGroup

_COMMANDS = {
    "archive": "Copy topics to Parquet files, exactly once, and go on where the last run ended.",
    "audit": "Read whole topics or archives, report what is in them, and compare them.",
    "lag": "Tell how far Spark's queries have read, by their checkpoints.",
    "mirror": "Copy topics from one cluster to another, exactly once, with the offsets of their groups.",
    "replay": "Write records of an archive to a topic, those that it does not have.",
}


@click.group(
    "spark",
    cls=LazyGroup,
    modules="pykbroker.cli.spark_",
    summaries=_COMMANDS,
    epilog=examples(
        ("Copy a topic to files", "pykbroker spark archive --topic orders --to ./archive"),
        ("How far a query has read", "pykbroker spark lag --checkpoint ./checkpoint"),
    ),
)
def command() -> None:
    """Bulk work on topics by Apache Spark (`pip install 'pykbroker[spark]'`, and Java 17 or newer)."""
