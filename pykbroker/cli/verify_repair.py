"""Repairs of `pykbroker verify --repair` and `--salvage`: what they do with the findings, directory by directory."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from pykbroker.storage.checks.directory_check import DirectoryCheck
from pykbroker.storage.checks.findings import Finding, FindingKind
from pykbroker.storage.checks.repair import PartitionRepair, reached_offset, repair_checkpoints
from pykbroker.storage.directories.directory_names import METADATA_LOG_DIRECTORY, parse_partition_directory
from pykbroker.storage.files.disk import Disk


def repair_directory(
    disk: Disk,
    check: DirectoryCheck,
    findings: Sequence[Finding],
    *,
    salvage: bool,
    deep: bool,
    now_ms: int,
) -> Iterator[str | Finding]:
    """The steps, and behind them what is still damaged. Raises `FileError`."""
    by_log: dict[str, list[Finding]] = {}
    for finding in findings:
        name = posixpath.relpath(finding.path, check.report.path).partition("/")[0]
        if parse_partition_directory(name) is not None or name == METADATA_LOG_DIRECTORY:
            by_log.setdefault(name, []).append(finding)
    for name, found in sorted(by_log.items()):
        if name == METADATA_LOG_DIRECTORY and salvage:
            # A controller that lacks one record of many may take the wrong decisions about all that follows.
            yield f"{posixpath.join(check.report.path, name)}: nothing is taken out of the metadata log"
        yield from _repair_of(disk, check, name, found, salvage=salvage, deep=deep, now_ms=now_ms).run()
    # The epochs are those of the log as it is now.
    with_epochs = [name for name, found in by_log.items() if any(each.kind is FindingKind.EPOCHS for each in found)]
    for name in sorted(with_epochs):
        list(check.check_log(name))
        at = parse_partition_directory(name)
        log = check.report.metadata_log if at is None else check.report.partitions[at]
        if log is not None:
            yield from _repair_of(disk, check, name, [], salvage=False, deep=deep, now_ms=now_ms).write_epochs(log)
    yield from repair_checkpoints(disk, check.report, findings)
    untouched = [each for each in findings if each.kind in (FindingKind.MISSING, FindingKind.UNREADABLE)]
    yield from untouched
    yield from (each for each in check.check_again(by_log) if each.is_damage and each not in untouched)


def _repair_of(
    disk: Disk,
    check: DirectoryCheck,
    name: str,
    findings: Sequence[Finding],
    *,
    salvage: bool,
    deep: bool,
    now_ms: int,
) -> PartitionRepair:
    at = parse_partition_directory(name)
    return PartitionRepair(
        disk,
        posixpath.join(check.report.path, name),
        check.facts_of_log(name),
        findings,
        reached_offset=0 if at is None else reached_offset(check.report, at),
        salvage=salvage and at is not None,
        deep=deep,
        now_ms=now_ms,
    )
