"""Writes `kafkas_task_assignments.jsonl`: streams groups, and what Apache Kafka's own assignor gives them.

    python -m tests.groups.streams.record_task_assignments

Needs a JDK and Kafka's jars. Each group's members have what Kafka gave them the last time, as in a life: members and
processes come and go, topics grow, the number of standby tasks changes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from compat_tests.apache_kafka.jars import class_path
from pykbroker.groups.streams.sticky_assignor import MemberTasks, SubtopologyTasks, assign
from pykbroker.groups.streams.tasks import TasksTuple

RECORDED = Path(__file__).with_name("kafkas_task_assignments.jsonl")
PROGRAM = Path(__file__).with_name("KafkasTaskAssignments.java")
GROUPS = 24
ROUNDS = 8
SEED = 1071


@dataclass(frozen=True)
class Group:
    subtopologies: Mapping[str, SubtopologyTasks]
    members: Mapping[str, MemberTasks]
    replicas: int

    def assigned(self) -> dict[str, TasksTuple]:
        return assign(self.members, self.subtopologies, self.replicas)

    def after(self, target: Mapping[str, TasksTuple]) -> Group:
        members = {member_id: replace(each, tasks=target[member_id]) for member_id, each in self.members.items()}
        return replace(self, members=members)


def main() -> None:
    lives = [Random(SEED + number) for number in range(GROUPS)]
    groups = [_begin(random) for random in lives]
    lines: list[str] = []
    for _ in range(ROUNDS):
        asked = [encode(group) for group in groups]
        answers = _ask_kafka(asked)
        lines += [json.dumps({**line, "kafka": answer}) for line, answer in zip(asked, answers, strict=True)]
        groups = [
            _change(group.after(decode_target(answer)), random)
            for random, group, answer in zip(lives, groups, answers, strict=True)
        ]
    RECORDED.write_text("".join(f"{line}\n" for line in lines))
    sys.stdout.write(f"{len(lines)} assignments in {RECORDED}\n")


def recorded() -> Iterator[tuple[Group, dict[str, TasksTuple]]]:
    """Group, Kafka's answer."""
    for line in RECORDED.read_text().splitlines():
        parsed = json.loads(line)
        subtopologies = {name: SubtopologyTasks(*each) for name, each in parsed["subtopologies"].items()}
        members = {
            member_id: MemberTasks(each["process"], TasksTuple(_decode(each["active"]), _decode(each["standby"])))
            for member_id, each in parsed["members"].items()
        }
        yield Group(subtopologies, members, parsed["replicas"]), decode_target(parsed["kafka"])


def encode(group: Group) -> dict[str, Any]:
    return {
        "replicas": group.replicas,
        "subtopologies": {name: [each.count, each.is_stateful] for name, each in group.subtopologies.items()},
        "members": {
            member_id: {
                "process": each.process_id,
                "active": _encode(each.tasks.active),
                "standby": _encode(each.tasks.standby),
            }
            for member_id, each in group.members.items()
        },
    }


def decode_target(answer: dict[str, Any]) -> dict[str, TasksTuple]:
    return {
        member_id: TasksTuple(_decode(each["active"]), _decode(each["standby"])) for member_id, each in answer.items()
    }


def _encode(tasks: Mapping[str, frozenset[int]]) -> dict[str, list[int]]:
    return {name: sorted(partitions) for name, partitions in tasks.items()}


def _decode(tasks: dict[str, list[int]]) -> dict[str, frozenset[int]]:
    return {name: frozenset(partitions) for name, partitions in tasks.items()}


def _ask_kafka(groups: list[dict[str, Any]]) -> list[Any]:
    command = ["java", "-Xmx256m", "-cp", class_path(), str(PROGRAM)]
    lines = "\n".join(map(json.dumps, groups))
    done = subprocess.run(command, input=lines, text=True, stdout=subprocess.PIPE, timeout=120, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


# A group's life


def _begin(random: Random) -> Group:
    subtopologies = {
        str(number): SubtopologyTasks(random.randint(1, 12), random.random() < 0.6)
        for number in range(random.randint(1, 12 if random.random() < 0.2 else 4))
    }
    group = Group(subtopologies, {}, random.randint(0, 2))
    for _ in range(random.randint(1, 30 if random.random() < 0.2 else 6)):
        group = _join(group, random)
    return group


def _name(random: Random) -> str:
    return f"{random.getrandbits(64):016x}"


def _join(group: Group, random: Random) -> Group:
    processes = sorted({each.process_id for each in group.members.values()})
    process = random.choice(processes) if processes and random.random() < 0.6 else _name(random)
    return replace(group, members={**group.members, _name(random): MemberTasks(process, TasksTuple())})


def _leave(group: Group, random: Random) -> Group:
    gone = random.choice(sorted(group.members))
    rest = {member_id: each for member_id, each in group.members.items() if member_id != gone}
    return replace(group, members=rest) if rest else group


def _crash(group: Group, random: Random) -> Group:
    gone = random.choice(sorted({each.process_id for each in group.members.values()}))
    rest = {member_id: each for member_id, each in group.members.items() if each.process_id != gone}
    return replace(group, members=rest) if rest else group


def _grow(group: Group, random: Random) -> Group:
    name = random.choice(sorted(group.subtopologies))
    grown = replace(group.subtopologies[name], count=group.subtopologies[name].count + random.randint(1, 5))
    return replace(group, subtopologies={**group.subtopologies, name: grown})


def _replicate(group: Group, random: Random) -> Group:
    return replace(group, replicas=random.randint(0, 3))


def _change(group: Group, random: Random) -> Group:
    changes: list[Callable[[Group, Random], Group]] = [_join, _join, _leave, _crash, _grow, _replicate]
    for _ in range(random.randint(1, 3)):
        group = random.choice(changes)(group, random)
    return group


if __name__ == "__main__":
    main()
