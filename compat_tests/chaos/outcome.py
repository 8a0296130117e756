"""How a run ended, for people and for `python -m compat_tests.chaos.compare`: `outcome.json` in the run's directory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import confluent_kafka

from compat_tests.apache_kafka.jars import KAFKA_VERSION

from .journal import Journal
from .judge import Verdict

FILE = "outcome.json"


@dataclass(frozen=True, slots=True)
class Outcome:
    verdicts: list[Verdict]
    journal: Journal
    done: Mapping[str, int]
    """What each client got done while faults went on."""
    least: int
    """What the clients of each kind have to have done by then: a run of clients that do nothing finds nothing.

    Not each client alone: of two copiers one is given up after the other, and each waits half a minute for its place to
    be taken. That each of them gets going again is what a round ends with.
    """
    given_up: Mapping[tuple[str, str], int]
    """How often another client took the place of one, by name and by what it had said."""
    differences: list[str]
    """What the second reading of all rounds found."""

    @property
    def idle(self) -> list[str]:
        """The kinds of clients that did hardly anything."""
        done: Counter[str] = Counter()
        for name, count in self.done.items():
            done[name.rstrip(" 0123456789")] += count
        return [kind for kind, count in done.items() if count < self.least]

    @property
    def acknowledged(self) -> int:
        return sum(each.acknowledged for each in self.verdicts)

    @property
    def operations(self) -> int:
        return sum(each.operations for each in self.verdicts)

    @property
    def is_good(self) -> bool:
        return all(each.is_good for each in self.verdicts) and not self.idle and not self.differences


@dataclass(frozen=True, slots=True)
class Told:
    """What is kept of an outcome. given_up: client, what it said, how often. versions: of the clients' libraries."""

    nodes: list[str]
    seed: int
    minutes: float
    is_good: bool
    rounds: int
    operations: int
    acknowledged: int
    done: dict[str, int]
    given_up: list[tuple[str, str, int]]
    versions: dict[str, str]

    @classmethod
    def of(cls, outcome: Outcome, nodes: Sequence[str], seed: int, minutes: float) -> Told:
        return cls(
            [*nodes],
            seed,
            minutes,
            outcome.is_good,
            len(outcome.verdicts),
            outcome.operations,
            outcome.acknowledged,
            dict(sorted(outcome.done.items())),
            [(client, reason, count) for (client, reason), count in sorted(outcome.given_up.items())],
            versions_of_clients(),
        )

    @classmethod
    def read(cls, directory: Path) -> Told:
        """Raises OSError where the run did not come to its end, ValueError or TypeError for what is no outcome."""
        told = json.loads((directory / FILE).read_text(encoding="utf-8"))
        return cls(**told | {"given_up": [(client, reason, count) for client, reason, count in told["given_up"]]})

    def write(self, directory: Path) -> None:
        (directory / FILE).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def versions_of_clients() -> dict[str, str]:
    return {
        "librdkafka": confluent_kafka.libversion()[0],
        "confluent-kafka": version("confluent-kafka"),
        "kafka-python": version("kafka-python"),
        "Apache Kafka's clients": KAFKA_VERSION,
    }
