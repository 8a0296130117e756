"""`pykbroker delete-records`: the flags, the file and the texts of `kafka-delete-records`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pykbroker.client.delete_records import delete_records
from pykbroker.protocol.topic_partition import TopicPartition

from .command import ClientCommand, CommandFailed, bootstrap_options, run
from .connect import open_cluster, read_client_properties

VERSION = 1


@click.command("delete-records", cls=ClientCommand)
@bootstrap_options
@click.option(
    "--offset-json-file",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help='{"partitions": [{"topic": "t", "partition": 0, "offset": 10}], "version": 1}; -1 is the high watermark.',
)
def command(bootstrap_server: str, command_config: Path | None, offset_json_file: Path) -> None:
    """Delete the records of partitions up to given offsets."""
    properties = read_client_properties(command_config)
    offsets = read_offsets(offset_json_file)

    async def work() -> None:
        async with open_cluster(bootstrap_server, properties, client_id="delete-records") as cluster:
            click.echo("Executing records delete operation")
            outcomes = await delete_records(cluster, offsets)
            click.echo("Records delete operation completed:")
            for at in offsets:
                outcome = outcomes[at]
                text = f"low_watermark: {outcome}" if isinstance(outcome, int) else f"error: {outcome}"
                click.echo(f"partition: {at}\t{text}")

    run(work)


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    try:
        given = json.loads(path.read_text())
    except OSError as error:
        raise CommandFailed(f"Cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise CommandFailed(f"{path} is not JSON: {error}") from None
    if not isinstance(given, dict) or not isinstance(given.get("partitions"), list):
        raise CommandFailed(f"{path} lacks the list of partitions")
    version = given.get("version", VERSION)
    if version != VERSION:
        raise CommandFailed(f"{path} has the version {version}, not {VERSION}")
    offsets: dict[TopicPartition, int] = {}
    for entry in given["partitions"]:
        at, offset = _entry(path, entry)
        if at in offsets:
            raise CommandFailed(f"{path} names {at} twice")
        offsets[at] = offset
    return offsets


def _entry(path: Path, entry: Any) -> tuple[TopicPartition, int]:
    match entry:
        case {"topic": str(topic), "partition": int(partition), "offset": int(offset)}:
            return TopicPartition(topic, partition), offset
        case _:
            raise CommandFailed(f"{path} has an entry without topic, partition and offset: {json.dumps(entry)}")
