"""Kafka's commands for groups of Kafka Streams, and ours, show and change the same on both brokers."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.streams_groups import StreamsGroupHeartbeatRequest
from tests.groups.streams_requests import LEAVING, streams_beat, streams_joining, subtopology, topic_info, topology

from .answers import TestAnswers
from .apache_kafka.tools import Tool, run_tool
from .brokers import Broker
from .topics import fill_topic
from .waiting import DEADLINE_S, until
from .wire import Wire

pytestmark = pytest.mark.java

PARTITIONS = 2
RECORDS = 20
MEMBER = "a-member"
LOG_TIME = re.compile(r"^\[[-\d :,]+\] ", re.MULTILINE)
EPOCHS = re.compile(r"(?<=the-group )\d+(?= \d+ a-member)|(?<=Stable )\d+ \d+(?= )|(?<=streams )\d+(?= process)")

Unique = Callable[[str], str]


class StreamsGroup:
    """An application that reads a topic with ten records in each of two partitions, and has a store."""

    def __init__(self, broker: Broker, topic: str, group_id: str) -> None:
        self.broker, self.topic, self.group_id = broker, topic, group_id
        self.changelog = f"{group_id}-counts-changelog"
        self.epoch = 0

    def join(self) -> None:
        """Become its one member, with all tasks."""
        part = subtopology("0", self.topic, changelogs=[topic_info(self.changelog, cleanup_policy="compact")])
        joining = streams_joining(self.group_id, MEMBER, topology(part), rebalance=60_000)
        with Wire(self.broker.address) as wire:  # which makes the topic of the coordinators
            wire.call(FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group_id]), 4)
        until(lambda: self._beat(joining).error_code == 0, "the application is a member")
        tasks: dict[str, list[int]] = {}

        def has_all() -> bool:
            reported = dict(tasks)
            answer = self._beat(
                streams_beat(self.group_id, MEMBER, self.epoch, active=reported, standby={}, rebalance=60_000)
            )
            if answer.active_tasks is not None:
                tasks.clear()
                tasks.update({each.subtopology_id: sorted(each.partitions) for each in answer.active_tasks})
            return tasks == reported == {"0": [0, 1]} and self.state() == "Stable"

        until(has_all, "the member has both tasks")

    def stay(self) -> None:
        """Stay a member: commands may take longer than a session lasts."""
        if self.epoch > 0:
            assert self._beat(streams_beat(self.group_id, MEMBER, self.epoch)).error_code == 0

    def leave(self) -> None:
        self._beat(streams_beat(self.group_id, MEMBER, LEAVING))

    def commit(self, *offsets: int) -> None:
        """Of each partition, as the member or, once it has left, from outside."""
        rows = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
            for index, offset in enumerate(offsets)
        ]
        is_member = self.state() != "Empty"
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.epoch if is_member else -1,
            member_id=MEMBER if is_member else "",
            topics=[OffsetCommitRequestTopic(name=self.topic, partitions=rows)],
        )
        with Wire(self.broker.address) as wire:
            answer: Any = wire.call(request, 9)
        assert [row.error_code for each in answer.topics for row in each.partitions] == [0] * len(offsets)

    def state(self) -> str:
        [told] = self.json("describe", self.group_id, "--state")
        return str(told["state"])

    def _beat(self, request: StreamsGroupHeartbeatRequest) -> Any:
        with Wire(self.broker.address) as wire:
            answer: Any = wire.call(request, 0)
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
        return answer

    def java(self, *arguments: str, allowed: tuple[int, ...] = (0,)) -> list[str]:
        """What Kafka's command prints, in words that are the same in every run."""
        self.stay()
        output = run_tool(Tool.STREAMS_GROUPS, "--bootstrap-server", self.broker.bootstrap, *arguments, allowed=allowed)
        return self.shown(output.stdout + "\n" + output.stderr)

    def ours(self, *arguments: str, allowed: tuple[int, ...] = (0,)) -> list[str]:
        done = self.run("kafka", "kafka-streams-groups.sh", *arguments)
        assert done.returncode in allowed, done.stdout + done.stderr
        return self.shown(done.stdout + "\n" + done.stderr)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`pykbroker …` to its end."""
        self.stay()
        command = [sys.executable, "-m", "pykbroker", *words, "--bootstrap-server", self.broker.bootstrap]
        return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)

    def json(self, *words: str) -> Any:
        done = self.run("streams-groups", *words, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def shown(self, text: str) -> list[str]:
        text = (
            text.replace(self.group_id, "the-group")
            .replace(self.topic, "the-topic")
            .replace(self.broker.bootstrap, "BROKER")
        )
        return [" ".join(line.split()) for line in LOG_TIME.sub("", text).splitlines() if line.strip()]


@pytest.fixture
def group(broker: Broker, topic: str, unique: Unique) -> StreamsGroup:
    """An application whose one member has committed three offsets of one partition and all of the other."""
    fill_topic(broker, topic, PARTITIONS, RECORDS)
    made = StreamsGroup(broker, topic, unique("group"))
    made.join()
    made.commit(3, 10)
    return made


def of_group(lines: list[str]) -> list[str]:
    return sorted(line for line in lines if line.startswith(("the-group ", "GROUP ")))


DESCRIPTIONS = {
    "offsets": ("--offsets",),
    "offsets with epochs": ("--verbose",),
    "members": ("--members",),
    "members with targets": ("--members", "--verbose"),
    "state": ("--state",),
    "state with epochs": ("--state", "--verbose"),
}


def test_an_application_that_runs_is_described_and_left_alone(group: StreamsGroup, answers: TestAnswers) -> None:
    for shows, flags in DESCRIPTIONS.items():
        arguments = ("--describe", "--group", group.group_id, *flags)
        lines = of_group(group.java(*arguments))
        answers.same(shows, [EPOCHS.sub("N", line) for line in lines])
        assert of_group(group.ours(*arguments)) == lines, shows
    assert of_group(group.ours("--describe", "--group", group.group_id))[1:] == [
        "the-group the-topic 0 7",
        "the-group the-topic 1 0",
    ]
    listed = group.ours("--list", "--state", "Stable")
    assert listed == group.java("--list", "--state", "Stable")
    assert "the-group Stable" in listed
    assert "the-group" in group.ours("--list", "--timeout", "20000")
    refusals = {
        "delete": ("--delete", "--group", group.group_id, "--delete-all-internal-topics"),
        "reset": ("--reset-offsets", "--group", group.group_id, "--all-input-topics", "--to-latest", "--execute"),
    }
    for name, arguments in refusals.items():
        told = group.java(*arguments, allowed=(0, 1))
        answers.same(name, [line for line in told if "the-group" in line])
        refused = group.run("streams-groups", *arguments)
        assert refused.returncode == 1, (name, refused)
        sentence = re.search(r"(Streams group '|Assignments can)[^.]*\.", " ".join(told))
        assert sentence is not None, told
        assert group.shown(refused.stderr)[0].endswith(sentence[0]), refused.stderr
    assert group.state() == "Stable"


RESETS = {
    "earliest": ("--to-earliest",),
    "latest": ("--to-latest",),
    "current": ("--to-current",),
    "offset": ("--to-offset", "7"),
    "shift": ("--shift-by", "-2"),
    "datetime": ("--to-datetime", "2090-01-01T00:00:00.000"),
    "duration": ("--by-duration", "P1D"),
}


def test_both_commands_plan_and_execute_the_same_resets(
    group: StreamsGroup, tmp_path: Path, answers: TestAnswers
) -> None:
    group.leave()
    reset = ("--reset-offsets", "--group", group.group_id)
    for how, place in RESETS.items():
        arguments = (*reset, "--all-input-topics", *place, "--dry-run")
        planned = of_group(group.java(*arguments))
        answers.same(how, planned)
        assert of_group(group.ours(*arguments)) == planned, how
    exported = group.java(*reset, "--input-topic", f"{group.topic}:0", "--to-offset", "5", "--export", "--dry-run")
    assert "the-topic,0,5" in [line.replace('"', "") for line in exported]
    plan = tmp_path / "plan.csv"
    plan.write_text(f"{group.topic},0,5\n")
    internal = ("--delete-internal-topic", group.changelog)
    assert (
        of_group(group.ours(*reset, "--from-file", str(plan), "--execute", *internal))[-1] == "the-group the-topic 0 5"
    )
    [told] = group.json("describe", group.group_id)
    assert [each["current_offset"] for each in told["partitions"]] == [5, 10]
    assert group.run("topics", "list", group.changelog).returncode == 1
    foreign = ("--input-topic", f"{group.topic}-other", "--to-latest", "--execute")
    fill_topic(group.broker, f"{group.topic}-other", 1, 1)
    refused = group.java(*reset, *foreign, allowed=(0, 1))
    answers.same("a topic of others", [line for line in refused if line.startswith("Error: One")])
    assert (
        group.ours(*reset, *foreign, allowed=(1,))[-1]
        == "Error: One or more topics are not part of the group 'the-group'."
    )


def test_offsets_groups_and_internal_topics_are_deleted(
    group: StreamsGroup, unique: Unique, answers: TestAnswers
) -> None:
    """The second group is for Kafka's command."""
    other = StreamsGroup(group.broker, group.topic, unique("other"))
    other.join()
    for each in (group, other):
        each.leave()
        each.commit(1, 2)
    for name, arguments in {
        "of a partition": ("--delete-offsets", "--input-topic", f"{group.topic}:0", "--group"),
        "of all": ("--delete-offsets", "--all-input-topics", "--group"),
        "group": ("--delete", "--delete-all-internal-topics", "--group"),
    }.items():
        java = other.java(*arguments, other.group_id)
        answers.same(name, java)
        assert group.ours(*arguments, group.group_id) == java, name
    assert group.run("topics", "list", group.changelog).returncode == 1
    again = ("--delete", "--group")
    told = other.java(*again, other.group_id, allowed=(0, 1))
    sentence = "Group 'the-group' does not exist or is not a streams group."
    answers.same("again", [line for line in told if sentence in line])
    assert group.ours(*again, group.group_id, allowed=(1,))[-1].endswith(sentence)
