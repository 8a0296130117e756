"""One member's next step towards its target, in every state that it may be in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pykbroker.groups.consumer.consumer_group import ConsumerGroup
from pykbroker.groups.consumer.consumer_group_member import (
    STABLE,
    UNKNOWN,
    UNRELEASED_PARTITIONS,
    UNREVOKED_PARTITIONS,
    ConsumerGroupMember,
)
from pykbroker.groups.consumer.reconciliation import Reconciliation

A, B = b"a" * 16, b"b" * 16
EPOCH = 5
TARGET_EPOCH = 7


def member(**fields: Any) -> ConsumerGroupMember:
    return ConsumerGroupMember(**{"member_id": "m", "member_epoch": EPOCH, **fields})


def step(
    before: ConsumerGroupMember,
    target: Mapping[bytes, set[int]],
    *,
    owned: Mapping[bytes, set[int]] | None = None,
    topics: tuple[bytes, ...] = (A, B),
    taken: tuple[int, ...] = (),
    changed: bool = False,
    target_epoch: int = TARGET_EPOCH,
) -> ConsumerGroupMember | None:
    return Reconciliation(
        member=before,
        target_epoch=target_epoch,
        target={topic: frozenset(partitions) for topic, partitions in target.items()},
        topic_ids=frozenset(topics),
        has_subscription_changed=changed,
        owned=owned,
        owned_of=lambda topic: taken,
    ).next()


def test_what_is_free_is_given_at_once() -> None:
    after = step(member(assigned={A: {1: 2}}), {A: {1, 2}})
    assert after == member(
        member_epoch=TARGET_EPOCH, previous_member_epoch=EPOCH, assigned={A: {1: 2, 2: TARGET_EPOCH}}
    )


def test_what_others_have_is_waited_for_in_the_new_epoch() -> None:
    after = step(member(), {A: {1, 2}}, taken=(2,))
    assert after is not None
    assert (after.state, after.member_epoch) == (UNRELEASED_PARTITIONS, TARGET_EPOCH)
    assert after.assigned == {A: {1: TARGET_EPOCH}}
    later = step(after, {A: {1, 2}})
    assert later is not None
    assert (later.state, later.assigned) == (STABLE, {A: {1: TARGET_EPOCH, 2: TARGET_EPOCH}})


def test_nothing_new_is_given_before_the_rest_is_given_up() -> None:
    before = member(assigned={A: {1: 2, 2: 3}})
    after = step(before, {A: {2}, B: {9}})
    assert after is not None
    assert (after.state, after.member_epoch, after.previous_member_epoch) == (UNREVOKED_PARTITIONS, EPOCH, EPOCH)
    assert (after.assigned, after.pending_revocation) == ({A: {2: 3}}, {A: {1: 2}})
    assert step(after, {A: {2}, B: {9}}) == after, "it has not said what it owns"
    assert step(after, {A: {2}, B: {9}}, owned={A: {1, 2}}) == after
    last = step(after, {A: {2}, B: {9}}, owned={A: {2}})
    assert last is not None
    assert (last.state, last.member_epoch) == (STABLE, TARGET_EPOCH)
    assert (last.assigned, last.pending_revocation) == ({A: {2: 3}, B: {9: TARGET_EPOCH}}, {})


def test_what_was_given_up_already_needs_no_confirmation() -> None:
    after = step(member(assigned={A: {1: 2}}), {}, owned={})
    assert after == member(member_epoch=TARGET_EPOCH, previous_member_epoch=EPOCH)


def test_a_partition_that_is_being_given_up_may_come_back() -> None:
    before = member(state=UNREVOKED_PARTITIONS, pending_revocation={A: {1: 2}})
    after = step(before, {A: {1}}, owned={}, taken=(1,))
    assert after is not None
    assert after.assigned == {A: {1: TARGET_EPOCH}}


@pytest.mark.parametrize("is_given_back", [True, False])
def test_a_partition_that_comes_back_before_it_is_given_up_has_its_owner_still(is_given_back: bool) -> None:
    """KAFKA-16147: the group took it for free then, and gave it to a second member."""
    group, giving_up = ConsumerGroup("g"), member(member_epoch=10, pending_revocation={A: {1: 10}})
    group.put(giving_up)
    assert group.owner_of(A, 1) == "m"
    assigned = {A: {1: 11}} if is_given_back else {}
    group.put(replace(giving_up, member_epoch=11, assigned=assigned, pending_revocation={}))
    assert group.owner_of(A, 1) == ("m" if is_given_back else None)
    assert group.partition_epoch(A, 1) == (11 if is_given_back else -1)


def test_topics_that_are_not_subscribed_to_any_more_go_first() -> None:
    before = member(member_epoch=TARGET_EPOCH, assigned={A: {1: 2}, B: {1: 2}})
    assert step(before, {A: {1}, B: {1}}, topics=(A,)) == before, "nothing has changed"
    after = step(before, {A: {1}, B: {1}}, topics=(A,), changed=True)
    assert after is not None
    assert (after.state, after.member_epoch) == (UNREVOKED_PARTITIONS, TARGET_EPOCH)
    assert (after.assigned, after.pending_revocation) == ({A: {1: 2}}, {B: {1: 2}})
    gone = step(before, {A: {1}, B: {1}}, topics=(A,), changed=True, owned={A: {1}})
    assert gone is not None
    assert (gone.state, gone.assigned, gone.pending_revocation) == (STABLE, {A: {1: 2}}, {})


def test_a_target_of_unsubscribed_topics_is_not_heeded() -> None:
    after = step(member(), {A: {1}, B: {1}}, topics=(B,))
    assert after is not None
    assert after.assigned == {B: {1: TARGET_EPOCH}}


@pytest.mark.parametrize("owned", [None, {A: {1}}])
def test_a_state_of_a_later_kafka_starts_anew(owned: dict[bytes, set[int]] | None) -> None:
    before = member(state=UNKNOWN, assigned={A: {1: 2}})
    assert step(before, {A: {1}}, owned=owned) is None
    after = step(before, {A: {1}}, owned={})
    assert after is not None
    assert (after.state, after.member_epoch) == (STABLE, TARGET_EPOCH)
