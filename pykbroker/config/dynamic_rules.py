"""Rules for values of a broker that change while it runs: a number of threads at most doubles, and at most halves, and
each thread of the cleaner has memory enough.

The models are `KafkaConfig`, `DynamicThreadPool`, `DataPlaneAcceptor`, `LogCleaner` and `DynamicRemoteLogConfig` of
Kafka, which check a change at the broker that is asked for it, and in these words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from .keys import ConfigurationError
from .listener_keys import listener_prefix

Number = Callable[[str], int]
"""The value of a key, `listener.name.NAME.KEY` included."""

CLEANER_THREADS: Final = "log.cleaner.threads"
CLEANER_MEMORY: Final = "log.cleaner.dedupe.buffer.size"
_TOO_LITTLE_PER_CLEANER: Final = 1024 * 1024
"""Bytes: each thread needs more."""
NETWORK_THREADS: Final = "num.network.threads"
THREADS: Final = (
    "background.threads",
    "num.io.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)


def check_thread_counts(before: Number, after: Number, listeners: Sequence[str]) -> None:
    """Raises ConfigurationError. before, after: the values in force and those to come. listeners: names of them all."""
    _check_cleaner(before(CLEANER_THREADS), after(CLEANER_THREADS))
    for name in THREADS:
        _check(name, before(name), after(name))
    for listener in listeners:
        name = listener_prefix(listener) + NETWORK_THREADS
        _check(NETWORK_THREADS, before(name), after(name))


def check_cleaner_memory(before: Number, after: Number) -> None:
    """Raises ConfigurationError where a change leaves the threads of the cleaner too little."""
    threads, memory_bytes = after(CLEANER_THREADS), after(CLEANER_MEMORY)
    if (threads, memory_bytes) == (before(CLEANER_THREADS), before(CLEANER_MEMORY)) or threads < 1:
        return
    if memory_bytes // threads <= _TOO_LITTLE_PER_CLEANER:
        raise ConfigurationError(f"requirement failed: {CLEANER_MEMORY} must be at least 1MB per cleaner thread.")


def _check(name: str, before: int, after: int) -> None:
    if before == after:
        return
    problem = f"Dynamic thread count update validation failed for {name}={after}"
    if after <= 0:
        raise ConfigurationError(f"{problem}, value should be at least 1")
    if after < before // 2:
        raise ConfigurationError(f"{problem}, value should be at least half the current value {before}")
    if after > before * 2:
        raise ConfigurationError(f"{problem}, value should not be greater than double the current value {before}")


def _check_cleaner(before: int, after: int) -> None:
    if before == after:
        return
    if after < 1:
        raise ConfigurationError("Log cleaner threads should be at least 1")
    if after < before // 2:
        raise ConfigurationError(f"Log cleaner threads cannot be reduced to less than half the current value {before}")
    if after > before * 2:
        raise ConfigurationError(
            f"Log cleaner threads cannot be increased to more than double the current value {before}"
        )
