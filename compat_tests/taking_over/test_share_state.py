"""The state of share partitions (KIP-932) is the same while pykbroker and Apache Kafka take over a directory from each
other: what Java's share consumer has left there, and what brokers write by the protocol.
"""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from compat_tests.apache_kafka.broker import ApacheKafka
from compat_tests.apache_kafka.jars import class_path
from compat_tests.apache_kafka.java import find_java
from compat_tests.brokers import BrokerProcess, Pykbroker
from compat_tests.conftest import assert_all_went_well, watch_log
from compat_tests.hostile.scene import code
from compat_tests.same_answers.interview import plain
from compat_tests.topics import fill_topic
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
)
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequestAlterableConfig as AlterableConfig,
)
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequestAlterConfigsResource as AlterConfigsResource,
)
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykbroker.protocol.messages.share_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateRequestPartitionData,
    InitializeStateData,
    ReadShareGroupStateRequest,
    ReadShareGroupStateRequestPartitionData,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryRequestPartitionData,
    ReadStateData,
    ReadStateSummaryData,
    StateBatch,
    WriteShareGroupStateRequest,
    WriteShareGroupStateRequestPartitionData,
    WriteStateData,
)
from pykbroker.protocol.uuids import uuid_to_text

pytestmark = pytest.mark.java

PROPERTIES = {
    "node.id": "1",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
    "share.coordinator.state.topic.prune.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
}
TOPIC = "handed-over"
PARTITIONS = 4
CONSUMED, WRITTEN = GROUPS = ("consumed", "written")
NO_LEADER, OF_GROUP = -1, 32


def pykbroker(directory: Path, number: int) -> BrokerProcess:
    return Pykbroker(directory / f"pykbroker-{number}", PROPERTIES | {"log.dirs": str(directory / "data")})


def apache_kafka(directory: Path, number: int) -> BrokerProcess:
    properties = PROPERTIES | {"log.dirs": str(directory / "data")}
    return ApacheKafka(directory / f"kafka-{number}", properties, is_formatted=number > 0)


def topic_id(wire: Wire) -> bytes:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
    answer: Any = wire.call(request, 12)
    found: bytes = answer.topics[0].topic_id
    return found


def wait_for_coordinators(wire: Wire, topic: bytes) -> None:
    """Wait until each share partition's coordinator answers."""

    def are_ready() -> bool:
        keys = [
            f"{group}:{uuid_to_text(topic)}:{index}" for group in (CONSUMED, WRITTEN) for index in range(PARTITIONS)
        ]
        found: Any = wire.call(FindCoordinatorRequest(key_type=2, coordinator_keys=keys), 6)
        if any(each.error_code for each in found.coordinators):
            return False
        codes = {row["error_code"] for group in GROUPS for row in summaries(wire, topic, group)}
        return codes <= {0}

    until(are_ready, "the share coordinator is ready")


def summaries(wire: Wire, topic: bytes, group: str) -> list[Any]:
    rows = [
        ReadShareGroupStateSummaryRequestPartitionData(partition=index, leader_epoch=NO_LEADER)
        for index in range(PARTITIONS)
    ]
    asked = ReadStateSummaryData(topic_id=topic, partitions=rows)
    answer: Any = wire.call(ReadShareGroupStateSummaryRequest(group_id=group, topics=[asked]), 1)
    return sorted(plain(answer)["results"][0]["partitions"], key=lambda row: row["partition"])


def states(wire: Wire, topic: bytes, group: str) -> list[Any]:
    rows = [
        ReadShareGroupStateRequestPartitionData(partition=index, leader_epoch=NO_LEADER) for index in range(PARTITIONS)
    ]
    asked = ReadStateData(topic_id=topic, partitions=rows)
    answer: Any = wire.call(ReadShareGroupStateRequest(group_id=group, topics=[asked]), 0)
    return sorted(plain(answer)["results"][0]["partitions"], key=lambda row: row["partition"])


def initialize(wire: Wire, topic: bytes) -> None:
    rows = [
        InitializeShareGroupStateRequestPartitionData(partition=index, state_epoch=1, start_offset=index)
        for index in range(PARTITIONS - 1)
    ]
    asked = InitializeStateData(topic_id=topic, partitions=rows)
    answer: Any = wire.call(InitializeShareGroupStateRequest(group_id=WRITTEN, topics=[asked]), 0)
    assert {code(row.error_code) for row in answer.results[0].partitions} == {"NONE"}


def write(wire: Wire, topic: bytes, turn: int) -> None:
    """Write some updates to two of three partitions: more than there are between two snapshots."""
    for number in range(turn * 5, turn * 5 + 5):
        rows = [
            WriteShareGroupStateRequestPartitionData(
                partition=index,
                state_epoch=1,
                leader_epoch=NO_LEADER,
                start_offset=number if index else -1,
                delivery_complete_count=number,
                state_batches=[
                    StateBatch(first_offset=number, last_offset=number + 7, delivery_state=0, delivery_count=1 + index),
                    StateBatch(first_offset=number + 9, last_offset=number + 9, delivery_state=2, delivery_count=1),
                ],
            )
            for index in range(2)
        ]
        asked = WriteStateData(topic_id=topic, partitions=rows)
        answer: Any = wire.call(WriteShareGroupStateRequest(group_id=WRITTEN, topics=[asked]), 1)
        assert {code(row.error_code) for row in answer.results[0].partitions} == {"NONE"}


def consume(broker: BrokerProcess, *options: str) -> None:
    command = [find_java(), "-Xmx256m", "-cp", class_path(), "org.apache.kafka.tools.consumer.ConsoleShareConsumer"]
    command += ["--bootstrap-server", broker.bootstrap, "--topic", TOPIC, "--group", CONSUMED]
    subprocess.run([*command, "--timeout-ms", "60000", *options], check=True, timeout=120, capture_output=True)


def begin_with_the_oldest(wire: Wire) -> None:
    config = AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
    resource = AlterConfigsResource(resource_type=OF_GROUP, resource_name=CONSUMED, configs=[config])
    answer: Any = wire.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert code(answer.responses[0].error_code) == "NONE", answer


@pytest.mark.parametrize(
    "order", [(apache_kafka, pykbroker, apache_kafka), (pykbroker, apache_kafka, pykbroker)], ids=["kafka", "ours"]
)
def test_state_of_share_partitions_changes_hands(tmp_path: Path, order: Any, request: pytest.FixtureRequest) -> None:
    seen: list[Any] = []
    topic = b""
    for turn, make in enumerate(order):
        broker = make(tmp_path, turn)
        watch_log(request.node, broker)
        broker.start()
        try:
            with Wire(broker.address) as wire:
                if turn == 0:
                    fill_topic(broker, TOPIC, PARTITIONS, 200)
                    topic = topic_id(wire)
                wait_for_coordinators(wire, topic)
                if turn == 0:
                    initialize(wire, topic)
                else:
                    assert [ask(wire, topic, group) for ask in (states, summaries) for group in GROUPS] == seen
                write(wire, topic, turn)
                if make is apache_kafka:
                    begin_with_the_oldest(wire)
                    for options in (("--max-messages", "5"), ("--max-messages", "9", "--release")):
                        consume(broker, *options)
                seen = [ask(wire, topic, group) for ask in (states, summaries) for group in GROUPS]
        finally:
            broker.stop()
        assert_all_went_well(broker)
    assert any(row["state_batches"] for row in seen[0]), "the consumer has left something to compare"
