"""One share partition at the leader of its partition: loaded from the persister, and persisted as it changes.

The rules are in `sharing.partition.share_partition`. One write is under way at a time, and has all changes that came
while the last one was: so the persister sees them in their order, also where one is tried again. It ends with the
leadership, with its topic, when the persister says that somebody else has the state, and when the group's last member
has left this node; whoever comes then has it loaded again. Kafka's counterparts are the other half of `SharePartition`
and `SharePartitionManager.SharePartitionListener`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import trio

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.sharing.persister import (
    UNINITIALIZED_START_OFFSET,
    PartitionState,
    Persister,
    SharePartitionKey,
    Writing,
)

from ..runtime.deferred_answer import DeferredAnswer
from ..runtime.turns import Turn

if TYPE_CHECKING:
    from pykbroker.replication.partition import Partition
    from pykbroker.sharing.partition.share_partition import SharePartition
    from pykbroker.sharing.partition.values import Acknowledgement, Change, DeadLetters

    from .share_traffic import ShareTraffic

logger = logging.getLogger(__name__)

_MOST_BATCHES: Final = 5000
"""Of one write, unless one change alone has more."""

_OF_COORDINATOR: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
_FENCED: Final = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH})
_AS_THEY_ARE: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
_HIDDEN: Final = frozenset({ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_VERSION})

ENDS: Final = _AS_THEY_ARE | {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_STATE_EPOCH}
"""Errors behind which the state is another one's: it is dropped here."""


def client_error(code: ErrorCode, message: str | None) -> ApiError:
    """Return what a client is told of a persister's error, as Kafka's `SharePartition.fetchPersisterError` says it."""
    if code in _OF_COORDINATOR:
        return ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
    if code in _FENCED:
        return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, message)
    if code in _AS_THEY_ARE:
        return ApiError(code, message)
    if code in _HIDDEN:
        return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "Unable to complete operation due to server error.")
    return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, message)


class ShareState(Enum):
    """The state of a share partition at its leader."""

    LOADING = 0
    ACTIVE = 1
    ENDED = 2


class ShareWatcher(Protocol):
    """A request that waits for something to hand out."""

    def share_changed(self, led: LedSharePartition) -> None:
        """More may be handed out, or the share partition has ended. Called synchronously."""
        ...


class _Queued(NamedTuple):
    """A change to be written. answer: who waits for it. acknowledgements: counted once they are persisted."""

    change: Change
    answer: DeferredAnswer[None] | None
    acknowledgements: Sequence[Acknowledgement]


class LedSharePartition:
    """One share partition. leader_epoch: the one in which it is led; the next one of the same leader changes nothing.

    share: its rules and state, once it is active. error: why it has ended. watchers: in order of their arrival.
    lock_timeouts: records that were taken back since their time was over.
    """

    __slots__ = (
        "_drained",
        "_monotonic_ms",
        "_on_end",
        "_on_letters",
        "_persister",
        "_queue",
        "_schedule",
        "_seen_leader_epoch",
        "_spawn",
        "_traffic",
        "error",
        "is_writing",
        "key",
        "leader_epoch",
        "lock_timeouts",
        "partition",
        "share",
        "state",
        "timer_ms",
        "watchers",
    )

    def __init__(
        self,
        key: SharePartitionKey,
        partition: Partition,
        persister: Persister,
        *,
        traffic: ShareTraffic,
        monotonic_ms: Callable[[], int],
        spawn: Callable[[LedSharePartition], None],
        on_end: Callable[[LedSharePartition], None],
        on_letters: Callable[[LedSharePartition, list[DeadLetters]], None],
        schedule: Callable[[LedSharePartition], None],
    ) -> None:
        """Watch the partition. spawn: has `write` run beside. on_end: is called once, when the share partition ends.

        on_letters: has dead letters written that are due. schedule: has `expire` called when it is time.
        """
        self.key = key
        self.partition = partition
        self.leader_epoch = self._seen_leader_epoch = partition.leader_epoch
        self.state = ShareState.LOADING
        self.share: SharePartition | None = None
        self.error: ApiError | None = None
        self.watchers: dict[ShareWatcher, None] = {}
        self.timer_ms: int | None = None
        """When `expire` is going to be called; None where that is not planned."""
        self.lock_timeouts = 0
        self._persister = persister
        self._traffic = traffic
        self._monotonic_ms = monotonic_ms
        self._spawn = spawn
        self._on_end = on_end
        self._on_letters = on_letters
        self._schedule = schedule
        self._queue: list[_Queued] = []
        self.is_writing = False
        self._drained: trio.Event | None = None
        partition.watchers[self] = None

    def __repr__(self) -> str:
        return f"<share partition {self.key.group_id}:{self.partition.topic}-{self.partition.index} {self.state.name}>"

    @property
    def active(self) -> SharePartition | None:
        """The state to work with; None as long as it is loaded, and when it has ended."""
        return self.share if self.state is ShareState.ACTIVE else None

    async def begin(self, state: PartitionState, start_offset: int, turn: Turn) -> None:
        """Become active with what was persisted, unless it has ended meanwhile. Raises ApiError."""
        from pykbroker.sharing.partition.share_partition import SharePartition

        share = await turn.through(SharePartition.load_steps(state, start_offset))
        if self.state is ShareState.LOADING:
            self.share = share
            self.state = ShareState.ACTIVE
            self.notify()

    def end(self, error: ApiError) -> None:
        """Tell all who wait, and be nobody's state from now on. What is being written may still be persisted."""
        if self.state is ShareState.ENDED:
            return
        self.state = ShareState.ENDED
        self.error = error
        self.partition.watchers.pop(self, None)
        self._on_end(self)
        self.notify()

    def partition_changed(self, partition: Partition) -> None:
        """The log has more or less, or is led elsewhere, or was between two epochs that this node has seen."""
        epoch, before = partition.leader_epoch, self._seen_leader_epoch
        self._seen_leader_epoch = epoch
        if not partition.is_leader or epoch > before + 1:
            self.end(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        elif self.watchers:
            self.notify()

    def notify(self) -> None:
        for watcher in tuple(self.watchers):
            watcher.share_changed(self)

    # Persisting

    def persist(
        self,
        change: Change,
        answer: DeferredAnswer[None] | None = None,
        acknowledgements: Sequence[Acknowledgement] = (),
    ) -> None:
        """Have the change written; `answer` is given then, or fails with an `ApiError`.

        acknowledgements: those that the change is made of.
        """
        self._queue.append(_Queued(change, answer, acknowledgements))
        if not self.is_writing:
            self.is_writing = True
            self._spawn(self)

    async def write(self) -> None:
        """Write what is to be written, until there is nothing more."""
        turn = Turn()
        try:
            while self._queue:
                await self._write_next(turn)
        finally:
            self.is_writing = False
            if self._drained is not None:
                self._drained.set()
                self._drained = None

    async def drained(self) -> None:
        """Return when nothing is being written any more."""
        if self.is_writing:
            if self._drained is None:
                self._drained = trio.Event()
            await self._drained.wait()

    async def _write_next(self, turn: Turn) -> None:
        share = self.share
        assert share is not None
        taken = self._take()
        writing = Writing(
            self.key,
            share.state_epoch,
            self.leader_epoch,
            share.start_offset,
            share.delivery_complete_count,
            tuple(batch for change, _, _ in taken for batch in change.batches),
        )
        (outcome,) = await self._persister.write((writing,))
        error = None
        if outcome.error_code is not ErrorCode.NONE:
            error = client_error(outcome.error_code, outcome.error_message)
            logger.info("the state of %r was not persisted: %s", self, error)
        now_ms, has_more = self._monotonic_ms(), False
        for change, answer, acknowledgements in taken:
            if error is None:
                self._traffic.count_acknowledged(acknowledgements)
            steps = share.complete_steps(change, is_persisted=error is None, now_ms=now_ms)
            has_more = await turn.through(steps) or has_more
            if answer is not None and error is None:
                answer.complete(None)
            elif answer is not None and error is not None:
                answer.fail(error)
        if error is not None and error.code in ENDS:
            self.end(error)
            return
        if error is None:
            letters = [each for change, _, _ in taken for each in change.letters]
            if letters:
                self._on_letters(self, letters)
        else:
            self._schedule(self)
        if has_more:
            self.notify()

    def _take(self) -> list[_Queued]:
        count = size = 0
        for change, _, _ in self._queue:
            size += len(change.batches)
            if count and size > _MOST_BATCHES:
                break
            count += 1
        taken = self._queue[:count]
        del self._queue[:count]
        return taken


def has_start_offset(state: PartitionState) -> bool:
    return state.start_offset != UNINITIALIZED_START_OFFSET
