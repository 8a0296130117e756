"""Changes that a request makes in a consumer group and in the member that sent it, whichever protocol that speaks.

The member is added or changed, and with it the group's epoch; the target assignment is computed where it is older than
that epoch; the member takes its next step towards its target. The model is what `consumerGroupHeartbeat` and
`classicGroupJoinToConsumerGroup` of Kafka's `GroupMetadataManager` have in common.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest

from ..assignors.model import Assignment
from ..common.config import ConsumerGroupConfig
from ..common.context import Step
from ..common.topic_changes import TopicChanges
from ..common.topics import MetadataHash, TopicsView
from ..modern.heartbeat_rules import check_record_size
from ..modern.modern_member import in_words
from .consumer_group import ConsumerGroup
from .consumer_group_member import UNREVOKED_PARTITIONS, ConsumerGroupMember
from .consumer_records import assignment_record, member_record, partition_metadata_tombstone
from .consumer_replay import ConsumerReplay
from .membership import ConsumerMembership
from .preparations import PreparedStep, StepPreparation
from .reconciliation import Reconciliation, ReportedPartitions
from .regular_expressions import RegularExpressions
from .target_assignment import ConsumerTargetAssignments


@dataclass(frozen=True, slots=True)
class Heard:
    """The facts that a request brings of the member's partitions.

    owned: gives the partitions that it reports as its own; None where it reports none. prepared: the member's next
    step, where it was computed beside the event loop. may_wait: whether a large step may be left to a later request,
    before which it is computed.
    """

    owned: Callable[[], ReportedPartitions | None]
    prepared: PreparedStep | None = None
    may_wait: bool = False


class MemberProgress:
    """The changes that requests of members make in a group.

    config_of: the settings of a group by its id.
    """

    def __init__(
        self,
        records: ConsumerReplay,
        membership: ConsumerMembership,
        targets: ConsumerTargetAssignments,
        topics: TopicsView,
        metadata_hash: MetadataHash,
        topic_changes: TopicChanges,
        regexes: RegularExpressions,
        config_of: Callable[[str], ConsumerGroupConfig],
        max_record_bytes: int,
    ) -> None:
        self._records = records
        self._membership = membership
        self._targets = targets
        self._topics = topics
        self._metadata_hash = metadata_hash
        self._topic_changes = topic_changes
        self._regexes = regexes
        self._config_of = config_of
        self._max_record_bytes = max_record_bytes

    def has_place(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> bool:
        """Tell whether a full group has a place for the member all the same: it is there, or its instance is.

        Up to Kafka 4.3 the next process of a static member is one too many.
        """
        if member_id in group.members:
            return True
        return group.static_member(instance_id) is not None and self._config_of(group.group_id).is_of_4_4

    def advance(
        self,
        group: ConsumerGroup,
        before: ConsumerGroupMember,
        updated: ConsumerGroupMember,
        heard: Heard,
        step: Step,
    ) -> ConsumerGroupMember | None:
        """The member after the request, or None where it has to start anew. Raises ApiError where a record has no room
        for its partitions.

        before: the member as it was up to the request.
        """
        has_subscription_changed = self.put(group, before, updated, step)
        return self.go_on(group, updated.member_id, has_subscription_changed, heard, step)

    def preparation(
        self, group: ConsumerGroup, member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest, version: int
    ) -> StepPreparation | None:
        """Return what may be computed of the member's next step in a thread; None where that is little."""
        target = group.target_of(member)
        if not self._is_large_step(member, target):
            return None
        return StepPreparation(
            group=group,
            ownership=group.ownership,
            member=member,
            target=target,
            target_epoch=group.assignment_epoch,
            resolved=group.resolved_regexes.get(member.subscribed_topic_regex),
            topics=self._topics.as_of_now(),
            request=request,
            version=version,
        )

    def put(self, group: ConsumerGroup, before: ConsumerGroupMember, updated: ConsumerGroupMember, step: Step) -> bool:
        """The first half of `advance`: puts the member into the group, and begins an epoch where that changes what the
        group is subscribed to. Whether the member's subscription has changed."""
        assignor = self._assignor_in_doubt(group, before, updated)
        has_subscription_changed, starts_epoch = self._put(group, before, updated, step)
        if assignor is not None and self._targets.assignor_of(group) != assignor:
            step.because(group.group_id, f"most members ask for another assignor than {assignor} now")
            starts_epoch = True
        starts_epoch |= self._regexes.refresh_if_due(group, step)
        if starts_epoch or self._topic_changes.concern(group):
            self._refresh_metadata(group, starts_epoch, step)
        return has_subscription_changed

    def _assignor_in_doubt(
        self, group: ConsumerGroup, before: ConsumerGroupMember, updated: ConsumerGroupMember
    ) -> str | None:
        """Return the group's assignor up to now, where the member may change it; that begins an epoch in Kafka 4.4."""
        asked_before = before.server_assignor if before.member_id in group.members else None
        if updated.server_assignor == asked_before or not self._config_of(group.group_id).is_of_4_4:
            return None
        return self._targets.assignor_of(group)

    def go_on(
        self,
        group: ConsumerGroup,
        member_id: str,
        has_subscription_changed: bool,
        heard: Heard,
        step: Step,
    ) -> ConsumerGroupMember | None:
        """The second half of `advance`: the target assignment, and the member's next step towards it."""
        self._targets.update_if_due(group, self._config_of(group.group_id).assignment_interval_ms, step)
        return self._reconcile(group, group.members[member_id], has_subscription_changed, heard, step)

    def _put(
        self, group: ConsumerGroup, before: ConsumerGroupMember, updated: ConsumerGroupMember, step: Step
    ) -> tuple[bool, bool]:
        """Tell whether the member's subscription has changed, and whether that begins an epoch at once.

        The topics of a new expression are not known yet: they begin an epoch when they are.
        """
        is_new = updated.member_id not in group.members
        if updated != before or is_new:
            self._records.change(member_record(group.group_id, updated), step)
            comes = "joined, and subscribes" if is_new else "subscribes"
            step.because(group.group_id, f"{updated.member_id} {comes} to {_subscription(updated)}")
        has_other_names = updated.subscribed_topic_names != before.subscribed_topic_names
        old_regex, new_regex = before.subscribed_topic_regex, updated.subscribed_topic_regex
        if old_regex == new_regex:
            return has_other_names, has_other_names
        self._membership.forget_unused_regex(group, old_regex, step)
        return True, has_other_names or not new_regex or new_regex in group.resolved_regexes

    def _refresh_metadata(self, group: ConsumerGroup, starts_epoch: bool, step: Step) -> None:
        """Begin an epoch after a new subscription, or where the topics of the group's subscriptions have changed."""
        if starts_epoch or self._metadata_hash.of(group.topic_names) != group.metadata_hash:
            if not starts_epoch:
                step.because(group.group_id, "a topic that it subscribes to was created, deleted, grown or moved")
            self._membership.start_epoch(group, step)
        self._topic_changes.are_seen_by(group)
        if group.has_partition_metadata_record:
            self._records.change(partition_metadata_tombstone(group.group_id), step)

    def _reconcile(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        has_subscription_changed: bool,
        heard: Heard,
        step: Step,
    ) -> ConsumerGroupMember | None:
        if not has_subscription_changed and member.is_reconciled_to(group.assignment_epoch):
            return member
        target = group.target_of(member)
        if heard.may_wait and self._is_large_step(member, target):
            return self._take_prepared(group, member, target, heard.prepared, step)
        names = group.subscription_of(member)
        current = Reconciliation(
            member=member,
            target_epoch=group.assignment_epoch,
            target=target,
            # A member may be subscribed to very many topics, of which it has a few.
            topic_ids=frozenset(each for each in {*target, *member.assigned} if self._topics.topic_name(each) in names),
            has_subscription_changed=has_subscription_changed,
            owned=heard.owned(),
            owned_of=group.owned_of,
        ).next()
        if current is None or current == member:
            return current
        self._records.change(assignment_record(group.group_id, current), step)
        self._has_moved(group, current, step)
        return current

    def _is_large_step(self, member: ConsumerGroupMember, target: Assignment) -> bool:
        return self._targets.is_large(target, member.assigned, member.pending_revocation)

    def _take_prepared(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        target: Assignment,
        prepared: PreparedStep | None,
        step: Step,
    ) -> ConsumerGroupMember | None:
        """Put in place what was computed for the member, if it is still the member's next step; a later heartbeat
        brings it otherwise. Raises ApiError where its record has no room in the log."""
        if prepared is None or not prepared.fits(group, member, target):
            return member
        if prepared.current is None or prepared.record is None:
            return None if prepared.current is None else member
        check_record_size("partitions of the member take", prepared.record, self._max_record_bytes)
        current = prepared.applied_to(member)
        step.append(prepared.record)
        group.put_reconciled(current, prepared.owners)
        self._has_moved(group, current, step)
        return current

    def _has_moved(self, group: ConsumerGroup, current: ConsumerGroupMember, step: Step) -> None:
        step.because(group.group_id, f"{current.member_id} is {current.state.name} at {current.member_epoch}")
        if current.state is not UNREVOKED_PARTITIONS:
            self._membership.stop_awaiting_revocation(group, current)
        elif not current.uses_classic_protocol:
            self._membership.await_revocation(group, current, step)


def _subscription(member: ConsumerGroupMember) -> str:
    expression = member.subscribed_topic_regex
    return in_words([*([expression] if expression else []), *member.subscribed_topic_names])
