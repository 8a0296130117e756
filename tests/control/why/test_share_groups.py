"""Why members of share groups get nothing, and how share groups are, with stock clients."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import trio
from confluent_kafka import AcknowledgeType

from pykbroker.control.why import by_protocol
from pykbroker.server.coordinators.share_states import ShareStates
from pykbroker.server.sharing.share_partitions import SharePartitions
from pykbroker.testing import Broker
from tests.groups.live_members import configure_group, share_consumer, shared_records

from .conftest import eventually

EXPLICIT = {"share_acknowledgement_mode": "explicit", "client_id": "app"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {"auto.create.topics.enable": False, "share.coordinator.state.topic.num.partitions": 1}
    with Broker(settings) as broker:
        yield broker


def test_records_in_a_member_s_hands_are_told_with_their_time(broker: Broker, topic: str, name: str) -> None:
    broker.topic(topic).produce(b"a", b"b", b"c", partition=0)
    with share_consumer(broker.bootstrap_servers, name, topic, **EXPLICIT) as consumer:
        shared_records(consumer, 3)

        answer = broker.why.group(name)
        assert (answer.reason, answer.type, answer.state, answer.lag) == ("stable", "share", "Stable", 3)
        (member,) = answer.members
        assert (member.client_id, member.host, member.subscription) == ("app", "127.0.0.1", (topic,))
        assert dict(member.assignment) == {topic: (0, 1)}
        assert member.last_sign_ago_ms is not None
        shared = next(each for each in answer.shared if each.partition == 0)
        assert (shared.state, shared.start_offset, shared.high_watermark) == ("initialized", 0, 3)
        assert (shared.lag, shared.acquired, shared.end_offset, answer.partition_count) == (3, 3, 3, 2)
        (holder,) = shared.holders
        assert (holder.member_id, holder.client_id, holder.records) == (member.member_id, "app", 3)
        assert any(f"has acquired 3 records of {topic}-0 from 0 on, until " in fact for fact in answer.facts)
        json.dumps(answer.to_json())
        assert holder.member_id in str(answer)

        partition = broker.why.consumer(name, topic=topic, partition=0).partitions[0]
        assert partition.reason == "records-locked"
        assert f"are locked by {member.member_id} (client app at 127.0.0.1), the first of them until " in (
            partition.verdict
        )
        assert partition.shared is not None
        json.dumps(broker.why.consumer(name).to_json())


def test_what_was_rejected_and_what_was_delivered_too_often_is_told(broker: Broker, name: str) -> None:
    topic = str(broker.create_topic(name))
    configure_group(broker.bootstrap_servers, name, share_delivery_count_limit="2")
    broker.topic(topic).produce(b"a", b"b", b"c", b"d", partition=0)
    first = share_consumer(broker.bootstrap_servers, name, topic, **EXPLICIT)
    other = share_consumer(broker.bootstrap_servers, name, topic, **{**EXPLICIT, "client_id": "other"})
    with first as holder:
        for record in shared_records(holder, 4)[1:]:  # the first one is held: nothing behind it is forgotten
            kinds = {1: AcknowledgeType.RELEASE, 2: AcknowledgeType.REJECT}
            holder.acknowledge(record, kinds.get(record.offset() or 0, AcknowledgeType.ACCEPT))
        holder.commit_sync()
        shared = next(each for each in broker.why.group(name).shared if each.partition == 0)
        assert (shared.available, shared.most_deliveries) == (1, 1)
        with other as consumer:
            (again,) = shared_records(consumer, 1)
            consumer.acknowledge(again, AcknowledgeType.RELEASE)
            consumer.commit_sync()

            answer = broker.why.consumer(name, topic=topic, partition=0)
            shared = next(each for each in broker.why.group(name).shared if each.partition == 0)
            assert (shared.acquired, shared.available, shared.acknowledged, shared.archived) == (1, 0, 1, 2)
            assert (shared.archived_by_limit, shared.delivery_count_limit) == (1, 2)
            assert answer.reason == "records-locked"
            too_often = f"1 record of {topic}-0 in flight are archived after 2 deliveries"
            assert any(fact.startswith(too_often) for fact in answer.facts), answer.facts


def test_a_group_that_has_settled_all_waits_for_more(broker: Broker, topic: str, name: str) -> None:
    broker.topic(topic).produce(b"a", b"b", partition=0)
    with share_consumer(broker.bootstrap_servers, name, topic, **EXPLICIT) as consumer:
        for record in shared_records(consumer, 2):
            consumer.acknowledge(record)
        consumer.commit_sync()

        answer = broker.why.consumer(name, topic=topic, partition=0)

        assert answer.reason == "end-of-log", str(answer)
        assert "has settled all records" in answer.verdict
        assert answer.partitions[0].shared is not None
        assert answer.partitions[0].shared.lag == 0


def test_a_group_without_members_says_so_and_keeps_its_lag(broker: Broker, topic: str, name: str) -> None:
    broker.topic(topic).produce(b"a", b"b", b"c", partition=0)
    with share_consumer(broker.bootstrap_servers, name, topic, **EXPLICIT) as consumer:
        records = shared_records(consumer, 3)
        consumer.acknowledge(records[0])
        consumer.commit_sync()

    answer = eventually(lambda: broker.why.group(name), lambda it: it.reason == "no-members")
    assert "removed: it left" in answer.verdict
    shared = eventually(
        lambda: next(each for each in broker.why.group(name).shared if each.partition == 0),
        lambda each: each.start_offset == 1,
    )
    assert (shared.lag, shared.acquired, shared.holders) == (2, 0, ())
    assert broker.why.consumer(name, topic=topic).reason == "no-members"


def test_a_topic_that_nobody_subscribes_to_and_one_that_does_not_exist(broker: Broker, topic: str, name: str) -> None:
    other = broker.create_topic(f"{name}-other")
    with share_consumer(broker.bootstrap_servers, name, topic, **EXPLICIT) as consumer:
        eventually(
            lambda: (consumer.poll(0.1), broker.why.consumer(name, topic=topic))[1],
            lambda it: it.reason == "end-of-log",
        )
        assert broker.why.consumer(name, topic=str(other)).reason == "not-subscribed"
        assert broker.why.consumer(name, topic="nowhere").reason == "topic-does-not-exist"
        other_client = broker.why.consumer(name, client_id="stranger", topic=topic, partition=0)
        assert other_client.reason == "not-assigned"


def test_a_group_at_its_bound_of_records_in_flight(broker: Broker, topic: str, name: str) -> None:
    configure_group(broker.bootstrap_servers, name, share_partition_max_record_locks="100")
    broker.topic(topic).produce(*(b"x" for _ in range(150)), partition=0)
    with share_consumer(broker.bootstrap_servers, name, topic, **EXPLICIT) as consumer:
        shared_records(consumer, 100)
        answer = broker.why.consumer(name, topic=topic, partition=0)
        assert answer.reason == "records-locked", str(answer)
        assert answer.partitions[0].shared is not None
        assert answer.partitions[0].shared.lag == 150


def test_any_broker_tells_of_a_share_group_by_kafka_s_protocol(broker: Broker, topic: str, name: str) -> None:
    broker.topic(topic).produce(b"a", b"b", partition=0)
    with share_consumer(broker.bootstrap_servers, name, topic, **EXPLICIT) as consumer:
        for record in shared_records(consumer, 2)[:1]:
            consumer.acknowledge(record)
        consumer.commit_sync()
        answer = broker.call(by_protocol.group, name)
        assert (answer.reason, answer.type, answer.lag, answer.partition_count) == ("stable", "share", 1, 2)
        assert [(each.partition, each.start_offset, each.lag) for each in answer.shared] == [(0, 0, 1), (1, None, None)]
        of_consumer = broker.call(by_protocol.consumer, name)
        assert [(each.partition, each.reason) for each in of_consumer.partitions] == [
            (0, "not-told"),
            (1, "not-told"),
        ]
        assert broker.call(by_protocol.consumer, name, "nowhere").reason == "topic-does-not-exist"
    assert broker.call(by_protocol.consumer, name).reason == "no-members"


def test_a_partition_without_a_state_is_nobody_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """As while the share coordinator does not answer the group's."""
    monkeypatch.setattr(ShareStates, "begin", lambda self, initialization: None)
    with Broker() as broker:
        broker.create_topic("jobs").produce(b"a")
        with share_consumer(broker.bootstrap_servers, "g", "jobs", **EXPLICIT) as consumer:
            answer = eventually(
                lambda: (consumer.poll(0.1), broker.why.consumer("g", topic="jobs"))[1],
                lambda it: it.reason == "not-initialized",
            )
            assert "has no state of jobs-0 yet" in answer.verdict
            assert any("__share_group_state" in fact for fact in answer.facts)
            group = broker.why.group("g")
            assert [each.state for each in group.shared] == ["initializing"]
            assert any("1 partition of 1 wait for the share coordinator" in fact for fact in group.facts)


def test_a_state_that_is_being_read_holds_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """As while the share coordinator does not answer the leader."""

    async def never(self: SharePartitions, new: object) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(SharePartitions, "_load", never)
    with Broker() as broker:
        broker.create_topic("jobs").produce(b"a")
        with share_consumer(broker.bootstrap_servers, "g", "jobs", **EXPLICIT) as consumer:
            answer = eventually(
                lambda: (consumer.poll(0.1), broker.why.consumer("g", topic="jobs"))[1],
                lambda it: it.reason == "state-loading",
            )
            assert "reads the state of jobs-0 for group g from the share coordinator" in answer.verdict
            assert any("coordinates the state, in __share_group_state-" in fact for fact in answer.facts)
