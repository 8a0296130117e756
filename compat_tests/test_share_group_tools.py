"""Kafka's commands for share groups, and ours, show and change the same on both brokers."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer

from .answers import TestAnswers
from .apache_kafka.tools import Tool, run_tool
from .brokers import Broker
from .topics import fill_topic
from .waiting import DEADLINE_S, until

pytestmark = pytest.mark.java

PARTITIONS = 2
RECORDS = 20
MEMBER_ID = re.compile(r"(?<= )(rdkafka-)?([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z0-9_+/-]{22})(?= )")
LOG_TIME = re.compile(r"^\[[-\d :,]+\] ", re.MULTILINE)

Unique = Callable[[str], str]


class ShareGroup:
    """A topic with ten records in each of two partitions, and a share group that begins at the first ones."""

    def __init__(self, broker: Broker, topic: str, group_id: str) -> None:
        self.broker, self.topic, self.group_id = broker, topic, group_id
        self.members: list[ShareConsumer] = []

    def join(self) -> None:
        """One member that has been given records of both partitions, and has released them."""
        member = ShareConsumer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "group.id": self.group_id,
                "share.acknowledgement.mode": "explicit",
                "log_level": 3,
            }
        )
        self.members.append(member)
        member.subscribe([self.topic])
        given: set[int | None] = set()

        def has_all() -> bool:
            for message in member.poll(0.5) or ():
                given.add(message.partition())
                member.acknowledge(message, AcknowledgeType.RELEASE)
            return len(given) == PARTITIONS

        until(has_all, "the member has records of both partitions")
        member.commit_sync()  # the coordinator knows of a start offset once the leader has written the state

    def leave(self) -> None:
        for member in self.members:
            member.close()
        self.members.clear()

    def java(self, *arguments: str, allowed: tuple[int, ...] = (0,)) -> list[str]:
        """What Kafka's command prints, in words that are the same in every run."""
        output = run_tool(Tool.SHARE_GROUPS, "--bootstrap-server", self.broker.bootstrap, *arguments, allowed=allowed)
        return self.shown(output.stdout + "\n" + output.stderr)

    def ours(self, *arguments: str, allowed: tuple[int, ...] = (0,)) -> list[str]:
        done = self.run("kafka", "kafka-share-groups.sh", *arguments)
        assert done.returncode in allowed, done.stdout + done.stderr
        return self.shown(done.stdout + "\n" + done.stderr)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`pykbroker …` to its end."""
        command = [sys.executable, "-m", "pykbroker", *words, "--bootstrap-server", self.broker.bootstrap]
        return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)

    def json(self, *words: str) -> Any:
        done = self.run("share-groups", *words, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def shown(self, text: str) -> list[str]:
        text = (
            text.replace(self.group_id, "the-group")
            .replace(self.topic, "the-topic")
            .replace(self.broker.bootstrap, "BROKER")
        )
        text = MEMBER_ID.sub("ID", LOG_TIME.sub("", text))
        return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


@pytest.fixture
def group(broker: Broker, topic: str, unique: Unique) -> Iterator[ShareGroup]:
    fill_topic(broker, topic, PARTITIONS, RECORDS)
    made = ShareGroup(broker, topic, unique("group"))
    begins = made.run("configs", "alter", "group", made.group_id, "--set", "share.auto.offset.reset=earliest")
    assert begins.returncode == 0, begins.stderr
    yield made
    made.leave()


def of_group(lines: list[str]) -> list[str]:
    return sorted(line for line in lines if line.startswith(("the-group ", "GROUP ")))


DESCRIPTIONS = {
    "offsets": ("--offsets",),
    "offsets with epochs": ("--verbose",),
    "members": ("--members",),
    "members with epochs": ("--members", "--verbose"),
    "state": ("--state",),
    "state with epochs": ("--state", "--verbose"),
}


def test_a_share_group_with_a_member_is_described(group: ShareGroup, answers: TestAnswers) -> None:
    group.join()
    for shows, flags in DESCRIPTIONS.items():
        arguments = ("--describe", "--group", group.group_id, *flags)
        lines = of_group(group.java(*arguments))
        answers.same(shows, [re.sub(r"(Stable) \d+ \d+", r"\1 N N", line) for line in lines])
        assert of_group(group.ours(*arguments)) == lines, shows
    rows = [line for line in of_group(group.ours("--describe", "--group", group.group_id)) if "the-topic" in line]
    assert rows == ["the-group the-topic 0 0 10", "the-group the-topic 1 0 10"]
    listed = group.ours("--list", "--state", "Stable")
    assert listed == group.java("--list", "--state", "Stable")
    assert "the-group Stable" in listed
    assert "the-group" in group.ours("--list", "--timeout", "20000")
    [told] = group.json("describe", group.group_id)
    assert [each["lag"] for each in told["partitions"]] == [10, 10]
    assert [len(each["assignment"]) for each in told["members"]] == [2]


def test_a_share_group_with_a_member_is_neither_reset_nor_deleted(group: ShareGroup, answers: TestAnswers) -> None:
    group.join()
    refusals = {
        "delete": ("--delete", "--group", group.group_id),
        "reset": ("--reset-offsets", "--group", group.group_id, "--all-topics", "--to-latest", "--execute"),
        "offsets": ("--delete-offsets", "--group", group.group_id, "--topic", group.topic),
    }
    for name, arguments in refusals.items():
        lines = group.java(*arguments, allowed=(0, 1))
        told = [line for line in lines if "the-group" in line or line.startswith("Error")]
        answers.same(name, [line if "the-group" in line else line.partition(":")[0] for line in told])
        ours = group.run("share-groups", *arguments)
        assert ours.returncode == 1, (name, ours)
        assert ours.stderr.startswith("Error: "), ours
    assert "Share group 'the-group' is not EMPTY." in " ".join(group.ours(*refusals["delete"], allowed=(1,)))
    assert "Share group 'the-group' is not empty." in " ".join(group.ours(*refusals["reset"], allowed=(1,)))


RESETS = {
    "earliest": ("--to-earliest",),
    "latest": ("--to-latest",),
    "before": ("--to-datetime", "2020-01-01T00:00:00.000"),
    "behind": ("--to-datetime", "2090-01-01T00:00:00.000"),
}


def test_both_commands_plan_and_execute_the_same_resets(group: ShareGroup, answers: TestAnswers) -> None:
    group.join()
    group.leave()
    until(lambda: group.json("describe", group.group_id, "--state")[0]["state"] == "Empty", "the member is out")
    reset = ("--reset-offsets", "--group", group.group_id)
    for how, place in RESETS.items():
        arguments = (*reset, "--all-topics", *place, "--dry-run")
        planned = of_group(group.java(*arguments))
        answers.same(how, planned)
        assert of_group(group.ours(*arguments)) == planned, how
    arguments = (*reset, "--topic", f"{group.topic}:1", "--to-latest", "--execute")
    assert of_group(group.ours(*arguments)) == ["GROUP TOPIC PARTITION NEW-OFFSET", "the-group the-topic 1 10"]
    described = group.java("--describe", "--group", group.group_id)
    answers.same("after our reset", of_group(described))
    answers.same("its reset", of_group(group.java(*reset, "--topic", group.topic, "--to-earliest", "--execute")))
    assert of_group(group.ours("--describe", "--group", group.group_id)) == of_group(
        group.java("--describe", "--group", group.group_id)
    )
    [told] = group.json("describe", group.group_id)
    assert [(each["start_offset"], each["lag"]) for each in told["partitions"]] == [(0, 10), (0, 10)]


def test_offsets_and_share_groups_are_deleted(group: ShareGroup, unique: Unique, answers: TestAnswers) -> None:
    """A reset with a topic makes a group, too. The second group is for Kafka's command."""
    other = ShareGroup(group.broker, group.topic, unique("other"))
    for each in (group, other):
        each.ours("--reset-offsets", "--group", each.group_id, "--topic", each.topic, "--to-earliest", "--execute")
    for name, arguments in {
        "of a topic": ("--delete-offsets", "--topic", group.topic, "--group"),
        "of one that is not there": ("--delete-offsets", "--topic", unique("missing"), "--group"),
        "described": ("--describe", "--group"),
        "group": ("--delete", "--group"),
        "again": ("--delete", "--group"),
    }.items():
        java = other.java(*arguments, other.group_id, allowed=(0, 1))
        ours = group.ours(*arguments, group.group_id, allowed=(0, 1))
        java, ours = (
            [line for line in lines if line.startswith(("TOPIC", "the-", "Deletion of requested", "Share"))]
            for lines in (java, ours)
        )
        answers.same(name, java)
        assert ours == java, name
    refused = group.run("share-groups", "--delete", "--group", group.group_id)
    assert refused.stderr.endswith(f"Group '{group.group_id}' is not a share group.\n")


def test_records_are_taken_released_and_rejected_by_both_console_consumers(
    group: ShareGroup, answers: TestAnswers
) -> None:
    """The one goes on where the other stopped: a record that was released comes again, to whoever asks next."""
    shows = [f"print.{each}=true" for each in ("partition", "offset", "delivery", "epoch")]
    formatted = [argument for each in shows for argument in ("--formatter-property", each)]
    one_partition = f"{group.topic}-single"
    fill_topic(group.broker, one_partition, 1, 6)
    common = ("--topic", one_partition, "--group", group.group_id, "--timeout-ms", "60000", *formatted)

    def java(*flags: str) -> list[str]:
        bootstrap = ("--bootstrap-server", group.broker.bootstrap)
        return run_tool(Tool.CONSOLE_SHARE_CONSUMER, *bootstrap, *common, *flags).lines

    def ours(*flags: str) -> list[str]:
        done = group.run("kafka", "kafka-console-share-consumer.sh", *common, *flags)
        assert done.returncode == 0, done.stderr
        assert done.stderr == f"Processed a total of {len(done.stdout.splitlines())} messages\n"
        return done.stdout.splitlines()

    answers.same("ours releases", ours("--max-messages", "2", "--release"))
    answers.same("theirs accepts", java("--max-messages", "1"))
    rejected = ours("--max-messages", "2", "--reject")
    answers.same("offsets and values that ours rejects", [_place_and_value(line) for line in rejected])
    left = ours("--max-messages", "3")
    answers.same("the rest", [_place_and_value(line) for line in left])


def _place_and_value(line: str) -> list[str]:
    return [each for each in line.split("\t") if not each.startswith("Delivery:")]


def test_the_lines_of_the_performance_test_are_those_of_kafkas(group: ShareGroup) -> None:
    arguments = ("--topic", group.topic, "--group", group.group_id, "--num-records", str(RECORDS), "--timeout", "60000")
    done = group.run("kafka", "kafka-share-consumer-perf-test.sh", *arguments, "--show-consumer-stats")
    assert done.returncode == 0, done.stderr
    group.json("reset-offsets", group.group_id, "--to-earliest", "--yes")
    bootstrap = ("--bootstrap-server", group.broker.bootstrap)
    theirs = run_tool(Tool.SHARE_CONSUMER_PERFORMANCE, *bootstrap, *arguments, "--show-consumer-stats")
    assert [_shape(line) for line in done.stdout.splitlines()] == [_shape(line) for line in theirs.lines]


def _shape(line: str) -> str:
    """A line without its moments and rates; counts of records stay, they are whole."""
    line = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}", "AT", line)
    line = re.sub(r"\d+\.\d{4}", "N", line)
    return re.sub(r", \d+$", ", MS", line)
