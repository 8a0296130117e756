"""A group changes its type while its members run (KIP-848): a classic group becomes a consumer group when a member
joins that speaks the consumer protocol, and a classic group again when the last such member has gone.

Members of the classic protocol go on speaking it: the consumer group keeps the protocols and the session timeout of
their JoinGroup, and they are told to rejoin. `group.consumer.migration.policy` says which way is open. The model is
Kafka's `ConsumerGroup.fromClassicGroup` and `ClassicGroup.fromConsumerGroup`, and what its `GroupMetadataManager` makes
of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pykbroker.protocol.errors import ApiError, ErrorCode, MalformedMessage
from pykbroker.protocol.messages.consumer_group_records import ClassicMemberMetadata, ClassicProtocol
from pykbroker.protocol.messages.groups import JoinGroupResponse, SyncGroupResponse

from ..assignors.model import Assignment
from ..classic.classic_group import ClassicGroup
from ..classic.classic_group_member import ClassicGroupMember
from ..classic.classic_records import group_record
from ..classic.rebalance import Rebalance, refused_join
from ..common.config import GroupConfig
from ..common.context import Call, Step
from ..common.deadlines import Deadlines, SessionTimeout, cancel_timeouts_of_member
from ..common.group import Group
from ..common.records import CoordinatorRecord, group_metadata_record
from ..common.subscription import CONSUMER_PROTOCOL_TYPE
from ..common.topics import MetadataHash, TopicsView
from .consumer_group import ConsumerGroup
from .consumer_group_member import ConsumerGroupMember
from .consumer_records import (
    assignment_record,
    group_epoch_record,
    member_record,
    target_epoch_record,
    target_record,
)
from .consumer_replay import ConsumerReplay
from .embedded_protocol import read_assignment, read_subscription, write_assignment

UPGRADE, DOWNGRADE, BIDIRECTIONAL, DISABLED = "upgrade", "downgrade", "bidirectional", "disabled"


class Migration:
    """Upgrades classic groups to consumer groups, and downgrades consumer groups to classic groups.

    groups: the shard's groups of both types, shared with it.
    """

    def __init__(
        self,
        config: GroupConfig,
        groups: dict[str, Group],
        records: ConsumerReplay,
        deadlines: Deadlines,
        rebalance: Rebalance,
        topics: TopicsView,
        metadata_hash: MetadataHash,
    ) -> None:
        self._config = config
        self._groups = groups
        self._records = records
        self._deadlines = deadlines
        self._rebalance = rebalance
        self._topics = topics
        self._metadata_hash = metadata_hash

    @property
    def is_disabled(self) -> bool:
        return self._config.consumer_migration_policy == DISABLED

    # Classic to consumer

    def upgraded(self, group: ClassicGroup) -> ConsumerGroup:
        """The consumer group that the classic group would become. Raises ApiError. Changes nothing."""
        reason = self._why_not_upgraded(group)
        if reason is None:
            try:
                return self._converted(group)
            except MalformedMessage:
                reason = "the embedded consumer protocol is malformed"
            except _HasUserData:
                reason = (
                    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
                    "default assignor before re-attempting the upgrade"
                )
        words = f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}."
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, words)

    def _why_not_upgraded(self, group: ClassicGroup) -> str | None:
        if self._config.consumer_migration_policy not in (UPGRADE, BIDIRECTIONAL):
            return "online upgrade is disabled"
        if not group.uses_consumer_protocol:
            return "the group does not use the consumer embedded protocol"
        if len(group.members) > self._config.consumer_max_size:
            return "the group size exceeds the consumer group maximum size"
        return None

    def _converted(self, classic: ClassicGroup) -> ConsumerGroup:
        """A consumer group whose members have what the leader assigned last, in an epoch that is the generation."""
        group = ConsumerGroup(classic.group_id)
        group.group_epoch = group.assignment_epoch = classic.generation_id
        for member in classic.members.values():
            partitions, has_user_data = read_assignment(member.assignment, self._topics)
            if has_user_data:
                raise _HasUserData
            protocol_name = classic.protocol_name if classic.protocol_name in member.protocols else None
            metadata = member.protocols[protocol_name or next(iter(member.protocols))]
            subscription = read_subscription(metadata, self._topics)
            group.put(
                ConsumerGroupMember(
                    member_id=member.member_id,
                    member_epoch=classic.generation_id,
                    previous_member_epoch=classic.generation_id,
                    instance_id=member.group_instance_id,
                    rack_id=subscription.rack_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    subscribed_topic_names=subscription.topic_names,
                    assigned={
                        topic_id: dict.fromkeys(sorted(each), classic.generation_id)
                        for topic_id, each in partitions.items()
                    },
                    classic=classic_metadata(member.session_timeout_ms, member.protocols),
                )
            )
            group.target_assignment[member.member_id] = partitions
        group.metadata_hash = self._metadata_hash.of(group.topic_names)
        return group

    def upgrade(self, classic: ClassicGroup, group: ConsumerGroup, step: Step) -> None:
        """Put the group that `upgraded` gave in the classic group's place. Members that wait in a rebalance are told
        to rejoin."""
        for member_id in list(classic.pending_join_members):
            self._rebalance.drop_member(classic, member_id, step)
        for member in classic.members.values():
            if member.awaiting_join is not None:
                step.answer(member.awaiting_join, refused_join(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
            if member.awaiting_sync is not None:
                step.answer(member.awaiting_sync, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
            self._keep_session(classic.group_id, member.member_id, member.session_timeout_ms, step)
        self._rebalance.forget(classic)
        step.append(group_metadata_record(classic.group_id, None))
        if classic.members:
            for record in _records_of(group):
                step.append(record)
        self._groups[group.group_id] = group
        step.because(group.group_id, f"it is a consumer group now, with {len(classic.members)} classic members")

    # Consumer to classic

    def downgrade_without(self, group: ConsumerGroup, leaving: Collection[ConsumerGroupMember], step: Step) -> bool:
        """Make the group a classic group where that is allowed and only leaving members speak the consumer protocol.
        Whether it did."""
        gone = {member.member_id for member in leaving}
        for member in group.members.values():  # in most groups the first one ends it
            if not member.uses_classic_protocol and member.member_id not in gone:
                return False
        staying = [member for member in group.members.values() if member.member_id not in gone]
        if not staying or not self._may_be_classic(staying):
            return False
        classic = self._downgrade(group, staying, group.group_epoch, step)
        if classic is not None:
            self._rebalance.start(classic, "the last member of the consumer protocol is gone", step)
        return classic is not None

    def downgrade_with(
        self, group: ConsumerGroup, joining: ConsumerGroupMember, generation_id: int, call: Call
    ) -> bool:
        """Make the group a classic group after a static member came back with the classic protocol. Whether it did.

        The member's JoinGroup is answered at once. Where a member does not have its target assignment yet, the answer
        has an epoch that is no generation of the group, and the member joins again in the rebalance that begins.
        generation_id: the group's epoch before the request, where the request began another.
        """
        members = list(group.members.values())
        if not self._may_be_classic(members):
            return False
        is_settled = all(member.is_reconciled_to(group.group_epoch) for member in members)
        classic = self._downgrade(group, members, generation_id, call.step)
        if classic is None:
            return False
        call.answer(_followers_answer(classic, joining))
        if not is_settled:
            cause = "the last member of the consumer protocol is a classic one now"
            self._rebalance.start(classic, cause, call.step)
        return True

    def _may_be_classic(self, members: Collection[ConsumerGroupMember]) -> bool:
        return (
            all(member.uses_classic_protocol for member in members)
            and self._config.consumer_migration_policy in (DOWNGRADE, BIDIRECTIONAL)
            and len(members) <= self._config.max_size
            and _share_a_protocol(members)
        )

    def _downgrade(
        self, group: ConsumerGroup, staying: Collection[ConsumerGroupMember], generation_id: int, step: Step
    ) -> ClassicGroup | None:
        """The classic group. None, with nothing changed, where it is too large for its one record."""
        classic = ClassicGroup(group.group_id, step.timestamp_ms, "it was a consumer group")
        classic.generation_id = generation_id
        classic.protocol_type = CONSUMER_PROTOCOL_TYPE
        for member in staying:
            classic.add(_classic_member(member))
        classic.settle()
        for member in staying:
            known = classic.members[member.member_id]
            assert classic.protocol_name is not None
            has = group.target_of(member) if member.is_reconciled_to(group.group_epoch) else _owned(member)
            known.assignment = write_assignment(has, known.protocols[classic.protocol_name], self._topics)
        record_of_group = group_record(classic)
        if not self._rebalance.fits(record_of_group):
            return None
        for member_id in group.members:
            cancel_timeouts_of_member(self._deadlines, group.group_id, member_id)
        for record in list(group.tombstones()):
            self._records.change(record, step)
        step.append(record_of_group)
        self._groups[group.group_id] = classic
        for known in classic.members.values():
            self._rebalance.keep_session(classic, known, step)
        step.because(group.group_id, "it is a classic group now")
        return classic

    def _keep_session(self, group_id: str, member_id: str, timeout_ms: int, step: Step) -> None:
        self._deadlines.schedule(SessionTimeout(group_id, member_id), step.now_ms + timeout_ms)


def _owned(member: ConsumerGroupMember) -> Assignment:
    """The partitions that the member may be reading, until it comes to the rebalance that begins.

    Kafka writes the member's target instead, and then gives what the member still reads to others where the group is
    upgraded before the rebalance.
    """
    owned: dict[bytes, set[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, each in partitions.items():
            owned.setdefault(topic_id, set()).update(each)
    return {topic_id: frozenset(each) for topic_id, each in owned.items()}


def _share_a_protocol(members: Collection[ConsumerGroupMember]) -> bool:
    """Tell whether one protocol is every member's.

    JoinGroup demands it; a log may have been written by another broker.
    """
    offered = [
        {protocol.name for protocol in member.classic.supported_protocols}
        for member in members
        if member.classic is not None
    ]
    return bool(set.intersection(*offered))


class _HasUserData(Exception):
    """The members' own assignor put user data into the assignments, which the coordinator would lose."""


def _followers_answer(group: ClassicGroup, member: ConsumerGroupMember) -> JoinGroupResponse:
    """An answer without a leader, because there is no assignment to make."""
    return JoinGroupResponse(
        generation_id=member.member_epoch,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        member_id=member.member_id,
    )


def classic_metadata(session_timeout_ms: int, protocols: dict[str, bytes]) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(
        session_timeout_ms=session_timeout_ms,
        supported_protocols=[ClassicProtocol(name=name, metadata=metadata) for name, metadata in protocols.items()],
    )


def _classic_member(member: ConsumerGroupMember) -> ClassicGroupMember:
    assert member.classic is not None
    return ClassicGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocols={each.name: bytes(each.metadata) for each in member.classic.supported_protocols},
    )


def _records_of(group: ConsumerGroup) -> Iterator[CoordinatorRecord]:
    """The whole group, in Kafka's order."""
    for member in group.members.values():
        yield member_record(group.group_id, member)
    yield group_epoch_record(group.group_id, group.group_epoch, group.metadata_hash)
    for member_id, target in group.target_assignment.items():
        yield target_record(group.group_id, member_id, target)
    yield target_epoch_record(group.group_id, group.assignment_epoch, group.assignment_timestamp_ms)
    for member in group.members.values():
        yield assignment_record(group.group_id, member)
