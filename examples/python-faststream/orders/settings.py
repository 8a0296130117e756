"""Where the pipeline finds Kafka, and how its topics and groups are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    bootstrap_servers: str
    prefix: str = ""
    """Several environments share a cluster: each has a prefix for its topics and groups."""
    max_attempts: int = 5
    retry_delay_s: float = 0.5
    batch_size: int = 500
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 3_000

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> Settings:
        return cls(
            variables["KAFKA_BOOTSTRAP_SERVERS"],
            variables.get("ORDERS_PREFIX", ""),
            session_timeout_ms=int(variables.get("ORDERS_SESSION_TIMEOUT_MS", "10000")),
            heartbeat_interval_ms=int(variables.get("ORDERS_HEARTBEAT_INTERVAL_MS", "3000")),
        )

    @property
    def orders(self) -> str:
        return f"{self.prefix}orders"

    @property
    def priced(self) -> str:
        return f"{self.prefix}orders.priced"

    @property
    def dead_letters(self) -> str:
        return f"{self.prefix}orders.dead"

    @property
    def topics(self) -> tuple[str, ...]:
        return self.orders, self.priced, self.dead_letters

    @property
    def pricing_group(self) -> str:
        return f"{self.prefix}pricing"

    @property
    def ledger_group(self) -> str:
        return f"{self.prefix}ledger"
