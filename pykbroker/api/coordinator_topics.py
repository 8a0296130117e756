"""The internal topics of coordinators, created by the first request that needs one."""

from __future__ import annotations

from typing import Any

from pykbroker.protocol.errors import ErrorCode
from pykbroker.server.coordinators.coordinator_driver import CoordinatorDriver
from pykbroker.server.coordinators.coordinator_topics import CoordinatorTopics
from pykbroker.server.node.broker import Broker


async def ensure_topic(broker: Broker, coordinator: CoordinatorDriver[Any, Any, Any]) -> ErrorCode:
    """Return NONE where the coordinator's topic is there, perhaps since now; else COORDINATOR_NOT_AVAILABLE."""
    topics = CoordinatorTopics(broker.config, broker.controller_channel, broker.image_conditions, lambda: broker.image)
    return await topics.ensure(coordinator)
