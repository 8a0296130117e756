"""`pykbroker produce`: lines or files to records, with the flags of `kafka-console-producer` and more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .command import ClientCommand, CommandFailed, bootstrap_options
from .examples import examples
from .produce_flags import ProduceFlags
from .records.codec_options import codec_options, schema_id_options
from .topic_argument import topic_argument, with_one_topic

EXAMPLES = examples(
    ("one record a line", "seq 10 | pykbroker produce numbers"),
    ("keys in front of values", "pykbroker produce --topic orders --key-separator :"),
    ("a key and headers for all of them", "pykbroker produce --topic orders --key 42 -H source=shop -H trace=a1"),
    ("a file as one record", "pykbroker produce --topic documents --key report --file report.pdf"),
    ("a file as a record a line", "pykbroker produce --topic logs --file app.log --lines"),
    ("records with all that they have", "pykbroker produce --topic copy --json --keep-partition --file saved.jsonl"),
    ("a steady stream", "seq 100000 | pykbroker produce --topic numbers --rate 500"),
    ("say that a key is gone", "pykbroker produce --topic customers --key 42 --tombstone"),
    ("JSON lines to Avro", "pykbroker produce --topic orders --value-schema order.avsc"),
)


@click.command("produce", cls=ClientCommand, epilog=EXAMPLES)
@bootstrap_options
@topic_argument
@click.option("--topic", metavar="NAME", help="The topic to write to.")
@click.option("--key", metavar="KEY", help="The key of every record.")
@click.option("--parse-key", is_flag=True, help="Lines are KEY, a separator, VALUE.")
@click.option("--key-separator", metavar="TEXT", help="What ends a line's key; a tab otherwise. Means --parse-key.")
@click.option(
    "-H", "--header", "headers", multiple=True, metavar="NAME[=VALUE]", help="A header of every record; null without =."
)
@click.option(
    "--partition", type=click.IntRange(0, 2**31 - 1), metavar="N", help="Write to this partition, whatever the key."
)
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a file as one value; with --lines or --json, its lines.",
)
@click.option("--lines", "by_lines", is_flag=True, help="The lines of --file are records.")
@click.option("--json", "as_json", is_flag=True, help="Lines are whole records, as consume --json prints them.")
@click.option("--keep-partition", is_flag=True, help="With --json: write to the partition that a record names.")
@click.option("--tombstone", is_flag=True, help="Write null: for --key, or for each line's key.")
@click.option("--rate", type=float, metavar="N", help="Write N records a second at most, evenly.")
@codec_options
@schema_id_options
@click.option(
    "--reader-property",
    "--property",
    "reader_properties",
    multiple=True,
    metavar="K=V",
    help="parse.key, parse.headers, key.separator, headers.delimiter, headers.separator, headers.key.separator, "
    "null.marker, ignore.error.",
)
@click.option("--reader-config", type=click.Path(path_type=Path), metavar="FILE", help="Reader properties in a file.")
@click.option(
    "--command-property",
    "--producer-property",
    "producer_properties",
    multiple=True,
    metavar="K=V",
    help="acks, enable.idempotence, compression.type, linger.ms, batch.size, delivery.timeout.ms, client.id.",
)
@click.option("--acks", "--request-required-acks", "acks", metavar="ACKS", help="all (the default), 1 or 0.")
@click.option(
    "--compression-codec",
    is_flag=False,
    flag_value="gzip",
    metavar="[CODEC]",
    help="none, gzip, snappy, lz4 or zstd; gzip when no codec is named.",
)
@click.option("--batch-size", metavar="BYTES", help="The size that a batch may reach.")
@click.option("--timeout", metavar="MS", help="How long a record may wait for its batch to fill.")
@click.option("--sync", is_flag=True, help="Wait for each record's acknowledgement before the next.")
def command(**given: Any) -> None:
    """Write the lines of standard input to a topic, one record a line."""
    given = with_one_topic(given)
    if not given["topic"]:
        raise CommandFailed("Missing option '--topic'.")
    flags = ProduceFlags(**given)
    flags.check()
    from .produce_run import produce

    produce(flags)
