"""Choices of partitions as `kafka-get-offsets` has them: `orders:1,users:0-2,clicks.*:5-,:-3`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Final

from pykbroker.protocol.topic_partition import TopicPartition

from .command import CommandFailed
from .topic_filter import topic_filter

Chooses = Callable[[TopicPartition], bool]

_PATTERN: Final = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")
_LARGEST_DIGITS: Final = 10


def chosen_by_patterns(text: str) -> Chooses:
    """Return what `--topic-partitions` lets through: what one of the patterns does. Raises CommandFailed."""
    rules = [_rule(each) for each in text.split(",")]
    return lambda of: any(rule(of) for rule in rules)


def _rule(text: str) -> Chooses:
    match = _PATTERN.fullmatch(text.strip())
    if match is None or any(len(group or "") > _LARGEST_DIGITS for group in match.groups()[1:]):
        raise CommandFailed(f"Invalid rule specification: {text[:100]}")
    topic, number, low, high = match.groups()
    is_topic = topic_filter(topic or None)
    if number:
        only = int(number)
        return lambda of: of.partition == only and is_topic(of.topic)
    least, limit = int(low or 0), int(high) if high else None
    return lambda of: of.partition >= least and (limit is None or of.partition < limit) and is_topic(of.topic)


def chosen_by_lists(topic: str | None, partitions: str | None) -> Chooses:
    """Return what `--topic` and `--partitions` let through. Raises CommandFailed."""
    is_topic = topic_filter(topic)
    numbers = _numbers(partitions) if partitions else None
    return lambda of: (numbers is None or of.partition in numbers) and is_topic(of.topic)


def _numbers(text: str) -> Collection[int]:
    parts = [each.strip() for each in text.split(",") if each.strip()]
    if not all(each.isascii() and each.isdigit() and len(each) <= _LARGEST_DIGITS for each in parts):
        raise CommandFailed(f"--partitions must be a string of comma-separated numbers, not '{text[:100]}'")
    return frozenset(int(each) for each in parts)
