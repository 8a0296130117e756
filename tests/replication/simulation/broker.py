"""A broker of the simulated world: it registers, follows the metadata, leads or follows its replica, and may die.

It does what `server.replica_manager`, `replica_fetcher`, `alter_partition` and `broker_lifecycle` do around the rules.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pykbroker.metadata.features import SUPPORTED_FEATURES
from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.brokers import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    BrokerState,
    Feature,
    Listener,
)
from pykbroker.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from pykbroker.replication.appended import Appended
from pykbroker.replication.fetch_session import CachedPartition, FetchContext, FetchSessionCache
from pykbroker.replication.fetch_settings import FetchSettings
from pykbroker.replication.follower import Follower
from pykbroker.replication.isr import CommittedIsr, IsrChange
from pykbroker.replication.partition import ACKS_ALL, IsrRules, Partition
from pykbroker.replication.reads import FetchIsolation, FetchPartitionData
from pykbroker.server.replicas.image_brokers import ImageBrokers
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.log.log import LogConfig
from pykbroker.storage.segments.verification import NotVerified

from .controller import CLUSTER_ID
from .events import Process
from .logs import WatchedLog, bytes_of
from .wires import Reply

if TYPE_CHECKING:
    from .world import World

TOPIC = "orders"
DIRECTORY = "/orders-0"
FETCH_VERSION = 18
WALL_CLOCK_MS = 1_700_000_000_000
LAG_TIME_MAX_MS = 500
REQUEST_TIMEOUT_MS = 300
PRODUCE_TIMEOUT_MS = 400
LATE_PRODUCE_TIMEOUT_MS = 4_000
"""Where requests wait for something else first."""
_SETTINGS = FetchSettings(wait_max_ms=40, max_bytes=300, backoff_ms=50)


@dataclass(slots=True)
class _Acknowledgement:
    """A producer waits for it. looks_from_ms: the request is busy elsewhere until then."""

    appended: Appended
    base_offset: int
    reply: Reply
    looks_from_ms: float


class SimulatedBroker(Process):
    """is_dirty: it ended without a clean shutdown, and was not in sync since."""

    def __init__(self, broker_id: int, world: World, rng: random.Random) -> None:
        super().__init__(f"broker {broker_id}", world.events)
        self.id = broker_id
        self.disk = SimulatedDisk(rng)
        self.is_dirty = False
        self._world = world
        self._rng = rng
        self._waits_rng = random.Random(f"waits {broker_id} {world.seed}")
        self._clock_ms = rng.uniform(0, 10_000)
        self._rate = rng.uniform(0.95, 1.05)
        self._config = LogConfig.from_properties(world.plan.topic_properties)
        self._kept_high_watermark = 0
        self._kept_recovery_point = 0
        self._machine_stayed_up = False
        self.partition: Partition | None = None

    def now_ms(self) -> int:
        return round(self._clock_ms + self.events.now_ms * self._rate)

    def _wall_clock_ms(self) -> int:
        return WALL_CLOCK_MS + round(self.events.now_ms)

    # Life

    def begin(self) -> None:
        super().begin()
        self.image = MetadataImage()
        self.image_end = 0
        self.broker_epoch = -1
        self._incarnation_id = self._rng.randbytes(16)
        self._brokers = ImageBrokers(lambda: self.image, (self.id, self._incarnation_id))
        self._sessions = FetchSessionCache(random.Random(self._rng.random()), 10)
        self._followers: dict[int, Follower] = {}
        self._is_asking: dict[int, bool] = {}
        self._asked = 0
        self._fetching: dict[int, int] = {}
        """Numbers of fetches under way, by leader."""
        self._broken_off: set[int] = set()
        self._proposed: IsrChange | None = None
        self._is_proposing = False
        self._unacknowledged: list[_Acknowledgement] = []
        self._is_flushing = False
        self.serves = False
        """Not before the controller has let it in: what it knows until then may be of the time before its death."""
        self.later(self._rng.uniform(0, 50), self._register)
        self.later(LAG_TIME_MAX_MS / 2, self._look_after_isr)
        self.later(100, self._checkpoint)
        self.later(1, self._pull_metadata)

    def _open(self, topic_id: bytes) -> Partition:
        log = WatchedLog.open(
            self.disk,
            DIRECTORY,
            self._config,
            now_ms=self._wall_clock_ms(),
            recovery_point=self._kept_recovery_point,
            high_watermark=self._kept_high_watermark,
            machine_stayed_up=self._machine_stayed_up,
        )
        log.before_truncation = self._lower_checkpoints
        self._lower_checkpoints(log.log_end_offset)
        rules = IsrRules(self._brokers, LAG_TIME_MAX_MS, self._propose)
        partition = Partition(TOPIC, topic_id, 0, log, self.id, rules, high_watermark=self._kept_high_watermark)
        partition.watchers[self] = None
        return partition

    def _lower_checkpoints(self, offset: int) -> None:
        """They promise no more than what will be there; as `storage.directory_checkpoints` does."""
        self._kept_high_watermark = min(self._kept_high_watermark, offset)
        self._kept_recovery_point = min(self._kept_recovery_point, offset)

    def die(self, *, is_power_cut: bool) -> None:
        self.end()
        if self.partition is not None:
            self.partition.log.abandon()
            self.partition = None
            self._machine_stayed_up = True
        if is_power_cut:
            self._machine_stayed_up = False
        self.is_dirty = True
        if is_power_cut:
            self.disk.crash()
        else:
            self.disk.process_died()

    def _checkpoint(self) -> None:
        if self.partition is not None:
            self._kept_high_watermark = self.partition.high_watermark
            self._kept_recovery_point = self.partition.log.recovery_point
            if self._rng.random() < 0.1:
                self.partition.log.flush()
        self.later(self._rng.uniform(50, 200), self._checkpoint)

    # Membership

    def _ask_controller(self, request: Any, answered: Any, failed: Any) -> None:
        controller = self._world.controller
        self._world.wires.ask(
            self,
            controller,
            lambda reply: controller.handle(request, reply),
            answered=answered,
            failed=failed,
            timeout_ms=REQUEST_TIMEOUT_MS,
        )

    def _register(self) -> None:
        request = BrokerRegistrationRequest(
            broker_id=self.id,
            cluster_id=CLUSTER_ID,
            incarnation_id=self._incarnation_id,
            listeners=[Listener(name="PLAINTEXT", host=self.name, port=9092)],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(SUPPORTED_FEATURES.items())
            ],
            log_dirs=[bytes([0xD1]) * 15 + bytes([self.id])],
        )

        def answered(response: BrokerRegistrationResponse) -> None:
            if response.error_code:
                assert response.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION, response
                self.later(100, self._register)
            else:
                self.broker_epoch = response.broker_epoch
                self._send_heartbeat()

        self._ask_controller(request, answered, lambda: self.later(20, self._register))

    def _send_heartbeat(self) -> None:
        request = BrokerHeartbeatRequest(
            broker_id=self.id, broker_epoch=self.broker_epoch, current_metadata_offset=self.image_end - 1
        )

        def answered(response: BrokerHeartbeatResponse) -> None:
            if response.error_code in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED):
                self._register()
            else:
                self.serves = self.serves or not response.is_fenced
                self.later(30 if response.is_fenced else 150, self._send_heartbeat)

        self._ask_controller(request, answered, lambda: self.later(20, self._send_heartbeat))

    # Metadata

    def _pull_metadata(self) -> None:
        self.later(self._rng.uniform(100, 400), self._pull_metadata)
        self._world.send_metadata(self)

    def take_metadata(self, begin: int, records: list[Any]) -> None:
        if begin > self.image_end or begin + len(records) <= self.image_end:
            return  # there is a gap, or nothing new
        for offset, record in enumerate(records[self.image_end - begin :], self.image_end):
            self.image.replay(record, offset)
        self.image_end = begin + len(records)
        self._apply()

    def _apply(self) -> None:
        topic = self.image.topic(TOPIC)
        if topic is None:
            return
        if self.partition is None:
            self.partition = self._open(topic.topic_id)
        partition, state = self.partition, topic.partitions[0]
        partition.apply_state(state, self.now_ms())
        if self._brokers.find_this_process():
            partition.lead()
        leader = -1 if partition.is_leader else partition.leader
        for leader_id, follower in self._followers.items():
            if leader_id != leader:
                follower.unfollow(partition)
        if leader >= 0:
            if leader not in self._followers:
                self._followers[leader] = Follower(self.id, _SETTINGS, _no_failure)
                self._is_asking[leader] = False
            self._followers[leader].follow(partition)
            self._fetch_soon(leader)
        if self.serves and self.id in state.isr:
            self.is_dirty = False
        self._flush_soon()

    # Following

    def _fetch_soon(self, leader_id: int) -> None:
        self.later(self._rng.uniform(0, 2), lambda: self._fetch(leader_id))

    def _fetch(self, leader_id: int) -> None:
        """One exchange at a time; nothing before what was appended is on the disk, where it has to be."""
        if self._is_asking[leader_id] or self._is_flushing:
            return
        follower = self._followers[leader_id]
        request = follower.next_offsets_request() or follower.next_request(self.now_ms(), self.broker_epoch)
        if request is None:
            if follower.next_deadline_ms() is not None:
                self.later(20, lambda: self._fetch(leader_id))
            return
        self._is_asking[leader_id] = True
        self._asked += 1
        number, leader = self._asked, self._world.brokers[leader_id]
        if isinstance(request, FetchRequest):
            self._fetching[leader_id] = number

        def answered(response: Any) -> None:
            if number in self._broken_off:
                return
            self._fetching.pop(leader_id, None)
            self._is_asking[leader_id] = False
            if isinstance(response, ListOffsetsResponse):
                follower.offsets_answered(response, self.now_ms(), self._wall_clock_ms())
            else:
                follower.answered(response, self.now_ms(), self._wall_clock_ms())
            self._flush_soon()
            self._fetch_soon(leader_id)

        def failed() -> None:
            if number in self._broken_off:
                return
            self._fetching.pop(leader_id, None)
            self._is_asking[leader_id] = False
            follower.failed(self.now_ms())
            self._fetch_soon(leader_id)

        self._world.wires.ask(
            self,
            leader,
            lambda reply: leader.answer(request, reply),
            answered=answered,
            failed=failed,
            timeout_ms=REQUEST_TIMEOUT_MS,
        )

    def break_off(self) -> None:
        """As when a partition is to be followed that the leader was not asked for."""
        for leader_id, number in list(self._fetching.items()):
            self._broken_off.add(number)
            del self._fetching[leader_id]
            self._is_asking[leader_id] = False
            self._followers[leader_id].interrupted()
            self._fetch_soon(leader_id)

    def _flush_soon(self) -> None:
        if self.partition is not None and self.partition.lacks_flush and not self._is_flushing:
            self._is_flushing = True
            self.later(self._rng.uniform(0.1, 5) + self._disk_hangs_ms(), self._flush)

    def _disk_hangs_ms(self) -> float:
        if not self._world.plan.slow_disks or self._world.is_healed or self._waits_rng.random() < 0.7:
            return 0
        return self._waits_rng.uniform(50, 600)

    def _flush(self) -> None:
        assert self.partition is not None
        self._is_flushing = False
        self.partition.log.flush()
        self.partition.maybe_increment_high_watermark()
        for leader_id in self._followers:
            self._fetch_soon(leader_id)

    # Leading

    def answer(self, request: FetchRequest | ListOffsetsRequest, reply: Reply) -> None:
        if not self.serves:
            return
        if isinstance(request, ListOffsetsRequest):
            reply(self._list_offsets(request))
            return
        context = self._sessions.new_context(request, FETCH_VERSION, lambda _: TOPIC, self.now_ms(), from_follower=True)
        answers = self._read_all(context, request)
        if any(data.records_size or data.error_code or data.diverging_epoch for _, data in answers):
            reply(self._fetched(context, answers))
            return

        def read_again() -> None:
            watched = context.watched
            if watched is None or (not watched.is_overtaken and watched.watch.take_changes()):
                reply(self._fetched(context, self._read_all(context, request, counts=False)))
            elif not watched.is_overtaken:  # whoever waits for that is gone
                reply(self._fetched(context, answers))

        self.later(self._rng.uniform(5, request.max_wait_ms), read_again)

    def _read_all(
        self, context: FetchContext, request: FetchRequest, *, counts: bool = True
    ) -> list[tuple[CachedPartition, FetchPartitionData]]:
        answers = []
        for cached in context.partitions():
            data = self._read(cached, request, counts)
            if context.watched is not None and self.partition is not None:
                context.watched.was_read(cached, self.partition, data, request.replica_state.replica_id)
            answers.append((cached, data))
        return answers

    def _read(self, cached: CachedPartition, request: FetchRequest, counts: bool) -> FetchPartitionData:
        asked, replica = cached.request, request.replica_state
        if self.partition is None:
            return FetchPartitionData(ErrorCode.UNKNOWN_TOPIC_ID)
        while True:
            try:
                return self.partition.read_as_replica(
                    replica.replica_id,
                    asked.fetch_offset,
                    asked.partition_max_bytes,
                    asked.current_leader_epoch,
                    True,
                    last_fetched_epoch=asked.last_fetched_epoch,
                    log_start_offset=asked.log_start_offset,
                    now_ms=self.now_ms(),
                    broker_epoch=replica.replica_epoch,
                    counts=counts,
                )
            except NotVerified as unverified:
                unverified.check.run()
                unverified.check.accept()

    def _fetched(
        self, context: FetchContext, answers: list[tuple[CachedPartition, FetchPartitionData]]
    ) -> FetchResponse:
        answer = context.finish(answers, self.now_ms())
        response = FetchResponse(error_code=answer.error_code, session_id=answer.session_id)
        for cached, read in answer.partitions:
            data = PartitionData(
                partition_index=cached.partition,
                error_code=read.error_code,
                high_watermark=read.high_watermark,
                last_stable_offset=read.last_stable_offset,
                log_start_offset=read.log_start_offset,
                records=bytes_of(read.records) if read.records_size else b"",
            )
            if read.diverging_epoch is not None:
                epoch, end_offset = read.diverging_epoch
                data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
            response.responses.append(FetchableTopicResponse(topic_id=cached.topic_id, partitions=[data]))
        return response

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        response = ListOffsetsResponse()
        for topic in request.topics:
            answers = []
            for asked in topic.partitions:
                answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
                if self.partition is None:
                    answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                else:
                    found = self.partition.list_offset(
                        asked.timestamp, FetchIsolation.LOG_END, asked.current_leader_epoch
                    )
                    answer.error_code, answer.offset = found.error_code, found.offset
                answers.append(answer)
            response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
        return response

    # In-sync replicas

    def _look_after_isr(self) -> None:
        if self.partition is not None:
            self.partition.maybe_shrink_isr(self.now_ms())
        self.later(LAG_TIME_MAX_MS / 2, self._look_after_isr)

    def _propose(self, partition: Partition, change: IsrChange) -> None:
        self._proposed = change
        self._ask_for_isr()

    def _ask_for_isr(self) -> None:
        change, partition = self._proposed, self.partition
        if change is None or partition is None or self._is_proposing:
            return
        self._is_proposing = True
        wanted = AlterPartitionRequestPartitionData(
            partition_index=0,
            leader_epoch=change.leader_epoch,
            partition_epoch=change.partition_epoch,
            new_isr_with_epochs=[
                BrokerState(broker_id=each, broker_epoch=self.broker_epoch if each == self.id else epoch)
                for each, epoch in zip(change.isr, change.broker_epochs, strict=True)
            ],
        )
        topics = [AlterPartitionRequestTopicData(topic_id=partition.topic_id, partitions=[wanted])]
        request = AlterPartitionRequest(broker_id=self.id, broker_epoch=self.broker_epoch, topics=topics)

        def again() -> None:
            self._is_proposing = False
            self.later(20, self._ask_for_isr)

        def answered(response: AlterPartitionResponse) -> None:
            self._is_proposing = False
            if response.error_code or self._is_to_be_asked_again(partition, change, response):
                again()
                return
            if self._proposed is change:
                self._proposed = None
            self._ask_for_isr()

        self._ask_controller(request, answered, again)

    def _is_to_be_asked_again(self, partition: Partition, change: IsrChange, response: AlterPartitionResponse) -> bool:
        answer = response.topics[0].partitions[0]
        if answer.error_code:
            return partition.isr_change_answered(change, ErrorCode(answer.error_code))
        return partition.isr_change_answered(
            change,
            CommittedIsr(answer.leader_id, answer.leader_epoch, tuple(answer.isr), answer.partition_epoch),
        )

    # Producers

    def produce(self, batch: bytes, reply: Reply) -> None:
        """Replies with an ErrorCode, or with the offset of the first record."""
        partition = self.partition
        if not self.serves:
            return
        if partition is None:
            reply(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        try:
            result = partition.append_as_leader(batch, self._wall_clock_ms(), ACKS_ALL)
        except ApiError as error:
            reply(error.code)
            return
        self._flush_soon()
        busy_ms, timeout_ms = self._busy_ms()
        waiting = _Acknowledgement(
            Appended(partition, result.last_offset + 1), result.first_offset, reply, self.events.now_ms + busy_ms
        )
        self._unacknowledged.append(waiting)
        self.later(timeout_ms, lambda: self._give_up(waiting))
        if busy_ms:
            self.later(busy_ms + 1, self._acknowledge)
        self.partition_changed(partition)

    def _busy_ms(self) -> tuple[float, float]:
        """For how long a request does not look at what became of its batch, and its timeout."""
        if not self._world.plan.late_looks or self._world.is_healed or self._waits_rng.random() < 0.5:
            return 0, PRODUCE_TIMEOUT_MS
        return self._waits_rng.uniform(0, LATE_PRODUCE_TIMEOUT_MS), LATE_PRODUCE_TIMEOUT_MS

    def _give_up(self, waiting: _Acknowledgement) -> None:
        if waiting in self._unacknowledged:
            self._unacknowledged.remove(waiting)
            waiting.reply(ErrorCode.REQUEST_TIMED_OUT)

    def partition_changed(self, partition: Partition) -> None:
        """Whoever waits looks again, in a turn of its own."""
        if self._unacknowledged:
            self.later(0, self._acknowledge)

    def _acknowledge(self) -> None:
        for waiting in list(self._unacknowledged):
            if waiting.looks_from_ms > self.events.now_ms:
                continue
            outcome = waiting.appended.settled()
            if outcome is not None:
                self._unacknowledged.remove(waiting)
                waiting.reply(waiting.base_offset if outcome is ErrorCode.NONE else outcome)


def _no_failure(partition: Partition, failure: object) -> None:
    raise AssertionError(f"the disk of {partition} does not fail: {failure}")
