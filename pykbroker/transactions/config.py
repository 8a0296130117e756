"""The settings that the rules of transactions read; the names are Kafka's, without `transaction.`.

Where a partition of `__transaction_state` lives is the driver's business.
"""

from __future__ import annotations

from dataclasses import dataclass

from pykbroker.reckoning import Reckoning, by_the_clock

_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """Defaults are Kafka's. Times are in milliseconds.

    max_timeout_ms: `transaction.max.timeout.ms`, the longest that a producer may ask for.
    transactional_id_expiration_ms: `transactional.id.expiration.ms`; how long an id without a transaction is kept.
    abort_timed_out_interval_ms: `transaction.abort.timed.out.transaction.cleanup.interval.ms`.
    remove_expired_interval_ms: `transaction.remove.expired.transaction.cleanup.interval.ms`.
    two_phase_commit_enabled: `transaction.two.phase.commit.enable` (KIP-939).
    max_record_bytes: what a record's key and value may take together; what is larger could not be appended.
    reckon_timeouts, reckon_unused: how late it is for open transactions, and for ids that nobody uses.
    """

    max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 7 * _DAY_MS
    abort_timed_out_interval_ms: int = 10_000
    remove_expired_interval_ms: int = 3_600_000
    two_phase_commit_enabled: bool = False
    max_record_bytes: int = 1_000_000
    reckon_timeouts: Reckoning = by_the_clock
    reckon_unused: Reckoning = by_the_clock
