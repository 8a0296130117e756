"""Operations and permissions, with Kafka's numbers (`org.apache.kafka.common.acl`).

A set of operations is a bit field (KIP-430): bit n stands for the operation with the number n.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from .resources import ResourceType


class Operation(IntEnum):
    """UNKNOWN stands for every number that is none of these; ANY is for filters, ALL for entries."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15

    @classmethod
    def _missing_(cls, value: object) -> Operation:
        return cls.UNKNOWN


class Permission(IntEnum):
    """ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3

    @classmethod
    def _missing_(cls, value: object) -> Permission:
        return cls.UNKNOWN


def bits(operations: Iterable[Operation]) -> int:
    """Return the bit field of these operations."""
    return sum(1 << operation for operation in operations)


EVERY_OPERATION: Final = bits(each for each in Operation if each > Operation.ALL)

_IMPLIED: Final = {
    Operation.ALL: EVERY_OPERATION,
    Operation.READ: bits((Operation.READ, Operation.DESCRIBE)),
    Operation.WRITE: bits((Operation.WRITE, Operation.DESCRIBE)),
    Operation.DELETE: bits((Operation.DELETE, Operation.DESCRIBE)),
    Operation.ALTER: bits((Operation.ALTER, Operation.DESCRIBE)),
    Operation.ALTER_CONFIGS: bits((Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS)),
}


def allowed_by(operation: int) -> int:
    """Return the operations that an entry allows which allows `operation`: who may read may describe, too."""
    return _IMPLIED.get(Operation(operation), 1 << operation)


def denied_by(operation: int) -> int:
    """Return the operations that an entry denies which denies `operation`: a denial implies no other."""
    return EVERY_OPERATION if operation == Operation.ALL else 1 << operation


SUPPORTED_OPERATIONS: Final = {
    ResourceType.TOPIC: bits(
        (
            Operation.READ,
            Operation.WRITE,
            Operation.CREATE,
            Operation.DELETE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        )
    ),
    ResourceType.GROUP: bits(
        (Operation.READ, Operation.DELETE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)
    ),
    ResourceType.CLUSTER: bits(
        (
            Operation.CREATE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.CLUSTER_ACTION,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
            Operation.IDEMPOTENT_WRITE,
        )
    ),
}
"""The operations that make sense for a type of resource, of those types for which answers list them (`AclEntry`)."""
