"""What is read from the flags and files of an offset reset."""

import pytest

from pykbroker.cli.command import CommandFailed
from pykbroker.cli.offset_reset import (
    parse_datetime_ms,
    parse_duration_ms,
    parse_topic_scopes,
    read_plan,
    write_plan,
)
from pykbroker.protocol.topic_partition import TopicPartition


def test_scopes_are_topics_or_some_of_their_partitions() -> None:
    assert parse_topic_scopes(["a", "b:0,2", "b:3"]) == {"a": None, "b": [0, 2, 3]}
    assert parse_topic_scopes(["a:1", "a"]) == {"a": None}


@pytest.mark.parametrize("text", ["", ":1", "a:", "a:x", "a:1,", "a:-1", "a:1:2"])
def test_a_scope_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(CommandFailed):
        parse_topic_scopes([text])


@pytest.mark.parametrize(
    ("text", "timestamp"),
    [
        ("1970-01-01T00:00:01.500", 1_500),
        ("1970-01-01T00:00:01", 1_000),
        ("1970-01-01T01:00:00.000+01:00", 0),
        ("1970-01-01T00:00:00.000Z", 0),
        ("1969-12-31T23:59:59.000", -1_000),
    ],
)
def test_times_are_in_utc_unless_an_offset_follows(text: str, timestamp: int) -> None:
    assert parse_datetime_ms(text) == timestamp


@pytest.mark.parametrize("text", ["", "yesterday", "2024-01-01", "2024-13-01T00:00:00.000", "2024-01-01 00:00:00"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(CommandFailed, match="is not a date and time"):
        parse_datetime_ms(text)


@pytest.mark.parametrize(
    ("text", "duration"),
    [("PT1S", 1_000), ("P1D", 86_400_000), ("P1DT2H3M4.5S", 93_784_500), ("-PT1M", -60_000), ("pt1h", 3_600_000)],
)
def test_durations_are_those_of_iso_8601(text: str, duration: int) -> None:
    assert parse_duration_ms(text) == duration


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1D", "P1M", "PT1D", "P1H"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(CommandFailed, match="is not a duration"):
        parse_duration_ms(text)


def test_a_plan_survives_its_file() -> None:
    one = {"g": {TopicPartition("a", 1): 5, TopicPartition("a", 0): 7}}
    assert write_plan(one) == "a,0,7\na,1,5\n"
    assert read_plan(write_plan(one), ["g"]) == one
    two = {**one, "h": {TopicPartition("b", 0): 0}}
    assert read_plan(write_plan(two), ["g", "h"]) == two


@pytest.mark.parametrize("text", ["a,0\n", "a,x,1\n", "a,0,-1\n", "g,a,0,1,2\n"])
def test_a_line_of_a_plan_that_is_none_is_named(text: str) -> None:
    with pytest.raises(CommandFailed, match="Line 2 of the file"):
        read_plan("a,0,1\n" + text, ["g"])


def test_a_plan_for_several_groups_names_them() -> None:
    with pytest.raises(CommandFailed, match="Line 1"):
        read_plan("a,0,1\n", ["g", "h"])
