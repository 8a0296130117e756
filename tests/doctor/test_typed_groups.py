"""Findings about share groups and streams groups: the rules, and what is found at a broker that runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pykbroker.client.cluster import Cluster
from pykbroker.doctor.facts import Facts, ShareGroup, ShareLook, StreamsGroup
from pykbroker.doctor.groups import watch_groups
from pykbroker.doctor.rules.groups import of_groups
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.testing import Broker
from tests.groups.live_members import StreamsMember, share_consumer, shared_records
from tests.groups.streams_requests import subtopology, topology

from .cluster_facts import findings, healthy, ids, topic

OF = TopicPartition("records", 0)


def look(members: int, start: int | None, lag: int | None) -> ShareLook:
    starts = {} if start is None else {OF: start}
    return ShareLook("Stable" if members else "Empty", members, starts, {} if lag is None else {OF: lag})


def shared(first: ShareLook, last: ShareLook, offline: tuple[TopicPartition, ...] = ()) -> Facts:
    return replace(healthy(), share_groups=[ShareGroup("workers", first, last, offline)], watched_s=6.0)


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (look(1, 5, 9), look(1, 5, 9), ["share-group-stuck"]),
        (look(1, 5, 9), look(1, 5, 20), ["share-group-stuck"]),
        (look(1, 5, 9), look(1, 5, 8), []),
        (look(1, 5, 9), look(1, 9, 9), []),
        (look(1, 5, 0), look(1, 5, 3), []),
        (look(0, 5, 9), look(1, 5, 9), []),
        (look(0, 5, 9), look(0, 5, 9), ["share-group-without-members"]),
        (look(0, 5, 0), look(0, 5, 0), []),
        (look(1, None, None), look(1, None, None), []),
    ],
)
def test_share_groups_by_two_looks(first: ShareLook, last: ShareLook, expected: list[str]) -> None:
    assert ids(shared(first, last)) == expected


def test_a_share_group_with_an_offline_partition_and_one_whose_coordinator_is_away() -> None:
    idle = look(1, 5, 0)
    facts = shared(idle, idle, (OF,))
    assert ids(facts) == ["share-group-offline"]
    assert "workers (records-0)" in findings(facts)[0].seen
    state = topic("__share_group_state", (1,), leader=None, is_internal=True)
    facts = replace(shared(idle, idle), topics=[state])
    assert "share-coordinator-offline" in ids(facts)
    facts = replace(shared(idle, idle), absent_topics=frozenset({"__share_group_state"}))
    assert ids(facts) == ["share-state-missing"]
    assert ids(replace(healthy(), absent_topics=frozenset({"__share_group_state"}))) == []


def test_a_streams_group_that_is_not_ready_in_both_looks() -> None:
    facts = replace(healthy(), streams_groups=[StreamsGroup("app", "NotReady", "NotReady", 1, ("words",))])
    (found,) = findings(facts)
    assert (found.id, found.severity) == ("streams-group-not-ready", "error")
    assert "app (missing: words)" in found.seen
    assert ids(replace(facts, streams_groups=[StreamsGroup("app", "NotReady", "Stable", 1)])) == []


def watched(broker: Broker) -> Facts:
    async def look_twice(cluster: Cluster) -> Facts:
        facts = healthy()
        await watch_groups(cluster, facts, 100, 0.5)
        return facts

    return broker.call(look_twice)


def test_groups_of_a_broker_that_are_stuck_empty_and_not_ready() -> None:
    with Broker() as broker:
        broker.create_topic("jobs").produce(b"a", b"b", b"c")
        explicit = {"share_acknowledgement_mode": "explicit"}
        missing = topology(subtopology("0", "not-there"))
        with (
            share_consumer(broker.bootstrap_servers, "workers", "jobs", **explicit) as consumer,
            StreamsMember(broker.bootstrap_servers, "app", "m", missing) as member,
        ):
            shared_records(consumer, 3)
            member.join()
            facts = watched(broker)
            assert [(each.group_id, each.last.members) for each in facts.share_groups] == [("workers", 1)]
            assert facts.streams_groups == [StreamsGroup("app", "NotReady", "NotReady", 1, ("not-there",))]
            assert not facts.unknown
        facts = watched(broker)
        assert [(each.last.state, each.last.members) for each in facts.share_groups] == [("Empty", 0)]
        assert facts.streams_groups == [StreamsGroup("app", "Empty", "Empty", 0)]


def test_a_share_group_that_has_read_a_part_and_left_has_records_that_wait() -> None:
    with Broker() as broker:
        broker.create_topic("jobs").produce(b"a", b"b", b"c")
        explicit = {"share_acknowledgement_mode": "explicit"}
        with share_consumer(broker.bootstrap_servers, "workers", "jobs", **explicit) as consumer:
            records = shared_records(consumer, 3)
            consumer.acknowledge(records[0])
            consumer.commit_sync()
            facts = watched(broker)
            assert [each.id for each in of_groups(facts)] == ["share-group-stuck"]
        facts = watched(broker)
        assert [each.id for each in of_groups(facts)] == ["share-group-without-members"]
        assert "workers (lag 2)" in next(of_groups(facts)).seen
