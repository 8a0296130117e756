"""The state of share groups needs a coordinator, and the way to other brokers' coordinators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pykbroker.config import BrokerConfig
from pykbroker.metadata.image import MetadataImage
from pykbroker.sharing.no_op_persister import CLASS_NAMES, DEFAULT_CLASS_NAME, NoOpPersister
from pykbroker.sharing.persister import Persister

from ...coordinators.coordinator_topics import CoordinatorTopics
from ...coordinators.share_coordinator import ShareCoordinator
from ...coordinators.share_persister import SharePersister
from ...network.inter_broker import InterBroker
from ...quorum.controller_channel import ControllerChannel
from ...quorum.image_conditions import ImageConditions
from ...replicas.replica_manager import ReplicaManager
from ...runtime.clock import Clock
from ...runtime.startup_error import StartupError
from ...runtime.threads import Threads
from ..node_sharing import NodeSharing

_PERSISTER_CLASS: Final = "group.share.persister.class.name"
_LETTERS_CLASS: Final = "group.share.dlq.manager.class.name"
_LETTERS: Final = "org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager"
_NO_LETTERS: Final = ("", "org.apache.kafka.server.share.dlq.NoOpShareGroupDLQManager")


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
    questions = SharePersister(
        config.node_id, coordinator, inter_broker, image=image, ensure_topic=lambda: topics.ensure(coordinator)
    )
    return NodeSharing(coordinator, questions, no_op_persister(config) or questions)


def no_op_persister(config: BrokerConfig) -> Persister | None:
    """Return the persister that keeps nothing, where it is configured. Raises StartupError for a class of one's own."""
    name = config.str(_PERSISTER_CLASS)
    if name == DEFAULT_CLASS_NAME:
        return None
    if name not in CLASS_NAMES:
        raise StartupError(f"{_PERSISTER_CLASS}={name} is not known: there is {DEFAULT_CLASS_NAME}")
    return NoOpPersister()


def writes_letters(config: BrokerConfig) -> bool:
    """Tell whether dead letters are written (KIP-1191). Raises StartupError for a class of one's own."""
    name = config.str(_LETTERS_CLASS)
    if name != _LETTERS and name not in _NO_LETTERS:
        raise StartupError(f"{_LETTERS_CLASS}={name} is not known: there is {_LETTERS}")
    return name == _LETTERS
