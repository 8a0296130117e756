"""The settings of what followers fetch. A broker has them from its start, and a `Follower` when it follows a leader."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """`replica.fetch.…`, by Kafka's names."""

    wait_max_ms: int = 500
    min_bytes: int = 1
    response_max_bytes: int = 10 * 1024 * 1024
    max_bytes: int = 1024 * 1024
    backoff_ms: int = 1000
