"""The files under `compat_tests/recorded/`: one for each test module, with what Apache Kafka answered in each test.

A file has a stamp, Kafka's version and the digest of the scenario, and the tests that Apache Kafka passed. A test whose
questions are asserted on the spot has no answers there; that it stands there says that Apache Kafka passed it. Clients'
versions are not in the stamp: whatever pip installs must do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from compat_tests.apache_kafka.jars import KAFKA_VERSION

from .scenario_digest import ROOT, digest

DIRECTORY = ROOT / "compat_tests" / "recorded"
LARGEST_BYTES = 64
"""Of binary values that stand in the files as they are; of a larger one its size and its SHA-256 stand there."""

REPEATS = "answered as"
"""Names the question whose answer was the same: versions of an API often differ in little."""
SHORTEST_REPEATED = 100

Answers = dict[str, Any]
"""What was answered, by question."""


def stamp(module: Path) -> str:
    return f"{KAFKA_VERSION} {digest(module)}"


@dataclass
class RecordedModule:
    """One file: tests by name, with `*` in the place of the broker's kind."""

    stamp: str = ""
    tests: dict[str, Answers] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> RecordedModule:
        if not path.exists():
            return cls()
        content = json.loads(path.read_text())
        return cls(content["stamp"], {name: _in_full(answers) for name, answers in content["tests"].items()})

    def write(self, path: Path) -> None:
        """A question a line, sorted, so that a difference is read in a diff. Without tests there is no file."""
        if not self.tests:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        tests = ",\n".join(_test_lines(name, answers) for name, answers in sorted(self.tests.items()))
        path.write_text(f'{{"stamp": "{self.stamp}", "tests": {{\n{tests}\n}}}}\n')


def _test_lines(name: str, answers: Answers) -> str:
    first_of: dict[str, str] = {}
    lines = []
    for question, answer in sorted(answers.items()):
        text = json.dumps(answer)
        first = first_of.setdefault(text, question)
        shown = text if first == question or len(text) < SHORTEST_REPEATED else json.dumps({REPEATS: first})
        lines.append(f"  {json.dumps(question)}: {shown}")
    content = "{}" if not lines else "{\n" + ",\n".join(lines) + "}"
    return f"{json.dumps(name)}: {content}"


def _in_full(answers: Answers) -> Answers:
    return {
        question: answers[answer[REPEATS]] if isinstance(answer, dict) and answer.keys() == {REPEATS} else answer
        for question, answer in answers.items()
    }


def file_of(module: Path, directory: Path = DIRECTORY) -> Path:
    return directory / module.relative_to(ROOT).with_suffix(".json")


def recorded_modules(directory: Path = DIRECTORY) -> Iterator[Path]:
    """The test modules that have a file, whether they are there or not."""
    for path in sorted(directory.rglob("*.json")):
        yield ROOT / path.relative_to(directory).with_suffix(".py")


def due_tests(module: Path, tests: Set[str], directory: Path = DIRECTORY) -> set[str]:
    """The tests of a module that Apache Kafka has to be asked: the record is stale, or they are not in it."""
    recorded = RecordedModule.read(file_of(module, directory))
    return set(tests) if recorded.stamp != stamp(module) else tests - recorded.tests.keys()


def forgotten(scenarios: Mapping[Path, Set[str]], directory: Path = DIRECTORY) -> dict[Path, set[str]]:
    """What is recorded of tests that are not there any more, by module. scenarios: those that are there."""
    found = {}
    for module in recorded_modules(directory):
        recorded = RecordedModule.read(file_of(module, directory))
        if gone := recorded.tests.keys() - scenarios.get(module, frozenset()):
            found[module] = gone
    return found


def update(
    module: Path, answers: Mapping[str, Answers], gone: Set[str] = frozenset(), directory: Path = DIRECTORY
) -> None:
    """Writes what Apache Kafka answered in some tests of a module. What was recorded under another stamp goes."""
    path = file_of(module, directory)
    recorded = RecordedModule.read(path)
    now = stamp(module) if answers else recorded.stamp
    kept = recorded.tests if recorded.stamp == now else {}
    tests = {name: each for name, each in kept.items() if name not in gone} | dict(answers)
    RecordedModule(now, tests).write(path)


def comparable(answer: Any) -> Any:
    """An answer as it comes back from a file. Raises TypeError for what has no place there."""
    match answer:
        case bool() | None | float():
            return answer
        case int():
            return int(answer)
        case str():
            return str(answer)
        case bytes() | bytearray() | memoryview():
            return _comparable_bytes(bytes(answer))
        case dict():
            rows = {key if isinstance(key, str) else repr(key): comparable(value) for key, value in answer.items()}
            assert len(rows) == len(answer), f"two keys of one name: {answer}"
            return rows
        case list() | tuple():
            return [comparable(each) for each in answer]
        case set() | frozenset():
            return {"set": sorted((comparable(each) for each in answer), key=repr)}
    raise TypeError(f"{type(answer).__name__} {answer!r} cannot be recorded")


def _comparable_bytes(data: bytes) -> dict[str, Any]:
    if len(data) <= LARGEST_BYTES:
        return {"bytes": data.decode("latin-1")}
    return {"size": len(data), "sha256": sha256(data).hexdigest()}
