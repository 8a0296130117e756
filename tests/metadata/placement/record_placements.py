"""Writes `kafkas_placements.jsonl`: clusters, and where Apache Kafka's own placer puts the replicas of new partitions.

    python -m tests.metadata.placement.record_placements

Needs a JDK and Kafka's jars.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from compat_tests.apache_kafka.jars import class_path
from compat_tests.apache_kafka.java import find_java

RECORDED = Path(__file__).with_name("kafkas_placements.jsonl")
PROGRAM = Path(__file__).with_name("KafkasPlacements.java")
CASES = 300
SEED = 36


def main() -> None:
    random = Random(SEED)
    asked = [_cluster(random) for _ in range(CASES)]
    lines = [json.dumps({**each, "kafka": answer}) for each, answer in zip(asked, _ask_kafka(asked), strict=True)]
    RECORDED.write_text("".join(f"{line}\n" for line in lines))
    sys.stdout.write(f"{len(lines)} placements in {RECORDED}\n")


def recorded() -> Iterator[dict[str, Any]]:
    return map(json.loads, RECORDED.read_text().splitlines())


def _ask_kafka(asked: list[dict[str, Any]]) -> list[Any]:
    command = [find_java(), "-Xmx256m", "-cp", class_path(), str(PROGRAM)]
    lines = "\n".join(map(json.dumps, asked))
    done = subprocess.run(command, input=lines, text=True, stdout=subprocess.PIPE, timeout=120, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _cluster(random: Random) -> dict[str, Any]:
    """Some clusters have no racks, some brokers no rack; the partitions go round the brokers up to three times."""
    racks: list[str | None] = [f"rack{number}" for number in range(random.choice((0, 1, 2, 2, 3, 3, 4, 6)))]
    if not racks or random.random() < 0.2:
        racks.append(None)
    ids = random.sample(range(30), random.randint(1, 9))
    share_fenced = random.choice((0, 0, 0.3))
    brokers = [{"id": each, "rack": random.choice(racks), "fenced": random.random() < share_fenced} for each in ids]
    brokers[0]["fenced"] = False
    return {
        "number": random.randrange(1000),
        "brokers": brokers,
        "partitions": random.randint(1, 3 * len(ids)),
        "replicas": random.randint(1, len(ids)) if random.random() < 0.3 else random.randint(1, min(len(ids), 3)),
    }


if __name__ == "__main__":
    main()
