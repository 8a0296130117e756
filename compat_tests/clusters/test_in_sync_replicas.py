"""acks=all, min.insync.replicas and the high watermark, as stock clients meet them on three nodes."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from compat_tests.clients import READERS, WRITERS, Message
from compat_tests.waiting import DEADLINE_S, until

from .cluster import Cluster
from .topics import create_replicated_topic

MESSAGES = [Message(b"%d" % number) for number in range(20)]


def send_one(cluster: Cluster, topic: str, *, acks: int | str, timeout_s: float = 30, **config: Any) -> str:
    """The name of the error, or NO_ERROR, without a retry."""
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "acks": acks,
            "message.send.max.retries": 0,
            "message.timeout.ms": int(timeout_s * 1000),
            "log_level": 0,
            **config,
        }
    )
    answers: list[str] = []
    producer.produce(topic, b"one", partition=0, on_delivery=lambda error, _: answers.append(_name(error)))
    producer.flush(timeout_s * 2)
    return answers[0]


def _name(error: KafkaError | None) -> str:
    return "NO_ERROR" if error is None else error.name()


def test_every_replica_is_in_sync_and_has_the_records(cluster: Cluster, topic: str) -> None:
    create_replicated_topic(cluster, topic, 3)
    view = cluster.view(topic).topics[topic]
    assert sorted(each.leader for each in view.values()) == [1, 2, 3], "leaders are spread"
    assert all(each.isr == {1, 2, 3} for each in view.values())
    WRITERS["kafka-python"](cluster.bootstrap, topic, MESSAGES)
    assert len(READERS["kafka-python"](cluster.bootstrap, topic, 3, len(MESSAGES))) == len(MESSAGES)


def test_with_too_few_replicas_in_sync_acks_all_is_refused_and_acks_1_is_not(cluster: Cluster, topic: str) -> None:
    create_replicated_topic(cluster, topic, assignment=[[1, 2, 3]], configs={"min.insync.replicas": "3"})
    assert send_one(cluster, topic, acks="all") == "NO_ERROR"
    cluster.kill(3)
    cluster.wait_for(topic, 0, lambda view: 3 not in view.isr, "shrinks its ISR")
    # What the leader takes before it has heard of its own change is not answered in time.
    until(lambda: send_one(cluster, topic, acks="all") == "NOT_ENOUGH_REPLICAS", "the leader refuses")
    assert send_one(cluster, topic, acks=1) == "NO_ERROR"
    cluster.start(3)
    cluster.wait_until_in_sync(topic)
    assert send_one(cluster, topic, acks="all") == "NO_ERROR"
    assert len(READERS["confluent-kafka"](cluster.bootstrap, topic, 1, 3)) >= 3


def test_what_is_not_replicated_is_not_visible(cluster: Cluster, topic: str) -> None:
    """A follower that does not fetch holds the high watermark back until it is out of sync."""
    create_replicated_topic(cluster, topic, assignment=[[1, 2]], configs={"min.insync.replicas": "1"})
    assert send_one(cluster, topic, acks="all") == "NO_ERROR"
    cluster.pause(2)
    assert send_one(cluster, topic, acks=1, **{"bootstrap.servers": cluster.nodes[1].bootstrap}) == "NO_ERROR"
    asked_at = time.monotonic()
    before = high_watermark_of(cluster, topic, 1)
    if time.monotonic() - asked_at < 1:  # a busy machine may have taken longer than a session
        assert before == 1
    cluster.wait_for(topic, 0, lambda view: view.isr == {1}, "shrinks its ISR")
    assert high_watermark_of(cluster, topic, 1) == 2
    cluster.resume(2)
    cluster.wait_until_in_sync(topic)


def test_what_too_few_replicas_have_is_neither_acknowledged_nor_visible_until_more_have_it(
    cluster: Cluster, topic: str
) -> None:
    """An ISR that shrinks below its minimum does not let the high watermark pass (KIP-966): since then nobody is told
    NOT_ENOUGH_REPLICAS_AFTER_APPEND for that.
    """
    create_replicated_topic(cluster, topic, assignment=[[1, 2]])
    assert send_one(cluster, topic, acks="all") == "NO_ERROR"
    cluster.pause(2)
    only_leader = {"bootstrap.servers": cluster.nodes[1].bootstrap}
    answer = send_one(cluster, topic, acks="all", **only_leader, **{"request.timeout.ms": 1500})
    cluster.wait_for(topic, 0, lambda view: view.isr == {1}, "shrinks its ISR")
    until(lambda: send_one(cluster, topic, acks="all", **only_leader) == "NOT_ENOUGH_REPLICAS", "the leader refuses")
    assert high_watermark_of(cluster, topic, 1) == 1
    cluster.resume(2)
    cluster.wait_until_in_sync(topic)
    assert answer in ("REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS")  # the latter where this took longer than a session
    taken = 2 if answer == "REQUEST_TIMED_OUT" else 1
    until(lambda: high_watermark_of(cluster, topic, 1) >= taken, "what the leader took is visible")


def high_watermark_of(cluster: Cluster, topic: str, node_id: int) -> int:
    """Asked of that node, by a client that knows no other one."""
    consumer = Consumer({"bootstrap.servers": cluster.nodes[node_id].bootstrap, "group.id": "unused"})
    try:
        _, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=DEADLINE_S) or (0, -1)
        return high
    finally:
        consumer.close()
