"""Groups of the consumer protocol (KIP-848): epochs, reconciliation and fencing follow the model step by step.

Which member shall have which partition is the assignor's choice: the target assignment is read from the broker, and
must be complete, disjoint and balanced. How each member comes to it is the model's (`CurrentAssignmentBuilder`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, invariant, rule

from compat_tests.brokers import Broker
from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from tests.examples import examples

from .client import GROUP, GROUP_CONFIG, TopicName, error_name
from .group_client import GroupClient
from .machine import BrokerMachine, explore

TOPICS = {"a": 3, "b": 1}
REBALANCE_TIMEOUT_MS = 900_000
LEAVES, LEAVES_FOR_A_WHILE = -1, -2
LIMIT = 3

Partitions = frozenset[tuple[str, int]]
subscriptions = st.sampled_from((("a",), ("a",), ("a", "b"), ("b",)))


@dataclass(eq=False)
class Member:
    """A process that is or was a member. epoch: as the coordinator has it; told: as the process was told."""

    member_id: str
    instance_id: str | None
    subscription: tuple[str, ...]
    epoch: int = 0
    previous_epoch: int = -1
    assigned: Partitions = frozenset()
    revoking: Partitions = frozenset()
    assignment_epochs: dict[tuple[str, int], int] = field(default_factory=dict)
    """The epoch in which the member got a partition, from which on its commits are good (KIP-1251)."""
    is_reconciled: bool = False
    """Nothing that the target gives it is still another member's."""
    told_epoch: int = 0
    owned: Partitions = frozenset()


@dataclass(eq=False)
class Model:
    exists: bool = False
    is_classic: bool = False
    """Only offsets are there, which an administrator committed: a classic group, until a member joins."""
    epoch: int = 1
    members: dict[str, Member] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)

    def of_instance(self, instance_id: str | None) -> Member | None:
        found = (each for each in self.members.values() if each.instance_id == instance_id)
        return next(found, None) if instance_id is not None else None


class ConsumerGroupsMachine(BrokerMachine):
    known = Bundle("members")

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.model = Model()
        self.groups = GroupClient(self.client, self.name("group"))
        self.topics: dict[str, TopicName] = {}
        self.nouns: dict[bytes, str] = {}
        self.count = 0

    def teardown(self) -> None:
        try:
            for member in self.model.members.values():
                self._heartbeat(member, LEAVES)
        finally:
            super().teardown()

    @initialize(target=known, subscription=subscriptions)
    def begin(self, subscription: tuple[str, ...]) -> Member:
        for noun, partitions in TOPICS.items():
            error, self.topics[noun] = self.client.create_topic(self.name(noun), partitions, {})
            assert error == "NONE"
            self.nouns[self.topics[noun].topic_id] = noun
        self.client.wait_for_coordinator(self.groups.group, GROUP)
        error = self.client.alter_config(
            GROUP_CONFIG, self.groups.group, "consumer.assignment.interval.ms", "0", self.prefix
        )
        assert error == "NONE"
        return self._join(None, subscription)

    # Joins and ends

    @rule(target=known, instance=st.sampled_from((None, None, "x")), subscription=subscriptions)
    def join(self, instance: str | None, subscription: tuple[str, ...]) -> Member:
        return self._join(instance, subscription)

    def _join(self, instance: str | None, subscription: tuple[str, ...]) -> Member:
        self.count += 1
        member = Member(f"member-{self.count}", instance, subscription)
        before = self.model.of_instance(instance)
        if before is None and len(self.model.members) == LIMIT:
            return member
        answer = self._heartbeat(member, 0)
        if before is not None and before.epoch != LEAVES_FOR_A_WHILE:
            assert error_name(answer.error_code) == "UNRELEASED_INSTANCE_ID"
            return member
        self.model.exists, self.model.is_classic = True, False
        if before is not None:
            del self.model.members[before.member_id]
            member.assigned = before.assigned
            member.assignment_epochs = before.assignment_epochs
            member.is_reconciled = before.is_reconciled
            member.previous_epoch = before.previous_epoch
        if before is None or set(before.subscription) != set(subscription):
            self.model.epoch += 1
        self.model.members[member.member_id] = member
        self._reconcile(member, frozenset(), answer, is_full=True)
        return member

    @rule(member=known)
    def leave(self, member: Member) -> None:
        answer = self._heartbeat(member, LEAVES)
        error = self._refusal(member)
        assert error_name(answer.error_code) == error
        if error == "NONE":
            assert answer.member_epoch == LEAVES
            del self.model.members[member.member_id]
            self.model.epoch += 1

    @rule(member=known)
    def leave_for_a_while(self, member: Member) -> None:
        """A static member that will be back; a dynamic one leaves by that as well."""
        if member.instance_id is None:
            return
        answer = self._heartbeat(member, LEAVES_FOR_A_WHILE)
        error = self._refusal(member)
        assert error_name(answer.error_code) == error
        if error == "NONE":
            assert answer.member_epoch == LEAVES_FOR_A_WHILE
            member.epoch = LEAVES_FOR_A_WHILE
            member.revoking = frozenset()

    def _refusal(self, member: Member) -> str:
        if not self.model.exists:
            return "GROUP_ID_NOT_FOUND"
        holder = self.model.of_instance(member.instance_id)
        if member.instance_id is not None:
            if holder is None:
                return "UNKNOWN_MEMBER_ID"
            return "NONE" if holder is member else "FENCED_INSTANCE_ID"
        return "NONE" if self.model.members.get(member.member_id) is member else "UNKNOWN_MEMBER_ID"

    # Heartbeats

    @rule(
        member=known,
        is_full=st.booleans(),
        subscription=st.one_of(st.none(), st.none(), subscriptions),
        releases=st.sampled_from((True, True, False)),
        shift=st.sampled_from((0, 0, 0, 0, -1, 1)),
    )
    def heartbeat(
        self, member: Member, is_full: bool, subscription: tuple[str, ...] | None, releases: bool, shift: int
    ) -> None:
        """releases: the member has given up what it was told to."""
        model = self.model
        epoch = member.told_epoch + shift
        if epoch <= 0:
            return
        owned = self._owned_by(member, releases=releases)
        error = self._refusal(member)
        if error == "NONE" and not (
            epoch == member.epoch or (epoch == member.previous_epoch and is_full and owned <= member.assigned)
        ):
            error = "FENCED_MEMBER_EPOCH"
        changed = subscription if subscription is not None else (member.subscription if is_full else None)
        answer = self._heartbeat(member, epoch, owned if is_full else None, changed)
        assert error_name(answer.error_code) == error
        if error != "NONE":
            return
        has_changed = changed is not None and set(changed) != set(member.subscription)
        if changed is not None and has_changed:
            member.subscription = changed
            model.epoch += 1
        self._reconcile(member, owned if is_full else None, answer, is_full=is_full, has_changed=has_changed)

    def _owned_by(self, member: Member, *, releases: bool) -> Partitions:
        return member.owned & (member.assigned if releases else member.assigned | member.revoking)

    @rule(member=known)
    def converge(self, member: Member) -> None:
        """All heartbeats until nobody has anything to give or to get: each member then has its target."""
        for _ in range(4):
            for each in list(self.model.members.values()):
                if each.epoch != LEAVES_FOR_A_WHILE and each.told_epoch == each.epoch:
                    self.heartbeat(each, is_full=True, subscription=None, releases=True, shift=0)
        members = self.model.members.values()
        if all(each.epoch == each.told_epoch for each in members):
            assert all(each.epoch == self.model.epoch and each.is_reconciled for each in members)

    def _heartbeat(
        self,
        member: Member,
        epoch: int,
        owned: Partitions | None = None,
        subscription: tuple[str, ...] | None = None,
    ) -> Any:
        is_new = epoch == 0
        is_full = is_new or owned is not None
        subscription = member.subscription if is_new else subscription
        return self.client.call(
            ConsumerGroupHeartbeatRequest(
                group_id=self.groups.group,
                member_id=member.member_id,
                member_epoch=epoch,
                instance_id=member.instance_id,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if is_full else -1,
                subscribed_topic_names=None
                if subscription is None
                else [self.topics[each].name for each in subscription],
                topic_partitions=[] if is_new else self._topic_partitions(owned),
            ),
            1,
        )

    def _topic_partitions(
        self, partitions: Partitions | None
    ) -> list[ConsumerGroupHeartbeatRequestTopicPartitions] | None:
        if partitions is None:
            return None
        return [
            ConsumerGroupHeartbeatRequestTopicPartitions(
                topic_id=self.topics[noun].topic_id, partitions=sorted(at for each, at in partitions if each == noun)
            )
            for noun in TOPICS
            if any(each == noun for each, _ in partitions)
        ]

    def _reconcile(
        self, member: Member, owned: Partitions | None, answer: Any, *, is_full: bool, has_changed: bool = False
    ) -> None:
        """One step of a member towards its target (`CurrentAssignmentBuilder`), and what it is told.

        has_changed: its subscription.
        """
        assert error_name(answer.error_code) == "NONE"
        before = (member.assigned, member.epoch)
        target = self._targets()[member.member_id]
        is_at_target = member.epoch == self.model.epoch
        holds_revoked = bool(member.revoking) and (owned is None or bool(owned & member.revoking))
        if not (holds_revoked or (is_at_target and member.is_reconciled)):
            member.revoking = frozenset()
            self._compute_next(member, owned, target)
        elif has_changed:
            self._drop_unsubscribed_topics(member)
        assert (answer.member_id, answer.member_epoch) == (member.member_id, member.epoch)
        is_told = is_full or before[0] != member.assigned
        assert (answer.assignment is not None) == is_told
        if is_told:
            assert self._named(answer.assignment) == member.assigned
            member.owned |= member.assigned
        member.told_epoch = member.epoch

    def _compute_next(self, member: Member, owned: Partitions | None, target: Partitions) -> None:
        others = frozenset().union(
            *(each.assigned | each.revoking for each in self.model.members.values() if each is not member)
        )
        kept = member.assigned & target
        revoked = member.assigned - target
        wanted = target - member.assigned
        if revoked and (owned is None or owned & revoked):
            member.previous_epoch = member.epoch
            member.assigned, member.revoking, member.is_reconciled = kept, revoked, False
            return
        member.previous_epoch, member.epoch = member.epoch, self.model.epoch
        member.assigned = kept | (wanted - others)
        member.is_reconciled = not wanted & others
        member.assignment_epochs = {each: member.assignment_epochs.get(each, member.epoch) for each in member.assigned}

    def _drop_unsubscribed_topics(self, member: Member) -> None:
        """A member that has partitions to give up yet gives up at once what it is not subscribed to any more."""
        dropped = frozenset(each for each in member.assigned if each[0] not in member.subscription)
        if dropped:
            member.previous_epoch = member.epoch
            member.assigned, member.revoking = member.assigned - dropped, member.revoking | dropped

    def _named(self, assignment: Any) -> Partitions:
        return frozenset(
            (self.nouns[bytes(topic.topic_id)], partition)
            for topic in assignment.topic_partitions
            for partition in topic.partitions
        )

    # Offsets

    @rule(member=known, shift=st.sampled_from((0, 0, -1, 1)), partition=st.integers(0, 2), offset=st.integers(0, 9))
    def commit_offset(self, member: Member, shift: int, partition: int, offset: int) -> None:
        epoch = member.told_epoch + shift
        if epoch < 0:
            return
        error = "NONE"
        if not (self.model.exists or self.model.is_classic):
            error = "GROUP_ID_NOT_FOUND"
        elif self.model.members.get(member.member_id) is not member:
            error = "UNKNOWN_MEMBER_ID"
        elif epoch > member.epoch or epoch < min(
            member.epoch, member.assignment_epochs.get(("a", partition), member.epoch)
        ):
            error = "STALE_MEMBER_EPOCH"
        found = self.groups.commit_offset(self.topics["a"].name, partition, offset, (member.member_id, epoch))
        assert found == error
        if error == "NONE":
            self.model.offsets[partition] = offset

    @rule(partition=st.integers(0, 2), offset=st.integers(0, 9))
    def commit_as_administrator(self, partition: int, offset: int) -> None:
        """Only where nobody is a member."""
        found = self.groups.commit_offset(self.topics["a"].name, partition, offset)
        if self.model.members:
            assert found == "UNKNOWN_MEMBER_ID"
            return
        assert found == "NONE"
        self.model.offsets[partition] = offset
        self.model.is_classic = self.model.is_classic or not self.model.exists

    @rule(partition=st.integers(0, 2))
    def delete_offset(self, partition: int) -> None:
        found = self.groups.delete_offset(self.topics["a"].name, partition)
        if not (self.model.exists or self.model.is_classic):
            assert found[0] == "GROUP_ID_NOT_FOUND"
        elif any("a" in each.subscription for each in self.model.members.values()):
            assert found == ("NONE", "GROUP_SUBSCRIBED_TO_TOPIC")
        else:
            assert found == ("NONE", "NONE")
            self.model.offsets.pop(partition, None)

    @rule()
    def delete_group(self) -> None:
        found = self.groups.delete()
        if not (self.model.exists or self.model.is_classic):
            assert found == "GROUP_ID_NOT_FOUND"
        elif self.model.members:
            assert found == "NON_EMPTY_GROUP"
        else:
            assert found == "NONE"
            self.model = Model()

    # What is to be seen

    def _described(self) -> Any:
        (found,) = self.client.call(ConsumerGroupDescribeRequest(group_ids=[self.groups.group]), 1).groups
        return found

    def _targets(self) -> dict[str, Partitions]:
        return {each.member_id: self._named(each.target_assignment) for each in self._described().members}

    @invariant()
    def all_is_seen(self) -> None:
        model = self.model
        found = self._described()
        if not model.exists:
            assert error_name(found.error_code) == "GROUP_ID_NOT_FOUND"
            assert self.groups.listed() == (("classic", "Empty") if model.is_classic else None)
            assert self.groups.offsets(self.topics["a"].name, TOPICS["a"]) == model.offsets
            return
        assert error_name(found.error_code) == "NONE"
        assert found.group_epoch == model.epoch
        assert {
            each.member_id: (
                each.instance_id,
                each.member_epoch,
                set(each.subscribed_topic_names),
                self._named(each.assignment),
            )
            for each in found.members
        } == {
            each.member_id: (
                each.instance_id,
                each.epoch,
                {self.topics[noun].name for noun in each.subscription},
                each.assigned | each.revoking,
            )
            for each in model.members.values()
        }
        if found.assignment_epoch == model.epoch:
            self._targets_are_fair({each.member_id: self._named(each.target_assignment) for each in found.members})
        assert self.groups.listed() == ("consumer", found.group_state)
        assert (found.group_state == "Empty") == (not model.members)
        assert self.groups.offsets(self.topics["a"].name, TOPICS["a"]) == model.offsets

    def _targets_are_fair(self, targets: dict[str, Partitions]) -> None:
        members = self.model.members
        subscribed = {noun for each in members.values() for noun in each.subscription}
        given = [each for target in targets.values() for each in target]
        assert len(given) == len(set(given)), "a partition is one member's"
        assert set(given) == {(noun, at) for noun in subscribed for at in range(TOPICS[noun])}
        assert all(noun in members[id].subscription for id, target in targets.items() for noun, _ in target)
        if len({frozenset(each.subscription) for each in members.values()}) == 1:
            counts = [len(target) for target in targets.values()]
            assert max(counts) - min(counts) <= 1, "the uniform assignor balances"


def test_consumer_groups_are_those_of_the_model(broker: Broker) -> None:
    explore(ConsumerGroupsMachine, broker, examples(60, stateful_step_count=25))


@pytest.mark.parametrize("is_full", [True, False])
def test_a_member_with_partitions_to_give_up_drops_the_topics_that_it_unsubscribes_from(
    broker: Broker, is_full: bool
) -> None:
    """Found by the machine: the member has not confirmed that it gave up `b` when it takes `b` alone."""
    machine = ConsumerGroupsMachine(broker)
    try:
        member = machine.begin(("a", "b"))
        for subscription, expected in ((("a",), TOPICS["a"]), (("b",), 0), (None, 0)):
            machine.heartbeat(member, is_full=is_full, subscription=subscription, releases=False, shift=0)
            assert len(member.assigned) == expected
            machine.all_is_seen()
        machine.converge(member)
        assert member.assigned == {("b", 0)}
    finally:
        machine.teardown()
