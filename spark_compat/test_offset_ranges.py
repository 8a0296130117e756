"""Where a query begins and ends: offsets and timestamps, earliest and latest, in the topic and by partition."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat_tests.clients import Message, write_with_confluent
from compat_tests.topics import create_topic
from spark_compat.streams import numbers, numbers_to_the_end, read_batch, read_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker

AT_MS = 1_700_000_000_000
"""The timestamp of the first record, years ago; each further one is a second later."""
RECORDS = 20


@pytest.fixture
def timed(broker: Broker, topic: str) -> str:
    """Numbers 0 to 19 in turns in partitions 0 and 1, a second apart."""
    create_topic(broker, topic, 2, {"retention.ms": "-1"})
    messages = [Message(b"%d" % i, timestamp_ms=AT_MS + 1000 * i, partition=i % 2) for i in range(RECORDS)]
    write_with_confluent(broker.bootstrap, topic, messages)
    return topic


def by_partition(topic: str, first: int, second: int) -> str:
    return json.dumps({topic: {"0": first, "1": second}})


def as_options(topic: str, options: Mapping[str, object]) -> dict[str, str]:
    return {
        name: by_partition(topic, *value) if isinstance(value, tuple) else str(value) for name, value in options.items()
    }


RANGES: dict[str, tuple[dict[str, object], list[int]]] = {
    "earliest to latest": ({"startingOffsets": "earliest", "endingOffsets": "latest"}, list(range(20))),
    "offsets": ({"startingOffsets": (3, 8), "endingOffsets": (5, 9)}, [6, 8, 17]),
    "earliest and latest by partition": (
        {"startingOffsets": (-2, 8), "endingOffsets": (2, -1)},
        [0, 2, 17, 19],
    ),
    "from a timestamp": ({"startingTimestamp": AT_MS + 17_500}, [18, 19]),
    "to a timestamp": ({"endingTimestamp": AT_MS + 2_000}, [0, 1]),
    "between timestamps": ({"startingTimestamp": AT_MS + 3_000, "endingTimestamp": AT_MS + 6_001}, [3, 4, 5, 6]),
    "timestamps by partition": (
        {
            "startingOffsetsByTimestamp": (AT_MS + 15_000, AT_MS),
            "endingOffsetsByTimestamp": (AT_MS + 60_000, AT_MS + 3_000),
        },
        [1, 16, 18],
    ),
    "offsets before a timestamp": ({"startingOffsets": (1, 0), "endingTimestamp": AT_MS + 4_000}, [1, 2, 3]),
    "a timestamp wins over offsets": ({"startingOffsets": (0, 0), "startingTimestamp": AT_MS + 18_000}, [18, 19]),
}
"""Options, pairs of them by partition, and the numbers that are read."""


@pytest.mark.parametrize("name", RANGES)
def test_a_batch_reads_its_range(name: str, spark: SparkSession, broker: Broker, timed: str) -> None:
    options, expected = RANGES[name]
    given = as_options(timed, options)
    assert numbers(read_batch(spark, broker.bootstrap, timed, **given)) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingTimestamp": str(AT_MS + 17_500)}, [18, 19]),
        ({"startingOffsets": (9, 8)}, [17, 18, 19]),
        ({"startingOffsetsByTimestamp": (AT_MS + 15_000, AT_MS + 18_000)}, [16, 18, 19]),
        ({"startingOffsets": "latest"}, []),
    ],
    ids=["a timestamp", "offsets", "timestamps by partition", "latest"],
)
def test_a_stream_begins_where_it_is_told(
    options: dict[str, object], expected: list[int], spark: SparkSession, broker: Broker, timed: str, tmp_path: Path
) -> None:
    given = as_options(timed, options)
    assert numbers_to_the_end(read_stream(spark, broker.bootstrap, timed, **given), tmp_path) == expected


@pytest.mark.parametrize("option", ["startingTimestamp", "startingOffsetsByTimestamp"])
def test_a_timestamp_behind_all_records_is_an_error_or_the_end(
    option: str, spark: SparkSession, broker: Broker, timed: str
) -> None:
    """`startingOffsetsByTimestampStrategy` is for both options."""
    late = AT_MS + 1000 * RECORDS
    value = str(late) if option == "startingTimestamp" else by_partition(timed, late, AT_MS)
    frame = read_batch(spark, broker.bootstrap, timed, **{option: value}, startingOffsetsByTimestampStrategy="latest")
    assert numbers(frame) == ([] if option == "startingTimestamp" else list(range(1, 20, 2)))
    with pytest.raises(Exception, match=r"No offset matched from request of topic-partition"):
        read_batch(
            spark, broker.bootstrap, timed, **{option: value}, startingOffsetsByTimestampStrategy="error"
        ).count()
