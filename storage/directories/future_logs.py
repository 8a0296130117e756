"""Copies of logs of other directories, in the log directory where they are to be complete some day (KIP-113).

Who copies is `log_copy`; Kafka's counterpart is what `LogManager` knows as future logs.
"""

import logging
import posixpath
from random import Random

from pykbroker.protocol.topic_partition import TopicPartition

from ..files.disk import Disk
from ..files.errors import CorruptLog
from ..log.log import PRODUCER_ID_EXPIRATION_MS, Log
from ..segments.log_config import LogConfig
from .directory_names import DELETE_SUFFIX, FUTURE_SUFFIX, deleted_future, name_aside
from .partition_metadata import read_topic_id, write_topic_id

_log = logging.getLogger(__name__)


class FutureLogs:
    """Logs on their way to this directory. is_clean: those of the earlier run were closed cleanly.

    Their directories end in `-future`. logs: those that are open. found: those of an earlier run that are not.
    """

    def __init__(self, disk: Disk, path: str, *, rng: Random, is_clean: bool) -> None:
        self.logs: dict[TopicPartition, Log] = {}
        self.found: dict[tuple[bytes, int], str] = {}
        """By topic id and partition: the names of copies that an earlier run has begun."""
        self._disk = disk
        self._path = path
        self._rng = rng
        self._is_clean = is_clean

    def find(self, name: str, partition: int) -> None:
        """One that does not say whose copy it is, or comes second, is of no use."""
        path = self._join(name)
        topic_id = read_topic_id(self._disk, path)
        if topic_id is None or (topic_id, partition) in self.found:
            self._disk.rename(path, deleted_future(path))
        else:
            self.found[topic_id, partition] = name

    def open(
        self,
        at: TopicPartition,
        topic_id: bytes,
        config: LogConfig,
        *,
        now_ms: int,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
    ) -> Log:
        """A log to copy into: that of an earlier run, or a new one. May run in a thread. Raises `FileError`."""
        name = self.found.pop((topic_id, at.partition), None)
        path = self._new_path(at) if name is None else self._join(name)

        def open_at(path: str) -> Log:
            return Log.open(
                self._disk,
                path,
                config,
                now_ms=now_ms,
                clean_shutdown=self._is_clean and name is not None,
                has_been_compacted=True,
                producer_id_expiration_ms=producer_id_expiration_ms,
                rng=self._rng,
            )

        try:
            log = open_at(path)
        except CorruptLog as error:
            _log.warning("the copy of %s begins anew, since what there is of it is damaged: %s", at, error)
            self._disk.rename(path, deleted_future(path))
            log = open_at(self._new_path(at))
        write_topic_id(self._disk, log.directory, topic_id, sync=True)
        self.logs[at] = log
        return log

    def delete(self, at: TopicPartition) -> str:
        """Give up the copy. Returns the path that `LogDirectory.remove_deleted` is to remove."""
        log = self.logs.pop(at)
        log.abandon()
        target = self._join(name_aside(at, DELETE_SUFFIX, self._rng))
        self._disk.rename(log.directory, target)
        return target

    def delete_found(self, topic_id: bytes, partition: int) -> str:
        """The same for a copy of an earlier run that nobody needs."""
        path = self._join(self.found.pop((topic_id, partition)))
        target = deleted_future(path)
        self._disk.rename(path, target)
        return target

    def _new_path(self, at: TopicPartition) -> str:
        return self._join(name_aside(at, FUTURE_SUFFIX, self._rng))

    def _join(self, name: str) -> str:
        return posixpath.join(self._path, name)
