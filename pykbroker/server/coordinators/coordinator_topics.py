"""The internal topics of coordinators are created by whoever needs one first: a client's FindCoordinator, or this node
itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pykbroker.config import BrokerConfig
from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.topics import CreateTopicsRequest, CreateTopicsResponse

from ..quorum.controller_channel import ControllerChannel
from ..quorum.image_conditions import ImageConditions
from .coordinator_driver import CoordinatorDriver

_MOST_REPLICAS: Final = 32767
_KNOWN_TIMEOUT_S: Final = 1.0
_CREATED_OR_THERE: Final = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


@dataclass(frozen=True, slots=True)
class CoordinatorTopics:
    """The internal topics as this node has them created. conditions: of the same image."""

    config: BrokerConfig
    controller: ControllerChannel
    conditions: ImageConditions
    image: Callable[[], MetadataImage]

    async def ensure(self, coordinator: CoordinatorDriver[Any, Any, Any]) -> ErrorCode:
        """Return NONE where the coordinator's topic is there, perhaps since now; else COORDINATOR_NOT_AVAILABLE."""
        image = self.image()
        if image.topic(coordinator.topic) is not None:
            return ErrorCode.NONE
        if not image.live_brokers:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        request = CreateTopicsRequest(topics=[coordinator.new_topic(self._most_replicas())])
        response: CreateTopicsResponse = await self.controller.submit(request)
        if not all(topic.error_code in _CREATED_OR_THERE for topic in response.topics):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        await self._wait_until_known(coordinator.topic)
        return ErrorCode.NONE

    async def _wait_until_known(self, topic: str) -> None:
        """Wait a moment, so that whoever asks this node next need not ask twice."""
        if self.image().topic(topic) is None:
            await self.conditions.until(lambda image: image.topic(topic) is not None, _KNOWN_TIMEOUT_S)

    def _most_replicas(self) -> int:
        """A node that is a cluster of its own works out of the box; elsewhere others may be about to come, as in
        Kafka.
        """
        config = self.config
        is_alone = config.roles >= {"broker", "controller"} and set(self.image().brokers) == {config.node_id}
        if is_alone and len(config.quorum_voters) <= 1 and not config.quorum_bootstrap_servers:
            return 1
        return _MOST_REPLICAS
