"""Record batches of format 2, the records in them, and control records. By hand, from the description of the format."""

# construct's types are objects made by decorators, which pyright takes for the classes and functions behind them.
# pyright: reportOperatorIssue=false, reportArgumentType=false, reportAssignmentType=false
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

from typing import Final

import construct as c

from .values import array, sized, tagged_section

_SHORT_BYTES: Final = sized(c.ZigZag, -1, 0)
_UUID: Final = c.Bytes(16)

RECORD: Final = c.Struct(
    "length" / c.ZigZag,
    "attributes" / c.Int8sb,
    "timestamp_delta" / c.ZigZag,
    "offset_delta" / c.ZigZag,
    "key" / _SHORT_BYTES,
    "value" / _SHORT_BYTES,
    "headers" / c.PrefixedArray(c.ZigZag, c.Struct("key" / _SHORT_BYTES, "value" / _SHORT_BYTES)),
)

ATTRIBUTES: Final = c.BitStruct(
    "unused" / c.BitsInteger(9),
    "has_delete_horizon" / c.Flag,
    "is_control" / c.Flag,
    "is_transactional" / c.Flag,
    "timestamp_type" / c.Enum(c.BitsInteger(1), create_time=0, log_append_time=1),
    "compression" / c.Enum(c.BitsInteger(3), none=0, gzip=1, snappy=2, lz4=3, zstd=4),
)

BATCH_OVERHEAD_BYTES: Final = 49
"""From the leader epoch to the count of records; `batch_length` counts these and the records."""

BATCH: Final = c.Struct(
    "base_offset" / c.Int64sb,
    "batch_length" / c.Int32sb,
    "partition_leader_epoch" / c.Int32sb,
    "magic" / c.Int8sb,
    "crc" / c.Int32ub,
    "attributes" / ATTRIBUTES,
    "last_offset_delta" / c.Int32sb,
    "base_timestamp" / c.Int64sb,
    "max_timestamp" / c.Int64sb,
    "producer_id" / c.Int64sb,
    "producer_epoch" / c.Int16sb,
    "base_sequence" / c.Int32sb,
    "records_count" / c.Int32sb,
    "records" / c.Bytes(c.this.batch_length - BATCH_OVERHEAD_BYTES),
)
"""Its `records` may be compressed as a whole; what they hold is `RECORD`, `records_count` times."""

CONTROL_KEY: Final = c.Struct(
    "version" / c.Int16sb,
    "type"
    / c.Enum(
        c.Int16sb,
        abort=0,
        commit=1,
        leader_change=2,
        snapshot_header=3,
        snapshot_footer=4,
        kraft_version=5,
        kraft_voters=6,
    ),
)

END_TRANSACTION_MARKER: Final = c.Struct("version" / c.Int16sb, "coordinator_epoch" / c.Int32sb)

_VOTER: Final = c.Struct(
    "voter_id" / c.Int32sb,
    "voter_directory_id" / c.If(c.this._._.version >= 1, _UUID),
    "tagged" / tagged_section({}),
)
_ENDPOINT: Final = c.Struct(
    "name" / c.PascalString(c.ExprAdapter(c.VarInt, c.obj_ - 1, c.obj_ + 1), "utf8"),
    "host" / c.PascalString(c.ExprAdapter(c.VarInt, c.obj_ - 1, c.obj_ + 1), "utf8"),
    "port" / c.Int16ub,
    "tagged" / tagged_section({}),
)

LEADER_CHANGE: Final = c.Struct(
    "version" / c.Int16sb,
    "leader_id" / c.Int32sb,
    "voters" / array(_VOTER, flexible=True),
    "granting_voters" / array(_VOTER, flexible=True),
    "tagged" / tagged_section({}),
)
SNAPSHOT_HEADER: Final = c.Struct(
    "version" / c.Int16sb,
    "last_contained_log_timestamp" / c.Int64sb,
    "tagged" / tagged_section({}),
)
SNAPSHOT_FOOTER: Final = c.Struct("version" / c.Int16sb, "tagged" / tagged_section({}))
KRAFT_VERSION: Final = c.Struct("version" / c.Int16sb, "kraft_version" / c.Int16sb, "tagged" / tagged_section({}))
VOTERS: Final = c.Struct(
    "version" / c.Int16sb,
    "voters"
    / array(
        c.Struct(
            "voter_id" / c.Int32sb,
            "voter_directory_id" / _UUID,
            "endpoints" / array(_ENDPOINT, flexible=True),
            "kraft_version_feature"
            / c.Struct(
                "min_supported_version" / c.Int16sb,
                "max_supported_version" / c.Int16sb,
                "tagged" / tagged_section({}),
            ),
            "tagged" / tagged_section({}),
        ),
        flexible=True,
    ),
    "tagged" / tagged_section({}),
)

CONTROL_VALUES: Final[dict[str, c.Construct]] = {
    "abort": END_TRANSACTION_MARKER,
    "commit": END_TRANSACTION_MARKER,
    "leader_change": LEADER_CHANGE,
    "snapshot_header": SNAPSHOT_HEADER,
    "snapshot_footer": SNAPSHOT_FOOTER,
    "kraft_version": KRAFT_VERSION,
    "kraft_voters": VOTERS,
}
"""What the value of a control record is, by the type in its key."""
