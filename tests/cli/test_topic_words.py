"""`pykbroker topics` in words: list, describe, create, alter, delete; and JSON."""

import json
from collections.abc import Callable

from tests.cli.conftest import Outcome

Call = Callable[..., Outcome]


def test_topics_are_created_listed_and_described_in_words(call: Call, topic: str) -> None:
    created = call(f"topics create {topic}-a {topic}-b --partitions 3 --config retention.ms=60000")
    assert (created.code, created.out) == (0, f"Created topic {topic}-a.\nCreated topic {topic}-b.\n")
    listed = call(f"topics list {topic}-a {topic}-b")
    assert listed.cells == [[f"{topic}-a", "3", "1", "no"], [f"{topic}-b", "3", "1", "no"]]
    assert call(f"topics list --topic {topic}-.*") == listed
    described = call(f"topics describe {topic}-a")
    assert described == call(f"topics --describe --topic {topic}-a")
    assert len(described.lines) == 4


def test_json_has_an_object_a_line_and_is_one_array(call: Call, topic: str) -> None:
    call(f"topics create {topic} --partitions 2 --config retention.ms=60000")
    listed = call(f"topics list {topic} --json")
    assert json.loads(listed.out) == [
        {"topic": topic, "partitions": 2, "replication_factor": 1, "internal": False},
    ]
    [described] = json.loads(call(f"topics describe {topic} --json").out)
    assert described["topic"] == topic
    assert described["configs"]["retention.ms"] == "60000"
    assert [each["partition"] for each in described["partitions"]] == [0, 1]
    assert described["partitions"][0]["isr"] == described["partitions"][0]["replicas"]
    assert call(f"topics --describe --topic {topic} --json").out == call(f"topics describe {topic} --json").out
    assert json.loads(call("topics list --topic no-such-.* --json").out) == []


def test_a_list_leaves_out_internal_topics_unless_they_are_asked_for(call: Call, run: Call, topic: str) -> None:
    call(f"topics create {topic}")
    run(f"consume --topic {topic} --group {topic} --timeout-ms 1")
    assert "__consumer_offsets" not in call("topics list").out
    assert "__consumer_offsets" in call("topics list --internal").out
    assert call("topics list __consumer_offsets").cells[0][0] == "__consumer_offsets"


def test_a_list_of_what_is_wrong_is_empty_and_0_where_nothing_is(call: Call, topic: str) -> None:
    call(f"topics create {topic}")
    for kind in ("--under-replicated", "--unavailable", "--under-min-isr"):
        assert call(f"topics list {topic} {kind}") == Outcome(0, "", "")
        assert call(f"topics list {topic} {kind} --json") == Outcome(0, "[]\n", "")


def test_a_list_of_what_is_wrong_ends_with_1_where_something_is(call: Call, topic: str) -> None:
    call(f"topics create {topic} --config min.insync.replicas=2")
    wrong = call(f"topics list {topic} --under-min-isr")
    assert wrong.code == 1
    assert wrong.cells == [[topic, "1", "1", "no", "0"]]
    assert json.loads(call(f"topics list {topic} --under-min-isr --json").out)[0]["partitions_found"] == [0]


def test_configs_and_partitions_are_altered_in_words(call: Call, topic: str) -> None:
    call(f"topics create {topic} --config retention.ms=60000")
    assert call(f"topics alter {topic} --partitions 2 --config segment.bytes=2097152 --delete-config retention.ms") == (
        Outcome(0, "", "")
    )
    [described] = json.loads(call(f"topics describe {topic} --json").out)
    assert len(described["partitions"]) == 2
    assert described["configs"]["segment.bytes"] == "2097152"
    assert "retention.ms" not in described["configs"]


def test_a_misspelled_topic_is_told_with_the_ones_that_are_spelled_alike(call: Call, topic: str) -> None:
    call(f"topics create {topic}-orders")
    missing = call(f"topics describe {topic}-oders")
    assert missing.code == 1
    assert missing.err.startswith(f"Error: There is no topic '{topic}-oders'. Did you mean '{topic}-orders'")
    for word in ("alter --partitions 2", "delete"):
        assert call(f"topics {word} {topic}-oders").code == 1
        assert call(f"topics {word} {topic}-oders --if-exists") == Outcome(0, "", "")


def test_the_cluster_may_be_named_on_both_sides_of_the_word(call: Call, bootstrap: str, topic: str) -> None:
    assert call("topics list", "--bootstrap-server", bootstrap).code == 0
    wrong = call("topics list", "--bootstrap-server", "127.0.0.1:1")
    assert wrong.err == "Error: No broker can be reached (127.0.0.1:1: Connection refused)\n"
