"""Writes `kafkas_sharing.jsonl`: share groups, and what Apache Kafka's own assignor gives them.

    python -m tests.groups.assignors.record_sharing

Needs a JDK and Kafka's jars. Each group's members have what Kafka gave them the last time: members come and go,
subscriptions change, and partitions become assignable one after another.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from compat_tests.apache_kafka.jars import class_path
from pykbroker.groups.assignors.model import Assignment
from pykbroker.groups.assignors.simple_assignor import SharingMember, assign

RECORDED = Path(__file__).with_name("kafkas_sharing.jsonl")
PROGRAM = Path(__file__).with_name("KafkasSharing.java")
LIVES = 14
ROUNDS = 5
SEED = 932


@dataclass(frozen=True)
class ShareGroupCase:
    """A share group to assign. assignable: partitions by topic id."""

    members: Mapping[str, SharingMember]
    assignable: Mapping[bytes, frozenset[int]]
    counts: Mapping[bytes, int]

    @property
    def is_homogeneous(self) -> bool:
        return len({frozenset(member.topic_ids) for member in self.members.values()}) <= 1

    def assigned(self) -> dict[str, Assignment]:
        return assign(self.members, self.assignable, self.is_homogeneous)

    def after(self, target: Mapping[str, Assignment]) -> ShareGroupCase:
        """The same group, which has this assignment now, as a record has it: in order."""
        members = {
            member_id: replace(member, assignment=target.get(member_id, {}))
            for member_id, member in self.members.items()
        }
        return replace(self, members=members)


def main() -> None:
    randoms = [Random(SEED + number) for number in range(LIVES)]
    groups = [new_case(random, is_large=number % 7 == 6) for number, random in enumerate(randoms)]
    lines: list[str] = []
    for _ in range(ROUNDS):
        asked = [_encoded(group) for group in groups]
        answers = _ask_kafka(asked)
        lines += [json.dumps({**line, "kafka": answer}) for line, answer in zip(asked, answers, strict=True)]
        groups = [
            changed(group.after(_target(answer)), random)
            for group, answer, random in zip(groups, answers, randoms, strict=True)
        ]
    RECORDED.write_text("".join(f"{line}\n" for line in lines))
    sys.stdout.write(f"{len(lines)} assignments in {RECORDED}\n")


def recorded() -> Iterator[tuple[ShareGroupCase, dict[str, Assignment]]]:
    """Group and Kafka's answer."""
    for line in RECORDED.read_text().splitlines():
        parsed = json.loads(line)
        members = {
            member_id: SharingMember(
                tuple(bytes.fromhex(topic_id) for topic_id in member["topics"]), _partitions(member["assignment"])
            )
            for member_id, member in parsed["members"].items()
        }
        counts = {bytes.fromhex(topic_id): count for topic_id, count in parsed["topics"].items()}
        yield ShareGroupCase(members, _partitions(parsed["assignable"]), counts), _target(parsed["kafka"])


def _encoded(group: ShareGroupCase) -> dict[str, Any]:
    return {
        "homogeneous": group.is_homogeneous,
        "topics": {topic_id.hex(): count for topic_id, count in group.counts.items()},
        "assignable": {topic_id.hex(): sorted(each) for topic_id, each in group.assignable.items()},
        "members": {
            member_id: {
                "topics": [topic_id.hex() for topic_id in member.topic_ids],
                "assignment": {topic_id.hex(): sorted(each) for topic_id, each in member.assignment.items()},
            }
            for member_id, member in group.members.items()
        },
    }


def _partitions(topics: Mapping[str, list[int]]) -> dict[bytes, frozenset[int]]:
    return {bytes.fromhex(topic_id): frozenset(partitions) for topic_id, partitions in topics.items()}


def _target(answer: Mapping[str, Mapping[str, list[int]]]) -> dict[str, Assignment]:
    return {member_id: {**_partitions({**topics})} for member_id, topics in answer.items()}


def _ask_kafka(groups: list[dict[str, Any]]) -> list[Any]:
    command = ["java", "-Xmx256m", "-cp", class_path(), str(PROGRAM)]
    lines = "\n".join(map(json.dumps, groups))
    done = subprocess.run(command, input=lines, text=True, stdout=subprocess.PIPE, timeout=120, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


# A group's life


def new_case(random: Random, *, is_large: bool = False) -> ShareGroupCase:
    most_partitions = 150 if is_large else random.choice((1, 4, 20))
    least_members, most_members = (70, 90) if is_large else (1, random.choice((3, 12, 40)))
    counts = {random.randbytes(16): random.randint(1, most_partitions) for _ in range(random.randint(1, 5))}
    assignable = {
        topic_id: frozenset(index for index in range(count) if random.random() < 0.9)
        for topic_id, count in counts.items()
    }
    shared = tuple(counts)
    is_homogeneous = random.random() < 0.5
    members = {
        _new_id(random): SharingMember(shared) if is_homogeneous else _new_member(shared, random)
        for _ in range(random.randint(least_members, most_members))
    }
    return ShareGroupCase(members, assignable, counts)


def _new_id(random: Random) -> str:
    return str(UUID(int=random.getrandbits(128), version=4))


def _new_member(topic_ids: tuple[bytes, ...], random: Random) -> SharingMember:
    return SharingMember(tuple(random.sample(topic_ids, random.randint(1, len(topic_ids)))))


def changed(group: ShareGroupCase, random: Random) -> ShareGroupCase:
    """The group after some changes of one kind."""
    members = dict(group.members)
    match random.randrange(4):
        case 0:
            for _ in range(random.choice((1, 5))):
                like = next(iter(members.values()))
                other = _new_member(tuple(group.counts), random)
                members[_new_id(random)] = SharingMember(like.topic_ids) if group.is_homogeneous else other
            return replace(group, members=members)
        case 1:
            for member_id in random.sample(sorted(members), len(members) // 2):
                del members[member_id]
            return replace(group, members=members)
        case 2:
            assignable = {topic_id: frozenset(range(count)) for topic_id, count in group.counts.items()}
            return replace(group, assignable=assignable)
        case _:
            others = tuple(random.sample(tuple(group.counts), random.randint(1, len(group.counts))))
            changing = sorted(members) if group.is_homogeneous else sorted(members)[: len(members) // 2]
            for member_id in changing:
                members[member_id] = replace(members[member_id], topic_ids=others)
            return replace(group, members=members)


if __name__ == "__main__":
    main()
