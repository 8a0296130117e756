"""A truncation of a log that is in use waits for the disk or reads much in threads (`storage.log.truncation`).

A partition whose log is being truncated is not fetched for, and must not change its leader meanwhile: the task that
applies metadata waits for `settled` first, as Apache Kafka's fetcher threads and its replica manager wait for each
other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import trio

from pykbroker.replication.due_truncation import DueTruncation
from pykbroker.replication.partition import Partition
from pykbroker.storage.files.errors import CorruptLog, FileError
from pykbroker.storage.log.log_state import LogState
from pykbroker.storage.log.truncation import Truncation

from ..runtime.threads import Threads


async def carry_out(truncation: Truncation, threads: Threads) -> None:
    """Truncate the log. Once begun the truncation comes to its end, whoever is cancelled. Raises `FileError`,
    `CorruptLog`.
    """
    with trio.CancelScope(shield=True):
        try:
            await threads.run(truncation.prepare)
            while not truncation.cut():
                await trio.lowlevel.checkpoint()
            await threads.run(truncation.finish)
        finally:
            truncation.end()


class LogTruncations:
    """The truncations that are under way, by their logs. on_damage: told of a partition whose files are not what they
    should be.
    """

    def __init__(self, threads: Threads, on_damage: Callable[[Partition, CorruptLog], None]) -> None:
        self._threads = threads
        self._on_damage = on_damage
        self._under_way: dict[LogState, trio.Event] = {}

    async def run(self, due: DueTruncation) -> FileError | None:
        """Truncate what is due, and return what the disk refused, if it did."""
        truncation = due.truncation
        if truncation is None:
            return None
        ended = self._under_way[truncation.log] = trio.Event()
        try:
            await carry_out(truncation, self._threads)
        except FileError as failure:
            return failure
        except CorruptLog as damage:
            self._on_damage(due.followed.partition, damage)
        finally:
            del self._under_way[truncation.log]
            ended.set()
        return None

    async def settled(self, partitions: Iterable[Partition]) -> None:
        """Return when none of the partitions' logs is being truncated, nor about to be."""
        concerned = list(partitions)
        while (busy := next((each for each in concerned if each.log.is_being_truncated), None)) is not None:
            ended = self._under_way.get(busy.log)
            if ended is None:
                await trio.lowlevel.checkpoint()  # its fetcher has begun it, and is about to carry it out
            else:
                await ended.wait()
