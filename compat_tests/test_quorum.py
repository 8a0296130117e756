"""The metadata quorum as DescribeQuorum and Kafka's own command tell of it."""

import json
import time
from collections.abc import Sequence

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)

from .apache_kafka.tools import Tool, run_tool
from .brokers import Broker, BrokerProcess
from .topics import create_topic
from .wire import Wire

METADATA_TOPIC = "__cluster_metadata"
VERSIONS = (0, 1, 2)


def describe(
    address: tuple[str, int], version: int, asked: Sequence[tuple[str, Sequence[int]]] = ((METADATA_TOPIC, (0,)),)
) -> DescribeQuorumResponse:
    topics = [
        DescribeQuorumRequestTopicData(
            topic_name=name,
            partitions=[DescribeQuorumRequestPartitionData(partition_index=index) for index in indexes],
        )
        for name, indexes in asked
    ]
    with Wire(address) as wire:
        answer = wire.call(DescribeQuorumRequest(topics=topics), version)
    assert isinstance(answer, DescribeQuorumResponse)
    return answer


@pytest.fixture
def process(broker: Broker) -> BrokerProcess:
    if not isinstance(broker, BrokerProcess):
        pytest.skip("needs the port of the controller")
    return broker


@pytest.mark.parametrize("version", VERSIONS)
def test_the_one_voter_leads_and_is_at_the_end_of_the_log(process: BrokerProcess, version: int, topic: str) -> None:
    before = describe(process.address, version).topics[0].partitions[0].high_watermark
    create_topic(process, topic)
    for port in (process.port, process.controller_port):
        answer = describe(("127.0.0.1", port), version)
        assert (answer.error_code, answer.error_message) == (0, "")
        (partition,) = answer.topics[0].partitions
        assert (partition.error_code, partition.error_message) == (0, "")
        (voter,) = partition.current_voters
        assert partition.leader_id == voter.replica_id
        assert partition.leader_epoch >= 1
        assert before < partition.high_watermark <= voter.log_end_offset
        assert partition.observers == []
        assert voter.replica_directory_id == bytes(16)
        for timestamp_ms in (voter.last_fetch_timestamp, voter.last_caught_up_timestamp):
            assert abs(timestamp_ms - time.time() * 1000) < 60_000 if version else timestamp_ms == -1
        listeners = [(each.host, each.port) for node in answer.nodes for each in node.listeners]
        assert listeners == ([("127.0.0.1", process.controller_port)] if version == 2 else [])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "asked",
    [
        [("other", [0])],
        [(METADATA_TOPIC, [1])],
        [(METADATA_TOPIC, [0, 1])],
        [(METADATA_TOPIC, [0]), ("other", [0])],
        [(METADATA_TOPIC, [])],
        [],
    ],
    ids=str,
)
def test_whoever_asks_for_anything_else_learns_nothing(
    broker: Broker, asked: list[tuple[str, list[int]]], version: int
) -> None:
    answer = describe(broker.address, version, asked)
    assert (answer.error_code, answer.nodes) == (0, [])
    assert [(topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in answer.topics] == asked
    for partition in (each for topic in answer.topics for each in topic.partitions):
        assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert bool(partition.error_message) == (version == 2)
        assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (0, 0, 0)
        assert (partition.current_voters, partition.observers) == ([], [])


@pytest.mark.java
def test_kafkas_command_describes_the_quorum(process: BrokerProcess) -> None:
    lines = run_tool(Tool.METADATA_QUORUM, "--bootstrap-server", process.bootstrap, "describe", "--status").lines
    told = dict(line.split(":", 1) for line in lines if ":" in line)
    assert told["MaxFollowerLag"].strip() == "0"
    (voter,) = json.loads(told["CurrentVoters"])
    assert voter == {"id": int(told["LeaderId"]), "endpoints": [f"CONTROLLER://127.0.0.1:{process.controller_port}"]}
    assert json.loads(told["CurrentObservers"]) == []
