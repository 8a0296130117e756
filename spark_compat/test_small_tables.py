"""Tables that are a part of the plan have the rows that they were given, however many and whatever is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pykbroker.spark.small_tables import small_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("count", [0, 1, 100_000])
def test_rows_come_back(spark: SparkSession, count: int) -> None:
    rows = [(number, 2**63 - 1 - number) for number in range(count)]
    table = small_table(spark, rows, "partition INT, `end` BIGINT")
    assert table.dtypes == [("partition", "int"), ("end", "bigint")]
    assert [tuple(row) for row in table.collect()] == rows


def test_text_is_what_it_was(spark: SparkSession) -> None:
    names = ["", "a.b-c_1", "it's", 'a "quoted" one', "back\\slash", "ключ", "\x00\n\u2028", "[{}]", "😀"]
    table = small_table(spark, ((name,) for name in names), "name STRING")
    assert [row["name"] for row in table.collect()] == names
