"""The personality of a cluster, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pykbroker.protocol.schema import Versions

FORMAT: Final = 1
"""Of the file; a file with a greater number was written by a newer pykbroker."""

Setting = bool | int | float | str


class BadPersonality(Exception):
    """A personality that cannot be used; one line, which names the file, and line and key where they are known."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question: the name of an error code, or what happened in the place of one.

    asked: the request and its version, for readers.
    """

    outcome: str
    asked: str = ""


@dataclass(frozen=True, slots=True)
class Personality:
    """All that a cluster offers.

    software: what the person who probed says it is; told: what the cluster tells of its version. authorizer: None where
    it cannot be told. versions: by API key. limits, broker, topic: configurations by Kafka's names, those that bound
    what clients may ask, others of brokers, and those of a topic that is created without any. answers: by question.
    """

    versions: Mapping[int, Versions]
    software: str = ""
    told: str = ""
    brokers: int = 0
    authorizer: bool | None = None
    supported_features: Mapping[str, Versions] = field(default_factory=dict)
    finalized_features: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, Setting] = field(default_factory=dict)
    broker: Mapping[str, Setting] = field(default_factory=dict)
    topic: Mapping[str, Setting] = field(default_factory=dict)
    answers: Mapping[str, Answer] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.software or self.told or "a cluster whose software is not known"
