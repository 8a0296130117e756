"""The offsets of a shard: OffsetFetch and OffsetDelete, records, and transactions; the door to this package.

Offsets change by their records only. A request appends records to its step, and the shard replays them here when the
step is known to happen. The model is Kafka's `OffsetMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, islice

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from pykbroker.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from pykbroker.protocol.schema import NO_UUID

from ..common.config import GroupConfig
from ..common.context import Step
from ..common.group import Group
from ..common.records import offset_tombstone
from ..common.requests import FetchAllOffsets
from ..common.topics import TopicsView
from .all_offsets import AllOffsets
from .committed_offsets import CommittedOffset, CommittedOffsets
from .forgotten_topics import ForgottenTopics
from .offset_commits import OffsetCommits, OnOffsetCommit
from .offset_expiration import OffsetExpiration
from .pending_offsets import PendingOffsets

NO_OFFSET = -1
NO_LEADER_EPOCH = -1


class Offsets:
    """The committed and pending offsets of one shard.

    groups: the shard's groups of all types, shared with it.
    """

    def __init__(
        self, config: GroupConfig, groups: Mapping[str, Group], topics: TopicsView, on_commit: OnOffsetCommit
    ) -> None:
        self._groups = groups
        self.committed = CommittedOffsets()
        self.pending = PendingOffsets(self.committed)
        self.expiration = OffsetExpiration(config, groups, self.committed, self.pending)
        self.forgotten_topics = ForgottenTopics(self.committed, self.pending)
        commits = OffsetCommits(config, groups, topics, on_commit)
        self.commit = commits.commit
        self.commit_in_transaction = commits.commit_in_transaction

    # OffsetFetch

    def fetch(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        """Take and give the form of v8+, a list of groups, whose topics have names."""
        return OffsetFetchResponse(
            groups=[self._fetch_group(group, request.require_stable) for group in request.groups]
        )

    def _fetch_group(self, asked: OffsetFetchRequestGroup, require_stable: bool) -> OffsetFetchResponseGroup:
        group = self._groups.get(asked.group_id)
        if group is not None:
            error_code = group.validate_offset_fetch(asked.member_id, asked.member_epoch)
            if error_code is not ErrorCode.NONE:
                return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error_code)
        assert asked.topics is not None
        topics = []
        for topic in asked.topics:
            partitions = [
                self._fetch_partition(asked.group_id, topic.name, topic.topic_id, index, require_stable)
                for index in topic.partition_indexes
            ]
            topics.append(OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
        return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)

    def _fetch_partition(
        self, group_id: str, topic: str, topic_id: bytes, index: int, require_stable: bool
    ) -> OffsetFetchResponsePartitions:
        """A group that does not exist has no offsets, which is not an error. A topic does not have the offsets of an
        earlier topic of its name."""
        if require_stable and self.pending.is_pending(group_id, topic, index):
            return unstable_offset(index)
        committed = self.pending.committed_offset(group_id, topic, index)
        if committed is None or group_id not in self._groups or _differs(committed.topic_id, topic_id):
            return _no_offset(index)
        return told_offset(index, committed)

    def fetch_all(self, request: FetchAllOffsets) -> AllOffsets:
        """All topics with a committed offset. A topic whose only offsets are pending does not count yet."""
        group = self._groups.get(request.group_id)
        if group is None:
            return AllOffsets()
        error_code = group.validate_offset_fetch(request.member_id, request.member_epoch)
        if error_code is not ErrorCode.NONE:
            return AllOffsets(error_code)
        table = {name: dict(offsets) for name, offsets in self.committed.of_group(request.group_id)}
        return AllOffsets(ErrorCode.NONE, table, self.pending.as_of_now(request.group_id))

    # OffsetDelete

    def delete(self, request: OffsetDeleteRequest, step: Step) -> OffsetDeleteResponse:
        group = self._groups.get(request.group_id)
        error_code = _validate_delete(request.group_id, group)
        if group is None or error_code is not ErrorCode.NONE:
            return OffsetDeleteResponse(error_code=error_code)
        topics = [self._delete_topic(group, topic, step) for topic in request.topics]
        step.because(group.group_id, "offsets deleted by request")
        return OffsetDeleteResponse(topics=topics)

    def _delete_topic(self, group: Group, topic: OffsetDeleteRequestTopic, step: Step) -> OffsetDeleteResponseTopic:
        subscribed = group.is_subscribed_to(topic.name)
        error_code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        partitions = []
        for partition in topic.partitions:
            index = partition.partition_index
            if not subscribed and self._exists(group.group_id, topic.name, index):
                step.append(offset_tombstone(group.group_id, topic.name, index))
            partitions.append(OffsetDeleteResponsePartition(partition_index=index, error_code=error_code))
        return OffsetDeleteResponseTopic(name=topic.name, partitions=partitions)

    def _exists(self, group_id: str, topic: str, index: int) -> bool:
        """A pending offset counts: once it is deleted, its transaction commits none."""
        is_committed = self.pending.committed_offset(group_id, topic, index) is not None
        return is_committed or self.pending.is_pending(group_id, topic, index)

    def delete_some(self, group_id: str, most: int, step: Step) -> bool:
        """Delete offsets of a group that is being deleted, with those that open transactions have committed for it.
        Whether they are the last."""
        committed = (place for place, _ in self.committed.offsets_of(group_id))
        places = list(islice(chain(committed, self.pending.places(group_id)), most + 1))
        for place in dict.fromkeys(places[:most]):
            step.append(offset_tombstone(group_id, *place))
        return len(places) <= most

    # Records

    def replay(self, producer_id: int | None, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        """Apply a record of a committed offset.

        producer_id: of the producer in whose open transaction the record is; None for all others.
        """
        if value is None:
            self.committed.replay(key, None)
            self.pending.drop(key.group, key.topic, key.partition)
        elif producer_id is None:
            self.committed.replay(key, value)
        else:
            self.pending.add(producer_id, key, value)

    # Trials

    def begin_trial(self) -> None:
        """Begin a trial: `end_trial` may take back what changes from here on."""
        self.expiration.begin_trial()
        self.forgotten_topics.begin_trial()

    def end_trial(self, *, is_kept: bool) -> None:
        self.expiration.end_trial(is_kept=is_kept)
        self.forgotten_topics.end_trial(is_kept=is_kept)


def told_offset(index: int, committed: CommittedOffset) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def unstable_offset(index: int) -> OffsetFetchResponsePartitions:
    """The client has to ask again when the open transaction has ended (KIP-447)."""
    return _no_offset(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)


def _validate_delete(group_id: str, group: Group | None) -> ErrorCode:
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    return ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.validate_offset_delete()


def _no_offset(index: int, error_code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=NO_OFFSET,
        committed_leader_epoch=NO_LEADER_EPOCH,
        metadata="",
        error_code=error_code,
    )


def _differs(topic_id: bytes, other: bytes) -> bool:
    """Tell whether topics differ. Where either id is not known, the name decides."""
    return topic_id != other and NO_UUID not in (topic_id, other)
