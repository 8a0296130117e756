"""What lies where, for the tests of brokers with several log directories."""

from collections.abc import Mapping
from pathlib import Path

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

from .brokers import Broker
from .waiting import until
from .wire import Wire

LATEST = -1
NEWEST = 5


def describe(
    broker: Broker, topics: Mapping[str, list[int]] | None = None, version: int = NEWEST
) -> DescribeLogDirsResponse:
    wanted = None
    if topics is not None:
        wanted = [DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in topics.items()]
    with Wire(broker.address) as wire:
        answer = wire.call(DescribeLogDirsRequest(topics=wanted), version)
    assert isinstance(answer, DescribeLogDirsResponse)
    return answer


def sizes(answer: DescribeLogDirsResponse, topic: str) -> dict[str, dict[int, int]]:
    """By directory and partition."""
    return {
        Path(result.log_dir).name: {
            each.partition_index: each.partition_size
            for found in result.topics
            if found.name == topic
            for each in found.partitions
        }
        for result in answer.results
    }


def latest(broker: Broker, topic: str, index: int) -> tuple[str, int]:
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=LATEST)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)])
    with Wire(broker.address) as wire:
        answer = wire.call(request, 8)
    assert isinstance(answer, ListOffsetsResponse)
    found = answer.topics[0].partitions[0]
    return ErrorCode(found.error_code).name, found.offset


def until_led(broker: Broker, topic: str, indexes: range | set[int]) -> None:
    until(lambda: all(latest(broker, topic, index)[0] == "NONE" for index in indexes), f"{topic} has leaders")
