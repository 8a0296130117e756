"""The record that a classic group lives by: the whole group with its members, written once a generation.

The models are `newGroupMetadataRecord` of Kafka's `GroupCoordinatorRecordHelpers` and the replay of `GroupMetadataKey`
in its `GroupMetadataManager`.
"""

from __future__ import annotations

from pykbroker.protocol.messages.group_records import GroupMetadataValue, MemberMetadata
from pykbroker.state_machine import BadRecord

from ..common.records import CoordinatorRecord, group_metadata_record
from .classic_group import EMPTY, STABLE, ClassicGroup
from .classic_group_member import ClassicGroupMember


def group_record(group: ClassicGroup) -> CoordinatorRecord:
    """The group as it is."""
    return group_metadata_record(
        group.group_id,
        GroupMetadataValue(
            protocol_type=group.protocol_type or "",
            generation=group.generation_id,
            protocol=group.protocol_name,
            leader=group.leader_id,
            current_state_timestamp=group.state_timestamp_ms,
            members=[_member_metadata(group, member) for member in group.members.values()],
        ),
    )


def empty_group_record(group: ClassicGroup) -> CoordinatorRecord:
    """A new group before its first generation: members are written once they have an assignment."""
    value = GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=group.state_timestamp_ms
    )
    return group_metadata_record(group.group_id, value)


def least_record_bytes(group: ClassicGroup) -> int:
    """The size of the members' metadata and assignments, in bytes: the record of the group is larger than that."""
    name = group.protocol_name or ""
    return sum(len(each.assignment) + len(each.protocols[name]) for each in group.members.values())


def _member_metadata(group: ClassicGroup, member: ClassicGroupMember) -> MemberMetadata:
    assert group.protocol_name is not None
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.protocols[group.protocol_name],
        assignment=member.assignment,
    )


def group_from_record(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """The group as it was written: stable with its members, or empty. Raises BadRecord."""
    _check(value)
    group = ClassicGroup(group_id, value.current_state_timestamp, "read from the log")
    group.state = STABLE if value.members else EMPTY
    group.generation_id = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol_name = value.protocol
    group.leader_id = value.leader if value.members else None
    for written in value.members:
        group.add(_member_of(written, value.protocol))
    group.look_up_topics()
    return group


def _check(value: GroupMetadataValue) -> None:
    """Every group that a coordinator writes holds to these rules, and the other rules rely on them."""
    member_ids = {member.member_id for member in value.members}
    instance_ids = [member.group_instance_id for member in value.members if member.group_instance_id is not None]
    if len(member_ids) < len(value.members) or len(set(instance_ids)) < len(instance_ids):
        raise BadRecord("the group has a member twice")
    if value.members and (value.protocol is None or not value.protocol_type or value.leader not in member_ids):
        raise BadRecord("the group has members, but not a protocol and a leader that is one of them")


def _member_of(written: MemberMetadata, protocol_name: str | None) -> ClassicGroupMember:
    return ClassicGroupMember(
        member_id=written.member_id,
        group_instance_id=written.group_instance_id,
        client_id=written.client_id,
        client_host=written.client_host,
        rebalance_timeout_ms=written.session_timeout if written.rebalance_timeout == -1 else written.rebalance_timeout,
        session_timeout_ms=written.session_timeout,
        # Of the protocols that the member offered only the chosen one was written.
        protocols={} if protocol_name is None else {protocol_name: bytes(written.subscription)},
        assignment=bytes(written.assignment),
    )
