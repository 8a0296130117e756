"""Transaction markers carry out what a transaction coordinator has decided, in every partition of the transaction.

What is led here is written at once, so that on one node a transaction is complete before its producer hears of it. The
rest is tried again and again until it is there, or the coordinator is another one's; what others lead goes through
`marker_queues`. Kafka's counterpart is `TransactionMarkerChannelManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import trio

from pykbroker.client.errors import code_of
from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
)
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.replication.partition import NO_LEADER
from pykbroker.transactions.effects import WriteMarkers
from pykbroker.transactions.requests import MarkersWritten

from ..network.inter_broker import InterBroker
from ..replicas.delayed_operation import PartitionChanges
from ..runtime.log_lines import printable
from .marker import Marker
from .marker_appends import AppendedMarker, MarkerAppends
from .marker_queues import MarkerQueues

_log = logging.getLogger(__name__)

_RETRY_BACKOFF_MS = 20
_RETRY_BACKOFF_MAX_MS = 1_000
WRITTEN_AT_ONCE = 128
"""Partitions that get their marker in one turn of the event loop."""

_FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
"""Somebody else decides over this producer, or this partition, now."""
_NOTHING_TO_END = (ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION)


class TransactionMarkers:
    """The markers of all decided transactions of this node go out from here. image: the newest committed metadata,
    which says who leads what.
    """

    def __init__(
        self,
        node_id: int,
        appends: MarkerAppends,
        inter_broker: InterBroker,
        *,
        image: Callable[[], MetadataImage],
    ) -> None:
        self._node_id = node_id
        self._appends = appends
        self._queues = MarkerQueues(inter_broker)
        self._image = image
        self._nursery: trio.Nursery | None = None
        self._is_over = False

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Write the markers that could not be written at once, until the surrounding scope is cancelled."""
        async with trio.open_nursery() as self._nursery:
            try:
                await self._nursery.start(self._queues.run)
                task_status.started()
                await trio.sleep_forever()
            finally:
                self._is_over = True

    def write(
        self, effect: WriteMarkers, *, is_wanted: Callable[[], bool], written: Callable[[MarkersWritten], None]
    ) -> None:
        """Write the markers of one transaction.

        is_wanted: whether the coordinator that decided is one still. written: told of partitions that have their
        marker, or exist no longer; perhaps before this returns. Once the node stops, what cannot be written at once is
        left to the next coordinator, which finds the decision in its log: a shard may still come from its load then.
        """
        writing = _Writing(effect, self._appends, self._image, self._node_id)
        self._tell(next(writing.write_here()), effect, written)
        if writing.missing and not writing.is_fenced and not self._is_over:
            assert self._nursery is not None, "nothing is coordinated before `run`"
            self._nursery.start_soon(self._write_rest, writing, is_wanted, written)

    async def _write_rest(
        self, writing: _Writing, is_wanted: Callable[[], bool], written: Callable[[MarkersWritten], None]
    ) -> None:
        """Leaders elsewhere are asked side by side, and none of them is waited for when another one leads."""
        backoff_ms = _RETRY_BACKOFF_MS
        async with trio.open_nursery() as asking:
            while True:
                await self._appends.flush(writing.unsettled)
                for done in writing.write_here():
                    if not is_wanted():
                        break
                    self._tell(done, writing.effect, written)
                    await trio.lowlevel.checkpoint()
                if not is_wanted() or writing.is_over:
                    break
                for leader, partitions in writing.to_be_asked().items():
                    asking.start_soon(self._ask, leader, partitions, writing, is_wanted, written)
                await writing.wait(backoff_ms)
                backoff_ms = min(2 * backoff_ms, _RETRY_BACKOFF_MAX_MS)
            asking.cancel_scope.cancel()

    async def _ask(
        self,
        leader: int,
        partitions: list[TopicPartition],
        writing: _Writing,
        is_wanted: Callable[[], bool],
        written: Callable[[MarkersWritten], None],
    ) -> None:
        result = await self._queues.ask(leader, _writable(writing.effect, partitions))
        done = writing.answered(leader, partitions, result)
        if is_wanted():
            self._tell(done, writing.effect, written)
        if writing.is_over:
            writing.stop_waiting()

    def _tell(
        self, done: list[TopicPartition], effect: WriteMarkers, written: Callable[[MarkersWritten], None]
    ) -> None:
        if done:
            written(
                MarkersWritten(
                    transactional_id=effect.transactional_id,
                    producer_id=effect.producer_id,
                    producer_epoch=effect.producer_epoch,
                    partitions=tuple(done),
                )
            )


class _Writing:
    """The markers of one transaction that are not known to be written.

    is_fenced: some can never be written by this coordinator, and it gives up.
    """

    def __init__(
        self, effect: WriteMarkers, appends: MarkerAppends, image: Callable[[], MetadataImage], node_id: int
    ) -> None:
        self.effect = effect
        self.missing = dict.fromkeys(effect.partitions)
        self.is_fenced = False
        self._unsettled: dict[TopicPartition, AppendedMarker] = {}
        self._asked: dict[TopicPartition, int] = {}
        """Who has been asked for the marker of a partition, and has not answered."""
        self._waiting = trio.CancelScope()
        self._appends = appends
        self._image = image
        self._node_id = node_id
        self._marker = Marker(
            producer_id=effect.producer_id,
            producer_epoch=effect.producer_epoch,
            coordinator_epoch=effect.coordinator_epoch,
            is_commit=effect.is_commit,
            transaction_version=effect.transaction_version,
        )

    @property
    def unsettled(self) -> list[AppendedMarker]:
        """Written here, and not known to last."""
        return list(self._unsettled.values())

    @property
    def is_over(self) -> bool:
        return not self.missing or self.is_fenced

    def write_here(self) -> Iterator[list[TopicPartition]]:
        """Write the markers that this node leads, in slices, between which others may have the event loop. A slice
        gives the partitions whose marker lasts at once, or that exist no longer.
        """
        missing = list(self.missing)
        for start in range(0, len(missing), WRITTEN_AT_ONCE):
            slice_ = [at for at in missing[start : start + WRITTEN_AT_ONCE] if at in self.missing]
            yield [at for at in slice_ if self._is_done(at, self._write_one_here(at))]

    def _write_one_here(self, at: TopicPartition) -> ErrorCode | None:
        """Return None where there is nothing to say yet."""
        state = self._image().partition(at.topic, at.partition)
        if state is None:
            return ErrorCode.NONE
        if state.leader != self._node_id:
            self._unsettled.pop(at, None)
            return None
        appended = self._unsettled.pop(at, None) or self._appends.append(at.topic, at.partition, self._marker)
        if isinstance(appended, ErrorCode):
            return appended
        error_code = appended.settled()
        if error_code is None:
            self._unsettled[at] = appended
        return error_code

    def to_be_asked(self) -> dict[int, list[TopicPartition]]:
        """Return the partitions by leader, without what it has been asked for already; a partition that has none has to
        wait.
        """
        found: dict[int, list[TopicPartition]] = {}
        for at in self.missing:
            state = self._image().partition(at.topic, at.partition)
            if state is None or state.leader in (self._node_id, NO_LEADER) or self._asked.get(at) == state.leader:
                continue
            self._asked[at] = state.leader
            found.setdefault(state.leader, []).append(at)
        return found

    def answered(
        self, leader: int, partitions: list[TopicPartition], result: WritableTxnMarkerResult | None
    ) -> list[TopicPartition]:
        """Those that have their marker now. The leader may be asked again for what it has not done."""
        for at in partitions:
            if self._asked.get(at) == leader:
                del self._asked[at]
        return [
            at
            for topic in (result.topics if result is not None else ())
            for each in topic.partitions
            if (at := TopicPartition(topic.name, each.partition_index)) in self.missing
            and self._is_done(at, code_of(each.error_code))
        ]

    async def wait(self, timeout_ms: int) -> None:
        """Return when one of the markers that are written here is replicated, or cannot be any more, or all is over, or
        the time is.
        """
        unsettled = self.unsettled
        partitions = [each.partition for each in unsettled]
        with trio.CancelScope() as self._waiting, PartitionChanges(partitions, timeout_ms=timeout_ms) as changes:
            while all(each.settled() is None for each in unsettled):
                if not await changes.next():
                    return

    def stop_waiting(self) -> None:
        self._waiting.cancel()

    def _is_done(self, at: TopicPartition, error_code: ErrorCode | None) -> bool:
        if error_code is ErrorCode.NONE or error_code in _NOTHING_TO_END:
            del self.missing[at]
            return True
        if error_code is not None and error_code in _FENCED:
            self.is_fenced = True
            _log.error(
                "the marker of transaction %s cannot be written in %s-%d, now or later: %s",
                printable(self.effect.transactional_id),
                at.topic,
                at.partition,
                error_code.name,
            )
        return False


def _writable(effect: WriteMarkers, partitions: list[TopicPartition]) -> WritableTxnMarker:
    topics: dict[str, list[int]] = {}
    for at in partitions:
        topics.setdefault(at.topic, []).append(at.partition)
    return WritableTxnMarker(
        producer_id=effect.producer_id,
        producer_epoch=effect.producer_epoch,
        transaction_result=effect.is_commit,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=indexes) for topic, indexes in topics.items()],
        coordinator_epoch=effect.coordinator_epoch,
        transaction_version=effect.transaction_version,
    )
