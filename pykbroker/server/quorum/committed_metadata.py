"""Committed metadata are read as the active controller has them, not as this node happens to know them."""

from __future__ import annotations

from pykbroker.protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)

from .controller_channel import ControllerChannel
from .image_conditions import ImageConditions
from .quorum_description import METADATA_TOPIC, PARTITION


class CommittedMetadata:
    """The way to what is committed: the active controller says how far, and this node reads on up to there."""

    def __init__(self, channel: ControllerChannel, conditions: ImageConditions) -> None:
        self._channel = channel
        self._conditions = conditions

    async def caught_up(self, timeout_ms: int) -> bool:
        """Have this node's listeners know all that was committed when this was called; tell whether they do in time.

        False also where no controller answers, or none may say it: brokers need DESCRIBE on the cluster for it.
        """
        partition = DescribeQuorumRequestPartitionData(partition_index=PARTITION)
        request = DescribeQuorumRequest(
            topics=[DescribeQuorumRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])]
        )
        response: DescribeQuorumResponse = await self._channel.submit(request, timeout_ms=timeout_ms)
        if response.error_code:
            return False
        for topic in response.topics:
            for found in topic.partitions:
                if not found.error_code and found.high_watermark >= 0:
                    return await self._conditions.listeners_know(found.high_watermark, timeout_ms / 1000)
        return False
