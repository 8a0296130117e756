"""Resources and the patterns that name them, with Kafka's numbers (`org.apache.kafka.common.resource`)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

WILDCARD: Final = "*"
"""As the name of a literal pattern: every resource of the type. As a host: every host."""

CLUSTER_NAME: Final = "kafka-cluster"
"""The one resource of type CLUSTER."""


class ResourceType(IntEnum):
    """UNKNOWN stands for every number that is none of these; ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7

    @classmethod
    def _missing_(cls, value: object) -> ResourceType:
        return cls.UNKNOWN


class PatternType(IntEnum):
    """ANY and MATCH are for filters: a filter of MATCH finds all patterns that a resource of its name falls under."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4

    @classmethod
    def _missing_(cls, value: object) -> PatternType:
        return cls.UNKNOWN
