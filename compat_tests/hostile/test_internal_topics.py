"""Rows 34 and 35: a topic that belongs to the broker, created and written to by a stranger."""

from pathlib import Path

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.apache_kafka.broker import ApacheKafka
from compat_tests.brokers import BrokerProcess, Pykbroker
from compat_tests.cases import code
from compat_tests.conftest import FreshBroker, assert_all_went_well, watch_log
from compat_tests.topics import wait_for_leaders
from compat_tests.waiting import until
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from pykbroker.protocol.messages.topics import CreatableTopic

from .record_cases import batch
from .scene import Scene, record

OFFSETS_TOPIC = "__consumer_offsets"
ONE_PARTITION = {"offsets.topic.num.partitions": "1"}


def test_a_user_creates_the_topic_of_committed_offsets(fresh_broker: FreshBroker, answers: TestAnswers) -> None:
    """Without an authorizer everybody may. The coordinator works with what it finds."""
    scene = Scene(fresh_broker())
    topic = CreatableTopic(name=OFFSETS_TOPIC, num_partitions=50, replication_factor=1)
    answers.expect("row 34", scene.create(topic), "NONE")
    assert scene.group()


def test_a_user_writes_junk_to_the_topic_of_committed_offsets(
    fresh_broker: FreshBroker, kind: str, answers: TestAnswers
) -> None:
    """Apache Kafka goes by the name that the client gives itself, and its coordinator then fails for good."""
    scene = Scene(fresh_broker())
    scene.group()
    found = [scene.produce(batch(), OFFSETS_TOPIC, client_id=name) for name in ("someone", "__admin_client")]
    refused = "INVALID_TOPIC_EXCEPTION"
    answers.expect("row 35", found, [refused, refused] if kind == "pykbroker" else [refused, "NONE"])


def commit(scene: Scene, group: str, topic: str, offset: int) -> str:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    request = OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])])
    with scene.wire() as wire:
        answer = wire.call(request, 8)
    assert isinstance(answer, OffsetCommitResponse)
    return code(answer.topics[0].partitions[0].error_code)


def committed(scene: Scene, group: str) -> list[int]:
    with scene.wire() as wire:
        answer = wire.call(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)]), 8)
    assert isinstance(answer, OffsetFetchResponse)
    return [each.committed_offset for topic in answer.groups[0].topics for each in topic.partitions]


@pytest.mark.java
def test_junk_that_stops_apache_kafkas_coordinator_does_not_stop_ours(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Row 35: what is in front of the junk and behind it is there, and groups are served."""
    data = tmp_path / "data"

    def started(broker: BrokerProcess) -> Scene:
        watch_log(request.node, broker)
        broker.start()
        return Scene(broker)

    kafka = ApacheKafka(tmp_path / "kafka", {"log.dirs": str(data), **ONE_PARTITION})
    try:
        scene = started(kafka)
        group, topic = scene.group(), scene.topic()
        assert commit(scene, group, topic, 5) == "NONE"
        cut_short = batch(record(key=b"\x00\x01", value=b"junk"))
        assert scene.produce(cut_short, OFFSETS_TOPIC, client_id="__admin_client") == "NONE"
        kafka.stop()
        kafka.start()
        wait_for_leaders(kafka, topic, 1)
        until(lambda: "Failed to load metadata" in kafka.log_text(), "the coordinator gives up")
        assert commit(scene, group, topic, 6) == "NOT_COORDINATOR"
    finally:
        kafka.stop()
    ours = Pykbroker(tmp_path / "pykbroker", {"node.id": "1", "log.dirs": str(data), **ONE_PARTITION})
    try:
        scene = started(ours)
        scene.group()
        assert committed(scene, group) == [5]
        assert commit(scene, group, topic, 6) == "NONE"
        ours.stop()
        ours.start()
        scene.group()
        assert committed(scene, group) == [6]
        assert "skipped" in ours.log_text()
    finally:
        ours.stop()
    assert_all_went_well(ours)
