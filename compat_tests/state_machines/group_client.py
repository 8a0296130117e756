"""Requests of groups, by both protocols, with answers as names of errors and plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from compat_tests.wire import Wire, decode_answer
from pykbroker.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from pykbroker.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

from .client import Client, error_name

SESSION_TIMEOUT_MS = 300_000
"""Longer than any example: nobody leaves a group because of time."""
JOIN_VERSION, SYNC_VERSION = 9, 4
NOBODY = ("", -1)
"""Member id and generation of an administrator who commits offsets."""


class Joined(NamedTuple):
    error: str
    generation: int
    member_id: str
    leader: str
    protocol: str | None
    members: frozenset[tuple[str, str | None]]
    """Member and instance ids, in the leader's answer alone."""
    skips_assignment: bool


class Synced(NamedTuple):
    error: str
    assignment: bytes


@dataclass(frozen=True)
class DescribedClassicGroup:
    error: str
    state: str
    protocol: str
    members: dict[str, tuple[str | None, bytes]]
    """Instance id and assignment by member id."""


class Waiting:
    """A request on a connection of its own, whose answer comes when other members have done their part."""

    def __init__(self, address: tuple[str, int], request: Any, version: int) -> None:
        self._wire = Wire(address)
        self._api_key = request.__schema__.api_key
        self._version = version
        self._wire.send(request, version, client_id="state machine")

    def close(self) -> None:
        self._wire.__exit__(None, None, None)

    def answer(self) -> Any:
        try:
            return decode_answer(self._wire.receive(), self._api_key, self._version)
        finally:
            self.close()


class GroupClient:
    def __init__(self, client: Client, group: str) -> None:
        self._client = client
        self.group = group

    # The classic protocol

    def join(self, member_id: str, instance_id: str | None, protocols: Sequence[str]) -> Waiting:
        return Waiting(
            self._client.address,
            JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=SESSION_TIMEOUT_MS,
                member_id=member_id,
                group_instance_id=instance_id,
                protocol_type="machine",
                protocols=[JoinGroupRequestProtocol(name=each, metadata=each.encode()) for each in protocols],
            ),
            JOIN_VERSION,
        )

    def sync(
        self, member_id: str, instance_id: str | None, generation: int, assignments: Mapping[str, bytes]
    ) -> Waiting:
        return Waiting(
            self._client.address,
            SyncGroupRequest(
                group_id=self.group,
                generation_id=generation,
                member_id=member_id,
                group_instance_id=instance_id,
                assignments=[
                    SyncGroupRequestAssignment(member_id=each, assignment=assignment)
                    for each, assignment in assignments.items()
                ],
            ),
            SYNC_VERSION,
        )

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> str:
        request = HeartbeatRequest(
            group_id=self.group, generation_id=generation, member_id=member_id, group_instance_id=instance_id
        )
        return error_name(self._client.call(request, 4).error_code)

    def leave(self, member_id: str, instance_id: str | None) -> str:
        members = [MemberIdentity(member_id=member_id, group_instance_id=instance_id)]
        answer = self._client.call(LeaveGroupRequest(group_id=self.group, members=members), 5)
        if answer.error_code:
            return error_name(answer.error_code)
        (member,) = answer.members
        return error_name(member.error_code)

    def describe(self) -> DescribedClassicGroup:
        (found,) = self._client.call(DescribeGroupsRequest(groups=[self.group]), 6).groups
        return DescribedClassicGroup(
            error_name(found.error_code),
            found.group_state,
            found.protocol_data,
            {each.member_id: (each.group_instance_id, bytes(each.member_assignment)) for each in found.members},
        )

    # Both

    def listed(self) -> tuple[str, str] | None:
        """Type and state; None where the group is not listed."""
        groups = self._client.call(ListGroupsRequest(), 5).groups
        return next(((each.group_type, each.group_state) for each in groups if each.group_id == self.group), None)

    def delete(self) -> str:
        (answer,) = self._client.call(DeleteGroupsRequest(groups_names=[self.group]), 2).results
        return error_name(answer.error_code)

    def commit_offset(
        self,
        topic: str,
        partition: int,
        offset: int,
        member: tuple[str, int] = NOBODY,
        instance_id: str | None = None,
    ) -> str:
        """member: its id and generation, or epoch."""
        committed = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=f"at {offset}"
        )
        request = OffsetCommitRequest(
            group_id=self.group,
            member_id=member[0],
            generation_id_or_member_epoch=member[1],
            group_instance_id=instance_id,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[committed])],
        )
        (answer,) = self._client.call(request, 9).topics
        return error_name(answer.partitions[0].error_code)

    def offsets(self, topic: str, partitions: int) -> dict[int, int]:
        """Those that are committed, by partition."""
        asked = [OffsetFetchRequestTopics(name=topic, partition_indexes=[*range(partitions)])]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=self.group, topics=asked)])
        (group,) = self._client.call(request, 9).groups
        assert error_name(group.error_code) == "NONE"
        found = {each.partition_index: each for each in group.topics[0].partitions}
        assert all(each.error_code == 0 for each in found.values())
        assert all(
            each.metadata == (f"at {each.committed_offset}" if each.committed_offset >= 0 else "")
            for each in found.values()
        )
        return {index: each.committed_offset for index, each in found.items() if each.committed_offset >= 0}

    def delete_offset(self, topic: str, partition: int) -> tuple[str, str]:
        """The errors of the group and of the partition; "NONE" where nothing is said of the latter."""
        asked = OffsetDeleteRequestTopic(
            name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition)]
        )
        answer = self._client.call(OffsetDeleteRequest(group_id=self.group, topics=[asked]), 0)
        errors = [error_name(each.error_code) for each_topic in answer.topics for each in each_topic.partitions]
        return error_name(answer.error_code), errors[0] if errors else "NONE"


def joined(answer: Any) -> Joined:
    return Joined(
        error_name(answer.error_code),
        answer.generation_id,
        answer.member_id,
        answer.leader,
        answer.protocol_name,
        frozenset((each.member_id, each.group_instance_id) for each in answer.members),
        answer.skip_assignment,
    )


def synced(answer: Any) -> Synced:
    return Synced(error_name(answer.error_code), bytes(answer.assignment))
