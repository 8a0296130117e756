"""`pykbroker offsets` and `pykbroker log-dirs`, in words and with Kafka's flags."""

import json
from collections.abc import Callable

import pytest

from pykbroker.cli.command import CommandFailed
from pykbroker.cli.log_dir_actions import size_text
from pykbroker.cli.offset_times import parse_time
from tests.cli.conftest import Outcome

Call = Callable[..., Outcome]
NOW_MS = 1_800_000_000_000


@pytest.fixture
def records(call: Call, given: Callable[..., None], topic: str) -> str:
    """A topic of one partition with three records."""
    assert call(f"topics create {topic}").code == 0
    given(topic, b"a", b"b", b"c")
    return topic


def test_ends_and_beginnings_are_lines_of_kafka_get_offsets(call: Call, records: str) -> None:
    assert call(f"offsets --topic {records}") == Outcome(0, f"{records}:0:3\n", "")
    assert call(f"offsets --topic {records} --time earliest") == Outcome(0, f"{records}:0:0\n", "")
    youngest = call(f"offsets --topic {records} --time -3").out
    assert youngest in [f"{records}:0:{offset}\n" for offset in range(3)]
    assert call(f"offsets --topic {records} --time latest-tiered") == Outcome(0, "", "")


def test_offsets_are_listed_in_a_table_and_as_json(call: Call, records: str) -> None:
    assert call(f"offsets list {records}").cells == [[records, "0", "3", "-", "0"]]
    [row] = json.loads(call(f"offsets list {records} --json").out)
    assert row == {"topic": records, "partition": 0, "offset": 3, "timestamp": None, "leader_epoch": 0}


def test_a_time_finds_the_first_record_that_is_as_young(call: Call, records: str) -> None:
    [row] = json.loads(call(f"offsets list {records} --json --time", "5m ago").out)
    assert row["offset"] == 0
    assert row["timestamp"] > 0
    [later] = json.loads(call(f"offsets list {records} --json --time", "2999-01-01").out)
    assert later["offset"] is None
    assert call(f"offsets --topic {records} --time 2999-01-01") == Outcome(0, "", "")


@pytest.mark.parametrize(
    ("pattern", "numbers"),
    [
        ("{0}:1", [1]),
        ("{0}:0-2", [0, 1]),
        ("{0}:1-", [1, 2]),
        ("{0}:-1", [0]),
        ("{0}", [0, 1, 2]),
        ("{0}:1,{0}:2", [1, 2]),
    ],
)
def test_partitions_are_chosen_by_patterns(call: Call, topic: str, pattern: str, numbers: list[int]) -> None:
    call(f"topics create {topic} --partitions 3")
    listed = json.loads(call(f"offsets list --json --topic-partitions {pattern.format(topic)}").out)
    assert [each["partition"] for each in listed] == numbers


def test_internal_topics_are_listed_unless_they_are_left_out(call: Call, run: Call, records: str) -> None:
    run(f"consume --topic {records} --group {records} --timeout-ms 1")
    assert "__consumer_offsets:0:" in call("offsets --partitions 0").out
    without = call("offsets --partitions 0 --exclude-internal-topics").out
    assert f"{records}:0:3" in without
    assert "__consumer_offsets" not in without


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("--time abc", "Malformed time argument abc."),
        ("--time -7", "Malformed time argument -7."),
        ("--time 99999999999999999999", "Malformed time argument"),
        ("--topic x --topic-partitions y", "--topic-partitions cannot be used with --topic or --partitions"),
        ("--partitions 1,x", "--partitions must be a string of comma-separated numbers"),
        ("--topic-partitions a:b:c", "Invalid rule specification: a:b:c"),
        ("--topic no-such-topic", "Could not match any topic-partitions with the specified filters"),
        ("--topic [", "'[' is no regular expression"),
        ("list no-such-topic", "There is no topic 'no-such-topic'."),
    ],
)
def test_what_cannot_be_asked_for_is_one_line(call: Call, arguments: str, reason: str) -> None:
    refused = call(f"offsets {arguments}")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"Error: {reason}")
    assert refused.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "timestamp"),
    [
        ("5m ago", NOW_MS - 300_000),
        ("1h 30m ago", NOW_MS - 5_400_000),
        ("2027-01-15T08:00:00Z", NOW_MS),
        ("2027-01-15T09:00:00+01:00", NOW_MS),
        ("2027-01-15 08:00:00", NOW_MS),
        ("EARLIEST", -2),
        ("1234", 1234),
    ],
)
def test_times_are_words_numbers_and_moments(text: str, timestamp: int) -> None:
    assert parse_time(text, NOW_MS) == timestamp


@pytest.mark.parametrize(
    "text", ["", "ago", "5 ago", "-1m ago", "1e9", "9" * 30 + "w ago", "0001-01-01T00:00:00+23:59", "\x1b[2J"]
)
def test_times_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(CommandFailed, match="Malformed time argument"):
        parse_time(text, NOW_MS)


def test_log_directories_are_described_by_directory_and_by_topic(call: Call, records: str) -> None:
    [directory] = json.loads(call(f"log-dirs describe {records} --json").out)
    assert (directory["broker"], directory["state"], directory["replicas"]) == (1, "online", 1)
    assert directory["size_bytes"] > 0
    shown = call(f"log-dirs describe {records}")
    assert shown.code == 0
    assert shown.lines[-1] == (
        f"1 replicas of 1 topics, {size_text(directory['size_bytes'])} in 1 log directories; 0 offline"
    )
    [largest] = json.loads(call(f"log-dirs describe {records} --top 1 --json").out)
    assert (largest["topic"], largest["size_bytes"]) == (records, directory["size_bytes"])
    assert len(json.loads(call("log-dirs describe --top 1 --json").out)) == 1


def test_log_directories_are_json_of_kafka_log_dirs_with_its_flags(call: Call, records: str) -> None:
    described = call(f"log-dirs --describe --topic-list {records}")
    assert described.code == 0
    assert described.lines[:2] == [
        "Querying brokers for log directories information",
        "Received log directory information from brokers 1",
    ]
    told = json.loads(described.lines[2])
    [partition] = told["brokers"][0]["logDirs"][0]["partitions"]
    assert (partition["partition"], partition["offsetLag"], partition["isFuture"]) == (f"{records}-0", 0, False)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("--broker-list 1", 'Missing required argument "--describe"'),
        ("--describe --broker-list 9", "The given brokers do not exist from --broker-list: 9."),
        ("--describe --broker-list x", "--broker-list expects ids of brokers like 1,2,3, not 'x'"),
        ("--describe --broker-list 99999999999999999999", "--broker-list expects ids of brokers"),
        ("describe --broker-list 1,1", "--broker-list names a broker twice: 1,1"),
    ],
)
def test_brokers_that_cannot_be_asked_are_one_line(call: Call, arguments: str, reason: str) -> None:
    refused = call(f"log-dirs {arguments}")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"Error: {reason}")


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_500_000, "1.4 MiB"), (2**60, "1024.0 PiB")],
)
def test_sizes_are_as_people_read_them(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text
