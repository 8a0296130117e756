"""`pykbroker consume`: records of a topic to standard output, with the flags of `kafka-console-consumer` and more.

Without `--group` the partitions are read directly and nothing is committed, where Kafka's tool joins a group of its
own that nobody else is in. A topic that does not exist is an error here; Kafka's tool waits for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .command import ClientCommand, bootstrap_options
from .consume_flags import ISOLATION_LEVELS, ConsumeFlags
from .examples import examples
from .records.codec_options import codec_options
from .topic_argument import topic_argument, with_one_topic

EXAMPLES = examples(
    ("read all that is there, and end", "pykbroker consume orders -e"),
    ("read the last ten records of each partition", "pykbroker consume --topic orders --from end-10 -e"),
    ("what came in the last five minutes, and what comes", "pykbroker consume --topic orders --from '5m ago'"),
    (
        "an hour of two partitions",
        "pykbroker consume --topic orders --partition 0,2 --from 2026-11-29T10:00:00Z --to 2026-11-29T11:00:00Z",
    ),
    ("whole records as JSON lines", "pykbroker consume --topic orders -e --json | jq .headers"),
    ("copy a topic", "pykbroker consume --topic orders -e --json | pykbroker produce --topic copy --json"),
    ("find a record", "pykbroker consume --topic orders -e --key ^customer-7$ --grep refund"),
    ("find it by a field of its JSON", "pykbroker consume --topic orders -e --where 'customer.age > `17`'"),
    ("values in Avro", "pykbroker consume --topic orders -e --value-schema order.avsc"),
    ("share the topic with a group", "pykbroker consume --topic orders --group billing"),
    ("take records as a member of a share group", "pykbroker consume --topic orders --group workers --share"),
)


@click.command("consume", cls=ClientCommand, epilog=EXAMPLES)
@bootstrap_options
@topic_argument
@click.option("--topic", metavar="NAME", help="The topic to read.")
@click.option("--include", metavar="REGEX", help="Read every topic whose whole name matches.")
@click.option("--partition", metavar="N[,N…]", help="Read these partitions only.")
@click.option(
    "--from",
    "from_place",
    metavar="PLACE",
    help="Where to begin: an offset, start, start+N, end, end-N, a time (2026-11-29T10:00:00Z, @MILLISECONDS), "
    "'5m ago', today, yesterday. Times without a zone are UTC.",
)
@click.option(
    "--to", "to_place", metavar="PLACE", help="Where to end, in the same words; the record there is left out."
)
@click.option(
    "-e",
    "--exit-at-end",
    is_flag=True,
    help="End behind what is there now; begin at the earliest record unless told otherwise.",
)
@click.option("--offset", metavar="OFFSET", help="With --partition: a number, earliest, or latest (the default).")
@click.option("--from-beginning", is_flag=True, help="Start at the earliest record, where the group has no offset.")
@click.option("--max-messages", type=click.IntRange(min=-1), default=-1, metavar="N", help="End after N records.")
@click.option("--timeout-ms", type=click.IntRange(min=0), metavar="MS", help="End when nothing came for so long.")
@click.option("--group", metavar="NAME", help="Share the topic with the group's members, and commit offsets.")
@click.option(
    "--share",
    is_flag=True,
    help="The group is a share group, console-share-consumer without --group: each record goes to one of its members.",
)
@click.option("--reject", is_flag=True, help="With --share: reject records, so that nobody gets them again.")
@click.option("--release", is_flag=True, help="With --share: release records, so that they are delivered again.")
@click.option(
    "--reject-message-on-error", is_flag=True, help="With --share: reject what cannot be formatted, and go on."
)
@click.option("--json", "as_json", is_flag=True, help="Print whole records, a JSON object a line; produce reads them.")
@click.option("--key", metavar="REGEX", help="Only records whose key has a match of RE2.")
@click.option("--grep", metavar="REGEX", help="Only records whose value has a match of RE2.")
@click.option(
    "-H", "--header", "headers", multiple=True, metavar="NAME[=VALUE]", help="Only records that have this header."
)
@click.option("--where", metavar="EXPR", help="Only records whose JSON fulfils this, in JMESPath: 'a.b == `3`'.")
@codec_options
@click.option("--strict", is_flag=True, help="Exit code 1 where a key or value did not have its format.")
@click.option(
    "--formatter-property",
    "--property",
    "formatter_properties",
    multiple=True,
    metavar="K=V",
    help="print.timestamp, print.partition, print.offset, print.delivery, print.epoch, print.headers, print.key, "
    "print.value, key.separator, line.separator, headers.separator, null.literal, key.deserializer, "
    "value.deserializer.",
)
@click.option("--formatter-config", type=click.Path(path_type=Path), metavar="FILE", help="The same in a file.")
@click.option("--key-deserializer", metavar="CLASS", help="Name of one of Kafka's deserializers.")
@click.option("--value-deserializer", metavar="CLASS", help="Name of one of Kafka's deserializers.")
@click.option(
    "--command-property",
    "--consumer-property",
    "consumer_properties",
    multiple=True,
    metavar="K=V",
    help="group.id, auto.offset.reset, isolation.level, heartbeat.interval.ms, session.timeout.ms, client.id.",
)
@click.option("--isolation-level", type=click.Choice(list(ISOLATION_LEVELS)), help="Default: read_uncommitted.")
@click.option("--enable-systest-events", is_flag=True, help="Print shutdown_complete when nothing is read any more.")
@click.option("--skip-message-on-error", is_flag=True, help="Leave out records that cannot be formatted.")
def command(**given: Any) -> None:
    """Read the records of a topic to standard output, one a line."""
    flags = ConsumeFlags(**with_one_topic(given))
    flags.check()
    from .consume_run import consume

    consume(flags)
