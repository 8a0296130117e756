"""Log directories as they were at a cut, written in threads while the node goes on.

What retention and compaction do meanwhile to one log is followed for that log alone; a deleted topic, or a log that is
cut off, makes the whole cut stale, and another one is taken. Nothing is left behind of an attempt.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TypeAlias

import trio

from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.server.node.composition.parts import NodeParts
from pykbroker.server.node.node import Node
from pykbroker.server.quorum.bootstrap_checkpoint import FILE_NAME as BOOTSTRAP_CHECKPOINT
from pykbroker.server.quorum.formatting import directory_paths
from pykbroker.server.quorum.metadata_log import QUORUM_STATE
from pykbroker.storage.directories import meta_properties, partition_metadata
from pykbroker.storage.directories.directory_names import METADATA_LOG_DIRECTORY
from pykbroker.storage.directories.shutdown_marks import ShutdownMarks
from pykbroker.storage.files.checkpoints import (
    CLEANED_OFFSET,
    HIGH_WATERMARK,
    LOG_START_OFFSET,
    RECOVERY_POINT,
    OffsetCheckpoint,
)
from pykbroker.storage.files.errors import StorageError
from pykbroker.storage.files.shared_files import clones, share
from pykbroker.storage.files.unsynced_disk import UnsyncedDisk
from pykbroker.storage.log.log_cut import LogCut, write_cut

from .errors import SavepointRefused
from .node_cut import TURN_S, DirectoryCut, NodeCut, cut_node, has_metadata, parts_of, roll_large

_ATTEMPTS = 20
_ROUNDS_IN_THREADS = 5
"""A log that loses segments again and again is copied on the event loop in the end: then it cannot."""

Rewind: TypeAlias = Callable[[Sequence[Path]], None]
"""Cuts copies back to a moment before, in a thread. Raises SavepointRefused, OSError, StorageError."""
Rewinding: TypeAlias = Callable[[], Rewind]
"""Gives what cuts back copies of the node as it is by now, on its event loop. Raises SavepointRefused."""

_disk = UnsyncedDisk()


@dataclass(slots=True)
class _Copy:
    """One attempt. logs: the cuts by the directories of the copies; failures: what a thread could not copy."""

    cut: NodeCut
    targets: Mapping[str, str]
    logs: dict[str, LogCut] = field(default_factory=dict)
    failures: dict[str, Exception] = field(default_factory=dict)

    def others(self, target: str) -> tuple[str, ...]:
        """The files that are copied as they are."""
        if posixpath.basename(target) == METADATA_LOG_DIRECTORY:
            return (partition_metadata.FILE_NAME, QUORUM_STATE, *self.cut.snapshots)
        return (partition_metadata.FILE_NAME,)


async def copy_node(node: Node | None, targets: Sequence[Path], rewinding: Rewinding | None = None) -> NodeCut:
    """Write the log directories of a running node, as they are at one moment after the call, into others that are not
    there yet: one for each of `directory_paths`, in that order. On the node's event loop. rewinding: cuts them back.

    Raises SavepointRefused, OSError, StorageError; then nothing is left of the others.
    """
    parts, role = parts_of(node)
    threads = parts.node.threads
    if rewinding is not None:
        rewinding()  # what cannot be had is told before anything is copied
    try:
        for _ in range(_ATTEMPTS):
            if not await threads.run(_make, targets, parts):
                await roll_large(parts, role)
            parts, role = parts_of(node)
            cut = cut_node(parts, role)
            paths = dict(zip(cut.paths, map(str, targets), strict=True))
            copy = _Copy(cut, paths)
            await threads.run(_write_logs, copy)
            if await _renew(copy, parts):
                rewind = None if rewinding is None else rewinding()  # retention and compaction went on until now
                await threads.run(_write_rest, copy)
                if rewind is not None:
                    await threads.run(rewind, targets)
                return cut
            await threads.run(_remove, targets)
    except BaseException:
        _remove(targets)  # where the caller is cancelled, no thread would do it
        raise
    raise SavepointRefused("topics are deleted and logs are cut off all the time: there is no moment for a copy")


def _make(targets: Sequence[Path], parts: NodeParts) -> bool:
    """Make the directories, in a thread. Tell whether files are copied there without their bytes."""
    for target in targets:
        target.mkdir(parents=True)
    source = posixpath.join(directory_paths(parts.node.config)[0], meta_properties.FILE_NAME)
    return clones(source, str(targets[0]))


def _remove(targets: Sequence[Path]) -> None:
    for target in targets:
        _disk.remove_directory(str(target))


def _write_logs(copy: _Copy) -> None:
    cut = copy.cut
    metadata = copy.targets[cut.paths[0]]
    copy.logs[posixpath.join(metadata, METADATA_LOG_DIRECTORY)] = cut.metadata
    for directory in cut.directories:
        target = copy.targets[directory.path]
        copy.logs |= {posixpath.join(target, str(at)): log for at, log in directory.logs.items()}
    for target, log in copy.logs.items():
        _write_log(copy, target, log)


def _write_log(copy: _Copy, target: str, log: LogCut) -> None:
    try:
        write_cut(_disk, log, target, others=copy.others(target))
    except (OSError, StorageError) as failure:
        copy.failures[target] = failure


async def _renew(copy: _Copy, parts: NodeParts) -> bool:
    """Copy logs anew that have lost segments meanwhile. False where the whole cut is stale. Raises OSError,
    StorageError: a log could not be copied, and nothing has happened to it.

    A log whose copy is found to be as it should is done: whatever becomes of the log later does not reach the copy.
    """
    if not has_metadata(copy.cut, parts):
        return False
    due = list(copy.logs)
    for rounds in count():
        stale: dict[str, LogCut] = {}
        began = trio.current_time()
        for target in due:
            log = copy.logs[target]
            if log.is_overtaken:
                return False
            if (renewed := log.renewed()) is not None:
                stale[target] = renewed
            elif target in copy.failures:
                raise copy.failures[target]
            if trio.current_time() - began > TURN_S:
                await trio.lowlevel.checkpoint()
                began = trio.current_time()
        if not stale:
            break
        due = list(stale)
        if rounds < _ROUNDS_IN_THREADS:
            await parts.node.threads.run(_write_again, copy, stale)
        else:
            _write_again(copy, {target: log.renewed() or log for target, log in stale.items()})
            return not copy.failures and not any(log.is_overtaken for log in stale.values())
    return True


def _write_again(copy: _Copy, stale: Mapping[str, LogCut]) -> None:
    for target, log in stale.items():
        _disk.remove_directory(target)
        copy.failures.pop(target, None)
        copy.logs[target] = log
        _write_log(copy, target, log)


def _write_rest(copy: _Copy) -> None:
    """Write what says whose directories they are, and that they were closed."""
    for path, target in copy.targets.items():
        for name in (meta_properties.FILE_NAME, BOOTSTRAP_CHECKPOINT):
            source = posixpath.join(path, name)
            if _disk.exists(source):
                share(source, posixpath.join(target, name))
    for directory in copy.cut.directories:
        _write_checkpoints(copy, directory)
    for target in copy.targets.values():
        ShutdownMarks(_disk, target).mark_clean_shutdown(copy.cut.broker_epoch)


def _write_checkpoints(copy: _Copy, directory: DirectoryCut) -> None:
    target = copy.targets[directory.path]
    logs = {at: copy.logs[posixpath.join(target, str(at))] for at in directory.logs}
    marks, cleaned = copy.cut.high_watermarks, directory.cleaned
    offsets: Mapping[str, dict[TopicPartition, int]] = {
        RECOVERY_POINT: {at: log.end_offset for at, log in logs.items()},
        HIGH_WATERMARK: {at: min(marks.get(log.log, log.end_offset), log.end_offset) for at, log in logs.items()},
        LOG_START_OFFSET: {at: log.start_offset for at, log in logs.items() if log.begins_in_segment},
        CLEANED_OFFSET: {at: cleaned[at] for at in logs if at in cleaned},
    }
    for name, each in offsets.items():
        OffsetCheckpoint(_disk, posixpath.join(target, name)).write(each)
