"""Kafka's command for groups, and ours, show and change the same on both brokers; Kafka's formatters read our topic."""

import base64
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from pykbroker.java_hash import abs_java_hash

from .answers import TestAnswers
from .apache_kafka.tools import Tool, run_tool
from .brokers import Broker
from .clients import Message, write_with_confluent
from .committing import commit_offsets
from .members import Member
from .topics import create_topic
from .waiting import DEADLINE_S, until

pytestmark = pytest.mark.java

PARTITIONS = 3
RECORDS = 30
FORMATTERS = "org.apache.kafka.tools.consumer."
OFFSETS_PARTITIONS = 50
MEMBER_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<= )[A-Za-z0-9+/]{21}[AQgw](?= )")
"""The second form is what librdkafka calls itself in a group of the consumer protocol."""
LOG_TIME = re.compile(r"^\[[-\d :,]+\] ", re.MULTILINE)

Unique = Callable[[str], str]


class Group:
    """A topic with ten records in each partition, and a group that has committed some offsets."""

    def __init__(self, broker: Broker, topic: str, group_id: str) -> None:
        self.broker, self.topic, self.group_id = broker, topic, group_id
        self.members: list[Member] = []

    def commit(self, offsets: dict[int, int]) -> None:
        committed = [
            TopicPartition(self.topic, partition, offset, f"up to {offset}") for partition, offset in offsets.items()
        ]
        commit_offsets(self.broker.bootstrap, self.group_id, committed)

    def join(self, **config: Any) -> None:
        """One member that has all partitions."""
        member = Member(self.broker, self.group_id, self.topic, enable_auto_commit=False, **config)
        self.members.append(member)
        until(lambda: member.assigned == set(range(PARTITIONS)), "the member has all partitions")

    def java(self, *arguments: str, allowed: tuple[int, ...] = (0,)) -> list[str]:
        """What Kafka's command prints, in words that are the same in every run."""
        output = run_tool(
            Tool.CONSUMER_GROUPS, "--bootstrap-server", self.broker.bootstrap, *arguments, allowed=allowed
        )
        return self.shown(output.stdout + "\n" + output.stderr)

    def ours(self, *arguments: str, allowed: tuple[int, ...] = (0,)) -> list[str]:
        command = [sys.executable, "-m", "pykbroker", "groups"]
        command += ["--bootstrap-server", self.broker.bootstrap, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        assert done.returncode in allowed, done.stdout + done.stderr
        return self.shown(done.stdout + "\n" + done.stderr)

    def shown(self, text: str) -> list[str]:
        text = (
            text.replace(self.group_id, "the-group")
            .replace(self.topic, "the-topic")
            .replace(self.broker.bootstrap, "BROKER")
        )
        text = MEMBER_UUID.sub("ID", LOG_TIME.sub("", text))
        return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


@pytest.fixture
def group(broker: Broker, topic: str, unique: Unique) -> Iterator[Group]:
    create_topic(broker, topic, PARTITIONS)
    messages = [Message(b"%d" % number, partition=number % PARTITIONS) for number in range(RECORDS)]
    write_with_confluent(broker.bootstrap, topic, messages)
    made = Group(broker, topic, unique("group"))
    yield made
    for member in made.members:
        member.leave()


def of_group(lines: list[str]) -> list[str]:
    return sorted(line for line in lines if line.startswith("the-group "))


DESCRIPTIONS = {
    "offsets": ("--offsets",),
    "members": ("--members",),
    "assignments": ("--members", "--verbose"),
    "state": ("--state",),
}


@pytest.mark.parametrize("shows", DESCRIPTIONS)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_a_member_is_described(group: Group, shows: str, protocol: str, answers: TestAnswers) -> None:
    """Lag of every partition, of those without a committed offset too."""
    group.commit({0: 4, 1: 10})
    group.join(group_protocol=protocol)
    arguments = ("--describe", "--group", group.group_id, *DESCRIPTIONS[shows])
    lines = group.java(*arguments)
    answers.same(shows, lines)
    assert of_group(group.ours(*arguments)) == of_group(lines)
    if shows == "offsets":
        member = f"{'rdkafka-ID' if protocol == 'classic' else 'ID'} /127.0.0.1 rdkafka"
        assert [line.split(" ", 2)[2] for line in of_group(lines)] == [
            f"0 4 10 6 {member}",
            f"1 10 10 0 {member}",
            f"2 - 10 - {member}",
        ]


def test_groups_are_listed_with_type_and_state(group: Group, answers: TestAnswers) -> None:
    group.join()
    simple = Group(group.broker, group.topic, f"{group.group_id}-simple")
    simple.commit({0: 1})
    for arguments in (
        ("--list", "--state"),
        ("--list", "--type"),
        ("--list", "--state", "Stable,Empty", "--type", "classic"),
        ("--list", "--state", "Empty"),
        ("--list", "--type", "consumer"),
    ):
        java, ours = (
            sorted(line for line in command(*arguments) if line.startswith("the-group"))
            for command in (group.java, group.ours)
        )
        answers.same(" ".join(arguments), java)
        assert ours == java, arguments
    assert "the-group-simple" in group.java("--list")


RESETS = {
    "earliest": ("--to-earliest",),
    "latest": ("--to-latest",),
    "shift": ("--shift-by", "-3"),
    "offset": ("--to-offset", "7"),
    "current": ("--to-current",),
    "datetime": ("--to-datetime", "2030-01-01T00:00:00.000"),
    "duration": ("--by-duration", "P1D"),
}


@pytest.mark.parametrize("how", ["shift", "duration"])
def test_offsets_are_reset(group: Group, how: str, answers: TestAnswers) -> None:
    group.commit({0: 4, 1: 10, 2: 1})
    arguments = ("--reset-offsets", "--group", group.group_id, "--topic", group.topic, *RESETS[how], "--execute")
    answers.same("reset", sorted(group.java(*arguments)))
    answers.same("after it", of_group(group.ours("--describe", "--group", group.group_id)))


def test_both_commands_plan_the_same_resets(group: Group, tmp_path: Path) -> None:
    group.commit({0: 4, 1: 10, 2: 1})
    reset = ("--reset-offsets", "--group", group.group_id)
    for how, arguments in RESETS.items():
        wanted = (*reset, "--all-topics", *arguments, "--dry-run")
        assert of_group(group.ours(*wanted)) == of_group(group.java(*wanted)), how
    exported = group.java(*reset, "--all-topics", "--to-offset", "2", "--export", "--dry-run")
    plan = tmp_path / "plan.csv"
    plan.write_text("\n".join(line.replace("the-topic", group.topic) for line in exported) + "\n")
    group.ours(*reset, "--from-file", str(plan), "--execute")
    assert [line.split()[3] for line in of_group(group.ours("--describe", "--group", group.group_id))] == ["2"] * 3


def test_offsets_and_groups_are_deleted(group: Group, answers: TestAnswers) -> None:
    group.commit({0: 4, 1: 10, 2: 1})
    delete = ("--delete-offsets", "--group", group.group_id, "--topic")
    answers.same("offsets", sorted(group.java(*delete, f"{group.topic}:0,1", allowed=(0, 1))))
    group.join()
    answers.same("subscribed", sorted(group.java(*delete, f"{group.topic}:2", allowed=(0, 1))))
    refused = group.java("--delete", "--group", group.group_id, allowed=(0, 1))
    answers.same("with a member", [line for line in refused if "Exception" in line or line.startswith("Error")])
    refused = group.java(
        "--reset-offsets", "--group", group.group_id, "--all-topics", "--to-latest", "--execute", allowed=(0, 1)
    )
    answers.same("reset with a member", sorted(refused))
    group.members.pop().leave()
    answers.same("group", sorted(group.java("--delete", "--group", group.group_id)))
    missing = group.java("--describe", "--group", group.group_id, allowed=(0, 1))
    answers.same("missing", [line for line in missing if line.startswith("Error")])


# Formatters


def read_formatted(broker: Broker, formatter: str, group_id: str) -> list[dict[str, Any]]:
    """Every record of the group in `__consumer_offsets`, as Kafka's console consumer prints them."""
    topic, partition = "__consumer_offsets", abs_java_hash(group_id) % OFFSETS_PARTITIONS
    count = count_records(broker, topic, partition)
    output = run_tool(
        Tool.CONSOLE_CONSUMER,
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--partition", str(partition)),
        *("--offset", "earliest", "--max-messages", str(count), "--timeout-ms", "120000"),
        *("--formatter", FORMATTERS + formatter),
    )
    assert f"Processed a total of {count} messages" in output.stderr, output
    records = decoded(output.stdout)
    return [record for record in records if record["key"]["data"].get("group") == group_id]


def count_records(broker: Broker, topic: str, partition: int) -> int:
    """Those up to its end as it is now: fewer than offsets, where transactions ended."""
    config = {"bootstrap.servers": broker.bootstrap, "group.id": "unused", "enable.auto.commit": False}
    isolation = {"isolation.level": "read_uncommitted", "enable.partition.eof": True}
    consumer = Consumer(config | isolation)
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    counts: list[int] = []

    def is_at_the_end() -> bool:
        found = [record.error() for record in consumer.consume(1000, timeout=0.5)]
        assert all(error is None or error.code() == KafkaError._PARTITION_EOF for error in found), found
        counts.append(sum(error is None for error in found))
        return counts[-1] < len(found)

    try:
        until(is_at_the_end, f"the end of {topic}-{partition}")
    finally:
        consumer.close()
    return sum(counts)


def decoded(text: str) -> list[dict[str, Any]]:
    """The formatters write one object behind the other."""
    decoder, records, at = json.JSONDecoder(), [], 0
    while at < len(text.rstrip()):
        record, at = decoder.raw_decode(text, at)
        records.append(record)
    return records


def same_in_every_run(group: Group, records: list[dict[str, Any]]) -> list[Any]:
    def shown(name: str, value: Any) -> Any:
        match value:
            case dict():
                return {key: shown(key, each) for key, each in value.items()}
            case list():
                return [shown(name, each) for each in value]
            case str() if name == "topicId":
                return "an id"
            case str() if name in ("subscription", "assignment"):
                return group.shown(base64.b64decode(value).decode("latin-1"))
            case str():
                return " ".join(group.shown(value))
            case int() if name.endswith("imestamp") and value > 0:
                return "a time"
            case _:
                return value

    return [shown("", record) for record in records]


@pytest.mark.parametrize("formatter", ["OffsetsMessageFormatter", "GroupMetadataMessageFormatter"])
def test_a_formatter_of_kafka_reads_what_a_group_left(group: Group, formatter: str, answers: TestAnswers) -> None:
    group.commit({0: 4})
    group.join()
    group.members.pop().leave()
    group.commit({0: 5, 1: 10})
    group.java("--delete-offsets", "--group", group.group_id, "--topic", f"{group.topic}:1")
    group.java("--delete", "--group", group.group_id)
    records = read_formatted(group.broker, formatter, group.group_id)
    answers.same("records", same_in_every_run(group, records))
    assert len(records) == {"OffsetsMessageFormatter": 5, "GroupMetadataMessageFormatter": 3}[formatter]
