"""Who should have what: the target assignment of a consumer group (KIP-848), computed when the group has changed.

It is computed in a member's heartbeat, and not more often than the assignment interval says (KIP-1263); until then
members go by the one that is there. The model is Kafka's `TargetAssignmentBuilder`.
"""

from __future__ import annotations

from .assignors import ASSIGNORS, MemberSubscription
from .config import GroupConfig
from .consumer_group import NO_ASSIGNMENT, ConsumerGroup
from .consumer_member import ConsumerMember
from .consumer_records import ConsumerRecords, target_epoch_record, target_record
from .context import Step
from .topics import TopicsView, topic_ids


class Subscriptions:
    """Ids of the topics that members are subscribed to: most members of a group say the same."""

    def __init__(self, group: ConsumerGroup, topics: TopicsView) -> None:
        self._group = group
        self._topics = topics
        self._known: dict[tuple[tuple[str, ...], str], frozenset[bytes]] = {}

    def topic_ids_of(self, member: ConsumerMember) -> frozenset[bytes]:
        said = member.subscribed_topic_names, member.subscribed_topic_regex
        known = self._known.get(said)
        if known is None:
            known = self._known[said] = topic_ids(self._topics, self._group.subscription_of(member))
        return known


class TargetAssignments:
    def __init__(self, config: GroupConfig, records: ConsumerRecords, topics: TopicsView) -> None:
        self._default = config.consumer_assignors[0]
        self._offered = config.consumer_assignors
        self._records = records
        self._topics = topics

    def update_if_due(self, group: ConsumerGroup, interval_ms: int, step: Step) -> None:
        if group.group_epoch > group.assignment_epoch and self._is_due(group, interval_ms, step):
            self.update(group, step)

    def _is_due(self, group: ConsumerGroup, interval_ms: int, step: Step) -> bool:
        last_ms = group.assignment_timestamp_ms
        # Where the clock was set back nobody waits until it is there again; Kafka does.
        return not last_ms or not last_ms <= step.timestamp_ms < last_ms + interval_ms

    def update(self, group: ConsumerGroup, step: Step) -> None:
        name = self.assignor_of(group)
        subscriptions = Subscriptions(group, self._topics)
        members = {
            member.member_id: MemberSubscription(
                topic_ids=subscriptions.topic_ids_of(member),
                rack_id=member.rack_id,
                instance_id=member.instance_id,
                assignment=group.target_assignment.get(member.member_id, NO_ASSIGNMENT),
            )
            for member in group.members.values()
        }
        assigned = ASSIGNORS[name].assign(members, self._topics, group.is_homogeneous)
        for member_id in members:
            target = assigned.get(member_id, {})
            if target != group.target_assignment.get(member_id):
                self._records.change(target_record(group.group_id, member_id, target), step)
        self._records.change(target_epoch_record(group.group_id, group.group_epoch, step.timestamp_ms), step)
        step.because(f"group {group.group_id}: new target assignment for epoch {group.group_epoch} by {name}")

    def assignor_of(self, group: ConsumerGroup) -> str:
        """What most members ask for; what a member asked for in another configuration may not be offered any more."""
        preferred = group.preferred_assignor
        return preferred if preferred in self._offered else self._default
