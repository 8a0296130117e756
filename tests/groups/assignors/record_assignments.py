"""Writes `kafkas_assignments.jsonl`: groups, and what Apache Kafka's own assignors give them.

    python -m tests.groups.assignors.record_assignments

Needs a JDK and Kafka's jars. Each group's members have what Kafka gave them the last time, as in a life: members come
and go, subscriptions change, topics grow.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from compat_tests.apache_kafka.jars import class_path
from pykbroker.groups.assignors import MemberSubscription

from .cases import Group, Target, Topics, topic

RECORDED = Path(__file__).with_name("kafkas_assignments.jsonl")
PROGRAM = Path(__file__).with_name("KafkasAssignments.java")
ROUNDS = 8
SEED = 848


def main() -> None:
    lives = [(assignor, Random(SEED + number)) for assignor in ("uniform", "range") for number in range(12)]
    groups = [_begin(random) for _, random in lives]
    lines: list[str] = []
    for _ in range(ROUNDS):
        asked = [encode(assignor, group) for (assignor, _), group in zip(lives, groups, strict=True)]
        answers = _ask_kafka(asked)
        lines += [json.dumps({**line, "kafka": answer}) for line, answer in zip(asked, answers, strict=True)]
        groups = [
            _change(group.after(decode_target(answer)), random)
            for (_, random), group, answer in zip(lives, groups, answers, strict=True)
        ]
    RECORDED.write_text("".join(f"{line}\n" for line in lines))
    sys.stdout.write(f"{len(lines)} assignments in {RECORDED}\n")


def recorded() -> Iterator[tuple[str, Group, Target]]:
    """Assignor, group, Kafka's answer."""
    for line in RECORDED.read_text().splitlines():
        parsed = json.loads(line)
        members = {
            member_id: MemberSubscription(
                frozenset(topic(int(topic_id)) for topic_id in member["topics"]),
                instance_id=member["instance"],
                assignment=_decode_topics(member["assignment"]),
            )
            for member_id, member in parsed["members"].items()
        }
        topics = Topics({topic(int(topic_id)): count for topic_id, count in parsed["topics"].items()})
        yield parsed["assignor"], Group(topics, members), decode_target(parsed["kafka"])


def encode(assignor: str, group: Group) -> dict[str, Any]:
    members = {
        member_id: {
            "topics": sorted(_number(topic_id) for topic_id in member.topic_ids),
            "instance": member.instance_id,
            "assignment": {_number(topic_id): sorted(part) for topic_id, part in member.assignment.items()},
        }
        for member_id, member in group.members.items()
    }
    counts = {_number(topic_id): count for topic_id, count in group.topics.counts.items()}
    return {"assignor": assignor, "topics": counts, "members": members}


def decode_target(answer: dict[str, dict[str, list[int]]]) -> Target:
    return {member_id: _decode_topics(topics) for member_id, topics in answer.items()}


def _decode_topics(topics: dict[str, list[int]]) -> dict[bytes, frozenset[int]]:
    return {topic(int(topic_id)): frozenset(part) for topic_id, part in topics.items()}


def _number(topic_id: bytes) -> str:
    return str(int.from_bytes(topic_id, "big"))


def _ask_kafka(groups: list[dict[str, Any]]) -> list[Any]:
    command = ["java", "-Xmx256m", "-cp", class_path(), str(PROGRAM)]
    lines = "\n".join(map(json.dumps, groups))
    done = subprocess.run(command, input=lines, text=True, stdout=subprocess.PIPE, timeout=120, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


# A group's life


def _begin(random: Random) -> Group:
    topics = Topics({topic(number): random.randint(1, 12) for number in range(random.randint(1, 4))})
    members = {f"m{number}": _new_member(topics, random) for number in range(random.randint(1, 6))}
    if random.random() < 0.5:
        shared = frozenset(topics.counts)
        members = {member_id: replace(member, topic_ids=shared) for member_id, member in members.items()}
    return Group(topics, members)


def _new_member(topics: Topics, random: Random) -> MemberSubscription:
    chosen = random.sample(sorted(topics.counts), random.randint(1, len(topics.counts)))
    instance = f"i{random.randint(0, 10**6)}" if random.random() < 0.3 else None
    return MemberSubscription(frozenset(chosen), instance_id=instance)


def _change(group: Group, random: Random) -> Group:
    changes: list[Callable[[Group, Random], Group]] = [_join, _join, _leave, _grow]
    if not group.is_homogeneous:
        changes.append(_subscribe)
    return random.choice(changes)(group, random)


def _join(group: Group, random: Random) -> Group:
    like = group.members[min(group.members)]
    member = (
        replace(like, assignment={}, instance_id=None) if group.is_homogeneous else _new_member(group.topics, random)
    )
    return group.joined(**{f"m{random.randint(10, 10**6)}": member})


def _leave(group: Group, random: Random) -> Group:
    return group.without(random.choice(sorted(group.members))) if len(group.members) > 1 else group


def _grow(group: Group, random: Random) -> Group:
    grown = random.choice(sorted(group.topics.counts))
    counts = {**group.topics.counts, grown: group.topics.counts[grown] + random.randint(1, 5)}
    return replace(group, topics=Topics(counts))


def _subscribe(group: Group, random: Random) -> Group:
    member_id = random.choice(sorted(group.members))
    chosen = _new_member(group.topics, random).topic_ids
    return group.joined(**{member_id: replace(group.members[member_id], topic_ids=chosen)})


if __name__ == "__main__":
    main()
