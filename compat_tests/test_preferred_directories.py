"""Replicas that are to be in a directory before they are there: their logs are created in it (KIP-113)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .answers import TestAnswers
from .brokers import BrokerProcess
from .log_directories import describe, sizes
from .test_log_moves import alter
from .topics import create_topic

PARTITIONS = range(6)


def test_a_replica_is_created_in_the_directory_that_was_named_for_it(
    two_directories: Callable[..., BrokerProcess], directories: tuple[Path, Path], answers: TestAnswers
) -> None:
    broker = two_directories()
    answers.same("before", alter(broker, {str(directories[1]): {"wanted": list(PARTITIONS)}}))
    create_topic(broker, "wanted", len(PARTITIONS))
    found = {name: set(there) for name, there in sizes(describe(broker), "wanted").items()}
    answers.expect("all in one", found, {"one": set(), "two": set(PARTITIONS)})


def test_the_last_directory_that_was_named_counts_and_for_the_named_partitions_alone(
    two_directories: Callable[..., BrokerProcess], directories: tuple[Path, Path], answers: TestAnswers
) -> None:
    broker = two_directories()
    one, two = map(str, directories)
    alter(broker, {one: {"wanted": [0, 1, 2]}})
    alter(broker, {two: {"wanted": [0, 1, 2]}})
    create_topic(broker, "wanted", 4)
    found = {name: set(there) for name, there in sizes(describe(broker), "wanted").items()}
    answers.expect("the last one", found, {"one": {3}, "two": {0, 1, 2}})
