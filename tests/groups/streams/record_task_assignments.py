"""Writes `kafkas_task_assignments*.jsonl`: streams groups, and what Apache Kafka's own assignors give them.

    python -m tests.groups.streams.record_task_assignments [4.3 | 4.4]

Needs a JDK and Kafka's jars. Each group's members have what Kafka gave them the last time, as in a life: members and
processes come and go, topics grow, the number of standby tasks changes. By the rules of 4.4 members have not taken all
of it yet, and tell how much state they have.
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

from compat_tests.personalities.releases import jars_of
from pykbroker.groups.streams.sticky_assignor import MemberTasks, SubtopologyTasks, assign
from pykbroker.groups.streams.tasks import TasksTuple

RECORDED = {
    "4.3": Path(__file__).with_name("kafkas_task_assignments.jsonl"),
    "4.4": Path(__file__).with_name("kafkas_task_assignments_of_4_4.jsonl"),
}
PROGRAMS = {
    "4.3": Path(__file__).with_name("KafkasTaskAssignments.java"),
    "4.4": Path(__file__).with_name("KafkasTaskAssignments44.java"),
}
GROUPS = 24
ROUNDS = 8
SEED = 1071


@dataclass(frozen=True)
class Group:
    subtopologies: Mapping[str, SubtopologyTasks]
    members: Mapping[str, MemberTasks]
    replicas: int
    release: str = "4.3"

    def assigned(self) -> dict[str, TasksTuple]:
        return assign(self.members, self.subtopologies, self.replicas, is_of_4_4=self.release == "4.4")

    def after(self, target: Mapping[str, TasksTuple]) -> Group:
        members = {member_id: replace(each, tasks=target[member_id]) for member_id, each in self.members.items()}
        return replace(self, members=members)


def main() -> None:
    for release in sys.argv[1:] or RECORDED:
        _record(release)


def _record(release: str) -> None:
    lives = [Random(SEED + number) for number in range(GROUPS)]
    groups = [replace(_begin(random), release=release) for random in lives]
    lines: list[str] = []
    for _ in range(ROUNDS):
        asked = [encode(group) for group in groups]
        answers = _ask_kafka(asked, release)
        lines += [json.dumps({**line, "kafka": answer}) for line, answer in zip(asked, answers, strict=True)]
        groups = [
            _change(group.after(decode_target(answer)), random)
            for random, group, answer in zip(lives, groups, answers, strict=True)
        ]
        if release == "4.4":
            groups = [_report(group, random) for random, group in zip(lives, groups, strict=True)]
    RECORDED[release].write_text("".join(f"{line}\n" for line in lines))
    sys.stdout.write(f"{len(lines)} assignments in {RECORDED[release]}\n")


def recorded(release: str) -> Iterator[tuple[Group, dict[str, TasksTuple]]]:
    """Group, Kafka's answer."""
    for line in RECORDED[release].read_text().splitlines():
        parsed = json.loads(line)
        subtopologies = {name: SubtopologyTasks(*each) for name, each in parsed["subtopologies"].items()}
        members = {member_id: _decode_member(each) for member_id, each in parsed["members"].items()}
        yield Group(subtopologies, members, parsed["replicas"], release), decode_target(parsed["kafka"])


def _decode_member(parsed: dict[str, Any]) -> MemberTasks:
    offsets = {
        name: {int(partition): offset for partition, offset in each.items()}
        for name, each in parsed.get("offsets", {}).items()
    }
    return MemberTasks(parsed["process"], TasksTuple(_decode(parsed["active"]), _decode(parsed["standby"])), offsets)


def encode(group: Group) -> dict[str, Any]:
    return {
        "replicas": group.replicas,
        "subtopologies": {name: [each.count, each.is_stateful] for name, each in group.subtopologies.items()},
        "members": {
            member_id: {
                "process": each.process_id,
                "active": _encode(each.tasks.active),
                "standby": _encode(each.tasks.standby),
                **({"offsets": each.offsets} if group.release == "4.4" else {}),
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


def _ask_kafka(groups: list[dict[str, Any]], release: str) -> list[Any]:
    class_path = f"{jars_of(release).directory()}/*"
    command = ["java", "-Xmx256m", "-cp", class_path, str(PROGRAMS[release])]
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


def _report(group: Group, random: Random) -> Group:
    """Let some members lag behind what they were given, and some tell how much of the state of tasks they have."""
    members = {}
    for member_id, each in group.members.items():
        tasks = TasksTuple(_some(each.tasks.active, random), _some(each.tasks.standby, random))
        offsets: dict[str, dict[int, int]] = {}
        for name, subtopology in group.subtopologies.items():
            for partition in range(subtopology.count + 1):
                if random.random() < 0.3:
                    offsets.setdefault(name, {})[partition] = random.choice((0, 10, random.randrange(10**12)))
        members[member_id] = replace(each, tasks=tasks, offsets=offsets if random.random() < 0.7 else {})
    return replace(group, members=members)


def _some(tasks: Mapping[str, frozenset[int]], random: Random) -> dict[str, frozenset[int]]:
    kept = {name: frozenset(each for each in sorted(some) if random.random() < 0.9) for name, some in tasks.items()}
    return {name: each for name, each in kept.items() if each}


if __name__ == "__main__":
    main()
