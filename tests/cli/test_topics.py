"""`pykbroker topics` against a broker."""

import re
from collections.abc import Callable

from tests.cli.conftest import Outcome

Call = Callable[..., Outcome]


def test_a_topic_is_created_once(call: Call, topic: str) -> None:
    created = call(f"topics --create --topic {topic} --partitions 2 --replication-factor 1")
    assert (created.code, created.out) == (0, f"Created topic {topic}.\n")
    again = call(f"topics --create --topic {topic}")
    assert (again.code, again.out) == (1, "")
    assert again.err == f"Error: Topic '{topic}' already exists.\n"
    assert call(f"topics --create --topic {topic} --if-not-exists") == Outcome(0, "", "")


def test_a_list_has_a_name_a_line(call: Call, topic: str) -> None:
    call(f"topics --create --topic {topic}")
    call(f"topics --create --topic {topic}-b")
    assert {topic, f"{topic}-b"} <= set(call("topics --list").lines)
    assert call(f"topics --list --topic {topic}").lines == [topic]
    assert call(f"topics --list --topic {topic}.*").lines == [topic, f"{topic}-b"]
    assert call("topics --list --topic no-such-topic-.*") == Outcome(0, "", "")


def test_a_description_has_kafkas_form(call: Call, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 2 --config retention.ms=60000")
    header, *partitions = call(f"topics --describe --topic {topic}").lines
    assert re.fullmatch(
        rf"Topic: {topic}\tTopicId: [\w-]{{22}}\tPartitionCount: 2\tReplicationFactor: 1\t"
        r"Configs: (.*,)?retention.ms=60000",
        header,
    )
    assert len(partitions) == 2
    for index, line in enumerate(partitions):
        assert re.fullmatch(
            rf"\tTopic: {topic}\tPartition: {index}\tLeader: (\d+)\tReplicas: \1\tIsr: \1\t"
            r"Elr: (N/A)?\tLastKnownElr: (N/A)?",
            line,
        )


def test_descriptions_may_be_filtered(call: Call, topic: str) -> None:
    call(f"topics --create --topic {topic} --config retention.ms=60000")
    assert call(f"topics --describe --topic {topic} --under-replicated-partitions").out == ""
    assert call(f"topics --describe --topic {topic} --unavailable-partitions").out == ""
    assert len(call(f"topics --describe --topic {topic} --at-min-isr-partitions").lines) == 1
    assert len(call(f"topics --describe --topic {topic} --topics-with-overrides").lines) == 1


def test_partitions_grow_and_never_shrink(call: Call, topic: str) -> None:
    call(f"topics --create --topic {topic}")
    assert call(f"topics --alter --topic {topic} --partitions 3") == Outcome(0, "", "")
    assert "PartitionCount: 3" in call(f"topics --describe --topic {topic}").out
    shrunk = call(f"topics --alter --topic {topic} --partitions 2")
    assert shrunk.code == 1
    assert shrunk.err == f"Error: The topic {topic} currently has 3 partition(s); 2 would not be an increase.\n"


def test_a_deleted_topic_is_gone(call: Call, topic: str) -> None:
    call(f"topics --create --topic {topic}")
    assert call(f"topics --delete --topic {topic}") == Outcome(0, "", "")
    assert topic not in call("topics --list").lines


def test_a_missing_topic_is_an_error_unless_it_may_be_missing(call: Call, topic: str) -> None:
    for action in ("--describe", "--alter --partitions 2", "--delete"):
        missing = call(f"topics {action} --topic {topic}")
        assert (missing.code, missing.out) == (1, "")
        assert missing.err.startswith(f"Error: Topic '{topic}' does not exist as expected")
        assert call(f"topics {action} --topic {topic} --if-exists") == Outcome(0, "", "")


def test_what_the_broker_refuses_is_told_in_its_own_words(call: Call, topic: str) -> None:
    for flags, complaint in (
        ("--config foo=1", "Unknown topic config name: foo"),
        ("--config retention.ms=soon", "Invalid value soon for configuration retention.ms"),
        ("--replication-factor 3", "replication factor"),
    ):
        refused = call(f"topics --create --topic {topic} {flags}")
        assert (refused.code, refused.out) == (1, "")
        assert complaint in refused.err
        assert refused.err.count("\n") == 1
    assert "b!d" in call("topics --create --topic b!d").err
    assert topic not in call("topics --list").lines
