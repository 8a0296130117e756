"""The internal topics of coordinators, created by the first request that needs one."""

from __future__ import annotations

from typing import Any

from pykbroker.metadata.topic_names import is_internal
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.topics import CreatableTopic
from pykbroker.server.coordinators.coordinator_driver import CoordinatorDriver
from pykbroker.server.coordinators.coordinator_topics import CoordinatorTopics
from pykbroker.server.node.broker import Broker


async def ensure_topic(broker: Broker, coordinator: CoordinatorDriver[Any, Any, Any]) -> ErrorCode:
    """Return NONE where the coordinator's topic is there, perhaps since now; else COORDINATOR_NOT_AVAILABLE."""
    return await _topics(broker).ensure(coordinator)


def coordinators_topic(broker: Broker, name: str) -> CreatableTopic | None:
    """Return how the topic is to be created where it is a coordinator's; None where it is not."""
    if not is_internal(name):
        return None
    coordinators = (broker.groups, broker.transactions.coordinator, broker.share_coordinator)
    return next((_topics(broker).new_topic(each) for each in coordinators if each.topic == name), None)


def _topics(broker: Broker) -> CoordinatorTopics:
    return CoordinatorTopics(broker.config, broker.controller_channel, broker.image_conditions, lambda: broker.image)
