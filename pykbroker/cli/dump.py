"""`pykbroker dump`: what is in the files of a log directory, and what is wrong with them.

It is Kafka's `DumpLogSegments` for every kind of file there is, recognised by its name. It never writes, and takes no
lock: what a running broker is about to write may look torn. `pykbroker verify` checks a directory as a whole.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from pykbroker.storage.checks.file_kinds import parse_file_name
from pykbroker.storage.checks.findings import Finding
from pykbroker.storage.files.read_only_disk import ReadOnlyDisk

from .command import ClientCommand, CommandFailed, forget_stdout
from .dump_entries import DumpOptions, Entry, dump_file
from .dump_printing import JsonPrinter, TextPrinter
from .examples import examples
from .output import is_terminal, stdout_is_terminal
from .progress import BESIDE_SHARE, progress

_DECODERS = {
    "offsets_decoder": "__consumer_offsets",
    "transaction_log_decoder": "__transaction_state",
    "cluster_metadata_decoder": "__cluster_metadata",
    "share_group_state_decoder": "__share_group_state",
}

_BAR_STEP_BYTES = 1 << 20


@click.command(
    "dump",
    cls=ClientCommand,
    epilog=examples(
        ("Every file of a topic", "pykbroker dump pykbroker-data --topic orders"),
        (
            "Five batches with their records",
            "pykbroker dump --records --offset 1000 --limit 5 pykbroker-data/orders-0",
        ),
        ("What is wrong, for a program", "pykbroker dump --json --only-findings pykbroker-data"),
    ),
)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE|DIRECTORY]…")
@click.option("--topic", metavar="NAME", help="Of directories only the partitions of this topic.")
@click.option("--files", metavar="FILE,…", help="More files, as Kafka's tool takes them.")
@click.option("--records", "--print-data-log", "with_records", is_flag=True, help="Show the records of every batch.")
@click.option("--deep-iteration", "deep", is_flag=True, help="Decompress and check all records, shown or not.")
@click.option("--full", is_flag=True, help="Show keys and values whole, not only their beginning.")
@click.option("--skip-record-metadata", is_flag=True, help="Of records show keys, values and headers alone.")
@click.option(
    "--only-findings",
    "--index-sanity-check",
    "--verify-index-only",
    "only_findings",
    is_flag=True,
    help="Show only what is wrong.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--offset", type=click.IntRange(min=0), help="Begin at the batch or entry of this offset.")
@click.option("--limit", type=click.IntRange(min=0), help="Of each file, at most so many batches or entries.")
@click.option("--max-bytes", type=click.IntRange(min=0), help="Of each segment, look at so many bytes.")
@click.option("--offsets-decoder", is_flag=True, help="The records are of __consumer_offsets.")
@click.option("--transaction-log-decoder", is_flag=True, help="The records are of __transaction_state.")
@click.option("--cluster-metadata-decoder", is_flag=True, help="The records are of __cluster_metadata.")
@click.option("--share-group-state-decoder", is_flag=True, help="The records are of __share_group_state.")
def command(
    paths: tuple[Path, ...],
    topic: str | None,
    files: str | None,
    with_records: bool,
    deep: bool,
    full: bool,
    skip_record_metadata: bool,
    only_findings: bool,
    as_json: bool,
    offset: int | None,
    limit: int | None,
    max_bytes: int | None,
    **decoders: bool,
) -> None:
    """Print segments, indexes, snapshots and checkpoints, and say what is wrong with them.

    Every file of a broker's log directory is known by its name; of a directory all are shown. What is wrong stands
    behind an exclamation mark, and the exit code is then 1. Records of the metadata log and of the coordinators'
    topics are always shown, as what they mean.
    """
    every = [*paths, *(Path(name) for name in (files or "").split(",") if name)]
    if not every:
        raise CommandFailed("Missing argument '[FILE|DIRECTORY]…'.")
    options = DumpOptions(
        with_records=with_records,
        deep=deep,
        offset=offset,
        limit=limit,
        max_bytes=max_bytes,
        topic=_decoded_topic(decoders),
    )
    known = [file for path in every for file in _files_of(path, topic)]
    if topic is not None and not known:
        raise CommandFailed(f"There is no partition of '{topic}' below {_few([str(path) for path in every])}")
    text = TextPrinter(names_files=len(known) > 1, whole=full, skip_record_metadata=skip_record_metadata)
    try:
        with _progress(known, only_findings) as read:
            found = _dump_all(known, options, JsonPrinter() if as_json else text, only_findings, read)
        if only_findings and not as_json and not found:
            click.echo(f"Nothing is wrong in {len(known)} file{'' if len(known) == 1 else 's'}")
    except BrokenPipeError:
        forget_stdout()
        return
    damaged = {path: count for path, count in found.items() if count}
    if damaged:
        findings = sum(damaged.values())
        raise CommandFailed(f"{findings} finding{'s' * (findings != 1)} in {_few([str(path) for path in damaged])}")


def _dump_all(
    paths: list[Path],
    options: DumpOptions,
    printer: JsonPrinter | TextPrinter,
    only_findings: bool,
    read: Callable[[Path, int | None], None],
) -> dict[Path, int]:
    """Return how many things are wrong, per file that has a finding: one may be merely worth knowing.

    read: told how far a file was read, None for its end.
    """
    disk = ReadOnlyDisk()
    damaged: dict[Path, int] = {}
    looks_at_all = (options.offset, options.limit, options.max_bytes) == (None, None, None)
    for path in paths:
        name = parse_file_name(path.name)
        assert name is not None
        is_named = is_empty = False
        if not only_findings:
            printer.file(str(path), name.kind)
            is_named = is_empty = True
        for dumped in dump_file(disk, str(path), options):
            is_empty = False
            if isinstance(dumped, Entry) and dumped.kind == "batch":
                read(path, dumped.fields["position"])
            if isinstance(dumped, Finding):
                damaged[path] = damaged.get(path, 0) + dumped.is_damage
            elif only_findings:
                continue
            if not is_named:
                printer.file(str(path), name.kind)
                is_named = True
            printer.dumped(str(path), dumped)
        read(path, None)
        if is_empty and looks_at_all:
            printer.empty()
    return damaged


@contextmanager
def _progress(paths: list[Path], only_findings: bool) -> Iterator[Callable[[Path, int | None], None]]:
    """A bar on standard error, where the lines themselves do not show on the same terminal how it goes on."""
    if not is_terminal(sys.stderr) or (stdout_is_terminal() and not only_findings):
        yield lambda path, position: None
        return
    sizes: dict[Path, int] = {}
    for path in paths:
        with suppress(OSError):
            sizes[path] = path.stat().st_size
    with progress("Reading", sum(sizes.values()), BESIDE_SHARE) as advance:
        told = 0

        def read(path: Path, position: int | None) -> None:
            """A redraw for each small batch would take longer than its check."""
            nonlocal told
            reached = sizes.get(path, 0) if position is None else position
            if position is None or reached - told >= _BAR_STEP_BYTES:
                advance(reached - told)
                told = 0 if position is None else reached

        yield read


def _decoded_topic(decoders: dict[str, bool]) -> str | None:
    chosen = [topic for flag, topic in _DECODERS.items() if decoders[flag]]
    if len(chosen) > 1:
        raise CommandFailed("only one decoder can be used")
    return chosen[0] if chosen else None


def _files_of(path: Path, topic: str | None) -> Iterator[Path]:
    """Return all that are known below a directory. Raises CommandFailed for a file of which nothing is known."""
    if not os.path.lexists(path):
        raise CommandFailed(f"{path}: No such file or directory")
    if path.is_dir():
        for directory, names, files in os.walk(path):
            names.sort(key=_numbered)
            if topic is not None and not _is_of(Path(directory), topic):
                continue
            yield from (Path(directory, name) for name in sorted(files) if parse_file_name(name) is not None)
    elif parse_file_name(path.name) is None:
        raise CommandFailed(f"{path}: the name is none of a log directory's files; see pykbroker inspect for frames")
    else:
        yield path


def _is_of(directory: Path, topic: str) -> bool:
    return _numbered(directory.absolute().name)[0] == topic


def _numbered(name: str) -> tuple[str, int]:
    """Return topic and partition of a directory, so that partition 10 stands behind partition 9."""
    topic, dash, number = name.rpartition("-")
    return (topic, int(number)) if dash and number.isascii() and number.isdigit() else (name, -1)


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more files" if len(names) > 3 else "")
