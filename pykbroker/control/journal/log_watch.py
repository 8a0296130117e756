"""A watch over the logs of a node: which of them begin or end elsewhere than at the last look.

Nobody is asked who has not changed: the disk says which files were written, renamed or removed (`FlushedDisk.watch`).
So it does not matter who appends, a client or a coordinator, nor whether a request has set it off.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import Final

from pykbroker.control.nodes.flushed_disk import Extent, FlushedDisk
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.protocol.uuids import uuid_to_text
from pykbroker.server.node.composition.parts import NodeParts
from pykbroker.server.node.node import Node
from pykbroker.storage.directories.directory_names import parse_partition_directory
from pykbroker.storage.directories.log_dirs import LogDirectory
from pykbroker.storage.files.checkpoints import CLEANED_OFFSET, LOG_START_OFFSET
from pykbroker.storage.log.log import Log
from pykbroker.storage.segments.segment import SWAP_SUFFIX

from .points import METADATA, NO_ENDS, Ends, LogEnd

_OF_ALL_LOGS: Final = frozenset({CLEANED_OFFSET, LOG_START_OFFSET})
"""Files of a log directory that say something of its logs."""


class _Watched:
    """A log that is watched. end: as it was at the last look; None before the first. cleanings: how many segments
    compaction has put in the place of others.
    """

    __slots__ = ("_cleaned_end_offset", "at", "cleanings", "directory", "end", "log", "path", "topic_id")

    def __init__(self, at: TopicPartition, topic_id: str, log: Log, directory: LogDirectory | None) -> None:
        self.at = at
        self.topic_id = topic_id
        self.log = log
        self.directory = directory
        self.path = log.directory
        self.end: LogEnd | None = None
        self.cleanings = 0
        self._cleaned_end_offset = 0

    def look(self) -> LogEnd:
        """Look at all that can be seen of it."""
        log = self.log
        checkpoint = None if self.directory is None else self.directory.cleaned_offset(self.at)
        self._cleaned_end_offset = log.cleaned_end_offset
        cleaned = max(checkpoint or 0, self._cleaned_end_offset)  # the checkpoint comes behind a log's last segment
        self.end = LogEnd(self.topic_id, log.log_start_offset, log.log_end_offset, cleaned, self.cleanings)
        return self.end

    def look_again(self) -> LogEnd:
        """Look at what an append changes, and a cleaning that goes on: no name of a file has changed, as one does
        where there is more to be seen.
        """
        log, end = self.log, self.end
        if end is None or log.cleaned_end_offset != self._cleaned_end_offset:
            return self.look()
        self.end = again = LogEnd(
            end.topic_id, log.log_start_offset, log.log_end_offset, end.cleaned_offset, self.cleanings
        )
        return again


class LogWatch:
    """The watch over the logs of one node, through all its starts. On its event loop."""

    def __init__(self, node: Callable[[], Node | None], disk: FlushedDisk) -> None:
        self._node = node
        self.disk: Final = disk
        disk.watch()
        self._watched: dict[str, _Watched] = {}
        """By the directories of the logs."""
        self._last: dict[TopicPartition, LogEnd] = {}
        """Where logs ended at the last look, while none is watched."""
        self._must_look_at_all = True

    @property
    def is_due_at_all(self) -> bool:
        """Tell whether the next look is at all logs."""
        return self._must_look_at_all

    def look_at_all(self) -> None:
        """The next look is to be at all logs: something happens that no file tells at once."""
        self._must_look_at_all = True

    def let_go(self) -> None:
        """Let go of the logs of a node that has ended, and keep in mind where they ended."""
        self._last, self._watched, self._must_look_at_all = self._known(), {}, True

    def changes(self) -> Ends:
        """Return the logs that have changed since the last call, None for those that are gone."""
        if self._must_look_at_all:
            return self._look_at_all()
        disk = self.disk
        if not disk.touched:
            return NO_ENDS
        changed: dict[TopicPartition, LogEnd | None] = {}
        for each in disk.take_touched():
            watched = self._log_of(each)
            if watched is None:
                continue
            log, before = watched.log, watched.end
            if log.is_closed or log.directory != watched.path:
                self._must_look_at_all = True
                continue
            end = watched.look() if isinstance(each, str) else watched.look_again()
            if end != before:
                changed[watched.at] = end
        return {**changed, **self._look_at_all()} if self._must_look_at_all else changed

    def _known(self) -> dict[TopicPartition, LogEnd]:
        """Return where logs ended at the last look."""
        return {each.at: each.end for each in self._watched.values() if each.end is not None} or self._last

    def _log_of(self, touched: Extent | str) -> _Watched | None:
        """Return the log that a file or a name is of; None where it is of no log that is known."""
        path: str | None
        if isinstance(touched, str):
            path = touched
        else:
            mark = touched.mark
            if isinstance(mark, _Watched) and self._watched.get(mark.path) is mark:
                return mark
            path = touched.path
            if path is None:
                return None  # its name is among what was touched
        directory = posixpath.dirname(path)
        watched = self._watched.get(directory)
        if watched is None:
            if posixpath.basename(path) in _OF_ALL_LOGS or _is_log(path) or _is_log(directory):
                self._must_look_at_all = True
        elif path.endswith(SWAP_SUFFIX):
            watched.cleanings += 1
        elif not isinstance(touched, str):
            touched.mark = watched  # until the next look at all logs
        return watched

    def _look_at_all(self) -> Ends:
        node = self._node()
        parts = None if node is None else node.parts
        if node is None or parts is None or parts.broker_role is None or not node.serves:
            return NO_ENDS  # what is touched until then is looked at when it serves
        for touched in self.disk.take_touched():
            self._log_of(touched)  # which counts cleanings
        known, before = self._known(), self._watched.values()
        cleanings = {at: end.cleanings for at, end in known.items()} | {each.at: each.cleanings for each in before}
        self._watched, self._must_look_at_all = _logs(parts), False
        changed: dict[TopicPartition, LogEnd | None] = {}
        for each in self._watched.values():
            each.cleanings = cleanings.get(each.at, 0)
            end = each.look()
            if end != known.pop(each.at, None):
                changed[each.at] = end
        return changed | dict.fromkeys(known)  # those that are gone


def _logs(parts: NodeParts) -> dict[str, _Watched]:
    """The logs of a node that serves, by their directories."""
    assert parts.broker_role is not None
    partitions = parts.broker_role.broker.partitions
    metadata = parts.node.raft.metadata_log.log
    found = {metadata.directory: _Watched(METADATA, "", metadata, None)}
    for each in partitions.partitions():
        directory = partitions.logs.directory_of(each.log)
        if directory is not None:
            at = TopicPartition(each.topic, each.index)
            found[each.log.directory] = _Watched(at, uuid_to_text(each.topic_id), each.log, directory)
    return found


def _is_log(path: str) -> bool:
    return parse_partition_directory(posixpath.basename(path)) is not None
