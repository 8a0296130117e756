"""The keys of one topic: the 33 that Kafka 4.3 has, with the broker's keys that give their defaults.

Whoever changes a topic's configuration calls `check_topic_configs` on all of what the topic would have then.
Not here: what the keys do (`pykbroker.storage`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from .keys import ConfigKey, ConfigurationError

BROKER_SYNONYMS: dict[str, tuple[str, ...]] = {
    "cleanup.policy": ("log.cleanup.policy",),
    "compression.gzip.level": ("compression.gzip.level",),
    "compression.lz4.level": ("compression.lz4.level",),
    "compression.type": ("compression.type",),
    "compression.zstd.level": ("compression.zstd.level",),
    "delete.retention.ms": ("log.cleaner.delete.retention.ms",),
    "file.delete.delay.ms": ("log.segment.delete.delay.ms",),
    "flush.messages": ("log.flush.interval.messages",),
    "flush.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "index.interval.bytes": ("log.index.interval.bytes",),
    "local.retention.bytes": ("log.local.retention.bytes",),
    "local.retention.ms": ("log.local.retention.ms",),
    "max.compaction.lag.ms": ("log.cleaner.max.compaction.lag.ms",),
    "max.decompressed.message.bytes": ("max.decompressed.message.bytes",),
    "max.message.bytes": ("message.max.bytes",),
    "message.timestamp.after.max.ms": ("log.message.timestamp.after.max.ms",),
    "message.timestamp.before.max.ms": ("log.message.timestamp.before.max.ms",),
    "message.timestamp.type": ("log.message.timestamp.type",),
    "min.cleanable.dirty.ratio": ("log.cleaner.min.cleanable.ratio",),
    "min.compaction.lag.ms": ("log.cleaner.min.compaction.lag.ms",),
    "min.insync.replicas": ("min.insync.replicas",),
    "preallocate": ("log.preallocate",),
    "remote.copy.lag.bytes": ("log.remote.copy.lag.bytes",),
    "remote.copy.lag.ms": ("log.remote.copy.lag.ms",),
    "retention.bytes": ("log.retention.bytes",),
    "retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "segment.bytes": ("log.segment.bytes",),
    "segment.index.bytes": ("log.index.size.max.bytes",),
    "segment.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "segment.ms": ("log.roll.ms", "log.roll.hours"),
    "unclean.leader.election.enable": ("unclean.leader.election.enable",),
}
"""A topic's key -> the broker's keys that give its default, the first that is set winning."""

TOPIC_KEYS_OF_4_4 = {
    "errors.deadletterqueue.group.enable": ConfigKey(
        "errors.deadletterqueue.group.enable", "boolean", "false", "", "topic"
    ),
    "max.decompressed.message.bytes": ConfigKey(
        "max.decompressed.message.bytes", "int", "2147483639", "1..2147483639", "topic"
    ),
    "remote.copy.lag.bytes": ConfigKey("remote.copy.lag.bytes", "long", "-1", "-1..", "topic"),
    "remote.copy.lag.ms": ConfigKey("remote.copy.lag.ms", "long", "0", "-1..", "topic"),
}
"""Those that Kafka 4.4 has besides: described where they are set, and where metadata.version is one of 4.4's."""

INTERNAL_TOPIC_KEYS = {
    "internal.segment.bytes": ConfigKey("internal.segment.bytes", "int", None, "", "topic"),
    **TOPIC_KEYS_OF_4_4,
}
"""What a topic may have besides, for tests of small segments and of Kafka 4.4."""


@cache
def topic_keys() -> dict[str, ConfigKey]:
    keys = (
        _key("cleanup.policy", "list", "delete", "compact|delete"),
        _key("compression.gzip.level", "int", "-1", "1..9|-1"),
        _key("compression.lz4.level", "int", "9", "1..17"),
        _key("compression.type", "string", "producer", "uncompressed|zstd|lz4|snappy|gzip|producer"),
        _key("compression.zstd.level", "int", "3", "-131072..22"),
        _key("delete.retention.ms", "long", "86400000", "0.."),
        _key("file.delete.delay.ms", "long", "60000", "0.."),
        _key("flush.messages", "long", "9223372036854775807", "1.."),
        _key("flush.ms", "long", "9223372036854775807", "0.."),
        _key("follower.replication.throttled.replicas", "list", "", "throttled-replicas"),
        _key("index.interval.bytes", "int", "4096", "0.."),
        _key("leader.replication.throttled.replicas", "list", "", "throttled-replicas"),
        _key("local.retention.bytes", "long", "-2", "-2.."),
        _key("local.retention.ms", "long", "-2", "-2.."),
        _key("max.compaction.lag.ms", "long", "9223372036854775807", "1.."),
        _key("max.message.bytes", "int", "1048588", "0.."),
        _key("message.timestamp.after.max.ms", "long", "3600000", "0.."),
        _key("message.timestamp.before.max.ms", "long", "9223372036854775807", "0.."),
        _key("message.timestamp.type", "string", "CreateTime", "CreateTime|LogAppendTime"),
        _key("min.cleanable.dirty.ratio", "double", "0.5", "0..1"),
        _key("min.compaction.lag.ms", "long", "0", "0.."),
        _key("min.insync.replicas", "int", "1", "1.."),
        _key("preallocate", "boolean", "false"),
        _key("remote.log.copy.disable", "boolean", "false"),
        _key("remote.log.delete.on.disable", "boolean", "false"),
        _key("remote.storage.enable", "boolean", "false"),
        _key("retention.bytes", "long", "-1"),
        _key("retention.ms", "long", "604800000", "-1.."),
        _key("segment.bytes", "int", "1073741824", "1048576.."),
        _key("segment.index.bytes", "int", "10485760", "4.."),
        _key("segment.jitter.ms", "long", "0", "0.."),
        _key("segment.ms", "long", "604800000", "1.."),
        _key("unclean.leader.election.enable", "boolean", "false"),
    )
    return {key.name: key for key in keys}


def _key(name: str, type_: str, default: str, valid: str = "") -> ConfigKey:
    return ConfigKey(name, type_, default, valid, "topic")


def check_topic_configs(configs: Mapping[str, str | None], defaults: Mapping[str, str]) -> None:
    """Raises ConfigurationError if a topic may not have these overrides on top of the broker's defaults."""
    keys = topic_keys() | INTERNAL_TOPIC_KEYS
    for name in configs:
        if name not in keys:
            raise ConfigurationError(f"Unknown topic config name: {name}")
    for name, text in configs.items():
        if text is None:
            raise ConfigurationError(f"Null value not supported for topic configs: {name}")
        keys[name].parse(text)
    _check_compaction_lags({**defaults, **configs})
    if (configs.get("remote.storage.enable") or "").strip().lower() == "true":
        raise ConfigurationError(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )


def _check_compaction_lags(values: Mapping[str, str | None]) -> None:
    low, high = values.get("min.compaction.lag.ms"), values.get("max.compaction.lag.ms")
    if low is not None and high is not None and int(low) > int(high):
        raise ConfigurationError(
            f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
        )
