"""`pykbroker inspect`: what is in segments, snapshots, their indexes, and captured frames.

It reads through the second description of the bytes (`protocol.descriptions`), not through the codecs that wrote them.
What Kafka's `DumpLogSegments` shows it shows too, and it never writes.
"""

from __future__ import annotations

import mmap
import re
import string
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from construct import Construct

from pykbroker.protocol.descriptions.index_files import ABORTED_TRANSACTION, OFFSET_ENTRY, TIME_ENTRY
from pykbroker.storage.checks.file_kinds import parse_file_name
from pykbroker.storage.checks.findings import Finding

from .batch_listing import DamagedFile, batch_lines
from .command import ClientCommand, CommandFailed, forget_stdout
from .dump_printing import JsonPrinter, json_line
from .examples import examples
from .frame_listing import Api, frame_lines, frames
from .listing import print_line, timestamp_text

_BATCHES = (".log", ".checkpoint")
_HEX = frozenset(string.hexdigits.encode() + string.whitespace.encode())


@click.command(
    "inspect",
    cls=ClientCommand,
    epilog=examples(
        ("The batches of a segment", "pykbroker inspect pykbroker-data/orders-0/00000000000000000000.log"),
        ("Captured requests", "pykbroker inspect requests.bin"),
        ("Captured responses", "pykbroker inspect --response Fetch:13 responses.bin"),
    ),
)
@click.argument("files", nargs=-1, required=True, type=click.Path(allow_dash=True, path_type=Path), metavar="FILE…")
@click.option("--records", is_flag=True, help="Show the records of every batch, too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option(
    "--response",
    metavar="API:VERSION",
    help="The frames are responses to this API (Fetch:13 or 1:13); otherwise they are requests.",
)
def command(files: tuple[Path, ...], records: bool, as_json: bool, response: str | None) -> None:
    """Show what is in FILE: a segment (.log) or snapshot (.checkpoint), an index (.index, .timeindex, .txnindex), or
    else frames as they went over a connection, in binary or in hexadecimal. `-` is standard input.

    Records of the metadata log and of the coordinators' topics are shown as what they mean; their directory's name
    tells. The command fails when a file is damaged, after having shown what comes before.
    """
    try:
        response_to = Api.parse(response) if response else None
    except ValueError as error:
        raise CommandFailed(f"--response {response}: {error}") from None
    try:
        for path in files:
            if as_json:
                _print_json(path, records, response_to)
                continue
            if len(files) > 1:
                print_line(f"{path}:")
            _show(path, records, response_to)
    except BrokenPipeError:
        forget_stdout()


def _show(path: Path, with_records: bool, response_to: Api | None) -> None:
    try:
        lines = _lines(path, with_records, response_to)
    except OSError as error:
        raise CommandFailed(f"{path}: {error.strerror}") from None
    try:
        for line in lines:
            print_line(line)
    except DamagedFile as damage:
        raise CommandFailed(f"{path}: {damage}") from None


def _print_json(path: Path, with_records: bool, response_to: Api | None) -> None:
    """Print a log directory's file as `dump --json` does, and of others the frames."""
    if str(path) != "-" and parse_file_name(path.name) is not None:
        _print_dump(path, with_records)
        return
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else bytes(_contents(path))
        for frame in frames(memoryview(_binary(data)), response_to):
            click.echo(json_line({"file": str(path)} | frame.as_json))
    except OSError as error:
        raise CommandFailed(f"{path}: {error.strerror}") from None
    except DamagedFile as damage:
        raise CommandFailed(f"{path}: {damage}") from None


def _print_dump(path: Path, with_records: bool) -> None:
    from pykbroker.storage.files.read_only_disk import ReadOnlyDisk

    from .dump_entries import DumpOptions, dump_file

    printer = JsonPrinter()
    damage = None
    for dumped in dump_file(ReadOnlyDisk(), str(path), DumpOptions(with_records=with_records)):
        printer.dumped(str(path), dumped)
        if isinstance(dumped, Finding) and dumped.is_damage:
            damage = damage or dumped
    if damage is not None:
        raise CommandFailed(f"{path}: {damage}")


def _lines(path: Path, with_records: bool, response_to: Api | None) -> Iterator[str]:
    if str(path) == "-":
        return _frame_lines(sys.stdin.buffer.read(), response_to)
    data = _contents(path)
    if path.suffix in _BATCHES:
        return batch_lines(data, _topic(path), with_records=with_records)
    if path.suffix == ".index":
        return _offset_index_lines(data, path)
    if path.suffix == ".timeindex":
        return _time_index_lines(data, path)
    if path.suffix == ".txnindex":
        return _aborted_transaction_lines(data)
    return _frame_lines(bytes(data), response_to)


def _contents(path: Path) -> memoryview:
    """A file that may be gigabytes long: only what is looked at is read."""
    with open(path, "rb") as file:
        if path.stat().st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _frame_lines(data: bytes, response_to: Api | None) -> Iterator[str]:
    yield from frame_lines(memoryview(_binary(data)), response_to)


def _binary(data: bytes) -> bytes:
    """Return bytes that may be written in hexadecimal. Raises DamagedFile."""
    if not data or not _HEX.issuperset(data):
        return data
    try:
        return bytes.fromhex(data.decode("ascii"))
    except ValueError:
        raise DamagedFile("hexadecimal digits that do not come in pairs") from None


def _topic(path: Path) -> str | None:
    """A partition's directory is `<topic>-<partition>`."""
    match = re.fullmatch(r"(.+)-\d+", path.absolute().parent.name)
    return match[1] if match else None


def _base_offset(path: Path) -> int:
    if not path.stem.isdecimal():
        raise DamagedFile("an index is named after its segment's base offset, as 00000000000000000000.index")
    return int(path.stem)


def _offset_index_lines(data: memoryview, path: Path) -> Iterator[str]:
    base_offset = _base_offset(path)
    for position, entry in _entries(data, OFFSET_ENTRY):
        yield f"@{position} offset {base_offset + entry.relative_offset}  position {entry.position}"


def _time_index_lines(data: memoryview, path: Path) -> Iterator[str]:
    base_offset = _base_offset(path)
    for position, entry in _entries(data, TIME_ENTRY):
        stamp = timestamp_text(entry.timestamp)
        yield f"@{position} timestamp {entry.timestamp} ({stamp})  offset {base_offset + entry.relative_offset}"


def _aborted_transaction_lines(data: memoryview) -> Iterator[str]:
    for position, entry in _entries(data, ABORTED_TRANSACTION):
        yield (
            f"@{position} producer {entry.producer_id}  offsets {entry.first_offset}-{entry.last_offset}  "
            f"last stable offset {entry.last_stable_offset}"
        )


def _entries(data: memoryview, entry: Construct) -> Iterator[tuple[int, Any]]:
    """Entries up to the zeros with which Kafka fills the index of an active segment."""
    used = len(bytes(data).rstrip(b"\0"))
    size = entry.sizeof()
    end = -(-used // size) * size
    if end > len(data):
        raise DamagedFile(f"at byte {end - size}: {len(data) - end + size} bytes, an entry has {size}")
    for position in range(0, end, size):
        yield position, entry.parse(bytes(data[position : position + size]))
