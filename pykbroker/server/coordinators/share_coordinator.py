"""The share coordinator of a node has `pykbroker.sharing.coordinator` in the partitions of `__share_group_state` that
it leads (KIP-932).

Handlers and the node's own persister ask it for many share partitions at once: those that live in one partition are one
request to its shard, as long as they are not too many. What has nothing to do with share groups is in
`coordinator_driver`. Kafka's counterpart is `ShareCoordinatorService`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import trio

from pykbroker.config import BrokerConfig
from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.metadata.topic_names import SHARE_STATE_TOPIC
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.topics import CreatableTopic, CreatableTopicConfig
from pykbroker.replication.partition import Partition
from pykbroker.sharing.coordinator_key import parse_coordinator_key, state_partition
from pykbroker.sharing.persister import SharePartitionKey
from pykbroker.state_machine import CoordinatorContext, Result

from ..runtime.clock import Clock
from ..runtime.histogram import Histogram
from ..runtime.threads import Threads
from .coordinator_driver import CoordinatorDriver, Replicas
from .coordinator_log import record_room_bytes
from .led_shard import CoordinatorState, LedShard, MakeStep
from .share_state_questions import WRITE, AnswerT, AskedT, Question

if TYPE_CHECKING:
    from pykbroker.sharing.coordinator.records import ShareRecord
    from pykbroker.sharing.coordinator.requests import ShareStateRequest  # noqa: F401 - the class's base names it
    from pykbroker.sharing.coordinator.shard import ShareShard

_log = logging.getLogger(__name__)

ASKED_AT_ONCE = 200
"""Share partitions in one step of a shard."""
BATCHES_AT_ONCE = 5_000
"""In what is written to them, but for a single one that has more."""
_GROUPED_AT_ONCE = 500

_CONTEXT = CoordinatorContext(api_version=0)
"""The rules are the same in all versions."""


class Writes:
    """The states that were written here, for metrics. partitions: share partitions. times: until they were committed,
    of one request each.
    """

    __slots__ = ("partitions", "times")

    def __init__(self) -> None:
        self.partitions = 0
        self.times = Histogram()


class ShareCoordinator(CoordinatorDriver["ShareShard", "ShareStateRequest", CoordinatorContext]):
    """The share coordinator is to be subscribed to `__share_group_state` at the replica manager, and with `apply` at
    the controller's driver.

    checkpoint_log_starts: writes down where logs begin whose records were deleted.
    """

    topic = SHARE_STATE_TOPIC

    def __init__(
        self,
        config: BrokerConfig,
        replicas: Replicas,
        *,
        image: Callable[[], MetadataImage],
        clock: Clock,
        threads: Threads,
        checkpoint_log_starts: Callable[[Sequence[Partition]], Awaitable[None]],
    ) -> None:
        super().__init__(
            replicas,
            image=image,
            clock=clock,
            threads=threads,
            commit_timeout_ms=config.int("share.coordinator.write.timeout.ms"),
            append_linger_ms=config.int("share.coordinator.append.linger.ms"),
        )
        self.writes = Writes()
        self._pruned: dict[int, int] = {}
        """By partition, below which offset records were deleted last."""
        self._config = config
        self._checkpoint_log_starts = checkpoint_log_starts

    def new_shard(self, partition: Partition) -> ShareShard:
        from pykbroker.sharing.coordinator.config import ShareCoordinatorConfig
        from pykbroker.sharing.coordinator.shard import ShareShard  # a broker without share groups needs none of it

        config = ShareCoordinatorConfig(
            updates_per_snapshot=self._config.int("share.coordinator.snapshot.update.records.per.snapshot"),
            cold_snapshot_interval_ms=self._config.int("share.coordinator.cold.partition.snapshot.interval.ms"),
            max_record_bytes=record_room_bytes(partition.log.config.max_message_bytes),
        )
        return ShareShard(config, self.partition_count)

    def partition_count(self, topic_id: bytes) -> int:
        """Return how many partitions the topic has; 0 where there is none."""
        topic = self._image().topic_by_id(topic_id)
        return 0 if topic is None else len(topic.partitions)

    def decode_record(self, key: bytes | None, value: bytes | None) -> ShareRecord:
        from pykbroker.sharing.coordinator.records import decode_record

        return decode_record(key, value)

    def describe(self, shard: ShareShard) -> str:
        return f"{len(shard.states)} share partitions" if shard.states else ""

    def logged(self, shard: ShareShard) -> Callable[[ShareRecord, int], None]:
        return shard.logged

    def level_of(self, result: Result[Any], *, is_history: bool) -> int:
        """Return the level: snapshots of share partitions that nobody writes are daily business."""
        return logging.DEBUG

    def new_topic(self, most_replicas: int) -> CreatableTopic:
        config = self._config
        configs = {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": str(config.int("share.coordinator.state.topic.min.isr")),
            "retention.ms": "-1",
            "segment.bytes": str(config.int("share.coordinator.state.topic.segment.bytes")),
        }
        return CreatableTopic(
            name=SHARE_STATE_TOPIC,
            num_partitions=config.int("share.coordinator.state.topic.num.partitions"),
            replication_factor=min(config.int("share.coordinator.state.topic.replication.factor"), most_replicas),
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
        )

    # Where a share partition lives

    def partition_for(self, key: str) -> int | None:
        """The partition of a key in the form of FindCoordinator; None where the topic is missing, or it is no key."""
        share_partition = parse_coordinator_key(key)
        return None if share_partition is None else self.partition_of(share_partition)

    def partition_of(self, key: SharePartitionKey) -> int | None:
        """Return the partition that the state lives in; None where the topic is missing."""
        topic = self._image().topic(self.topic)
        return None if topic is None else state_partition(key, len(topic.partitions))

    # Requests

    async def answer(self, question: Question[AskedT, AnswerT], asked: Sequence[AskedT]) -> list[AnswerT]:
        """Return an answer for each, in this order. What lives in partitions that this node does not lead, or that
        refuse it, is answered with their error.
        """
        answers: list[AnswerT | None] = [None] * len(asked)
        by_partition = await self._by_partition([question.key(each) for each in asked])
        async with trio.open_nursery() as nursery:
            for index, places in by_partition.items():
                nursery.start_soon(self._answer_some, question, asked, index, places, answers)
        return [each for each in answers if each is not None]

    async def _by_partition(self, keys: Sequence[SharePartitionKey]) -> dict[int | None, list[int]]:
        """Return the places of the keys by the partition that they live in."""
        by_partition: dict[int | None, list[int]] = {}
        for place, key in enumerate(keys):
            by_partition.setdefault(self.partition_of(key), []).append(place)
            if place % _GROUPED_AT_ONCE == _GROUPED_AT_ONCE - 1:
                await trio.lowlevel.checkpoint()
        return by_partition

    async def _answer_some(
        self,
        question: Question[AskedT, AnswerT],
        asked: Sequence[AskedT],
        index: int | None,
        places: Sequence[int],
        answers: list[AnswerT | None],
    ) -> None:
        """Answer those that live in one partition, a part after the other: the order stays, and others have turns."""
        for part in _parts(question, asked, places):
            error_code, given = await self._ask(question, [asked[place] for place in part], index)
            if error_code is ErrorCode.NONE:
                for place, answer in zip(part, given, strict=True):
                    answers[place] = answer
            else:
                message = f"Unable to {question.verb}: {error_code.description}"
                for place in part:
                    answers[place] = question.failed(question.key(asked[place]), error_code, message)

    async def _ask(
        self, question: Question[AskedT, AnswerT], asked: Sequence[AskedT], index: int | None
    ) -> tuple[ErrorCode, list[AnswerT]]:
        if index is None:
            return ErrorCode.NOT_COORDINATOR, []
        try:
            began_ms = self._clock.monotonic_ms()
            answers = await self.submit_to_partition(index, question.request(tuple(asked)), _CONTEXT)
        except ApiError as error:
            return error.code, []
        if question.verb == WRITE.verb:
            self.writes.partitions += sum(each.error_code is ErrorCode.NONE for each in answers)
            self.writes.times.record((self._clock.monotonic_ms() - began_ms) * 1_000_000)
        return ErrorCode.NONE, answers

    # Deleted topics

    def apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        """Topics that were deleted take their share partitions along."""
        if not changes.deleted_topics:
            return
        for led in list(self._shards.values()):
            if led.state is CoordinatorState.ACTIVE:  # one that loads finds out at its next look
                gone = [topic_id for topic_id in changes.deleted_topics if led.shard.has_topic(topic_id)]
                if gone:
                    self._forget(led, gone)

    def _forget(self, led: LedShard[ShareShard], topic_ids: list[bytes]) -> None:
        make: MakeStep[ShareShard] = lambda shard, now_ms, timestamp_ms: shard.forget_topics(  # noqa: E731
            topic_ids, now_ms, timestamp_ms
        )
        self.postpone(led, make)

    # Pruning

    async def run_beside(self) -> None:
        """Delete now and then what is redundant in the logs, until the surrounding scope is cancelled."""
        while True:
            await trio.sleep(self._config.int("share.coordinator.state.topic.prune.interval.ms") / 1000)
            await self.prune()

    async def prune(self) -> None:
        """Delete what is redundant in the logs."""
        pruned = [led.partition for led in self._active_shards() if await self._prune(led)]
        if pruned:
            await self._checkpoint_log_starts(pruned)

    def pruned_offset(self, index: int) -> int | None:
        """Return below which offset a partition's records were deleted last; None where that was not here."""
        return self._pruned.get(index)

    async def _prune(self, led: LedShard[ShareShard]) -> bool:
        """Tell whether something was deleted."""
        end_offset = led.shard.redundant_end_offset()
        if end_offset is None or end_offset <= led.partition.log.log_start_offset:
            return False
        # The rest is redundant once the newest snapshots of all share partitions are sure to last: on the replicas,
        # and on this node's disk. A partition where that takes long has its turn next time.
        appended = led.newest_append
        with trio.move_on_after(self._commit_timeout_ms / 1000):
            await led.until_committed(appended)
        if not appended.is_committed or not await self._replicas.flush(led.partition, appended.end_offset):
            return False
        if led.state is not CoordinatorState.ACTIVE:
            return False
        deleted = led.partition.delete_records(end_offset)
        if deleted.error_code is not ErrorCode.NONE:
            _log.warning("%s: records below %d stay: %s", led.name, end_offset, deleted.error_code.name)
            return False
        self._pruned[led.partition.index] = end_offset
        _log.debug("%s: records below %d are deleted", led.name, end_offset)
        return True


def _parts(
    question: Question[AskedT, AnswerT], asked: Sequence[AskedT], places: Sequence[int]
) -> Iterator[Sequence[int]]:
    """Return the places in parts that are one step each."""
    part: list[int] = []
    room = BATCHES_AT_ONCE
    for place in places:
        weight = question.weight(asked[place])
        if part and (len(part) == ASKED_AT_ONCE or weight > room):
            yield part
            part, room = [], BATCHES_AT_ONCE
        part.append(place)
        room -= weight
    if part:
        yield part
