"""Settings of brokers in tests where Kafka's own only cost time. `docs/testing.md` lists each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TEST: Final[Mapping[str, str]] = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}
CLUSTER: Final[Mapping[str, str]] = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "200",
}
