"""One member of a classic group: join, sync, heartbeat, commit, leave. The rebalance protocol is the eager one.

Not here: the consumer protocol of KIP-848, cooperative rebalances. Offsets are committed in versions that name topics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from pykbroker.protocol.topic_partition import TopicPartition

from .assignor import RANGE, Subscriber, range_assignment
from .cluster import Cluster
from .consumer_protocol import decode_assignment, decode_topics, encode_assignment, encode_subscription
from .errors import KafkaError, UnknownTopic, check
from .group_offsets import commit_offsets, fetch_offsets

SESSION_TIMEOUT_MS = 45_000
REBALANCE_TIMEOUT_MS = 300_000
CONSUMER_PROTOCOL = "consumer"

_MUST_REJOIN = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID)
_BATCHED_LEAVE_SINCE = 3


class Membership:
    """`partitions` is the assignment of the current generation."""

    def __init__(
        self,
        cluster: Cluster,
        group_id: str,
        topics: Sequence[str],
        *,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS,
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = ""
        self.generation_id = -1
        self.partitions: list[TopicPartition] = []
        self._cluster = cluster
        self._topics = list(topics)
        self._session_timeout_ms = session_timeout_ms
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._group_instance_id = group_instance_id

    async def join(self) -> list[TopicPartition]:
        """Return once a generation is complete and this member has its part of it."""
        while True:
            joined = await self._join_group()
            try:
                self.partitions = await self._sync_group(joined)
            except KafkaError as error:
                if not self._must_rejoin(error):
                    raise
            else:
                return self.partitions

    async def heartbeat(self) -> bool:
        """Tell whether the generation still stands; if not, it is time for `join`."""
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self._group_instance_id,
        )
        try:
            await self._cluster.group_request(
                self.group_id, request, HeartbeatResponse, verify=lambda answer: check(answer.error_code)
            )
        except KafkaError as error:
            if self._must_rejoin(error):
                return False
            raise
        return True

    async def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Those that have a committed offset."""
        offsets = await fetch_offsets(self._cluster, self.group_id, partitions)
        return {of: answer.offset for of, answer in offsets.items()}

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """False when the group has moved on, and the offsets with it."""
        if not self.member_id:
            return False
        try:
            await commit_offsets(
                self._cluster,
                self.group_id,
                offsets,
                generation_id=self.generation_id,
                member_id=self.member_id,
                group_instance_id=self._group_instance_id,
            )
        except KafkaError as error:
            if self._must_rejoin(error):
                return False
            raise
        return True

    async def leave(self) -> None:
        """A static member stays in the group until its session ends, so that its restart moves nothing."""
        if not self.member_id or self._group_instance_id is not None:
            return
        connection = await self._cluster.node_connection(await self._cluster.coordinator(self.group_id))
        if connection.version_of(LeaveGroupRequest) >= _BATCHED_LEAVE_SINCE:
            identity = MemberIdentity(member_id=self.member_id, group_instance_id=None)
            request = LeaveGroupRequest(group_id=self.group_id, members=[identity])
        else:
            request = LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id)
        self.member_id = ""
        await connection.request(request, LeaveGroupResponse)

    def _must_rejoin(self, error: KafkaError) -> bool:
        if error.error_code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        return error.error_code in _MUST_REJOIN

    async def _join_group(self) -> JoinGroupResponse:
        while True:
            response = await self._cluster.group_request(
                self.group_id,
                self._join_request(),
                JoinGroupResponse,
                verify=_check_join,
                timeout_ms=self._rebalance_timeout_ms + self._session_timeout_ms,
            )
            self.member_id = response.member_id
            if response.error_code == ErrorCode.NONE:
                self.generation_id = response.generation_id
                return response
            if response.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""

    def _join_request(self) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self._group_instance_id,
            protocol_type=CONSUMER_PROTOCOL,
            protocols=[JoinGroupRequestProtocol(name=RANGE, metadata=encode_subscription(self._topics))],
        )

    async def _sync_group(self, joined: JoinGroupResponse) -> list[TopicPartition]:
        leads = joined.leader == joined.member_id and not joined.skip_assignment
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self._group_instance_id,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=joined.protocol_name,
            assignments=await self._assignments(joined) if leads else [],
        )
        response = await self._cluster.group_request(
            self.group_id,
            request,
            SyncGroupResponse,
            verify=lambda answer: check(answer.error_code),
            timeout_ms=self._rebalance_timeout_ms + self._session_timeout_ms,
        )
        return decode_assignment(response.assignment)

    async def _assignments(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        subscribers = [
            Subscriber(member.member_id, decode_topics(member.metadata), member.group_instance_id)
            for member in joined.members
        ]
        counts: dict[str, int] = {}
        for topic in {topic for subscriber in subscribers for topic in subscriber.topics}:
            try:
                counts[topic] = len((await self._cluster.topic(topic)).partitions)
            except UnknownTopic:
                counts[topic] = 0
        return [
            SyncGroupRequestAssignment(member_id=member_id, assignment=encode_assignment(partitions))
            for member_id, partitions in range_assignment(subscribers, counts).items()
        ]


def _check_join(response: JoinGroupResponse) -> None:
    """Both of these come with something to do, not with a failure (KIP-394)."""
    if response.error_code not in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.UNKNOWN_MEMBER_ID):
        check(response.error_code)
