"""One topic's settings as its logs need them. Which values are allowed is the configuration's business."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pykbroker.protocol.records.batch import TimestampType
from pykbroker.protocol.records.compression import Compression

MAX_LONG = 2**63 - 1

# As many bytes as the default of `max.message.bytes`: one megabyte and the overhead of a batch.
_DEFAULT_MAX_MESSAGE_BYTES = 1024 * 1024 + 12
_LARGEST_RECORD_BYTES = 2**31 - 9
"""The default of `max.decompressed.message.bytes`: no limit."""
_WEEK_MS = 7 * 24 * 60 * 60 * 1000
_DAY_MS = 24 * 60 * 60 * 1000

_NAMED_PRODUCER = "producer"
_NAMED_UNCOMPRESSED = "uncompressed"


class CleanupPolicy(Enum):
    DELETE = "delete"
    COMPACT = "compact"


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The configuration of a topic's log, by the topic's keys.

    `compression_type` None is `producer`: whatever comes is kept.
    """

    cleanup_policy: frozenset[CleanupPolicy] = frozenset((CleanupPolicy.DELETE,))
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: Compression | None = None
    compression_zstd_level: int = 3
    delete_retention_ms: int = _DAY_MS
    file_delete_delay_ms: int = 60_000
    flush_messages: int = MAX_LONG
    flush_ms: int = MAX_LONG
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = MAX_LONG
    max_decompressed_message_bytes: int = _LARGEST_RECORD_BYTES
    max_message_bytes: int = _DEFAULT_MAX_MESSAGE_BYTES
    message_timestamp_after_max_ms: int = 60 * 60 * 1000
    message_timestamp_before_max_ms: int = MAX_LONG
    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    retention_bytes: int = -1
    retention_ms: int = _WEEK_MS
    segment_bytes: int = 1024 * 1024 * 1024
    segment_index_bytes: int = 10 * 1024 * 1024
    segment_jitter_ms: int = 0
    segment_ms: int = _WEEK_MS
    unclean_leader_election_enable: bool = False
    compact: bool = field(init=False, repr=False)
    """Whether `cleanup_policy` has it: asked for each batch, and the hash of an enum's member is a call."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "compact", CleanupPolicy.COMPACT in self.cleanup_policy)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str | None]) -> "LogConfig":
        """Read a topic's effective configuration in Kafka's words.

        What is not there has Kafka's default; keys that do not concern a log are passed over, and
        `internal.segment.bytes` comes before `segment.bytes`. Raises `ValueError` where a value is not of its type.
        """
        values: dict[str, object] = {}
        for key, text in properties.items():
            name = key.replace(".", "_")
            if text is not None and name in cls.__dataclass_fields__:
                values[name] = _parse(name, cls.__dataclass_fields__[name].type, text.strip())
        internal_segment_bytes = properties.get("internal.segment.bytes")
        if internal_segment_bytes is not None:
            # Kafka takes any number; below zero as at zero no batch fits.
            values["segment_bytes"] = max(0, int(internal_segment_bytes))
        return cls(**values)  # type: ignore[arg-type]

    @property
    def delete(self) -> bool:
        return CleanupPolicy.DELETE in self.cleanup_policy

    def compression_level(self, codec: Compression) -> int | None:
        match codec:
            case Compression.GZIP:
                return self.compression_gzip_level
            case Compression.LZ4:
                return self.compression_lz4_level
            case Compression.ZSTD:
                return self.compression_zstd_level
            case _:
                return None


_TIMESTAMP_TYPES = {"CreateTime": TimestampType.CREATE_TIME, "LogAppendTime": TimestampType.LOG_APPEND_TIME}


def _parse(name: str, declared: object, text: str) -> object:
    match name:
        case "cleanup_policy":
            return frozenset(CleanupPolicy(part.strip()) for part in text.split(",") if part.strip())
        case "compression_type":
            if text == _NAMED_PRODUCER:
                return None
            return Compression.NONE if text == _NAMED_UNCOMPRESSED else Compression[text.upper()]
        case "message_timestamp_type":
            if text not in _TIMESTAMP_TYPES:
                raise ValueError(f"{text!r} is no timestamp type")
            return _TIMESTAMP_TYPES[text]
    if declared is bool or declared == "bool":
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{text!r} is neither true nor false")
        return text.lower() == "true"
    return float(text) if name == "min_cleanable_dirty_ratio" else int(text)
