"""Random batches, and what a chain of writes makes of them, are combined as by Apache Kafka's own class."""

import random
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from compat_tests.apache_kafka.jars import class_path
from compat_tests.apache_kafka.java import find_java
from pykbroker.sharing.coordinator.batches import combine_batches
from pykbroker.sharing.persister import StateBatch

pytestmark = pytest.mark.java

CASES = 10_000
Batches = tuple[StateBatch, ...]
Question = tuple[Batches, Batches, int]


def questions(rng: random.Random) -> Iterable[Question]:
    """Some begin with what earlier ones made, and some with batches in disorder."""
    states: list[Batches] = [()]
    for _ in range(CASES):
        span, most, longest = rng.choice((10, 30, 100)), rng.choice((1, 3, 8, 20)), rng.choice((1, 4, 15))
        so_far = rng.choice(states) if rng.random() < 0.7 else _some(rng, span, most, longest)
        new = _some(rng, span, most, longest)
        start_offset = rng.choice((-1, 0, rng.randrange(span)))
        states = [*states[-50:], combine_batches(so_far, new, start_offset)]
        yield so_far, new, start_offset


def _some(rng: random.Random, span: int, most: int, longest: int) -> Batches:
    firsts = [rng.randrange(span) for _ in range(rng.randrange(most + 1))]
    return tuple(
        StateBatch(first, first + rng.randrange(longest), rng.choice((0, 2, 4)), rng.randint(1, 3)) for first in firsts
    )


def written(batches: Batches) -> str:
    return "".join(f"{first},{last},{state},{count};" for first, last, state, count in batches)


def test_batches_are_combined_as_by_apache_kafka(tmp_path: Path) -> None:
    java_compiler = shutil.which("javac", path=Path(find_java()).resolve().parent) or shutil.which("javac")
    if java_compiler is None:
        pytest.skip("needs javac (a JDK)")
    source = Path(__file__).with_name("CombineBatches.java")
    subprocess.run([java_compiler, "-d", tmp_path, "-cp", class_path(), source], check=True, timeout=120)
    asked = list(questions(random.Random(932)))
    text = "".join(f"{written(so_far)}|{written(new)}|{start_offset}\n" for so_far, new, start_offset in asked)
    command = [find_java(), "-Xmx256m", "-cp", f"{class_path()}:{tmp_path}", "CombineBatches"]
    answered = subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=120)
    for question, answer in zip(asked, answered.stdout.splitlines(), strict=True):
        assert written(combine_batches(*question)) == answer, question
