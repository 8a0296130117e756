"""`pykbroker verify`: whether the log directories of a node that does not run are sound.

It reads every batch of every segment, and compares each file with those that must agree with it. Nothing is written
unless a flag says so. The directories' locks are held meanwhile: what a running broker changes cannot be judged.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pykbroker.storage.checks.directory_check import (
    DirectoryCheck,
    check_together,
    is_log_directory,
    segment_bytes,
)
from pykbroker.storage.checks.findings import Finding
from pykbroker.storage.directories.log_dirs import LOCK_FILE
from pykbroker.storage.directories.meta_properties import FILE_NAME as META_PROPERTIES
from pykbroker.storage.files.disk import OsDisk
from pykbroker.storage.files.errors import DirectoryLocked, FileError
from pykbroker.storage.files.read_only_disk import ReadOnlyDisk

from .command import ClientCommand, CommandFailed, forget_stdout
from .dump_printing import finding_json
from .examples import examples
from .holders import who_holds
from .listing import print_line, printable
from .output import is_terminal, stdout_is_terminal
from .verify_cluster import read_cluster
from .verify_repair import repair_directory

if TYPE_CHECKING:
    from rich.console import Console

_BAR_STEP_BYTES = 1 << 20


@click.command(
    "verify",
    cls=ClientCommand,
    epilog=examples(
        ("Is all sound?", "pykbroker verify pykbroker-data"),
        ("All records, too", "pykbroker verify --deep pykbroker-data"),
        ("Mend what can be mended", "pykbroker verify --repair pykbroker-data"),
    ),
)
@click.argument("directories", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIRECTORY…")
@click.option("--deep", is_flag=True, help="Decompress every batch and read every record, too.")
@click.option("--repair", is_flag=True, help="Mend what can be mended without losing a record.")
@click.option(
    "--salvage",
    is_flag=True,
    help="Take damaged batches out, too: their bytes are kept beside the segment, their offsets stay empty.",
)
@click.option("--quiet", is_flag=True, help="Show damage alone, not what is merely worth knowing.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: findings, then a summary.")
def command(directories: tuple[Path, ...], deep: bool, repair: bool, salvage: bool, quiet: bool, as_json: bool) -> None:
    """Check the log directories of a node that is stopped: every partition, segment, index, snapshot and checkpoint.

    Name all directories of a node (log.dirs, metadata.log.dir) together, so that they are compared with each other and
    with the metadata log. The exit code is 0 where all is sound, and 1 where something is damaged.

    --repair makes indexes, producer snapshots and checkpoints anew from the log, cuts off what stands behind its end,
    and mends the bytes of a batch that its checksum does not cover where the neighbours tell them. --salvage also
    takes batches out that are damaged: a batch without records stands for their offsets, which are not given out again.
    """
    disk = OsDisk() if repair or salvage else ReadOnlyDisk()
    paths = [_log_directory(path) for path in directories]
    output = Output(as_json=as_json, quiet=quiet)
    try:
        with _locked(disk, paths), _progress(disk, paths, output) as progress:
            verification = Verification(disk, paths, deep=deep, progress=progress)
            for finding in verification.run():
                output.finding(finding)
            if verification.damage and (repair or salvage):
                for step in verification.repair(salvage=salvage):
                    output.step(step)
                for finding in verification.damage:
                    output.finding(finding)
        output.summary(verification)
    except FileError as error:
        raise CommandFailed(str(error)) from None
    except BrokenPipeError:
        forget_stdout()
        return
    if verification.damage:
        raise CommandFailed(_verdict(verification))


class Verification:
    """All directories of a node, in one run."""

    def __init__(self, disk: OsDisk, paths: Sequence[str], *, deep: bool, progress: Callable[[int], None]) -> None:
        self.damage: list[Finding] = []
        self.has_metadata = False
        self._disk = disk
        self._deep = deep
        self._cluster = read_cluster(disk, paths)
        self.has_metadata = self._cluster.topics is not None
        self.checks = [DirectoryCheck(disk, path, self._cluster, deep=deep, progress=progress) for path in paths]

    def run(self) -> Iterator[Finding]:
        for finding in self._all():
            if finding.is_damage:
                self.damage.append(finding)
            yield finding

    def repair(self, *, salvage: bool) -> Iterator[str]:
        """Repair what the checks found, and tell each step; `damage` is then what is left."""
        before, self.damage = self.damage, []
        for check in self.checks:
            here = [each for each in before if Path(each.path).is_relative_to(check.report.path)]
            repaired = repair_directory(
                self._disk, check, here, salvage=salvage, deep=self._deep, now_ms=int(time.time() * 1000)
            )
            for step in repaired:
                if isinstance(step, str):
                    yield step
                else:
                    self.damage.append(step)
        self.damage += check_together(self._disk, [check.report for check in self.checks])

    def _all(self) -> Iterator[Finding]:
        for check in self.checks:
            yield from check.run()
        yield from check_together(self._disk, [check.report for check in self.checks])

    def counts(self) -> dict[str, int]:
        logs = [log for check in self.checks for log in check.report.logs]
        return {
            "directories": len(self.checks),
            "partitions": len(logs),
            "segments": sum(log.segments for log in logs),
            "batches": sum(log.batches for log in logs),
            "records": sum(log.records for log in logs),
            "bytes": sum(log.size_bytes for log in logs),
            "damaged": len({Path(finding.path).parent for finding in self.damage}),
            "findings": len(self.damage),
        }


@dataclass
class Output:
    as_json: bool
    quiet: bool
    console: Console | None = None
    """Where a bar is drawn."""

    def finding(self, finding: Finding) -> None:
        if self.quiet and not finding.is_damage:
            return
        if self.as_json:
            click.echo(finding_json(finding))
        else:
            mark = "!" if finding.is_damage else "-"
            print_line(f"{mark} {printable(finding.path)}: {printable(str(finding))}", self.console)

    def step(self, text: str) -> None:
        if self.as_json:
            click.echo(json.dumps({"type": "step", "what": text}))
        else:
            print_line(f"+ {printable(text)}", self.console)

    def summary(self, verification: Verification) -> None:
        counts = verification.counts()
        if self.as_json:
            click.echo(json.dumps({"type": "summary", "has_metadata": verification.has_metadata} | counts))
            return
        if not verification.has_metadata and not self.quiet:
            print_line("- no metadata log that can be read: ids and settings of topics were not compared")
        text = (
            f"{_count(counts['partitions'], 'partition')}, {_count(counts['segments'], 'segment')}, "
            f"{_count(counts['batches'], 'batch')}, {_count(counts['records'], 'record')}, "
            f"{_count(counts['bytes'], 'byte')}"
        )
        print_line(text if verification.damage else f"{text}: sound")


def _verdict(verification: Verification) -> str:
    places = {str(Path(finding.path).parent) for finding in verification.damage}
    return f"{_count(len(verification.damage), 'finding')} in {', '.join(sorted(places)[:3])}" + (
        f" and {len(places) - 3} more" if len(places) > 3 else ""
    )


def _count(number: int, noun: str) -> str:
    plural = {"batch": "batches"}.get(noun, f"{noun}s")
    return f"{number:,} {noun if number == 1 else plural}"


def _log_directory(path: Path) -> str:
    if not path.is_dir():
        raise CommandFailed(f"{path}: {'not a directory' if path.exists() else 'No such file or directory'}")
    path = path.absolute()
    if not (path / META_PROPERTIES).exists():
        if is_log_directory(path.name) and (path.parent / META_PROPERTIES).exists():
            raise CommandFailed(f"{path} is a partition's directory: verify {path.parent}, or dump {path.name}")
        if not any(is_log_directory(each.name) for each in path.iterdir()):
            raise CommandFailed(f"{path} is not a log directory: it has no {META_PROPERTIES} and no partitions")
    return str(path)


@contextmanager
def _locked(disk: OsDisk, paths: Sequence[str]) -> Iterator[None]:
    with ExitStack() as stack:
        for path in paths:
            try:
                stack.callback(disk.lock(f"{path}/{LOCK_FILE}").release)
            except DirectoryLocked:
                who = who_holds(path, f"{path}/{LOCK_FILE}")
                raise CommandFailed(f"the log directory {path} is in use by {who}: stop the broker first") from None
        yield


@contextmanager
def _progress(disk: OsDisk, paths: Sequence[str], output: Output) -> Iterator[Callable[[int], None]]:
    """A bar below what is printed, or on standard error where that goes to a file."""
    if not (stdout_is_terminal() or is_terminal(sys.stderr)):
        yield lambda size: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    console = Console(stderr=not stdout_is_terminal())
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as bar:
        output.console = console
        task = bar.add_task("", total=sum(segment_bytes(disk, path) for path in paths))
        waiting = 0

        def advance(size: int) -> None:
            """A redraw for each small batch would take longer than its check."""
            nonlocal waiting
            waiting += size
            if waiting >= _BAR_STEP_BYTES:
                bar.advance(task, waiting)
                waiting = 0

        yield advance
    output.console = None
