"""Dead letters of this node's share partitions on their way into their topics (KIP-1191).

A share partition's letters are written in their order, a batch at a time, by Produce requests to the leader of the
destination, this node included, whose authorizer is asked for the rights of brokers, as Kafka's is. Few requests are in
flight together, and fewer to one node, so that a dead leader keeps those waiting that need it, and no others. What
fails in a way that may pass is tried again with a back-off. Behind five failures in a row the letters that were there
from the first one on are given up, as are letters whose topic may not be written: records are settled then without one,
and the log says so. They are still where they came from.

A record stays ARCHIVING until its letter is written. Where the leadership of a share partition ends its letters are
dropped here: whoever leads it next finds the records ARCHIVING, and writes them. So a letter may be written twice, and
none is lost. Kafka's counterpart is `ShareGroupDLQStateManager`.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final

import trio

from pykbroker.client.errors import ClientError
from pykbroker.config import BrokerConfig
from pykbroker.config.dead_letters import ENABLED_OF_TOPIC, DeadLetterSettings, dead_letter_settings
from pykbroker.config.group_keys import GroupValues
from pykbroker.metadata.image import MetadataImage, TopicState
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from pykbroker.replication.partition import ACKS_ALL
from pykbroker.replication.reads import FetchIsolation
from pykbroker.sharing.dead_letters import (
    MOST_FAILURES,
    Copies,
    Source,
    backoff_ms,
    encode_letters,
    find_copies,
    first_letters,
    refusal,
)
from pykbroker.storage.files.errors import CorruptLog, FileError
from pykbroker.storage.log.log_reads import LogSlice
from pykbroker.storage.segments.verification import NotVerified

from ..network.inter_broker import InterBroker
from ..quorum.image_conditions import ImageConditions
from ..replicas.replica_manager import ReplicaManager
from ..runtime.clock import Clock
from ..runtime.log_lines import RateLimitedLog, printable
from ..runtime.signal import Signal
from ..runtime.threads import Threads
from .share_traffic import LetterCounts, ShareTraffic

if TYPE_CHECKING:
    from pykbroker.sharing.partition.values import DeadLetters

    from .led_share_partition import LedSharePartition

_log = logging.getLogger(__name__)

MOST_WORKERS: Final = 24
MOST_TO_ONE_NODE: Final = 4
"""Requests in flight. Creations of topics count as if they were for a node of their own."""
TIMEOUT_MS: Final = 30_000
"""Of one request, and of the replicas that must have the letters."""
_READ_BYTES: Final = 1 << 20
_KNOWN_TIMEOUT_S: Final = 1.0
_CREATIONS: Final = -1

_CREATED_OR_THERE: Final = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
_PASSING: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
)
"""Errors of Produce and CreateTopics that pass by themselves. Kafka tries again for the first and the last alone."""


class _Failed(Exception):
    """The letters could not be written now; they are tried again."""


class _Refused(Exception):
    """The letters cannot be written. letters: which of them; None for all that are there."""

    def __init__(self, reason: str, letters: Sequence[DeadLetters] | None = None) -> None:
        super().__init__(reason)
        self.letters = letters


class _Parked(Exception):
    """The node has as many requests in flight as it may have. node_id: the node."""

    def __init__(self, node_id: int) -> None:
        super().__init__(node_id)
        self.node_id = node_id


@dataclass(eq=False, slots=True)
class _Pending:
    """The letters of one share partition that are not written, with the time at which each came.

    failures: in a row, and since when.
    """

    led: LedSharePartition
    letters: deque[tuple[DeadLetters, int]] = field(default_factory=deque)
    failures: int = 0
    failing_since_ms: int = 0


class DeadLetterQueues:
    """The queues of one node. values: gives the settings of a group. Tasks run in the nursery. traffic: is told what
    was written.
    """

    def __init__(
        self,
        config: BrokerConfig,
        replicas: ReplicaManager,
        inter_broker: InterBroker,
        conditions: ImageConditions,
        nursery: trio.Nursery,
        traffic: ShareTraffic,
        *,
        image: Callable[[], MetadataImage],
        values: Callable[[str], GroupValues],
        clock: Clock,
        threads: Threads,
    ) -> None:
        self._config = config
        self._replicas = replicas
        self._inter_broker = inter_broker
        self._conditions = conditions
        self._nursery = nursery
        self._traffic = traffic
        self._image = image
        self._values = values
        self._clock = clock
        self._threads = threads
        self._lines = RateLimitedLog(_log, clock)
        self._pending: dict[LedSharePartition, _Pending] = {}
        self._ready: deque[_Pending] = deque()
        self._workers = 0
        self._places: dict[int, list[int]] = {}
        """The free places for requests, by node."""
        self._parked: dict[int, deque[_Pending]] = {}
        self._again: list[tuple[int, int, _Pending]] = []
        self._sequence = count()
        self._again_changed = Signal()
        nursery.start_soon(self._run_again)

    def __len__(self) -> int:
        """Return how many share partitions have letters on their way."""
        return len(self._pending)

    def add(self, led: LedSharePartition, letters: Iterable[DeadLetters]) -> None:
        """Write the letters soon, and settle their records in the share partition then."""
        pending = self._pending.get(led)
        is_new = pending is None
        if pending is None:
            pending = self._pending[led] = _Pending(led)
        now_ms = self._clock.monotonic_ms()
        pending.letters.extend((each, now_ms) for each in letters)
        if is_new:
            self._make_ready(pending)

    # Whose turn it is

    def _make_ready(self, pending: _Pending) -> None:
        self._ready.append(pending)
        if self._workers < MOST_WORKERS:
            self._workers += 1
            self._nursery.start_soon(self._work)

    async def _work(self) -> None:
        try:
            while self._ready:
                await self._step(self._ready.popleft())
                await trio.lowlevel.checkpoint()
        finally:
            self._workers -= 1

    async def _step(self, pending: _Pending) -> None:
        """Write a batch of a share partition's letters, and say when it comes next."""
        try:
            if pending.led.active is not None and pending.letters:
                await self._write(pending)
                pending.failures = 0
        except _Parked as parked:
            self._parked.setdefault(parked.node_id, deque()).append(pending)
            return
        except _Failed as failure:
            self._failed(pending, str(failure))
            if pending.failures:
                self._later(pending)
                return
        except _Refused as refused:
            given_up = refused.letters or [letters for letters, _ in pending.letters]
            self._give_up(pending, given_up, str(refused))
        if pending.led.active is not None and pending.letters:
            self._make_ready(pending)
        else:
            del self._pending[pending.led]

    def _failed(self, pending: _Pending, reason: str) -> None:
        now_ms = self._clock.monotonic_ms()
        if not pending.failures:
            pending.failing_since_ms = now_ms
        pending.failures += 1
        _log.debug("dead letters of %r are not written: %s", pending.led, reason)
        if pending.failures >= MOST_FAILURES:
            old = [letters for letters, came_ms in pending.letters if came_ms <= pending.failing_since_ms]
            pending.failures = 0
            self._counts(pending.led).failed += 1
            self._give_up(pending, old, reason)

    def _later(self, pending: _Pending) -> None:
        due_ms = self._clock.monotonic_ms() + backoff_ms(pending.failures)
        heappush(self._again, (due_ms, next(self._sequence), pending))
        self._again_changed.set()

    async def _run_again(self) -> None:
        while True:
            now_ms = self._clock.monotonic_ms()
            while self._again and self._again[0][0] <= now_ms:
                self._make_ready(heappop(self._again)[2])
            wait_ms = self._again[0][0] - now_ms if self._again else math.inf
            await self._again_changed.wait(wait_ms / 1000)

    # What becomes of letters

    def _settle(self, pending: _Pending, ended: Iterable[DeadLetters]) -> None:
        """Settle records in front of the others whose letters are written, or given up."""
        share = pending.led.active
        for each in ended:
            letters, came_ms = pending.letters.popleft()
            assert letters.first_offset == each.first_offset
            if each.last_offset < letters.last_offset:
                pending.letters.appendleft((letters._replace(first_offset=each.last_offset + 1), came_ms))
            if share is not None:
                change = share.archived(each.first_offset, each.last_offset)
                if change:
                    pending.led.persist(change)

    def _give_up(self, pending: _Pending, letters: Sequence[DeadLetters], reason: str) -> None:
        if not letters:
            return
        number = sum(last - first + 1 for first, last, *_ in letters)
        self._lines.warning(
            "%d records of %r from offset %d on are archived without a dead letter: %s",
            number,
            pending.led,
            letters[0].first_offset,
            printable(reason),
        )
        self._settle(pending, letters)

    def _counts(self, led: LedSharePartition) -> LetterCounts:
        """Return where the letters of a share partition are counted; nobody sees them of one that is not led any more,
        whose group may be forgotten here.
        """
        return LetterCounts() if led.active is None else self._traffic.letters_of(led.key.group_id)

    # One batch

    async def _write(self, pending: _Pending) -> None:
        """Raises _Failed, _Refused, _Parked."""
        led = pending.led
        group_id = led.key.group_id
        image = self._image()
        dynamic = image.broker_config(self._config.node_id)
        settings = dead_letter_settings(self._values(group_id), self._config, dynamic)
        topic = image.topic(settings.topic)
        of_topic = image.topic_config(settings.topic)
        is_enabled = of_topic.get(ENABLED_OF_TOPIC, "").strip().lower() == "true"
        reason = refusal(settings, group_id, is_there=topic is not None, is_enabled=is_enabled)
        if reason is not None:
            raise _Refused(reason)
        if topic is None:
            await self._create(settings)
            return
        index = led.key.partition % len(topic.partitions)
        state = topic.partitions.get(index)
        leader = -1 if state is None else state.leader
        if leader < 0:
            raise _Failed(f"{settings.topic}-{index} has no leader")
        limit = int(of_topic.get("max.message.bytes") or self._config.text("message.max.bytes", dynamic) or 0)
        place = self._take_place(leader)
        try:
            letters = first_letters(each for each, _ in pending.letters)
            copies = await self._copies(led, letters, limit) if settings.copies_records else None
            source = Source(led.partition.topic, led.key.partition, group_id)
            batch = encode_letters(source, letters, copies, self._clock.now_ms(), limit)
            self._counts(led).requests += 1
            try:
                await self._produce(leader, place, topic, index, batch.records, batch.covered)
            except _Refused:
                self._counts(led).failed += 1
                raise
        finally:
            self._give_place(leader, place)
        self._counts(led).letters += sum(last - first + 1 for first, last, *_ in batch.covered)
        self._settle(pending, batch.covered)

    async def _produce(
        self, leader: int, place: int, topic: TopicState, index: int, records: bytes, letters: Sequence[DeadLetters]
    ) -> None:
        """Raises _Failed, _Refused."""
        data = PartitionProduceData(index=index, records=records)
        request = ProduceRequest(
            acks=ACKS_ALL,
            timeout_ms=TIMEOUT_MS,
            topic_data=[TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=[data])],
        )
        try:
            response = await self._inter_broker.request(
                leader, request, ProduceResponse, purpose=f"dead letters {place}", timeout_ms=TIMEOUT_MS
            )
        except ClientError as error:
            raise _of_client(error, letters) from error
        rows = [row for each in response.responses for row in each.partition_responses]
        if not rows:
            raise _Failed(f"broker {leader} has not answered for {topic.name}-{index}")
        if rows[0].error_code:
            raise _of_code(rows[0].error_code, rows[0].error_message, letters)

    async def _create(self, settings: DeadLetterSettings) -> None:
        """Have the topic created, and wait a moment until this node knows it. Raises _Failed, _Refused, _Parked."""
        configs = [
            CreatableTopicConfig(name=ENABLED_OF_TOPIC, value="true"),
            CreatableTopicConfig(name="message.timestamp.type", value="CreateTime"),
        ]
        name = settings.topic
        topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, configs=configs)
        place = self._take_place(_CREATIONS)
        try:
            request = CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
            response = await self._inter_broker.request(
                self._config.node_id,
                request,
                CreateTopicsResponse,
                purpose=f"topics of dead letters {place}",
                timeout_ms=TIMEOUT_MS,
            )
            row = response.topics[0]
            if row.error_code not in _CREATED_OR_THERE:
                raise _of_code(row.error_code, row.error_message, None)
            if not await self._conditions.until(lambda image: image.topic(name) is not None, _KNOWN_TIMEOUT_S):
                raise _Failed(f"{name} is created, and not known yet")
        except ClientError as error:
            raise _of_client(error, None) from error
        finally:
            self._give_place(_CREATIONS, place)

    def _take_place(self, node_id: int) -> int:
        """Return the number of a free place. Raises _Parked."""
        places = self._places.setdefault(node_id, list(range(MOST_TO_ONE_NODE)))
        if not places:
            raise _Parked(node_id)
        return places.pop()

    def _give_place(self, node_id: int, place: int) -> None:
        places = self._places[node_id]
        places.append(place)
        parked = self._parked.get(node_id, deque())
        if len(places) == MOST_TO_ONE_NODE:
            # Those that were made ready may not have needed their places, and nobody is left to wake the others.
            del self._places[node_id]
            woken = len(parked)
        else:
            woken = min(1, len(parked))
        for _ in range(woken):
            self._make_ready(parked.popleft())
        if woken and not parked:
            del self._parked[node_id]

    # Copies

    async def _copies(self, led: LedSharePartition, letters: Sequence[DeadLetters], limit: int) -> Copies | None:
        """Read the records of letters, as far as one read has them; None where they cannot be read any more.

        Raises _Failed.
        """
        partition = led.partition
        while True:
            try:
                offset = max(letters[0].first_offset, partition.log.log_start_offset)
                data = partition.read(offset, _READ_BYTES, FetchIsolation.HIGH_WATERMARK, min_one_batch=True)
                if data.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    raise _Failed("the records are led elsewhere")
                if not isinstance(data.records, LogSlice) or not data.records.size:
                    return None
                return await self._threads.run(_read_copies, data.records, letters, limit)
            except NotVerified as unverified:
                await self._replicas.verify(partition, unverified.check)
            except CorruptLog as damage:
                self._replicas.quarantine(partition, damage)
                return None
            except FileError as failure:
                self._replicas.failures.in_log(partition.log, failure)
                return None


def _read_copies(region: LogSlice, letters: Sequence[DeadLetters], limit: int) -> Copies:
    return find_copies(region.read(), letters, limit)


def _of_client(error: ClientError, letters: Sequence[DeadLetters] | None) -> _Failed | _Refused:
    return _Failed(str(error)) if error.retriable else _Refused(str(error), letters)


def _of_code(code: int, message: str | None, letters: Sequence[DeadLetters] | None) -> _Failed | _Refused:
    reason = f"error {code}: {message or 'without a reason'}"
    return _Failed(reason) if code in _PASSING else _Refused(reason, letters)
