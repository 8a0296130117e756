"""The internal topics of coordinators, created by the first request that needs one."""

from __future__ import annotations

from typing import Any, Final

from pykbroker.metadata.topic_names import is_internal
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from pykbroker.server.coordinators.coordinator_driver import CoordinatorDriver
from pykbroker.server.node.broker import Broker

from .created_topics import CREATED_OR_THERE, wait_until_known

_MOST_REPLICAS: Final = 32767


async def ensure_topic(broker: Broker, coordinator: CoordinatorDriver[Any, Any, Any]) -> ErrorCode:
    if broker.image.topic(coordinator.topic) is not None:
        return ErrorCode.NONE
    if not broker.image.live_brokers:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    request = CreateTopicsRequest(topics=[_new_topic(broker, coordinator)])
    response: CreateTopicsResponse = await broker.controller_channel.submit(request)
    await wait_until_known(broker, response)
    created = all(topic.error_code in CREATED_OR_THERE for topic in response.topics)
    return ErrorCode.NONE if created else ErrorCode.COORDINATOR_NOT_AVAILABLE


def coordinators_topic(broker: Broker, name: str) -> CreatableTopic | None:
    """Return how the topic is to be created where it is a coordinator's; None where it is not."""
    if not is_internal(name):
        return None
    coordinators = (broker.groups, broker.transactions.coordinator)
    return next((_new_topic(broker, each) for each in coordinators if each.topic == name), None)


def _new_topic(broker: Broker, coordinator: CoordinatorDriver[Any, Any, Any]) -> CreatableTopic:
    return coordinator.new_topic(_most_replicas(broker))


def _most_replicas(broker: Broker) -> int:
    """A node that is a cluster of its own works out of the box; elsewhere others may be about to come, as in Kafka."""
    config = broker.config
    is_alone = config.roles >= {"broker", "controller"} and set(broker.image.brokers) == {broker.node_id}
    if is_alone and len(config.quorum_voters) <= 1 and not config.quorum_bootstrap_servers:
        return 1
    return _MOST_REPLICAS
