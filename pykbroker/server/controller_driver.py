"""Drives the controller: its rules are pure, this gives them the raft log, time, and callers that wait.

One loop per node carries out what raft asks for. A request changes the controller's state at once and is answered when
its records are committed and in the image, so whoever holds an answer sees its effect in every later read. Records
that arrive while the disk is busy share the next fsync. Kafka's counterpart is `QuorumController` on `KafkaRaftClient`.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import trio

from pykbroker.metadata.controller import Controller
from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.protocol.messages.brokers import (
    AllocateProducerIdsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
)
from pykbroker.protocol.schema import Message
from pykbroker.raft.node import LeaderChange, RaftNode, Role
from pykbroker.raft.voters import VoterSet
from pykbroker.server.clock import Clock
from pykbroker.server.log_lines import printable
from pykbroker.server.metadata_log import MetadataLog, MetadataRecord
from pykbroker.server.threads import Threads
from pykbroker.state_machine import Completion, Result, Token

logger = logging.getLogger(__name__)

PARTITIONS_AT_ONCE = 16
"""Opening logs takes a millisecond each: a topic of thousands must not keep every connection waiting for seconds."""

_OF_NODES = (
    AllocateProducerIdsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
)
"""What nodes ask of their own accord; what people ask for is worth a line in the log."""

ImageListener = Callable[[MetadataImage, ImageChanges], None]


@dataclass(frozen=True, slots=True)
class _Uncommitted:
    """One step of the controller that waits for its records: end_offset is the log's end behind them."""

    end_offset: int
    records: Sequence[MetadataRecord]
    completed: Sequence[Completion]


class ControllerDriver:
    """The controller of one node and the image it publishes.

    bootstrap: the records that an empty log opens with.
    """

    def __init__(
        self,
        node_id: int,
        voters: VoterSet,
        log: MetadataLog,
        controller: Controller,
        image: MetadataImage,
        *,
        clock: Clock,
        threads: Threads,
        bootstrap: Sequence[Message],
    ) -> None:
        self.image = image
        self._log = log
        self._controller = controller
        self._clock = clock
        self._threads = threads
        self._bootstrap = bootstrap
        self._raft = RaftNode(
            node_id, voters, log.read_election(), last_epoch=log.last_epoch, log_end_offset=log.end_offset
        )
        self._listeners: list[ImageListener] = []
        self._uncommitted: deque[_Uncommitted] = deque()
        self._waiting: dict[Token, _Waiting] = {}
        self._next_token = 0
        self._work = trio.Event()
        self._active = trio.Event()

    @property
    def role(self) -> Role:
        return self._raft.role

    @property
    def leader_epoch(self) -> int:
        return self._raft.epoch

    @property
    def high_watermark(self) -> int:
        return self._raft.high_watermark

    def subscribe(self, listener: ImageListener) -> None:
        """Calls `listener` with the image whenever it changed, before the answer to the request that changed it.

        Many changes at once come in portions, while the image is ahead already.
        """
        self._listeners.append(listener)

    async def submit(self, request: Message) -> Any:
        """Returns the response to an admin request once what it did is committed and visible in `image`.

        Whoever is cancelled meanwhile loses the answer, not the effect.
        """
        await self._active.wait()
        self._next_token += 1
        token = Token(self._next_token)
        waiting = self._waiting[token] = _Waiting()
        try:
            result = self._controller.handle(request, token, self._clock.monotonic_ms())
            self._take(result, logging.DEBUG if isinstance(request, _OF_NODES) else logging.INFO)
            await waiting.event.wait()
            return waiting.response
        finally:
            del self._waiting[token]

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Wins the quorum, replays the log, and works until it is cancelled.

        Raises DiskFailed, UnsupportedMetadataVersion, InconsistentMetadata.
        """
        while self._raft.role is not Role.LEADER or self._raft.high_watermark <= self._raft.epoch_start_offset:
            self._raft.tick(self._clock.monotonic_ms())
            await self._carry_out()
        self._replay()
        now_ms = self._clock.monotonic_ms()
        self._take(self._controller.activate(self._bootstrap, now_ms, self._raft.log_end_offset), logging.DEBUG)
        self._active.set()
        await self._carry_out()
        task_status.started()
        while True:
            await self._wait_for_work()
            self._take(self._controller.expire(self._clock.monotonic_ms()))
            await self._carry_out()

    def _replay(self) -> None:
        """Everything in the log is committed here, since a record of this epoch is."""
        changes = ImageChanges()
        for offset, message in self._log.read():
            self._controller.replay(message, offset)
            changes.merge(self.image.replay(message, offset))
        self._publish(changes)

    def _take(self, result: Result[Message], level: int = logging.INFO) -> None:
        """Proposes what a step of the controller wants recorded, and has it answered once that is committed."""
        if not result.records and not result.completed:
            return
        records: Sequence[MetadataRecord] = ()
        if result.records:
            append = self._raft.propose(result.records, len(result.records))
            records = [MetadataRecord(append.base_offset + i, message) for i, message in enumerate(result.records)]
            for offset, message in records:
                self._controller.replay(message, offset)
            last = records[-1].offset
            logger.log(level, "metadata records %d..%d: %s", append.base_offset, last, printable(result.cause))
        self._uncommitted.append(_Uncommitted(self._raft.log_end_offset, records, result.completed))
        self._work.set()

    async def _carry_out(self) -> None:
        """Persists, then applies: raft's contract."""
        ready = self._raft.ready()
        if ready.election is not None:
            self._log.store_election(ready.election, self._raft.voters.ids)
        now_ms = self._clock.now_ms()
        for append in ready.appends:
            if isinstance(append.payload, LeaderChange):
                self._log.append_leader_change(append.payload, append.epoch, now_ms)
            else:
                self._log.append_records(append.payload, append.epoch, now_ms)  # type: ignore[arg-type]
        durable = self._log.end_offset
        if ready.appends:
            await self._threads.run(self._log.flush)
        await self._apply(self._raft.advance(election=ready.election, durable_end_offset=durable))

    async def _apply(self, high_watermark: int) -> None:
        """Brings the image up to the high watermark, tells whoever listens, then answers."""
        changes = ImageChanges()
        answered: list[Completion] = []
        while self._uncommitted and self._uncommitted[0].end_offset <= high_watermark:
            step = self._uncommitted.popleft()
            for offset, message in step.records:
                changes.merge(self.image.replay(message, offset))
            answered.extend(step.completed)
        for portion in changes.portions(PARTITIONS_AT_ONCE):
            self._publish(portion)
            if len(changes.partitions) > PARTITIONS_AT_ONCE:
                await trio.lowlevel.checkpoint()
        for completion in answered:
            waiting = self._waiting.get(completion.token)
            if waiting is not None:
                waiting.response = completion.response
                waiting.event.set()

    def _publish(self, changes: ImageChanges) -> None:
        if changes:
            for listener in self._listeners:
                listener(self.image, changes)

    async def _wait_for_work(self) -> None:
        deadline_ms = self._controller.next_deadline_ms()
        wait_s = math.inf if deadline_ms is None else max(deadline_ms - self._clock.monotonic_ms(), 0) / 1000
        with trio.move_on_after(wait_s):
            await self._work.wait()
        self._work = trio.Event()


class _Waiting:
    """A caller of `submit` whose answer is still owed."""

    __slots__ = ("event", "response")

    def __init__(self) -> None:
        self.event = trio.Event()
        self.response: object = None
