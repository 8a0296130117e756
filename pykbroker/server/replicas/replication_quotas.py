"""The rates of replication and of moves between log directories of this broker, as the newest metadata have them
(KIP-73, KIP-113).
"""

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

from ..runtime.signal import Signal

logger = logging.getLogger(__name__)

LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


class ReplicationQuotas:
    """The quotas of a node.

    leader: for what goes out to followers; follower: for what comes in; log_moves: for what is copied from one log
    directory to another. `configure` when a configuration changed, which sets `changed`.
    """

    def __init__(self, config: BrokerConfig, image: Callable[[], MetadataImage]) -> None:
        self._config = config
        self._image = image
        self.leader = self._quota(LEADER_REPLICAS)
        self.follower = self._quota(FOLLOWER_REPLICAS)
        self.log_moves = _limit(
            config.int("alter.log.dirs.replication.quota.window.num"),
            config.int("alter.log.dirs.replication.quota.window.size.seconds"),
        )
        self.changed = Signal()

    def _quota(self, topic_key: str) -> ReplicationQuota:
        config = self._config
        limit = _limit(config.int("replication.quota.window.num"), config.int("replication.quota.window.size.seconds"))
        return ReplicationQuota(
            config.node_id, lambda topic: self._image().topic_config(topic).get(topic_key, ""), limit
        )

    def configure(self) -> None:
        self.leader.configure(self._rate(LEADER_RATE))
        self.follower.configure(self._rate(FOLLOWER_RATE))
        self.log_moves.bytes_per_second = self._rate(LOG_DIR_RATE)
        self.changed.set()

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


def _limit(windows: int, window_s: int) -> RateLimit:
    return RateLimit(windows, window_s * 1000)
