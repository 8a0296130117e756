"""The two rates of replication of this broker, as the newest metadata have them (KIP-73)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from pykbroker.config import BrokerConfig
from pykbroker.metadata.image import MetadataImage
from pykbroker.replication.quotas import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    RateLimit,
    ReplicationQuota,
)

logger = logging.getLogger(__name__)


class ReplicationQuotas:
    """The quotas of a node.

    leader: for what goes out to followers; follower: for what comes in. `configure` when a configuration changed.
    """

    def __init__(self, config: BrokerConfig, image: Callable[[], MetadataImage]) -> None:
        self._config = config
        self._image = image
        self.leader = self._quota(LEADER_REPLICAS)
        self.follower = self._quota(FOLLOWER_REPLICAS)

    def _quota(self, topic_key: str) -> ReplicationQuota:
        config = self._config
        window_ms = config.int("replication.quota.window.size.seconds") * 1000
        limit = RateLimit(config.int("replication.quota.window.num"), window_ms)
        return ReplicationQuota(
            config.node_id, lambda topic: self._image().topic_config(topic).get(topic_key, ""), limit
        )

    def configure(self) -> None:
        self.leader.configure(self._rate(LEADER_RATE))
        self.follower.configure(self._rate(FOLLOWER_RATE))

    def _rate(self, key: str) -> float | None:
        """These keys are only known to the cluster, not to a broker's file."""
        text = self._image().broker_config(self._config.node_id).get(key)
        if text is None:
            return None
        try:
            return float(int(text))
        except ValueError:
            logger.warning(
                "%s=%s is not a number of bytes per second, so replication is not throttled by it", key, text
            )
            return None
