"""Rebalances: the way of a classic group from one generation to the next, and the members that it loses on it.

A rebalance has two phases. In the first, each member's JoinGroup waits until all members have joined or the rebalance
timeout is over. In the second, each member's SyncGroup waits until the leader's assignment comes. A group that was
empty waits `group.initial.rebalance.delay.ms` for more members, again and again while they come (KIP-134).

`joins` and `classic_groups` decide when to ask for a rebalance. The model is the classic half of Kafka's
`GroupMetadataManager`.
"""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.groups import JoinGroupResponse, JoinGroupResponseMember, SyncGroupResponse
from pykbroker.state_machine import CauseKind

from ..common.config import GroupConfig
from ..common.context import Step
from ..common.deadlines import Deadlines, InitialDelay, RebalanceTimeout, SessionTimeout, SyncTimeout
from ..common.records import CoordinatorRecord
from .classic_group import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE, UNKNOWN_MEMBER_ID, ClassicGroup
from .classic_group_member import ClassicGroupMember
from .classic_records import group_record, least_record_bytes


class Rebalance:
    """Moves classic groups from state to state, and keeps their deadlines."""

    def __init__(self, config: GroupConfig, deadlines: Deadlines) -> None:
        self._config = config
        self._deadlines = deadlines

    # Joining

    def start_or_complete_join(self, group: ClassicGroup, cause: str, step: Step) -> None:
        """Start a rebalance after a member came, changed or left; one that is under way may be complete now."""
        if group.state is PREPARING_REBALANCE:
            self.complete_join_if_all_joined(group, cause, step)
        else:
            self.start(group, cause, step)

    def start(self, group: ClassicGroup, cause: str, step: Step) -> None:
        step.because(group.group_id, f"rebalance from generation {group.generation_id}: {cause}", CauseKind.REBALANCE)
        if group.state is COMPLETING_REBALANCE:
            self._refuse_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS, step)
        self._deadlines.cancel(SyncTimeout(group.group_id, group.generation_id))
        was_empty = group.state is EMPTY
        group.transition_to(PREPARING_REBALANCE, step.timestamp_ms, cause)
        if was_empty:
            delay_ms = self._config.initial_rebalance_delay_ms
            remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self._deadlines.schedule(InitialDelay(group.group_id, delay_ms, remaining_ms), step.now_ms + delay_ms)
        elif group.has_all_members_joined:
            self._complete_join(group, cause, step)
        else:
            self._await_rejoins(group, step)

    def complete_join_if_all_joined(self, group: ClassicGroup, cause: str, step: Step) -> None:
        """Complete the joining phase if no member is missing. Only the initial rebalance delay completes it for a
        group's first generation, because it waits for members that are not known yet."""
        if group.state is PREPARING_REBALANCE and group.previous_state is not EMPTY and group.has_all_members_joined:
            self._complete_join(group, cause, step)

    def expire_initial_delay(self, group: ClassicGroup, timeout: InitialDelay, step: Step) -> None:
        if not group.new_member_added or timeout.remaining_ms == 0:
            self._complete_join(group, "the initial rebalance delay is over", step)
            return
        group.new_member_added = False
        delay_ms = min(self._config.initial_rebalance_delay_ms, timeout.remaining_ms)
        remaining_ms = max(timeout.remaining_ms - timeout.delay_ms, 0)
        self._deadlines.schedule(InitialDelay(group.group_id, delay_ms, remaining_ms), step.now_ms + delay_ms)

    def expire_join(self, group: ClassicGroup, step: Step) -> None:
        self._complete_join(group, "the rebalance timeout is over", step)

    def _await_rejoins(self, group: ClassicGroup, step: Step) -> None:
        self._deadlines.schedule(RebalanceTimeout(group.group_id), step.now_ms + group.rebalance_timeout_ms)

    def _complete_join(self, group: ClassicGroup, cause: str, step: Step) -> None:
        assert group.state is PREPARING_REBALANCE
        self._deadlines.cancel(RebalanceTimeout(group.group_id))
        self._remove_absent_dynamic_members(group, step)
        if not group.elect_joined_leader() and group.members:
            # Only static members are left, all of them away: their session timeouts decide (KIP-345).
            self._await_rejoins(group, step)
            return
        group.start_next_generation(step.timestamp_ms, cause)
        if group.state is EMPTY:
            step.because(group.group_id, f"empty at generation {group.generation_id}: {cause}")
            step.append(group_record(group))
            return
        step.because(group.group_id, f"{len(group.members)} members at generation {group.generation_id}: {cause}")
        for member in group.members.values():
            self.answer_join(group, member, step)
            member.is_new = False
            self.keep_session(group, member, step)
            group.pending_sync_members[member.member_id] = None
        deadline_ms = step.now_ms + group.rebalance_timeout_ms
        self._deadlines.schedule(SyncTimeout(group.group_id, group.generation_id), deadline_ms)

    def _remove_absent_dynamic_members(self, group: ClassicGroup, step: Step) -> None:
        absent = [m.member_id for m in group.members.values() if m.awaiting_join is None and not m.is_static]
        for member_id in absent:
            self.drop_member(group, member_id, step)
        if absent:
            step.because(group.group_id, f"{', '.join(absent)} did not rejoin in time")

    def forget(self, group: ClassicGroup) -> None:
        """Cancel the deadlines of a group that becomes a consumer group."""
        self._deadlines.cancel(RebalanceTimeout(group.group_id))
        self._deadlines.cancel(SyncTimeout(group.group_id, group.generation_id))

    # Syncing

    def stabilize(self, group: ClassicGroup, assignments: dict[str, bytes], step: Step) -> None:
        """Write the leader's assignment, and answer each SyncGroup that waits with the member's part of it."""
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        least_bytes = least_record_bytes(group)
        record = group_record(group).in_bytes() if least_bytes <= self._config.max_record_bytes else None
        if record is None or not self.fits(record):
            size_bytes = least_bytes if record is None else record.size_bytes
            self._refuse_syncs(group, ErrorCode.UNKNOWN_SERVER_ERROR, step)
            self.start(group, f"the group is too large to be written down ({size_bytes} bytes)", step)
            return
        step.append(record)
        group.transition_to(STABLE, step.timestamp_ms, f"assignment of generation {group.generation_id} received")
        step.because(group.group_id, f"stable at generation {group.generation_id}")
        for member in group.members.values():
            if member.awaiting_sync is not None:
                step.answer(member.awaiting_sync, self.sync_answer(group, member))
                member.awaiting_sync = None
                self.keep_session(group, member, step)

    def sync_answer(self, group: ClassicGroup, member: ClassicGroupMember) -> SyncGroupResponse:
        return SyncGroupResponse(
            protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
        )

    def note_sync(self, group: ClassicGroup, member_id: str) -> None:
        group.pending_sync_members.pop(member_id, None)
        if not group.pending_sync_members:
            self._deadlines.cancel(SyncTimeout(group.group_id, group.generation_id))

    def expire_sync(self, group: ClassicGroup, timeout: SyncTimeout, step: Step) -> None:
        if timeout.generation_id != group.generation_id or group.state not in (COMPLETING_REBALANCE, STABLE):
            return
        absent = list(group.pending_sync_members)
        if not absent:
            return
        for member_id in absent:
            self.drop_member(group, member_id, step)
        self.start(group, f"{', '.join(absent)} sent no SyncGroup in time", step)

    def fits(self, record: CoordinatorRecord) -> bool:
        return record.size_bytes <= self._config.max_record_bytes

    def _refuse_syncs(self, group: ClassicGroup, error_code: ErrorCode, step: Step) -> None:
        """Answers the SyncGroups that wait for the assignment of a generation that is over: the members must rejoin."""
        for member in group.members.values():
            member.assignment = b""
            if member.awaiting_sync is not None:
                step.answer(member.awaiting_sync, SyncGroupResponse(error_code=error_code))
                member.awaiting_sync = None
                self.keep_session(group, member, step)

    # Members

    def keep_session(self, group: ClassicGroup, member: ClassicGroupMember, step: Step) -> None:
        """Start the member's session timeout anew, after a sign of life."""
        timeout_ms = self._config.new_member_join_timeout_ms if member.is_new else member.session_timeout_ms
        self._deadlines.schedule(SessionTimeout(group.group_id, member.member_id), step.now_ms + timeout_ms)

    def forget_session(self, group: ClassicGroup, member_id: str) -> None:
        self._deadlines.cancel(SessionTimeout(group.group_id, member_id))

    def answer_join(self, group: ClassicGroup, member: ClassicGroupMember, step: Step) -> None:
        """Answers the member's JoinGroup, if one waits, with the group's generation."""
        if member.awaiting_join is not None:
            step.answer(member.awaiting_join, join_answer(group, member))
            member.awaiting_join = None

    def drop_member(self, group: ClassicGroup, member_id: str, step: Step) -> None:
        """Remove the member. A request of it that waits is answered with UNKNOWN_MEMBER_ID."""
        self.forget_session(group, member_id)
        member = group.remove(member_id)
        if member is None:
            return
        if member.awaiting_join is not None:
            step.answer(member.awaiting_join, refused_join(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID))
        if member.awaiting_sync is not None:
            step.answer(member.awaiting_sync, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))

    def expire_session(self, group: ClassicGroup, member_id: str, step: Step) -> None:
        member = group.members.get(member_id)
        if member is not None and member.keeps_session:
            return
        cause = f"{member_id} was silent for its session timeout"
        self.drop_member(group, member_id, step)
        step.because(group.group_id, cause)
        if member is not None and group.state in (STABLE, COMPLETING_REBALANCE):
            self.start(group, cause, step)
        else:
            self.complete_join_if_all_joined(group, cause, step)


def join_answer(group: ClassicGroup, member: ClassicGroupMember) -> JoinGroupResponse:
    """The generation as the member sees it: only the leader is told of the other members."""
    is_leader = group.leader_id == member.member_id
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=_members_for_leader(group) if is_leader else [],
    )


def refused_join(error_code: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error_code, protocol_name=None, member_id=member_id)


def _members_for_leader(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    assert group.protocol_name is not None
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.protocols[group.protocol_name],
        )
        for member in group.members.values()
    ]
