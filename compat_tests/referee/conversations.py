"""The transcripts and conversations under `tests/`, which Apache Kafka answered as well: who records them, and of which
version of Kafka they are.

Their scenarios are played step by step to state machines without a socket, so they have recorders of their own.
"""

from __future__ import annotations

import json
from pathlib import Path

from compat_tests.apache_kafka.jars import KAFKA_VERSION

from .scenario_digest import ROOT

VERSIONS = ROOT / "tests" / "recorded_conversations.json"

RECORDERS = {
    "tests/groups/transcripts": "tests.groups.record_transcripts HOST:PORT LOG_DIR",
    "tests/metadata/transcripts": "tests.metadata.record_transcripts",
    "tests/raft/conversations": "tests.raft.record_conversations",
    "tests/transactions/transcripts": "tests.transactions.record_transcripts",
}
"""What follows `python -m`, by the directory that it fills."""


def stale_conversations(versions: Path = VERSIONS) -> list[str]:
    """The commands to run, one for each directory that is of another version of Kafka."""
    known = json.loads(versions.read_text())
    return [command for directory, command in RECORDERS.items() if known.get(directory) != KAFKA_VERSION]


def note_version(directory: Path, versions: Path = VERSIONS) -> None:
    """To be called where all of a directory was recorded."""
    known = json.loads(versions.read_text()) if versions.exists() else {}
    known[directory.relative_to(ROOT).as_posix()] = KAFKA_VERSION
    versions.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    stale = stale_conversations()
    for directory, command in RECORDERS.items():
        state = "stale" if command in stale else f"of Apache Kafka {KAFKA_VERSION}"
        print(f"{directory} is {state}; recorded by: python -m {command}")  # noqa: T201
