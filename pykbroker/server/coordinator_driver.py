"""Drives the group coordinator: one shard for each partition of `__consumer_offsets` that this node leads.

A shard's records are appended to its partition, and the answers of a step go out once the partition's high watermark
is past them; every answer waits for what was appended before it, so nobody is told what could still be lost. When a
partition becomes led here its log is read first. Kafka's counterpart is `CoordinatorRuntime`.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from random import Random
from typing import Any, Protocol

import trio

from pykbroker.config import BrokerConfig
from pykbroker.groups.config import GroupConfig
from pykbroker.groups.context import GroupRequestContext
from pykbroker.groups.records import CoordinatorRecord
from pykbroker.groups.shard import GroupRequest, GroupShard
from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_records import OffsetCommitKey
from pykbroker.replication.partition import ACKS_ALL, Partition
from pykbroker.state_machine import Completion, Result, Token
from pykbroker.storage.errors import DiskFailed
from pykbroker.storage.log import AppendOrigin, AppendResult
from pykbroker.storage.validation import RecordsRejected

from .clock import Clock
from .coordinator_log import Replayer, encode_batches, record_room_bytes
from .threads import Threads

_log = logging.getLogger(__name__)

CONSUMER_OFFSETS = "__consumer_offsets"

_ERRORS_OF_APPENDING = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
"""What clients are told of an append that failed; anything else is UNKNOWN_SERVER_ERROR."""

_READ_BYTES = 1 << 18
_SHOWN_CAUSE_CHARACTERS = 500


class CoordinatorRefused(Exception):
    """The request was not carried out, or nobody knows whether it was; the code is for the client."""

    def __init__(self, error_code: ErrorCode) -> None:
        super().__init__(error_code.name)
        self.error_code = error_code


class Replicas(Protocol):
    """What of the node's replica manager is needed here."""

    def append(
        self,
        partition: Partition,
        records: bytes | memoryview,
        now_ms: int,
        required_acks: int,
        origin: AppendOrigin = ...,
    ) -> AppendResult | ErrorCode: ...


class _Phase(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    CLOSED = "closed"


@dataclass(slots=True)
class _Waiting:
    """A caller of `submit` whose answer is still owed; the first word counts."""

    event: trio.Event
    response: object = None
    error_code: ErrorCode = ErrorCode.NONE

    def answer(self, response: object) -> None:
        if not self.event.is_set():
            self.response = response
            self.event.set()

    def refuse(self, error_code: ErrorCode) -> None:
        if not self.event.is_set():
            self.error_code = error_code
            self.event.set()


@dataclass(frozen=True, slots=True)
class _Uncommitted:
    """Answers that are due when the high watermark reaches end_offset, and given up at the deadline."""

    end_offset: int
    deadline_ms: int
    completed: Sequence[Completion]


class _LedShard:
    """One shard and the partition that it lives in, for one leader epoch."""

    def __init__(self, partition: Partition, shard: GroupShard, commit_timeout_ms: int) -> None:
        self.partition = partition
        self.name = f"{partition.topic}-{partition.index}"
        self.shard = shard
        self.phase = _Phase.LOADING
        self.loaded = trio.Event()
        self.deleted_topics: set[bytes] = set()
        """Ids of topics that were deleted while the log was read."""
        self._commit_timeout_ms = commit_timeout_ms
        self._end_offset = 0
        self._uncommitted: deque[_Uncommitted] = deque()
        self._waiting: dict[Token, _Waiting] = {}

    def open(self) -> None:
        self.phase = _Phase.ACTIVE
        self._end_offset = self.partition.log.log_end_offset
        self.partition.watchers[self] = None
        self.loaded.set()

    def close(self, error_code: ErrorCode) -> None:
        """Whoever still waits here learns `error_code`."""
        self.phase = _Phase.CLOSED
        self.partition.watchers.pop(self, None)
        self._uncommitted.clear()
        self.loaded.set()
        for waiting in self._waiting.values():
            waiting.refuse(error_code)

    def await_answer(self, token: Token) -> _Waiting:
        waiting = self._waiting[token] = _Waiting(trio.Event())
        return waiting

    def forget(self, token: Token) -> None:
        """Nobody waits for the answer any more; what the request did stays."""
        del self._waiting[token]

    def refuse(self, completed: Sequence[Completion], error_code: ErrorCode) -> None:
        for completion in completed:
            if completion.token in self._waiting:
                self._waiting[completion.token].refuse(error_code)

    def appended(self, end_offset: int) -> None:
        self._end_offset = end_offset

    def complete(self, completed: Sequence[Completion], now_ms: int) -> None:
        """Answers as soon as all that was appended so far is committed."""
        if completed:
            self._uncommitted.append(_Uncommitted(self._end_offset, now_ms + self._commit_timeout_ms, completed))
            self._answer_committed()

    def partition_changed(self, partition: Partition) -> None:
        assert partition is self.partition
        self._answer_committed()

    def _answer_committed(self) -> None:
        while self._uncommitted and self._uncommitted[0].end_offset <= self.partition.high_watermark:
            for completion in self._uncommitted.popleft().completed:
                waiting = self._waiting.get(completion.token)
                if waiting is not None:
                    waiting.answer(completion.response)

    def next_deadline_ms(self) -> int | None:
        deadlines = [self.shard.next_deadline_ms(), self._uncommitted[0].deadline_ms if self._uncommitted else None]
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def give_up_uncommitted(self, now_ms: int) -> None:
        while self._uncommitted and self._uncommitted[0].deadline_ms <= now_ms:
            self.refuse(self._uncommitted.popleft().completed, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class CoordinatorDriver:
    """The group coordinators of a node.

    To be subscribed to `__consumer_offsets` at the replica manager, and with `apply` at the controller's driver.

    image: the newest committed metadata; the number of partitions in it decides where a group lives.
    """

    def __init__(
        self,
        config: BrokerConfig,
        replicas: Replicas,
        *,
        image: Callable[[], MetadataImage],
        clock: Clock,
        threads: Threads,
        rng: Random,
    ) -> None:
        self._config = group_config(config)
        self._commit_timeout_ms = config.int("offsets.commit.timeout.ms")
        self._replicas = replicas
        self._image = image
        self._clock = clock
        self._threads = threads
        self._rng = rng
        self._shards: dict[int, _LedShard] = {}
        self._to_load: deque[_LedShard] = deque()
        self._work = trio.Event()
        self._next_wake_ms = math.inf
        self._last_token = 0

    # Where a group lives

    def partition_for(self, group_id: str) -> int | None:
        """The partition of `__consumer_offsets` that a group's records are in; None where the topic is missing."""
        topic = self._image().topic(CONSUMER_OFFSETS)
        return None if topic is None else abs_java_hash(group_id) % len(topic.partitions)

    async def wait_until_active(self, index: int) -> bool:
        """Waits while the partition's log is being read; False where this node does not serve it."""
        while (led := self._shards.get(index)) is not None and led.phase is _Phase.LOADING:
            await led.loaded.wait()
        return led is not None and led.phase is _Phase.ACTIVE

    @property
    def active_partitions(self) -> list[int]:
        return [index for index, led in self._shards.items() if led.phase is _Phase.ACTIVE]

    @property
    def loading_partitions(self) -> list[int]:
        return [index for index, led in self._shards.items() if led.phase is _Phase.LOADING]

    def shard(self, index: int) -> GroupShard | None:
        """The rules and state of an active partition, to look at."""
        led = self._shards.get(index)
        return led.shard if led is not None and led.phase is _Phase.ACTIVE else None

    # Requests

    async def submit(self, group_id: str, request: GroupRequest, context: GroupRequestContext) -> Any:
        """The response to a request about one group. Raises CoordinatorRefused.

        Whoever is cancelled meanwhile loses the answer, not the effect.
        """
        index = self.partition_for(group_id)
        if index is None:
            raise CoordinatorRefused(ErrorCode.NOT_COORDINATOR)
        return await self.submit_to_partition(index, request, context)

    async def submit_to_partition(self, index: int, request: GroupRequest, context: GroupRequestContext) -> Any:
        """The response of one shard. Raises CoordinatorRefused."""
        led = self._shards.get(index)
        if led is None or led.phase is _Phase.CLOSED:
            raise CoordinatorRefused(ErrorCode.NOT_COORDINATOR)
        if led.phase is _Phase.LOADING:
            raise CoordinatorRefused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        self._last_token += 1
        token = Token(self._last_token)
        waiting = led.await_answer(token)
        try:
            now_ms, timestamp_ms = self._clock.monotonic_ms(), self._clock.now_ms()
            self._take(led, led.shard.handle(request, token, now_ms, context, timestamp_ms), now_ms, timestamp_ms)
            await waiting.event.wait()
        finally:
            led.forget(token)
        if waiting.error_code is not ErrorCode.NONE:
            raise CoordinatorRefused(waiting.error_code)
        return waiting.response

    def _take(self, led: _LedShard, result: Result[CoordinatorRecord], now_ms: int, timestamp_ms: int) -> None:
        """Appends the records of a step, and has its answers sent once they are committed."""
        if result.cause and _log.isEnabledFor(_level(result)):
            _log.log(_level(result), "%s: %s", led.name, _one_line(result.cause))
        if result.records:
            appended = self._append(led.partition, result.records, timestamp_ms)
            if isinstance(appended, ErrorCode):
                _log.error("%s: cannot append: %s; %s", led.name, appended.name, _one_line(result.cause))
                led.refuse(result.completed, _ERRORS_OF_APPENDING.get(appended, ErrorCode.UNKNOWN_SERVER_ERROR))
                self._reload(led)
                return
            led.appended(appended)
        led.complete(result.completed, now_ms)
        deadline_ms = led.next_deadline_ms()
        if deadline_ms is not None and deadline_ms < self._next_wake_ms:
            self._work.set()

    def _append(self, partition: Partition, records: Sequence[CoordinatorRecord], timestamp_ms: int) -> int | ErrorCode:
        """The log's end behind the records, or what was wrong."""
        end_offset = 0
        for batch in encode_batches(records, timestamp_ms, partition.log.config.max_message_bytes):
            try:
                result = self._replicas.append(partition, batch, timestamp_ms, ACKS_ALL, AppendOrigin.COORDINATOR)
            except RecordsRejected as rejected:
                return rejected.error_code
            if isinstance(result, ErrorCode):
                return result
            end_offset = result.last_offset + 1
        return end_offset

    # Leadership

    def on_election(self, partition: Partition) -> None:
        """The partition is led here, from now on or in a new leader epoch."""
        self._unload(partition.index)
        self._load(partition)

    def on_resignation(self, index: int) -> None:
        """Another node leads it, or it is gone; perhaps it never was led here."""
        self._unload(index)

    def apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        """Topics that were deleted take the offsets that were committed for them along."""
        deleted = {topic_id: topic.name for topic_id, topic in changes.deleted_topics.items()}
        if not deleted:
            return
        now_ms, timestamp_ms = self._clock.monotonic_ms(), self._clock.now_ms()
        for led in list(self._shards.values()):
            if led.phase is _Phase.ACTIVE:
                result = led.shard.forget_topics(deleted, set(deleted.values()), now_ms, timestamp_ms)
                self._take(led, result, now_ms, timestamp_ms)
            else:
                led.deleted_topics |= deleted.keys()

    def _unload(self, index: int) -> None:
        led = self._shards.pop(index, None)
        if led is not None:
            level = logging.INFO if led.shard.groups else logging.DEBUG
            _log.log(level, "%s: %d groups unloaded", led.name, len(led.shard.groups))
            led.close(ErrorCode.NOT_COORDINATOR)

    def _load(self, partition: Partition) -> None:
        room = record_room_bytes(partition.log.config.max_message_bytes)
        shard = GroupShard(replace(self._config, max_record_bytes=room), self._rng)
        led = _LedShard(partition, shard, self._commit_timeout_ms)
        self._shards[partition.index] = led
        self._to_load.append(led)
        self._work.set()

    def _reload(self, led: _LedShard) -> None:
        """What the log does not have did not happen."""
        led.close(ErrorCode.NOT_COORDINATOR)
        self._load(led.partition)

    # The task

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Loads what is elected and runs the timers, until it is cancelled."""
        task_status.started()
        try:
            while True:
                while self._to_load:
                    await self._load_shard(self._to_load.popleft())
                self._expire()
                await self._wait_for_work()
        finally:
            for index in list(self._shards):
                self._unload(index)

    def _expire(self) -> None:
        now_ms = self._clock.monotonic_ms()
        for led in list(self._shards.values()):
            if led.phase is not _Phase.ACTIVE:
                continue
            led.give_up_uncommitted(now_ms)
            deadline_ms = led.shard.next_deadline_ms()
            if deadline_ms is not None and deadline_ms <= now_ms:
                timestamp_ms = self._clock.now_ms()
                self._take(led, led.shard.expire(now_ms, timestamp_ms), now_ms, timestamp_ms)

    async def _wait_for_work(self) -> None:
        deadlines = [led.next_deadline_ms() for led in self._shards.values() if led.phase is _Phase.ACTIVE]
        self._next_wake_ms = min((deadline for deadline in deadlines if deadline is not None), default=math.inf)
        wait_s = max(self._next_wake_ms - self._clock.monotonic_ms(), 0) / 1000
        with trio.move_on_after(wait_s):
            await self._work.wait()
        self._work = trio.Event()

    async def _load_shard(self, led: _LedShard) -> None:
        replayer = Replayer(led.shard, led.name)
        try:
            await self._read_log(led, replayer)
        except DiskFailed:
            # Whoever owns the directory takes it offline and says so; here is nothing to serve.
            if led.phase is _Phase.LOADING:
                self._unload(led.partition.index)
        if led.phase is not _Phase.LOADING:
            return
        now_ms, timestamp_ms = self._clock.monotonic_ms(), self._clock.now_ms()
        led.open()
        counts = len(led.shard.groups), replayer.replayed, replayer.skipped
        level = logging.INFO if any(counts) else logging.DEBUG
        _log.log(level, "%s: %d groups loaded from %d records, %d skipped", led.name, *counts)
        self._take(led, led.shard.start_timers(now_ms, timestamp_ms), now_ms, timestamp_ms)
        self._forget_deleted_topics(led)

    def _forget_deleted_topics(self, led: _LedShard) -> None:
        """Those of the time while the log was read; only by id, since a new topic may have the name meanwhile."""
        if led.deleted_topics and led.phase is _Phase.ACTIVE:
            now_ms, timestamp_ms = self._clock.monotonic_ms(), self._clock.now_ms()
            result = led.shard.forget_topics(led.deleted_topics, (), now_ms, timestamp_ms)
            self._take(led, result, now_ms, timestamp_ms)

    async def _read_log(self, led: _LedShard, replayer: Replayer) -> None:
        log = led.partition.log
        offset, end_offset = log.log_start_offset, log.log_end_offset
        while offset < end_offset and led.phase is _Phase.LOADING:
            piece = log.read(offset, _READ_BYTES, max_offset=end_offset, min_one_batch=True)
            read_on = replayer.replay(await self._threads.run(piece.read), offset)
            if read_on <= offset:
                _log.error("%s: nothing can be read at offset %d, groups behind it are lost", led.name, offset)
                return
            offset = read_on


def group_config(config: BrokerConfig) -> GroupConfig:
    return GroupConfig(
        initial_rebalance_delay_ms=config.int("group.initial.rebalance.delay.ms"),
        min_session_timeout_ms=config.int("group.min.session.timeout.ms"),
        max_session_timeout_ms=config.int("group.max.session.timeout.ms"),
        max_size=config.int("group.max.size"),
        offsets_retention_ms=config.int("offsets.retention.minutes") * 60_000,
        offsets_retention_check_interval_ms=config.int("offsets.retention.check.interval.ms"),
        offset_metadata_max_chars=config.int("offset.metadata.max.bytes"),
    )


def abs_java_hash(text: str) -> int:
    """`Utils.abs(text.hashCode())` of Kafka: over UTF-16 units, and 0 for the one value that has no absolute value."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    if value >= 1 << 31:
        value -= 1 << 32
    return 0 if value == -(1 << 31) else abs(value)


def _level(result: Result[CoordinatorRecord]) -> int:
    """Commits are daily business; whatever changes a group is told."""
    only_offsets = result.records and all(isinstance(record.key, OffsetCommitKey) for record in result.records)
    return logging.DEBUG if only_offsets else logging.INFO


def _one_line(cause: str) -> str:
    """Member ids and reasons come from clients: nobody writes our log but us."""
    return ascii(cause)[1:-1][:_SHOWN_CAUSE_CHARACTERS]
