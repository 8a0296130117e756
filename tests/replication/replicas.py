"""Replicas of one partition on brokers of one process: real logs on simulated disks, requests as bytes between them.

A controller without consensus stands beside them: it decides who leads, and answers changes of the ISR when it is told
to. Nothing happens by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import ErrorCode
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
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches, iter_records
from pykbroker.replication.fetch_session import CachedPartition, FetchSessionCache
from pykbroker.replication.fetch_settings import FetchSettings
from pykbroker.replication.follower import Follower
from pykbroker.replication.isr import CommittedIsr, IsrChange
from pykbroker.replication.partition import Partition
from pykbroker.replication.quotas import ReplicaQuota
from pykbroker.replication.reads import FetchIsolation, FetchPartitionData
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.files.errors import FileError
from pykbroker.storage.log.log import AppendResult, Log, LogConfig
from pykbroker.storage.log.log_reads import LogSlice

from .brokers import LAG_TIME_MAX_MS, FixedBrokers, Proposals

TOPIC = "apples"
TOPIC_ID = b"a" * 16
VERSION = 18
NOW_MS = 1_000_000


@dataclass(frozen=True)
class State:
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()


class Replica:
    """One broker with its replica of the partition. Its process can be restarted: its log stays."""

    def __init__(self, broker_id: int, brokers: FixedBrokers, config: LogConfig) -> None:
        self.id = broker_id
        self.config = config
        self.disk = SimulatedDisk(Random(broker_id))
        self.proposals = Proposals(brokers)
        self.failures: list[FileError] = []
        self.begin(high_watermark=0)

    def begin(self, high_watermark: int) -> None:
        log = Log.open(self.disk, "/apples-0", self.config, now_ms=NOW_MS, high_watermark=high_watermark)
        rules = self.proposals.rules()
        self.proposals.proposed.clear()
        self.partition = Partition(TOPIC, TOPIC_ID, 0, log, self.id, rules, high_watermark=high_watermark)
        self.sessions = FetchSessionCache(Random(self.id))
        self.followers: dict[int, Follower] = {}

    def restart(self) -> None:
        """After a kill: what was written is there, and the high watermark as it was checkpointed."""
        high_watermark = self.partition.high_watermark
        self.partition.log.flush()
        self.partition.log.abandon()
        self.begin(high_watermark)

    def follower_of(self, leader_id: int, *, throttle: ReplicaQuota | None = None) -> Follower:
        """throttle: for a follower that begins anew with it."""
        if leader_id not in self.followers or throttle is not None:
            settings = FetchSettings(max_bytes=200)
            follower = Follower(self.id, settings, lambda _, failure: self.failures.append(failure), throttle)
            self.followers[leader_id] = follower
            if self.partition.leader == leader_id:
                follower.follow(self.partition)
        return self.followers[leader_id]

    def apply(self, state: State, now_ms: int) -> None:
        if not self.partition.apply_state(state, now_ms):
            return
        for leader_id, follower in self.followers.items():
            if leader_id != state.leader or state.leader == self.id:
                follower.unfollow(self.partition)
        if state.leader not in (self.id, -1):
            self.follower_of(state.leader).follow(self.partition)

    # What a leader answers

    def answer_fetch(self, data: bytes, now_ms: int) -> bytes:
        request, _ = decode(FetchRequest, VERSION, data)
        replica = request.replica_state
        context = self.sessions.new_context(request, VERSION, lambda _: TOPIC, now_ms, from_follower=True)
        id_and_epoch = replica.replica_id, replica.replica_epoch
        answers = []
        for each in context.partitions():
            read_now = self._read(each, *id_and_epoch, now_ms)
            if context.watched is not None:
                context.watched.was_read(each, self.partition, read_now, replica.replica_id)
            answers.append((each, read_now))
        answer = context.finish(answers, now_ms)
        response = FetchResponse(error_code=answer.error_code, session_id=answer.session_id)
        for cached, read in answer.partitions:
            topic = FetchableTopicResponse(topic_id=cached.topic_id, partitions=[_data(cached, read)])
            response.responses.append(topic)
        return encode(response, VERSION)

    def _read(self, cached: CachedPartition, replica_id: int, broker_epoch: int, now_ms: int) -> FetchPartitionData:
        asked = cached.request
        return self.partition.read_as_replica(
            replica_id,
            asked.fetch_offset,
            asked.partition_max_bytes,
            asked.current_leader_epoch,
            True,
            last_fetched_epoch=asked.last_fetched_epoch,
            log_start_offset=asked.log_start_offset,
            now_ms=now_ms,
            broker_epoch=broker_epoch,
        )

    def answer_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        response = ListOffsetsResponse()
        for topic in request.topics:
            answers = []
            for asked in topic.partitions:
                found = self.partition.list_offset(asked.timestamp, FetchIsolation.LOG_END, asked.current_leader_epoch)
                answers.append(
                    ListOffsetsPartitionResponse(
                        partition_index=asked.partition_index, error_code=found.error_code, offset=found.offset
                    )
                )
            response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
        return response

    # What it holds

    def records(self, end_offset: int | None = None) -> list[tuple[int, bytes | None]]:
        log = self.partition.log
        end_offset = log.log_end_offset if end_offset is None else end_offset
        offset, found = log.log_start_offset, []
        while offset < end_offset:
            data = log.read(offset, 1 << 20, min_one_batch=True).read()
            for batch in iter_batches(data):
                found += [(each.offset, each.value) for each in iter_records(batch)]
                offset = batch.header.next_offset
        return [each for each in found if log.log_start_offset <= each[0] < end_offset]

    def bytes(self) -> bytes:
        log = self.partition.log
        offset, parts = log.log_start_offset, []
        while offset < log.log_end_offset:
            part = log.read(offset, 1 << 20, min_one_batch=True).read()
            parts.append(part)
            offset = list(iter_batches(part))[-1].header.next_offset
        return b"".join(parts)


def _data(cached: CachedPartition, read: FetchPartitionData) -> PartitionData:
    records = read.records
    answer = PartitionData(
        partition_index=cached.partition,
        error_code=read.error_code,
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        records=records.read() if isinstance(records, LogSlice) else records,
    )
    if read.diverging_epoch is not None:
        answer.diverging_epoch = EpochEndOffset(epoch=read.diverging_epoch[0], end_offset=read.diverging_epoch[1])
    return answer


class Replicas:
    """All replicas of the partition, and the controller's state of it."""

    def __init__(self, ids: tuple[int, ...] = (1, 2, 3), *, min_isr: int = 1, **config: str) -> None:
        properties: dict[str, str | None] = {key.replace("_", "."): value for key, value in config.items()}
        properties["min.insync.replicas"] = str(min_isr)
        self.brokers = FixedBrokers({each: 100 + each for each in ids})
        self.replicas = {each: Replica(each, self.brokers, LogConfig.from_properties(properties)) for each in ids}
        self.now_ms = 0
        self.state = State(ids[0], 0, 0, ids, ids)
        self.publish()

    def __getitem__(self, broker_id: int) -> Replica:
        return self.replicas[broker_id]

    @property
    def leader(self) -> Replica:
        return self.replicas[self.state.leader]

    # The controller

    def publish(self, *to: int) -> None:
        for each in to or tuple(self.replicas):
            self.replicas[each].apply(self.state, self.now_ms)

    def decide(self, *, tell: tuple[int, ...] | None = None, **changes: object) -> None:
        """New state of the partition, which those to `tell` learn: all, where nothing else is said."""
        new_epoch = "leader" in changes
        self.state = replace(
            self.state,
            leader_epoch=self.state.leader_epoch + new_epoch,
            partition_epoch=self.state.partition_epoch + 1,
            **changes,  # type: ignore[arg-type]
        )
        if tell != ():
            self.publish(*(tell or ()))

    def elect(self, leader: int, isr: tuple[int, ...] | None = None, *, tell: tuple[int, ...] | None = None) -> None:
        self.decide(leader=leader, isr=isr or self.state.isr, tell=tell)

    def answer_proposals(self, of: int, *, tell: bool = True) -> list[IsrChange]:
        """What the controller makes of them."""
        proposals = self.replicas[of].proposals.proposed
        taken, proposals[:] = list(proposals), []
        for partition, change in taken:
            answer: CommittedIsr | ErrorCode
            if change.leader_epoch != self.state.leader_epoch:
                answer = ErrorCode.FENCED_LEADER_EPOCH
            elif change.partition_epoch != self.state.partition_epoch:
                answer = ErrorCode.INVALID_UPDATE_VERSION
            elif any(self._is_stale(*each) for each in zip(change.isr, change.broker_epochs, strict=True)):
                answer = ErrorCode.INELIGIBLE_REPLICA
            else:
                self.decide(isr=change.isr, tell=())
                answer = CommittedIsr(
                    self.state.leader, self.state.leader_epoch, change.isr, self.state.partition_epoch
                )
            assert not partition.isr_change_answered(change, answer)
            if tell:
                self.publish()
        return [change for _, change in taken]

    def _is_stale(self, broker_id: int, epoch: int) -> bool:
        return epoch >= 0 and self.brokers.live_epoch(broker_id) != epoch

    # Clients and followers

    def append(self, *values: str, to: int | None = None, acks: int = 1) -> AppendResult:
        records = [Record(key=None, value=each.encode(), timestamp=NOW_MS) for each in values]
        partition = (self.leader if to is None else self.replicas[to]).partition
        return partition.append_as_leader(encode_batch(records), NOW_MS, acks)

    def fetch(self, follower_id: int, *, of: int | None = None, lose: Callable[[], bool] = lambda: False) -> bool:
        """One exchange with the leader; whether there was something to ask."""
        replica = self.replicas[follower_id]
        leader_id = self.state.leader if of is None else of
        leader, follower = self.replicas[leader_id], replica.follower_of(leader_id)
        offsets = follower.next_offsets_request()
        if offsets is not None:
            follower.offsets_answered(leader.answer_offsets(offsets), self.now_ms, NOW_MS)
        request = follower.next_request(self.now_ms, self.brokers.epochs.get(follower_id, -1))
        if request is None:
            return offsets is not None
        if lose():
            follower.failed(self.now_ms)
            return True
        data = leader.answer_fetch(encode(request, VERSION), self.now_ms)
        if lose():
            follower.failed(self.now_ms)
            return True
        response, _ = decode(FetchResponse, VERSION, data)
        follower.answered(response, self.now_ms, NOW_MS)
        return True

    def settle(self, rounds: int = 12) -> None:
        """Everybody fetches until nothing is new, and the controller answers at once."""
        for _ in range(rounds):
            for each in self.replicas:
                if each != self.state.leader:
                    self.fetch(each)
            if self.state.leader in self.replicas:
                self.answer_proposals(self.state.leader)

    def wait(self, ms: int) -> None:
        self.now_ms += ms


__all__ = ["LAG_TIME_MAX_MS", "NOW_MS", "Replica", "Replicas", "State"]
