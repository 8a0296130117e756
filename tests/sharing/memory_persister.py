"""A persister in memory with the share coordinator's own rules: one shard, whose log is a list of encoded records.

`MemoryShareState` answers at once, for tests of pure rules. `MemoryPersister` is the same as a `Persister`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.sharing.coordinator.config import ShareCoordinatorConfig
from pykbroker.sharing.coordinator.records import ShareRecord, decode_record
from pykbroker.sharing.coordinator.requests import Delete, Initialize, Read, ReadSummary, ShareStateRequest, Write
from pykbroker.sharing.coordinator.shard import ShareShard
from pykbroker.sharing.persister import (
    Initialization,
    Outcome,
    PartitionState,
    Reading,
    SharePartitionKey,
    Writing,
)
from pykbroker.state_machine import CoordinatorContext, Result, Token

START_MS = 1_700_000_000_000
_CONTEXT = CoordinatorContext(api_version=0)


class MemoryShareState:
    """log: keys and values as they stand in the topic, from `log_start_offset` on. now_ms: moves by hand.

    partition_count: of a topic; without it every topic has any number of partitions.
    """

    def __init__(
        self,
        config: ShareCoordinatorConfig | None = None,
        partition_count: Callable[[bytes], int] = lambda topic_id: 1 << 31,
    ) -> None:
        self.config = config or ShareCoordinatorConfig()
        self.partition_count = partition_count
        self.log: list[tuple[bytes, bytes | None]] = []
        self.log_start_offset = 0
        self.now_ms = 0
        self.shard = self._loaded()

    def initialize(self, initializations: Sequence[Initialization]) -> list[Outcome]:
        answers: list[Outcome] = self._ask(Initialize(tuple(initializations)))
        return answers

    def read(self, readings: Sequence[Reading]) -> list[PartitionState]:
        answers: list[PartitionState] = self._ask(Read(tuple(readings)))
        return answers

    def write(self, writings: Sequence[Writing]) -> list[Outcome]:
        answers: list[Outcome] = self._ask(Write(tuple(writings)))
        return answers

    def delete(self, keys: Sequence[SharePartitionKey]) -> list[Outcome]:
        answers: list[Outcome] = self._ask(Delete(tuple(keys)))
        return answers

    def read_summary(self, readings: Sequence[Reading]) -> list[PartitionState]:
        answers: list[PartitionState] = self._ask(ReadSummary(tuple(readings)))
        return answers

    def crash(self) -> None:
        """Lose the memory, and read the log again."""
        self.shard = self._loaded()

    def pass_time(self, ms: int) -> None:
        """Let time pass, and do what is due then."""
        self.now_ms += ms
        while self.is_due:
            self.expire()

    @property
    def is_due(self) -> bool:
        deadline_ms = self.shard.next_deadline_ms()
        return deadline_ms is not None and deadline_ms <= self.now_ms

    def expire(self) -> None:
        """Make one step of what is due."""
        self.take(self.shard.expire(self.now_ms, START_MS + self.now_ms))

    def prune(self) -> None:
        """Delete the part of the log that is redundant."""
        end_offset = self.shard.redundant_end_offset()
        if end_offset is not None:
            del self.log[: max(end_offset - self.log_start_offset, 0)]
            self.log_start_offset = max(end_offset, self.log_start_offset)

    def take(self, result: Result[ShareRecord]) -> None:
        """Append what a step wants written."""
        for record in result.records:
            self.shard.logged(record, self.log_start_offset + len(self.log))
            self.log.append(record.encode())

    def _ask(self, request: ShareStateRequest) -> Any:
        result = self.shard.handle(request, Token(1), self.now_ms, _CONTEXT, START_MS + self.now_ms)
        self.take(result)
        (completion,) = result.completed
        return completion.response

    def _loaded(self) -> ShareShard:
        shard = ShareShard(self.config, self.partition_count)
        for offset, (key, value) in enumerate(self.log, self.log_start_offset):
            record = decode_record(key, value)
            shard.replay(record.key, record.value)
            shard.logged(record, offset)
        shard.start_timers(self.now_ms, START_MS + self.now_ms)
        return shard


class MemoryPersister:
    """A `Persister`. state: what it knows; to look at, to crash, to prune.

    errors: each of them answers all keys of one call, in place of the state, which does not change then.
    """

    def __init__(self, state: MemoryShareState | None = None) -> None:
        self.state = state or MemoryShareState()
        self.errors: deque[ErrorCode] = deque()

    async def initialize(self, initializations: Sequence[Initialization]) -> list[Outcome]:
        await trio.lowlevel.checkpoint()
        return self._failed([each.key for each in initializations]) or self.state.initialize(initializations)

    async def read(self, readings: Sequence[Reading]) -> list[PartitionState]:
        await trio.lowlevel.checkpoint()
        return self._unread(readings) or self.state.read(readings)

    async def write(self, writings: Sequence[Writing]) -> list[Outcome]:
        await trio.lowlevel.checkpoint()
        return self._failed([each.key for each in writings]) or self.state.write(writings)

    async def delete(self, keys: Sequence[SharePartitionKey]) -> list[Outcome]:
        await trio.lowlevel.checkpoint()
        return self._failed(keys) or self.state.delete(keys)

    async def read_summary(self, readings: Sequence[Reading]) -> list[PartitionState]:
        await trio.lowlevel.checkpoint()
        return self._unread(readings) or self.state.read_summary(readings)

    def _failed(self, keys: Sequence[SharePartitionKey]) -> list[Outcome]:
        if not self.errors:
            return []
        error_code = self.errors.popleft()
        return [Outcome(key, error_code, error_code.description) for key in keys]

    def _unread(self, readings: Sequence[Reading]) -> list[PartitionState]:
        if not self.errors:
            return []
        error_code = self.errors.popleft()
        return [
            PartitionState(each.key, error_code=error_code, error_message=error_code.description) for each in readings
        ]
