"""The files in `recorded/`: sequences with what Apache Kafka answered, one file for each chapter.

A chapter is asked of one broker in its order. A sequence's last step is the last whose answer depends on what was asked
alone: Apache Kafka was asked twice, and steps from the first that it answered in two ways on are left out, as are those
behind a difference that is meant and that leaves another state behind.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from compat_tests.apache_kafka.jars import KAFKA_VERSION

from .sequences import Sequence

DIRECTORY: Final = Path(__file__).with_name("recorded")
SUFFIX: Final = ".json.xz"


@dataclass(slots=True)
class RecordedSequence:
    """theirs: Apache Kafka's answers, one for each step. meant: reasons of the differences that are meant, by step."""

    sequence: Sequence
    theirs: list[Any]
    meant: dict[int, str] = field(default_factory=dict)

    def cut(self, steps: int) -> RecordedSequence:
        """Return the first steps of it."""
        shortened = Sequence(self.sequence.name, self.sequence.steps[:steps])
        meant = {number: reason for number, reason in self.meant.items() if number < steps}
        return RecordedSequence(shortened, self.theirs[:steps], meant)


@dataclass(slots=True)
class Chapter:
    """scene: the node's properties, as `nodes` names them."""

    name: str
    scene: str
    sequences: list[RecordedSequence]

    def write(self, directory: Path = DIRECTORY) -> None:
        rows = [
            [each.sequence.to_json(), each.theirs, [[number, reason] for number, reason in each.meant.items()]]
            for each in self.sequences
        ]
        text = json.dumps([KAFKA_VERSION, self.scene, rows], separators=(",", ":"))
        directory.mkdir(exist_ok=True)
        (directory / f"{self.name}{SUFFIX}").write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))

    @classmethod
    def read(cls, name: str, directory: Path = DIRECTORY) -> Chapter:
        _, scene, rows = json.loads(lzma.decompress((directory / f"{name}{SUFFIX}").read_bytes()))
        sequences = [
            RecordedSequence(Sequence.from_json(sequence), theirs, dict(meant)) for sequence, theirs, meant in rows
        ]
        return cls(name, scene, sequences)


def chapter_names(directory: Path = DIRECTORY) -> list[str]:
    return sorted(path.name.removesuffix(SUFFIX) for path in directory.glob(f"*{SUFFIX}"))


def chapters(directory: Path = DIRECTORY) -> Iterator[Chapter]:
    return (Chapter.read(name, directory) for name in chapter_names(directory))
