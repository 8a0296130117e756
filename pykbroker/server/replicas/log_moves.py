"""Moves replicas from one log directory of this node to another, while they are written and read (KIP-113).

A copy (`storage.log.log_copy.LogCopy`) follows the log until nothing is missing, the controller is told (KIP-858), and
then the copy takes the log's place between two appends. Copying runs in threads; what a restart interrupts goes on
after it. Kafka's counterparts are `ReplicaAlterLogDirsManager` and its threads.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, TypeVarTuple, Unpack

import trio

from pykbroker.config import BrokerConfig
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.replication.partition import Partition
from pykbroker.storage.directories.directory_names import has_room_for_future_name
from pykbroker.storage.directories.log_dirs import LogDirectory
from pykbroker.storage.files.errors import CorruptLog, DiskFailed, FileError, NoRoom
from pykbroker.storage.log.log import Log
from pykbroker.storage.log.log_copy import LogCopy

from ..runtime.clock import Clock
from ..runtime.threads import Threads
from .directory_assignments import DirectoryAssignments
from .replica_manager import ReplicaManager

_log = logging.getLogger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_COPY_BYTES = 1 << 20
_INLINE_BYTES = 64 << 10
"""The copy takes over when no more bytes are left than can be copied between two appends."""
_MOST_THREADS = 4
"""Slices are copied by so many of the node's worker threads, whatever the number of moves: others find one as well."""


def moves_at_once(config: BrokerConfig) -> int:
    """Return how many moves go on at a time: `num.replica.alter.log.dirs.threads`, or one for each log directory.

    A thread of Kafka's copies one partition at a time as well (`LocalLeaderEndPoint`). Its threads with less than one
    thread fail at the first move; here one goes on then.
    """
    given = config.value("num.replica.alter.log.dirs.threads")
    return max(given, 1) if isinstance(given, int) else len(config.log_dirs)


@dataclass(eq=False, slots=True)
class Move:
    partition: Partition
    destination: LogDirectory
    copy: LogCopy | None = None
    start_offset: int = 0
    """The copy begins here, as the destination's checkpoint has it."""
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    ended: trio.Event = field(default_factory=trio.Event)

    @property
    def at(self) -> TopicPartition:
        return TopicPartition(self.partition.topic, self.partition.index)


class LogMoves:
    """`run` before anything is asked for. most_at_once: how many moves go on at a time (`moves_at_once`)."""

    def __init__(
        self,
        replicas: ReplicaManager,
        assignments: DirectoryAssignments,
        *,
        most_at_once: int,
        clock: Clock,
        threads: Threads,
    ) -> None:
        self._replicas = replicas
        self._assignments = assignments
        self._clock = clock
        self._threads = threads
        self._moves: dict[Partition, Move] = {}
        self._latest: dict[Partition, Move] = {}
        """The moves under way, and those that were taken back and whose copies are not gone yet."""
        self._limiter = trio.CapacityLimiter(most_at_once)
        self._working = trio.CapacityLimiter(_MOST_THREADS)
        self._limit = replicas.quotas.log_moves
        self._nursery: trio.Nursery | None = None

    @property
    def copies(self) -> Mapping[Log, LogCopy]:
        """Return the moves under way, by the log that they become."""
        return {move.copy.log: move.copy for move in self._moves.values() if move.copy is not None}

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Move logs until the task is cancelled. Copies that an earlier run has begun go on."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            self._resume()
            task_status.started()
            await trio.sleep_forever()

    def _resume(self) -> None:
        logs = self._replicas.logs
        for directory in list(logs.directories):
            for topic_id, index in list(directory.futures.found):
                partition = self._replicas.get_partition_by_id(topic_id, index)
                if isinstance(partition, Partition) and logs.directory_of(partition.log) is not directory:
                    self._begin(partition, directory)
                elif isinstance(partition, Partition) or partition is ErrorCode.UNKNOWN_TOPIC_ID:
                    self._forget_found(directory, topic_id, index)

    def _forget_found(self, directory: LogDirectory, topic_id: bytes, index: int) -> None:
        try:
            path = directory.futures.delete_found(topic_id, index)
        except FileError as failure:
            self._replicas.failures.in_directory(directory, failure)
        else:
            self._replicas.logs.remove_now(directory, [path])

    # Requests

    def move(self, topic: str, index: int, path: str) -> ErrorCode:
        """Begin to move the replica there, or end a move where it is there already. A replica that is not here gets its
        log there when it comes.
        """
        if not has_room_for_future_name(topic, index):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        directories = self._replicas.log_directories()
        if path not in directories:
            return ErrorCode.LOG_DIR_NOT_FOUND
        destination = directories[path]
        if destination is None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if path in self._replicas.cordoned_log_directories():
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT
        partition = self._replicas.get_partition(topic, index)
        if isinstance(partition, ErrorCode):
            if partition in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                self._replicas.logs.preferred.note(TopicPartition(topic, index), destination)
            not_here = partition is ErrorCode.NOT_LEADER_OR_FOLLOWER
            return ErrorCode.REPLICA_NOT_AVAILABLE if not_here else partition
        under_way = self._moves.get(partition)
        if under_way is not None:
            if under_way.destination is destination:
                return ErrorCode.NONE
            under_way.scope.cancel()
            del self._moves[partition]
        if self._replicas.logs.directory_of(partition.log) is not destination:
            self._begin(partition, destination)
        return ErrorCode.NONE

    def _begin(self, partition: Partition, destination: LogDirectory) -> None:
        assert self._nursery is not None, "not running"
        before = self._latest.get(partition)
        move = self._moves[partition] = self._latest[partition] = Move(partition, destination)
        self._nursery.start_soon(self._run_after, before, move)

    # One move

    async def _run_after(self, before: Move | None, move: Move) -> None:
        """The copy of an earlier move of the same partition goes first."""
        try:
            if before is not None:
                await before.ended.wait()
            source = self._replicas.logs.directory_of(move.partition.log)
            if source is not None and source is not move.destination:
                await self._run_move(move, source)
        finally:
            move.ended.set()
            for moves in (self._moves, self._latest):
                if moves.get(move.partition) is move:
                    del moves[move.partition]

    async def _run_move(self, move: Move, source: LogDirectory) -> None:
        destination, log = move.destination, move.partition.log
        cleaned_offset = source.cleaned_offset(move.at)
        self._replicas.logs.moving.add(log)
        _log.info("moving %s from %s to %s", move.at, source.path, destination.path)
        try:
            with move.scope:
                async with self._limiter:
                    await self._copy(move, cleaned_offset)
                _log.info("moved %s from %s to %s", move.at, source.path, destination.path)
        except _Gone as gone:
            _log.info("moving %s to %s has ended: %s", move.at, destination.path, gone)
        except CorruptLog as error:
            _log.error("%s cannot be moved to %s: %s", move.at, destination.path, error)
        except NoRoom as failure:
            _log.error("moving %s to %s has ended: %s", move.at, destination.path, failure)
        except DiskFailed as failure:
            failed = destination if _is_below(failure.path, destination) else source
            self._replicas.failures.in_directory(failed, failure)
        finally:
            self._replicas.logs.moving.discard(log)
            self._end(move)

    def _end(self, move: Move) -> None:
        """A copy that did not become the log goes, unless the node ends: then it goes on with the next start."""
        copy, destination = move.copy, move.destination
        if copy is None or destination.futures.logs.get(move.at) is not copy.log or destination.is_offline:
            return
        assert self._nursery is not None
        if self._nursery.cancel_scope.cancel_called:
            return
        try:
            path = destination.delete_copy(move.at)
        except FileError as failure:
            self._replicas.failures.in_directory(destination, failure)
        else:
            self._replicas.logs.remove_now(destination, [path])

    async def _copy(self, move: Move, cleaned_offset: int | None) -> None:
        partition, destination = move.partition, move.destination
        source = partition.log
        log = await self._work(
            lambda: destination.open_copy(move.at, partition.topic_id, source.config, now_ms=self._clock.now_ms())
        )
        copy = move.copy = LogCopy(source, log)
        self._check(move, source)
        await self._catch_up(move, copy)
        if cleaned_offset is not None:
            await self._threads.run(destination.checkpoint_cleaned_offset, move.at, log, cleaned_offset)
        await self._assignments.assign(partition.topic_id, partition.index, destination.directory_id)
        self._check(move, source)
        while not self._take_over(move, copy):
            await self._catch_up(move, copy)
        with trio.CancelScope(shield=True):
            await self._threads.run(destination.sync_names)
            self._replicas.logs.delete(source)

    async def _catch_up(self, move: Move, copy: LogCopy) -> None:
        self._check(move, copy.source)
        while (data := copy.next_slice(self._slice_bytes(), now_ms=self._clock.now_ms())) is not None:
            await self._work(copy.append, data)
            self._limit.note(data.size, self._clock.monotonic_ms())
            await self._until_within_rate()
            self._check(move, copy.source)
        await self._work(copy.log.flush)
        self._check(move, copy.source)
        start_offset = copy.source.log_start_offset
        if move.start_offset < start_offset <= copy.log.recovery_point:
            await self._threads.run(move.destination.checkpoint_log_start_offset, move.at, copy.log, start_offset)
            move.start_offset = start_offset
            self._check(move, copy.source)

    async def _work(self, fn: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        async with self._working:
            return await self._threads.run(fn, *args)

    def _slice_bytes(self) -> int:
        """No more than a second's worth, so that a low rate is kept as well; one batch goes in any case."""
        rate = self._limit.bytes_per_second
        return _COPY_BYTES if rate is None else max(min(_COPY_BYTES, int(rate)), 1)

    async def _until_within_rate(self) -> None:
        """Return when the next slice may be copied, as the rate is then: it may change meanwhile."""
        while (free_at_ms := self._limit.free_at_ms(now_ms := self._clock.monotonic_ms())) > now_ms:
            with trio.move_on_after((free_at_ms - now_ms) / 1000):
                await self._replicas.quotas.changed.next()

    def _check(self, move: Move, source: Log) -> None:
        """The partition may be gone, or a directory offline, since the last look. Raises _Gone."""
        partition = move.partition
        if self._replicas.get_partition_by_id(partition.topic_id, partition.index) is not partition:
            raise _Gone("the partition is not here any more")
        if partition.log is not source or source.is_closed or move.destination.is_offline:
            raise _Gone("a log directory is offline")

    def _take_over(self, move: Move, copy: LogCopy) -> bool:
        """Copy the last few bytes without a pause, so that the copy becomes the log. False where more is missing.

        What is durable in the source is durable in the copy before: a crash may leave either in the log's place.
        """
        source = copy.source
        if source.is_being_truncated or source.log_start_offset > move.start_offset:
            return False
        data = copy.next_slice(_INLINE_BYTES, now_ms=self._clock.now_ms())
        if data is not None:
            copy.append(data)
        if copy.offset_lag:
            return False
        copy.finish()
        durable_end_offset = source.recovery_point
        if copy.log.recovery_point < durable_end_offset:
            copy.log.flush()
        self._replicas.replace_log(move.partition, move.destination.promote_future(move.at, durable_end_offset))
        return True


class _Gone(Exception):
    """There is nothing to move any more, or nowhere to."""


def _is_below(path: str, directory: LogDirectory) -> bool:
    return posixpath.abspath(path).startswith(posixpath.abspath(directory.path) + "/")
