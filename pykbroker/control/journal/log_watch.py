"""A watch over the logs of a node: which of them begin or end elsewhere than at the last look.

Nobody is asked who has not changed: the disk says which files were written, renamed or removed (`FlushedDisk.watch`).
So it does not matter who appends, a client or a coordinator, nor whether a request has set it off.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

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


class _Watched(NamedTuple):
    at: TopicPartition
    topic_id: str
    log: Log
    directory: LogDirectory | None
    path: str

    def end(self, cleanings: Mapping[TopicPartition, int]) -> LogEnd:
        log = self.log
        checkpoint = None if self.directory is None else self.directory.cleaned_offset(self.at)
        cleaned = max(checkpoint or 0, log.cleaned_end_offset)  # the checkpoint comes behind a log's last segment
        return LogEnd(self.topic_id, log.log_start_offset, log.log_end_offset, cleaned, cleanings.get(self.at, 0))


class LogWatch:
    """The watch over the logs of one node, through all its starts. On its event loop."""

    def __init__(self, node: Callable[[], Node | None], disk: FlushedDisk) -> None:
        self._node = node
        self.disk: Final = disk
        disk.watch()
        self._watched: dict[str, _Watched] = {}
        """By the directories of the logs."""
        self._known: dict[TopicPartition, LogEnd] = {}
        self._cleanings: dict[TopicPartition, int] = {}
        """Segments that compaction has put in the place of others."""
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
        self._watched, self._must_look_at_all = {}, True

    def changes(self) -> Ends:
        """Return the logs that have changed since the last call, None for those that are gone."""
        disk = self.disk
        if not disk.touched and not self._must_look_at_all:
            return NO_ENDS
        node = self._node()
        parts = None if node is None else node.parts
        if node is None or parts is None or parts.broker_role is None or not node.serves:
            return NO_ENDS  # what was touched is looked at when it serves
        changed = self._look(disk.take_touched())
        return self._look_at_all(parts) if self._must_look_at_all else changed

    def _look(self, touched: set[Extent | str]) -> Ends:
        """Look at the logs that these files are of; at all of them next, where one of them may be a log that is not
        known.
        """
        changed: dict[TopicPartition, LogEnd | None] = {}
        for each in touched:
            watched = self._log_of(each)
            if watched is None:
                continue
            log = watched.log
            if log.is_closed or log.directory != watched.path:
                self._must_look_at_all = True
                continue
            end = watched.end(self._cleanings)
            if end != self._known.get(watched.at):
                changed[watched.at] = end
        if not self._must_look_at_all:
            self._known |= changed  # type: ignore[arg-type]  # none is gone
        return changed

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
            self._cleanings[watched.at] = self._cleanings.get(watched.at, 0) + 1
        elif not isinstance(touched, str):
            touched.mark = watched  # until the next look at all logs
        return watched

    def _look_at_all(self, parts: NodeParts) -> Ends:
        self._must_look_at_all = False
        self._watched = _logs(parts)
        now = {each.at: each.end(self._cleanings) for each in self._watched.values()}
        known, self._known = self._known, now
        gone = [at for at in known if at not in now]
        for at in gone:
            self._cleanings.pop(at, None)
        changed: dict[TopicPartition, LogEnd | None] = {at: end for at, end in now.items() if end != known.get(at)}
        return changed | dict.fromkeys(gone)


def _logs(parts: NodeParts) -> dict[str, _Watched]:
    """The logs of a node that serves, by their directories."""
    assert parts.broker_role is not None
    partitions = parts.broker_role.broker.partitions
    metadata = parts.node.raft.metadata_log.log
    found = {metadata.directory: _Watched(METADATA, "", metadata, None, metadata.directory)}
    for each in partitions.partitions():
        directory = partitions.logs.directory_of(each.log)
        if directory is not None:
            at = TopicPartition(each.topic, each.index)
            path = each.log.directory
            found[path] = _Watched(at, uuid_to_text(each.topic_id), each.log, directory, path)
    return found


def _is_log(path: str) -> bool:
    return parse_partition_directory(posixpath.basename(path)) is not None
