"""Where the service finds Kafka, and how its topics and its group are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    bootstrap_servers: str
    prefix: str = ""
    """Several environments share a cluster: each has a prefix for its topics, its group and its transactional ids."""
    partitions: int = 3
    replication_factor: int = -1
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 3_000
    transaction_timeout_ms: int = 30_000
    batch_size: int = 200
    batch_wait_s: float = 0.1

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> Settings:
        return cls(
            variables["KAFKA_BOOTSTRAP_SERVERS"],
            variables.get("PAYMENTS_PREFIX", ""),
            session_timeout_ms=int(variables.get("PAYMENTS_SESSION_TIMEOUT_MS", "10000")),
            heartbeat_interval_ms=int(variables.get("PAYMENTS_HEARTBEAT_INTERVAL_MS", "3000")),
        )

    @property
    def payments(self) -> str:
        return f"{self.prefix}payments"

    @property
    def bookings(self) -> str:
        return f"{self.prefix}bookings"

    @property
    def accounts(self) -> str:
        return f"{self.prefix}accounts"

    @property
    def dead_letters(self) -> str:
        return f"{self.prefix}payments.dead"

    @property
    def group(self) -> str:
        return f"{self.prefix}booking"

    def transactional_id(self, instance: str) -> str:
        return f"{self.prefix}booking-{instance}"
