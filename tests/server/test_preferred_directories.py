"""Where clients want logs that are not there yet."""

from __future__ import annotations

from typing import Any, cast

from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.server.logs.preferred_directories import MOST_PREFERRED, PreferredDirectories
from pykbroker.storage.directories.log_dirs import LogDirectory

ONE, TWO = cast(LogDirectory, "one"), cast(Any, "two")


def test_the_latest_wish_counts_until_the_log_is_there() -> None:
    preferred = PreferredDirectories()
    at = TopicPartition("t", 0)
    preferred.note(at, ONE)
    preferred.note(at, TWO)
    assert preferred.of(at) is TWO
    assert preferred.of(TopicPartition("t", 1)) is None
    preferred.forget(at)
    preferred.forget(at)
    assert preferred.of(at) is None


def test_the_oldest_wish_goes_where_there_are_too_many() -> None:
    preferred = PreferredDirectories()
    for index in range(MOST_PREFERRED):
        preferred.note(TopicPartition("t", index), ONE)
    preferred.note(TopicPartition("t", 0), ONE)
    preferred.note(TopicPartition("t", MOST_PREFERRED), ONE)
    assert preferred.of(TopicPartition("t", 1)) is None
    assert preferred.of(TopicPartition("t", 0)) is ONE
