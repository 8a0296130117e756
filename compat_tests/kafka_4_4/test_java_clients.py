"""Kafka Streams 4.4 and the share consumer of 4.4 on brokers of 4.4: what that release brought is at work there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.apache_kafka import JarsMissing
from compat_tests.apache_kafka.jars import JarSet
from compat_tests.apache_kafka.java import find_java
from compat_tests.clients import READERS, WRITERS, Message
from compat_tests.streams.word_count import (
    INPUT,
    LINES,
    OUTPUT,
    SETTINGS,
    START_S,
    Counts,
    application,
    describe,
    is_shared_by,
    produce,
    shares,
)
from compat_tests.topics import create_topic
from compat_tests.waiting import until

from .conftest import FreshNode

pytestmark = pytest.mark.java

HERE = Path(__file__).parent
CLIENTS = JarSet("kafka-clients-4.4.0", HERE / "clients.lock", "PYKBROKER_KAFKA_CLIENTS_4_4_0_LIBS")
KEEPS_DESCRIPTIONS = {
    "group.streams.topology.description.plugin.class": (
        "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"
    )
}
SHARING = {
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
THERE = 3
"""The status of a description that the application has told."""
RECORDS = 200
GROUP, TOPIC, LETTERS = "workers", "work", "dlq.work"


@pytest.fixture
def clients() -> str:
    """The class path of clients of 4.4."""
    try:
        return f"{CLIENTS.directory()}/*"
    except JarsMissing as reason:
        pytest.skip(str(reason))


def test_kafka_streams_shares_tasks_and_tells_its_topology(
    fresh_node: FreshNode, tmp_path: Path, answers: TestAnswers, clients: str
) -> None:
    node = fresh_node(SETTINGS | KEEPS_DESCRIPTIONS)
    create_topic(node, INPUT, partitions=4)
    create_topic(node, OUTPUT, partitions=2)
    counts = Counts(node)
    with application(node, tmp_path / "one", clients) as one, application(node, tmp_path / "two", clients) as two:
        until(lambda: is_shared_by(node, 2), "two processes share the tasks", START_S)
        answers.same("shares", shares(describe(node)))
        until(lambda: describe(node, 1).topology_description_status == THERE, "the topology is described", START_S)
        described = describe(node, 1)
        assert described.topology_description is not None
        answers.same(
            "description",
            [
                [(each.name, each.node_type, each.source_topics, each.sink_topic, each.stores) for each in part.nodes]
                for part in described.topology_description.subtopologies
            ],
        )
        answers.same("assignor", described.assignor_name)
        produce(node)
        until(lambda: counts.newest().get("every") == LINES, "both count", START_S)
        one.stop()
        produce(node)
        until(lambda: counts.newest().get("every") == 2 * LINES, "the other goes on", START_S)
        until(lambda: is_shared_by(node, 1), "the first one has left", START_S)
        two.stop()
        assert not [line for line in one.said + two.said if line.startswith("failed")]
    answers.same("counts", sorted(counts.newest().items()))
    counts.close()


def test_a_share_consumer_settles_every_record_and_rejected_ones_get_letters(
    fresh_node: FreshNode, answers: TestAnswers, clients: str
) -> None:
    node = fresh_node(SHARING)
    create_topic(node, TOPIC, partitions=2)
    create_topic(node, LETTERS, configs={"errors.deadletterqueue.group.enable": "true"})
    WRITERS["confluent-kafka"](node.bootstrap, TOPIC, [Message(b"%d" % number) for number in range(RECORDS)])
    program = HERE / "java" / "ShareWorker.java"
    command = [
        find_java(),
        "-Xmx256m",
        "-cp",
        clients,
        str(program),
        node.bootstrap,
        GROUP,
        TOPIC,
        f"{RECORDS}",
        LETTERS,
    ]
    worked = subprocess.run(command, capture_output=True, text=True, timeout=START_S, check=False)
    assert worked.returncode == 0, worked.stderr
    answers.same("worked", worked.stdout.splitlines())
    letters = READERS["confluent-kafka"](node.bootstrap, LETTERS, 1, RECORDS // 10)
    headers = [dict(each.message.headers) for each in letters]
    answers.same("letters", sorted({name for each in headers for name in each}))
    rejected = sorted((each["__dlq.errors.partition"], int(each["__dlq.errors.offset"])) for each in headers)
    assert len(rejected) == RECORDS // 10
