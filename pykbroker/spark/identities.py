"""Identities of copied records: where each comes from, in a header of its own, the last one.

A copy is at least once where its producer is; with its identity a record that is there twice can be told from two
records that are equal, and a copy that was broken off goes on with what the target does not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pykbroker.protocol.uuids import uuid_to_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HEADER = "pykbroker.identity"
"""Its value is text: `cluster id:topic:topic id:partition:offset`. Only the cluster id may have a colon."""


_NO_ID = "0" * 32


class Origin(NamedTuple):
    """A topic that records come from. topic_id: 32 hexadecimal digits; a topic that is created again has another, a
    broker that has no ids gives none.
    """

    cluster_id: str
    topic: str
    topic_id: str

    @property
    def prefix(self) -> str:
        """The beginning of the identities of all records of this topic."""
        return f"{self.cluster_id}:{self.topic}:{uuid_to_text(bytes.fromhex(self.topic_id or _NO_ID))}:"


def identified(records: DataFrame, origin: Origin) -> DataFrame:
    """The records that come from there, with the columns `source_partition` and `source_offset`."""
    from pyspark.sql.functions import expr

    prefix = _quoted(origin.prefix)
    place = f"SUBSTRING(CAST(ELEMENT_AT(headers, -1).value AS STRING), {len(origin.prefix) + 1})"
    return (
        records.where("SIZE(headers) > 0")
        .where(f"ELEMENT_AT(headers, -1).key = '{HEADER}'")
        .where(f"STARTSWITH(CAST(ELEMENT_AT(headers, -1).value AS STRING), {prefix})")
        .withColumn("source_partition", expr(f"CAST(SUBSTRING_INDEX({place}, ':', 1) AS INT)"))
        .withColumn("source_offset", expr(f"CAST(SUBSTRING_INDEX({place}, ':', -1) AS BIGINT)"))
        .where("source_partition IS NOT NULL AND source_offset IS NOT NULL")
    )


HEADERS_BEFORE = "IF(SIZE(headers) > 1, SLICE(headers, 1, SIZE(headers) - 1), NULL)"
"""SQL: the headers of a record without its identity; NULL for none, as Spark's source has it."""


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
