"""Settings for one node on a developer's machine, and for one that a test starts: where Kafka's defaults, made for
clusters that run for years, only cost time or room.

`docs/development.md` lists both tables, and what they save. None of them changes what a client may do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from .group_bounds import BOUNDS, keys_of

DEVELOPMENT: Mapping[str, str] = MappingProxyType(
    {
        # The first member of a group waits this long for others; on one machine they are there, or they are not.
        "group.initial.rebalance.delay.ms": "0",
        # Members of the new protocol (KIP-848) hear of a rebalance at their next heartbeat; 5 s each, and two or three
        # of them, is what a restart of one's own program would cost.
        "group.consumer.heartbeat.interval.ms": "1000",
        "group.consumer.min.heartbeat.interval.ms": "1000",
        "group.share.heartbeat.interval.ms": "1000",
        "group.share.min.heartbeat.interval.ms": "1000",
        "group.streams.heartbeat.interval.ms": "1000",
        "group.streams.min.heartbeat.interval.ms": "1000",
        "group.streams.initial.rebalance.delay.ms": "0",
        # One node leads all of them: more spread no load, and are files to make for the first group and transaction.
        "offsets.topic.num.partitions": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        # The room of deleted topics is free at once, not in a minute.
        "log.segment.delete.delay.ms": "1000",
        # Memory of the log cleaner: enough for some 700,000 keys a round, of which there may be several.
        "log.cleaner.dedupe.buffer.size": "16777216",
    }
)

TEST: Mapping[str, str] = MappingProxyType(
    {
        **DEVELOPMENT,
        # A rebalance of the new protocol takes a tenth of a second, and not one: tests have many.
        "group.consumer.heartbeat.interval.ms": "100",
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.assignment.interval.ms": "0",
        "group.share.heartbeat.interval.ms": "100",
        "group.share.min.heartbeat.interval.ms": "100",
        "group.share.assignment.interval.ms": "0",
        "group.streams.heartbeat.interval.ms": "100",
        "group.streams.min.heartbeat.interval.ms": "100",
        "group.streams.assignment.interval.ms": "0",
        # A test of a consumer that dies may ask for a short session. Nobody gets one who does not ask.
        "group.min.session.timeout.ms": "100",
        "group.consumer.min.session.timeout.ms": "200",
        "group.share.min.session.timeout.ms": "200",
        "group.streams.min.session.timeout.ms": "200",
        # A test of a record that is held, and not acknowledged, may ask for a second.
        "group.share.min.record.lock.duration.ms": "1000",
        # Retention, compaction and timeouts of transactions are seen to within a second, not within minutes;
        # a start, which has other things to do, is over by then.
        "log.initial.task.delay.ms": "1000",
        "log.retention.check.interval.ms": "1000",
        "log.cleaner.backoff.ms": "1000",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        "log.segment.delete.delay.ms": "0",
        "log.cleaner.dedupe.buffer.size": "2097152",
    }
)

_FAMILIES = tuple(keys_of(bound) for bound in BOUNDS)
"""Settings that bound each other: whoever gives one of a family has all of them as they are without these tables."""


def without_given(settings: Mapping[str, str], given: Iterable[str]) -> dict[str, str]:
    """Return those of the settings that count beside the keys that are given."""
    taken = set(given)
    for family in _FAMILIES:
        if taken & family:
            taken |= family
    return {key: value for key, value in settings.items() if key not in taken}
