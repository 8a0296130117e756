"""What the controller's rules share: the image with the controller's own uncommitted records, and who is in session."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pykbroker.config import BrokerConfig

from .image import MetadataImage

NOT_HEARD_OF: Final = -1


@dataclass(slots=True)
class ControllerState:
    """next_offset: where the next record will be written.

    contacts: when each broker was last heard of, on the monotonic clock, with the epoch it had; one that only an
        earlier controller heard of has the time of this one's start and NOT_HEARD_OF.
    """

    config: BrokerConfig
    node_id: int
    cluster_id: str
    rng: random.Random
    image: MetadataImage = field(default_factory=MetadataImage)
    next_offset: int = 0
    contacts: dict[int, tuple[int, int]] = field(default_factory=dict)

    def dynamic_broker_config(self) -> dict[str, str]:
        return self.image.broker_config(self.node_id)

    def topic_defaults(self) -> dict[str, str]:
        return self.config.topic_defaults(self.dynamic_broker_config())

    def unclean_elections(self) -> Callable[[str], bool]:
        """Whether a replica that is not in sync may lead a topic's partitions."""
        key = "unclean.leader.election.enable"
        default = self.config.text(key, self.dynamic_broker_config()) or "false"
        return lambda topic: self.image.topic_config(topic).get(key, default).strip().lower() == "true"

    def is_active(self, broker_id: int) -> bool:
        """Alive and not about to go."""
        broker = self.image.brokers.get(broker_id)
        return broker is not None and not broker.fenced and not broker.in_controlled_shutdown
