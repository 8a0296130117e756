"""Why a streams group has no tasks, and what its members have: heartbeats as Kafka Streams sends them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from pykbroker.control.why import by_protocol
from pykbroker.testing import Broker
from tests.groups.live_members import StreamsMember, configure_group
from tests.groups.streams_requests import subtopology, topology

from .conftest import eventually


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"auto.create.topics.enable": False}) as broker:
        yield broker


@pytest.fixture
def group(broker: Broker, name: str) -> str:
    configure_group(broker.bootstrap_servers, name, streams_initial_rebalance_delay_ms="0")
    return name


def test_a_source_topic_that_is_missing_is_the_reason(broker: Broker, group: str) -> None:
    missing = f"{group}-input"
    with StreamsMember(broker.bootstrap_servers, group, "m", topology(subtopology("0", missing))) as member:
        member.join()

        answer = broker.why.group(group)
        assert (answer.reason, answer.state, answer.type) == ("not-ready", "NotReady", "streams")
        assert missing in answer.verdict
        assert answer.missing_topics == (missing,)
        assert any(fact.startswith("MISSING_SOURCE_TOPICS: ") for fact in answer.facts), answer.facts
        of_consumer = broker.why.consumer(group)
        assert (of_consumer.reason, of_consumer.verdict) == (
            "topic-does-not-exist",
            f"Topic {missing} does not exist.",
        )
        told = broker.call(by_protocol.group, group)
        assert (told.reason, told.missing_topics) == ("not-ready", (missing,))

        broker.create_topic(missing)
        ready = eventually(lambda: (member.beat(), broker.why.group(group))[1], lambda it: it.reason != "not-ready")
        assert not ready.missing_topics
        assert any("a topic of its topology was created" in each.why for each in ready.rebalances)


def test_members_are_shown_with_their_tasks_and_what_these_read(broker: Broker, topic: str, group: str) -> None:
    with StreamsMember(broker.bootstrap_servers, group, "m", topology(subtopology("0", topic))) as member:
        member.join()
        answer = eventually(lambda: (member.beat(), broker.why.group(group))[1], lambda it: it.reason == "stable")

        (found,) = answer.members
        assert (found.client_id, found.state, found.subscription) == ("m", "STABLE", (topic,))
        assert dict(found.tasks) == {"active": ("0_0", "0_1")}
        assert dict(found.assignment) == {topic: (0, 1)}
        assert found.last_sign_ago_ms is not None
        assert "0_0, 0_1" in str(answer)
        json.dumps(answer.to_json())
        broker.topic(topic).produce(b"a", partition=0)
        partition = broker.why.consumer(group, topic=topic, partition=0).partitions[0]
        assert (partition.reason, partition.member_id) == ("no-fetch", "m")


def test_a_member_that_does_not_give_up_its_tasks_is_waited_for(broker: Broker, topic: str, group: str) -> None:
    whole = topology(subtopology("0", topic))
    with (
        StreamsMember(broker.bootstrap_servers, group, "first", whole) as first,
        StreamsMember(broker.bootstrap_servers, group, "second", whole) as second,
    ):
        first.join()
        eventually(lambda: (first.beat(), broker.why.group(group))[1], lambda it: it.reason == "stable")
        second.join()
        answer = eventually(
            lambda: (first.beat(), broker.why.group(group))[1],
            lambda it: any("given up" in each.what for each in it.awaited),
        )
        (awaited,) = [each for each in answer.awaited if "given up" in each.what]
        assert awaited.member_id == "first"
        assert awaited.what.startswith("a heartbeat that it has given up 1 task (0_")
        assert awaited.due_in_ms is not None
        assert answer.reason == "rebalancing"
