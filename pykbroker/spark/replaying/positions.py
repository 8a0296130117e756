"""Positions of a replay: what the target has of each partition, and the first record that it does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHIFT = 6
"""A row has 64 offsets, a bit for each."""


class Position(NamedTuple):
    """A partition of the source. selected: records that the archive has. missing: those that the target does not have,
    from `first` up to `last`. holes: the target has records behind `first`. oldest_ms: no missing record is older.
    """

    selected: int
    missing: int
    first: int
    last: int
    holes: bool
    oldest_ms: int


def positions(archived: DataFrame, there: DataFrame | None) -> dict[int, Position]:
    """The partitions that have records in the archive. there: columns `source_partition` and `source_offset`; None for
    none.
    """
    from pyspark.sql.functions import expr

    def bits(frame: DataFrame, partition: str, offset: str, **more: str) -> DataFrame:
        columns = {"bits": f"BIT_OR(SHIFTLEFT(1L, CAST({offset} & 63 AS INT)))"} | more
        return frame.groupBy(
            expr(partition).alias("partition"), expr(f"SHIFTRIGHT({offset}, {_SHIFT})").alias("block")
        ).agg(*(expr(text).alias(name) for name, text in columns.items()))

    ours = bits(archived, "partition", "offset", oldest_ms="MIN(unix_millis(timestamp))")
    if there is None:
        both = ours.withColumn("present", expr("0L"))
    else:
        theirs = bits(there, "source_partition", "source_offset").withColumnRenamed("bits", "present")
        both = ours.join(theirs, ["partition", "block"], "left")
    rows = (
        both.withColumn("missing", expr("bits & ~COALESCE(present, 0L)"))
        .withColumn("common", expr("bits & COALESCE(present, 0L)"))
        .groupBy("partition")
        .agg(
            *(
                expr(text).alias(name)
                for name, text in {
                    "selected": "SUM(BIT_COUNT(bits))",
                    "missing": "SUM(BIT_COUNT(missing))",
                    "first": "MIN(STRUCT(block, missing)) FILTER (WHERE missing <> 0)",
                    "last": "MAX(STRUCT(block, missing)) FILTER (WHERE missing <> 0)",
                    "present": "MAX(STRUCT(block, common)) FILTER (WHERE common <> 0)",
                    "oldest_ms": "MIN(oldest_ms) FILTER (WHERE missing <> 0)",
                }.items()
            )
        )
        .collect()
    )
    return {row["partition"]: _position(*row[1:]) for row in rows}


_Block = tuple[int, int]
"""Its number and its bits."""


def _position(
    selected: int,
    missing: int,
    first: _Block | None,
    last: _Block | None,
    present: _Block | None,
    oldest_ms: int | None,
) -> Position:
    if first is None or last is None or oldest_ms is None:
        return Position(selected, 0, 0, 0, False, 0)
    at = _lowest(*first)
    return Position(selected, missing, at, _highest(*last), present is not None and _highest(*present) > at, oldest_ms)


def _lowest(block: int, bits: int) -> int:
    unsigned = bits % 2**64
    return (block << _SHIFT) + (unsigned & -unsigned).bit_length() - 1


def _highest(block: int, bits: int) -> int:
    return (block << _SHIFT) + (bits % 2**64).bit_length() - 1
