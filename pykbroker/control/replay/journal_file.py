"""The way back without the node: a journal's file says where logs ended, and a later savepoint has what was in them."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from pykbroker.control.clocks.clocks import Clocks
from pykbroker.control.journal.json_lines import ReadJournal
from pykbroker.control.savepoints.archive import read_manifest, unpack_archive, write_archive
from pykbroker.control.savepoints.errors import SavepointRefused, one_line
from pykbroker.control.savepoints.manifest import Manifest
from pykbroker.control.savepoints.volumes import directory_beside
from pykbroker.storage.files.disk import Disk, OsDisk
from pykbroker.storage.files.errors import StorageError
from pykbroker.storage.files.unsynced_disk import UnsyncedDisk

from .errors import PointLost
from .points import Point, find_point


def ended_ms(line: dict[str, Any]) -> float | None:
    """Return when an entry had ended; None for one that had not when the journal was written."""
    if line["kind"] == "event":
        at_ms = line.get("at_ms")
        return at_ms if isinstance(at_ms, int | float) else None
    took_ms = line.get("took_ms")
    return line["received_ms"] + took_ms if isinstance(took_ms, int | float) else None


def number_at(journal: ReadJournal, time_ms: float) -> int:
    """Return the number of the request that was the last to end by that time. Raises PointLost."""
    ended: list[tuple[int, int]] = [
        (line["point"], line["number"]) for line in journal.lines if _has_ended(line, time_ms)
    ]
    if not ended:
        raise PointLost("no request of the journal had ended by then")
    _, number = max(ended)
    return number


def _has_ended(line: dict[str, Any], time_ms: float) -> bool:
    at_ms = ended_ms(line)
    return line["kind"] == "exchange" and _point_of(line) > 0 and at_ms is not None and at_ms <= time_ms


def _point_of(line: dict[str, Any]) -> int:
    point = line.get("point", 0)
    return point if isinstance(point, int) else 0


def read_point(journal: ReadJournal, number: int) -> Point:
    """Return the point behind an entry. Raises PointLost."""
    if len(journal.nodes) > 1:
        raise PointLost(f"the journal is of a cluster of {len(journal.nodes)} nodes: only one alone can be replayed")
    points = {line["number"]: _point_of(line) for line in journal.lines}
    causes = {line["number"]: cause for line in journal.events if isinstance(cause := line.get("caused_by"), int)}
    return find_point(number, points, causes, journal.history, max(points, default=0))


def replay_into(directory: Path, journal: ReadJournal, number: int, savepoint: Path) -> Manifest:
    """Write the log directory of a node as it was behind an entry of its journal; it must be empty, or not be there.

    savepoint: of the same node, taken later. Raises PointLost, SavepointRefused, InvalidSavepoint.
    """
    manifest = read_manifest_of(savepoint, journal, number)
    if manifest.directories > 1:
        raise SavepointRefused(
            f"the savepoint {savepoint} has {manifest.directories} log directories: make another savepoint of it"
        )
    is_new = False
    try:
        if not directory.exists():
            directory.mkdir(parents=True)
            is_new = True
        elif not directory.is_dir() or any(directory.iterdir()):
            raise SavepointRefused(f"the log directory {directory} is not empty: a savepoint begins in an empty one")
        unpack_archive(savepoint, [directory], durably=True)
        try:
            _rewind(OsDisk(), [directory], journal, number, manifest)
        except BaseException:
            _empty(directory)
            raise
    except BaseException as error:
        if is_new:
            with suppress(OSError):
                directory.rmdir()
        if isinstance(error, OSError | StorageError):
            raise SavepointRefused(f"{directory} cannot be written: {one_line(error)}") from None
        raise
    return manifest


def replay_to_savepoint(path: Path, journal: ReadJournal, number: int, savepoint: Path) -> Manifest:
    """Write a savepoint of the node as it was behind an entry of its journal. Raises as `replay_into` does."""
    manifest = read_manifest_of(savepoint, journal, number)
    try:
        with directory_beside([str(path.absolute().parent)]) as place:
            directories = [place / str(each) for each in range(manifest.directories)]
            for directory in directories:
                directory.mkdir()
            unpack_archive(savepoint, directories, durably=False)
            _rewind(UnsyncedDisk(), directories, journal, number, manifest)
            return write_archive(
                path,
                directories,
                manifest.node_id,
                manifest.cluster_id,
                time.time_ns() // 1_000_000,
                Clocks(manifest.advances).advances_until(_ended_ms(journal, number)),
            )
    except (OSError, StorageError) as error:
        raise SavepointRefused(f"the savepoint {path} cannot be written: {one_line(error)}") from None


def _ended_ms(journal: ReadJournal, number: int) -> int:
    return next(int(ended_ms(line) or 0) for line in journal.lines if line["number"] == number)


def read_manifest_of(savepoint: Path, journal: ReadJournal, number: int) -> Manifest:
    """Return what a savepoint says of itself, if it is one for this journal. Raises SavepointRefused, PointLost,
    InvalidSavepoint.
    """
    read_point(journal, number)
    try:
        manifest = read_manifest(savepoint)
    except OSError as error:
        raise SavepointRefused(f"the savepoint {savepoint} cannot be read: {one_line(error)}") from None
    if manifest.cluster_id != journal.cluster_id or manifest.node_id not in journal.nodes:
        raise SavepointRefused(
            f"the savepoint {savepoint} is of node {manifest.node_id} in cluster {manifest.cluster_id}, and the "
            f"journal of node {journal.nodes[0] if journal.nodes else 'none'} in cluster {journal.cluster_id or 'none'}"
        )
    return manifest


def _rewind(disk: Disk, directories: list[Path], journal: ReadJournal, number: int, manifest: Manifest) -> None:
    from .rewinding import rewind  # needs the whole storage, which a list of entries does not

    try:
        rewind(
            disk,
            directories,
            read_point(journal, number),
            node_id=manifest.node_id,
            now_ms=time.time_ns() // 1_000_000,
        )
    except PointLost as error:
        line = next(each for each in journal.lines if each["number"] == number)
        at_ms = ended_ms(line)
        if at_ms is not None and manifest.created_ms < int(at_ms):
            raise PointLost(f"the savepoint is older than #{number}, and has nothing of what came later") from None
        raise error from None


def _empty(directory: Path) -> None:
    disk = UnsyncedDisk()
    for path in directory.iterdir():
        if path.is_dir():
            disk.remove_directory(str(path))
        else:
            path.unlink()
