"""What became of each test with processes of Apache Kafka and of pykbroker: `recorded/BROKER.json`.

Apache Kafka is not asked again in each run; `python -m compat_tests.kafkas_own_tests --record` asks.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from compat_tests.apache_kafka.jars import cache_directory

from .class_run import Outcome, method_of
from .harness import HERE

DIRECTORY = HERE / "recorded"


@dataclass(frozen=True, slots=True)
class RecordedTest:
    verdict: str
    seconds: int


Results = dict[str, dict[str, RecordedTest]]
"""By class and test."""


def file_of(broker: str) -> Path:
    return DIRECTORY / f"{broker}.json"


def read(broker: str) -> Results:
    path = file_of(broker)
    kept = json.loads(path.read_text()) if path.exists() else {}
    return {
        name: {test: RecordedTest(verdict, seconds) for test, (verdict, seconds) in tests.items()}
        for name, tests in kept.items()
    }


def record(broker: str, test_class: str, methods: frozenset[str], outcomes: Mapping[str, Outcome]) -> None:
    """Replaces what is recorded of these methods, or of the whole class where none is named."""
    new = {test: RecordedTest(outcome.verdict, round(outcome.seconds)) for test, outcome in outcomes.items()}
    if not outcomes:
        return
    with open(cache_directory() / ".kafka-tests-recorded.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = read(broker)
        before = results.get(test_class, {}) if methods else {}
        results[test_class] = {t: result for t, result in before.items() if method_of(t) not in methods} | new
        write(broker, results)


def write(broker: str, results: Results) -> None:
    """One test a line, so that a difference is read easily."""
    classes = []
    for name, tests in sorted(results.items()):
        lines = [f"  {json.dumps(test)}: {json.dumps([t.verdict, t.seconds])}" for test, t in sorted(tests.items())]
        classes.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    DIRECTORY.mkdir(exist_ok=True)
    file_of(broker).write_text("{\n" + ",\n".join(classes) + "\n}\n")
