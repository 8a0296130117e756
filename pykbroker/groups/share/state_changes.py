"""Changes of the state that the share coordinator keeps for a share group: initialized, altered, deleted.

Nothing here asks the share coordinator. A step writes down what is about to be done and says so, as an effect or in its
answer; the driver does it once that is committed, and comes back with what became of it. Where a coordinator goes away
in between, the next one finds partitions that are initializing or topics that are deleting: the first are initialized
again with the next heartbeat, in a new epoch, the second are deleted when an administrator asks again, or come back to
life when a member subscribes to them. Kafka's next coordinator waits `group.share.initialize.retry.interval.ms` first:
where coordinators move more often than that nobody ever gets a record. The model is the share half of Kafka's
`GroupMetadataManager`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pykbroker.kept_entries import KeptEntries
from pykbroker.protocol.errors import ApiError, ErrorCode

from ..common.config import GroupConfig
from ..common.context import Step
from ..common.group import Group, GroupType
from ..common.requests import AlterShareOffsets, BeginShareStateDeletion, EndShareInitialization, EndShareStateDeletion
from ..common.topics import TopicsView
from ..modern.heartbeat_rules import not_found
from .share_group import ShareGroup, find_share
from .share_replay import ShareReplay
from .state_partitions import StatePartitions, StateTopic, size_of_name, together

MOST_INITIALIZED: Final = 10_000
"""How many partitions one heartbeat begins to initialize; the next ones go on."""
MOST_LOOKED_AT: Final = 1_000
"""How many groups one step looks at when topics are deleted."""
_BYTES_OF_KEY: Final = 16
_BYTES_OF_PARTITION: Final = 4


@dataclass(frozen=True, slots=True)
class ShareInitialization:
    """An effect: the share coordinator is to create the state of these partitions, in a state epoch of the group's.

    topics: by topic id, the partitions.
    """

    group_id: str
    state_epoch: int
    topics: Mapping[bytes, frozenset[int]]


@dataclass(frozen=True, slots=True)
class ShareAlteration:
    """The outcome of an AlterShareOffsets.

    topic_ids: by name, of the topics that exist. unknown: by name, partitions that do not exist. start_offsets: by
    topic id and partition, with which the share coordinator is to create their state anew.
    """

    state_epoch: int
    topic_ids: Mapping[str, bytes]
    unknown: Mapping[str, frozenset[int]]
    start_offsets: Mapping[bytes, Mapping[int, int]]
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class ShareDeletion:
    """The outcome of a BeginShareStateDeletion.

    topics: by topic id, the partitions whose state the share coordinator is to delete. names: of those topics, as the
    client named them. refused: by name, why nothing of the topic is deleted.
    """

    topics: Mapping[bytes, Collection[int]] = field(default_factory=dict)
    names: Mapping[bytes, str] = field(default_factory=dict)
    refused: Mapping[str, ApiError] = field(default_factory=dict)
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class StateChanges:
    """The changes of a shard's share groups. groups: the shard's groups of all types."""

    def __init__(self, config: GroupConfig, groups: dict[str, Group], topics: TopicsView, records: ShareReplay) -> None:
        self._config = config
        self._groups = groups
        self._topics = topics
        self._records = records
        self._forgetting: dict[object, deque[str]] = {}
        """By deletion of topics, the groups that were not looked at yet."""
        self._kept: KeptEntries[object, deque[str]] = KeptEntries(self._forgetting.get, lambda groups: groups.copy())

    def begin_trial(self) -> None:
        """Begin a trial: `end_trial` may take back what changes from here on."""
        self._kept.begin()

    def end_trial(self, *, is_kept: bool) -> None:
        """End the trial of a step. is_kept: whether the step did happen; else its groups are looked at again."""
        for deleted, groups in self._kept.end().items():
            if not is_kept and groups is not None:
                self._forgetting[deleted] = groups

    # Initialization

    def initialize_if_due(self, group: ShareGroup, step: Step, *, topics_changed: bool) -> None:
        """Begin to initialize what is subscribed to and not initialized, or has been initializing for too long.

        topics_changed: whether topics that the group is subscribed to were created, deleted or have grown.
        """
        is_retried = group.retries_ms is not None and step.now_ms >= group.retries_ms
        if not topics_changed and not is_retried and group.initialized_as_of == group.changes:
            return
        topics, left_over = self._uninitialized(group, step)
        for topic_id in topics:
            group.left_over.pop(topic_id, None)
        group.left_over.update(left_over)
        if topics:
            self._records.write_states(group, group.state_partitions.initializing_too(topics), step)
            group.initializing_since_ms.update(dict.fromkeys(topics, step.now_ms))
            partitions = {topic_id: topic.partitions for topic_id, topic in topics.items()}
            step.effects.append(ShareInitialization(group.group_id, group.group_epoch, partitions))
            count = sum(map(len, partitions.values()))
            step.because(group.group_id, f"{count} partitions of {len(topics)} topics are being initialized")
        if not left_over:
            group.initialized_as_of = group.changes
        oldest_ms = min(group.initializing_since_ms.values(), default=None)
        group.retries_ms = None if oldest_ms is None else oldest_ms + self._config.share_initialize_retry_interval_ms

    def _uninitialized(
        self, group: ShareGroup, step: Step
    ) -> tuple[dict[bytes, StateTopic], Mapping[bytes, frozenset[int]]]:
        """The partitions to initialize now, and what the next part begins with, where they are not all.

        A group's record has to fit into the log: what there is no room for is not initialized, and nobody gets it.
        """
        states = group.state_partitions
        room_bytes: int | None = None
        left = MOST_INITIALIZED
        wanted: dict[bytes, StateTopic] = {}
        for name in sorted(group.topic_names):
            topic_id = self._topics.topic_id(name)
            if topic_id is None:
                continue
            missing = self._missing(group, states, topic_id, step)
            if not missing:
                continue
            if not left:
                return wanted, {topic_id: missing}
            if room_bytes is None:
                room_bytes = self._config.max_record_bytes - _size_of_record(group, states)
            begun = states.initializing.get(topic_id)
            size = 0 if begun is not None else size_of_name(name)
            new = missing if begun is None else missing - begun.partitions
            fitting = max(room_bytes - size, 0) // _BYTES_OF_PARTITION
            if len(new) > fitting:
                continue
            chosen = missing if len(missing) <= left else frozenset(sorted(missing)[:left])
            left -= len(chosen)
            room_bytes -= size + _BYTES_OF_PARTITION * len(new)
            wanted[topic_id] = StateTopic(name, chosen)
            if len(chosen) < len(missing):
                return wanted, {topic_id: missing - chosen}
        return wanted, {}

    def _missing(self, group: ShareGroup, states: StatePartitions, topic_id: bytes, step: Step) -> frozenset[int]:
        count = self._topics.partition_count(topic_id)
        initialized = states.initialized.get(topic_id)
        if initialized is not None and len(initialized.partitions) >= count:
            return frozenset()
        known = frozenset[int]() if initialized is None else initialized.partitions
        begun_ms = group.initializing_since_ms.get(topic_id)
        begun = states.initializing.get(topic_id)
        retry_ms = self._config.share_initialize_retry_interval_ms
        if begun is not None and begun_ms is not None and step.now_ms - begun_ms < retry_ms:
            known |= begun.partitions - group.left_over.get(topic_id, frozenset())
        return frozenset(range(count)) - known if len(known) < count else frozenset()

    def end_initialization(self, request: EndShareInitialization, step: Step) -> None:
        """Write down what the share coordinator has done, or that it could not: then a later heartbeat asks again.

        What is not initializing any more was deleted, or altered by others, meanwhile.
        """
        group = find_share(self._groups, request.group_id)
        if group is None:
            return
        states = group.state_partitions
        topics = {
            topic_id: StateTopic(topic.name, topic.partitions & request.topics[topic_id])
            for topic_id, topic in states.initializing.items()
            if not topic.partitions.isdisjoint(request.topics.get(topic_id, ()))
        }
        if not topics:
            return
        self._records.write_states(
            group, states.initialized_too(topics) if request.is_done else states.not_initializing(topics), step
        )
        count = sum(len(topic.partitions) for topic in topics.values())
        outcome = "are initialized" if request.is_done else "could not be initialized"
        step.because(group.group_id, f"{count} partitions {outcome}")

    # Offsets

    def alter(self, request: AlterShareOffsets, step: Step) -> ShareAlteration:
        """Begin to initialize partitions anew, with start offsets of an administrator's. A group that is not there is
        made, as in Kafka also where a topic is named that exists, and none of its partitions; one that has members is
        refused."""
        group = self._groups.get(request.group_id)
        if group is None:
            group = ShareGroup(request.group_id)
        if not isinstance(group, ShareGroup):
            return _refused_alteration(not_found(self._groups, request.group_id, GroupType.SHARE))
        if not group.is_empty:
            return _refused_alteration(ApiError(ErrorCode.NON_EMPTY_GROUP, ErrorCode.NON_EMPTY_GROUP.description))
        found: dict[str, bytes] = {}
        unknown: dict[str, frozenset[int]] = {}
        offsets: dict[bytes, Mapping[int, int]] = {}
        for name, asked in request.topics.items():
            topic_id = self._topics.topic_id(name)
            count = 0 if topic_id is None else self._topics.partition_count(topic_id)
            unknown[name] = frozenset(index for index in asked if not 0 <= index < count)
            if topic_id is None:
                continue
            found[name] = topic_id
            existing = {index: offset for index, offset in asked.items() if 0 <= index < count}
            if existing:
                offsets[topic_id] = existing
        names = {topic_id: name for name, topic_id in found.items()}
        topics = {topic_id: StateTopic(names[topic_id], frozenset(each)) for topic_id, each in offsets.items()}
        states = group.state_partitions.initializing_too(topics)
        if _size_of_record(group, states) > self._config.max_record_bytes:
            return _refused_alteration(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "The group has too many partitions."))
        if found:
            self._groups[group.group_id] = group
            self._records.write_states(group, states, step)
            group.initializing_since_ms.update(dict.fromkeys(topics, step.now_ms))
            step.because(group.group_id, f"start offsets of {len(topics)} topics are altered by request")
        return ShareAlteration(group.group_epoch, found, unknown, offsets)

    # Deletion

    def begin_deletion(self, request: BeginShareStateDeletion, step: Step) -> ShareDeletion:
        """Note that state is being deleted, of some topics or of all. A group with members is refused."""
        group = find_share(self._groups, request.group_id)
        if group is None:
            error = not_found(self._groups, request.group_id, GroupType.SHARE, "Group")
            return ShareDeletion(error_code=error.code, error_message=error.message)
        if not group.is_empty:
            code = ErrorCode.NON_EMPTY_GROUP
            return ShareDeletion(error_code=code, error_message=code.description)
        if request.topics is None:
            return self._begin_to_delete_all(group, step)
        return self._begin_to_delete(group, request.topics, step)

    def _begin_to_delete_all(self, group: ShareGroup, step: Step) -> ShareDeletion:
        """Earlier deletions that failed are made again. Of topics that are gone the share coordinator forgets the state
        by itself, and refuses to delete it."""
        states = group.states
        if states is None:
            return ShareDeletion()
        again = {topic_id: self._whole(topic_id) for topic_id in states.deleting}
        again = {topic_id: topic for topic_id, topic in again.items() if topic.partitions}
        known = together(together(states.initialized, states.initializing), again)
        topics = {topic_id: each for topic_id, each in known.items() if self._topics.topic_name(topic_id) is not None}
        deleting = {topic_id: topic.name for topic_id, topic in topics.items()}
        self._records.write_states(group, StatePartitions(deleting=deleting), step)
        step.because(group.group_id, f"the state of {len(topics)} topics is being deleted")
        return ShareDeletion({topic_id: topic.partitions for topic_id, topic in topics.items()}, deleting)

    def _begin_to_delete(self, group: ShareGroup, names: Sequence[str], step: Step) -> ShareDeletion:
        states = group.states
        if states is None:
            return ShareDeletion()
        initialized = dict(states.initialized)
        deleting = dict(states.deleting)
        topics: dict[bytes, Collection[int]] = {}
        known: dict[bytes, str] = {}
        refused: dict[str, ApiError] = {}
        for name in names:
            topic_id = self._topics.topic_id(name)
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if topic_id is None:
                refused[name] = ApiError(unknown, unknown.description)
            elif topic_id in initialized:
                topics[topic_id] = initialized.pop(topic_id).partitions
                deleting[topic_id] = known[topic_id] = name
            elif topic_id in deleting:
                topics[topic_id] = self._whole(topic_id).partitions
                known[topic_id] = name
            else:
                refused[name] = ApiError(unknown, "There is no offset information to delete.")
        self._records.write_states(group, replace(states, initialized=initialized, deleting=deleting), step)
        step.because(group.group_id, f"offsets of {len(topics)} topics are being deleted by request")
        return ShareDeletion(topics, known, refused)

    def end_deletion(self, request: EndShareStateDeletion, step: Step) -> None:
        group = find_share(self._groups, request.group_id)
        if group is None or group.states is None:
            return
        gone = set(request.topic_ids) & group.states.deleting.keys()
        if gone:
            deleting = {topic_id: name for topic_id, name in group.states.deleting.items() if topic_id not in gone}
            self._records.write_states(group, replace(group.states, deleting=deleting), step)
            step.because(group.group_id, f"the state of {len(gone)} topics is deleted")

    def _whole(self, topic_id: bytes) -> StateTopic:
        name = self._topics.topic_name(topic_id)
        return StateTopic(name or "", frozenset(range(self._topics.partition_count(topic_id))))

    # Topics that were deleted

    def begin_to_forget(self, deleted: object) -> bool:
        """Note that topics are deleted, whose state the share coordinator forgets by itself. Whether there is a share
        group."""
        groups = deque(group_id for group_id, group in self._groups.items() if isinstance(group, ShareGroup))
        if groups:
            self._forgetting[deleted] = groups
        return bool(groups)

    def forget_some(
        self, deleted: object, topic_ids: Collection[bytes], step: Step, keep: Callable[[str], None]
    ) -> bool:
        """Forget the topics in a part of the groups. Whether that was the last part. keep: called with each group
        before it changes."""
        self._kept.keep(deleted)
        groups = self._forgetting.get(deleted)
        if groups is None:
            return True
        for _ in range(min(len(groups), MOST_LOOKED_AT)):
            group = find_share(self._groups, groups.popleft())
            known = None if group is None or group.states is None else group.states
            if group is not None and known is not None and not known.topic_ids().isdisjoint(topic_ids):
                keep(group.group_id)
                self._records.write_states(group, known.without_topics(topic_ids), step)
                step.because(group.group_id, "topics that it reads were deleted")
        if not groups:
            del self._forgetting[deleted]
        return not groups


def _size_of_record(group: ShareGroup, states: StatePartitions) -> int:
    """The greatest size that the record of the states may have."""
    return states.size_bytes + _BYTES_OF_KEY + len(group.group_id.encode())


def _refused_alteration(error: ApiError) -> ShareAlteration:
    return ShareAlteration(0, {}, {}, {}, error.code, error.message)
