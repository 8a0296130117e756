"""Tables of a few rows that the driver has, which no task of Python has to make."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def small_table(spark: SparkSession, rows: Iterable[Sequence[int | str]], schema: str) -> DataFrame:
    """A table of these rows, which is small enough to be a part of the plan.

    schema: as SQL writes the columns of a table, `partition INT, name STRING`, with simple types.
    `createDataFrame` would run a task of Python for each core, half a second long.
    """
    from pyspark.sql.functions import from_json, inline, lit

    names = [field.split()[0].strip("`") for field in schema.split(",")]
    text = json.dumps([dict(zip(names, row, strict=True)) for row in rows])
    return spark.range(0, 1, 1, 1).select(inline(from_json(lit(text), f"ARRAY<STRUCT<{schema}>>")))
