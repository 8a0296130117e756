"""The state of share groups needs a coordinator, and the way to other brokers' coordinators."""

from __future__ import annotations

from collections.abc import Callable

from pykbroker.config import BrokerConfig
from pykbroker.metadata.image import MetadataImage

from ...coordinators.coordinator_topics import CoordinatorTopics
from ...coordinators.share_coordinator import ShareCoordinator
from ...coordinators.share_persister import SharePersister
from ...network.inter_broker import InterBroker
from ...quorum.controller_channel import ControllerChannel
from ...quorum.image_conditions import ImageConditions
from ...replicas.replica_manager import ReplicaManager
from ...runtime.clock import Clock
from ...runtime.threads import Threads
from ..node_sharing import NodeSharing


def node_sharing(
    config: BrokerConfig,
    controller: ControllerChannel,
    conditions: ImageConditions,
    replicas: ReplicaManager,
    inter_broker: InterBroker,
    *,
    image: Callable[[], MetadataImage],
    clock: Clock,
    threads: Threads,
) -> NodeSharing:
    """A broker's parts for the state of share groups. inter_broker: the way to other brokers."""
    coordinator = ShareCoordinator(
        config,
        replicas,
        image=image,
        clock=clock,
        threads=threads,
        checkpoint_log_starts=replicas.checkpoint_log_start_offsets,
    )
    topics = CoordinatorTopics(config, controller, conditions, image)
    persister = SharePersister(
        config.node_id, coordinator, inter_broker, image=image, ensure_topic=lambda: topics.ensure(coordinator)
    )
    return NodeSharing(coordinator, persister)
