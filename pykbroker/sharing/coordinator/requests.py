"""Requests to the share coordinator of one partition of `__share_group_state`: several share partitions each.

Kafka's coordinator takes each share partition by itself. Here those of one request that live together make one step,
whose records are appended together; each is answered by itself all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..persister import Initialization, Reading, SharePartitionKey, Writing


@dataclass(frozen=True, slots=True)
class Initialize:
    """Answered by an `Outcome` for each, in this order."""

    asked: tuple[Initialization, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """Answered by a `PartitionState` for each, in this order."""

    asked: tuple[Reading, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """Answered by an `Outcome` for each, in this order."""

    asked: tuple[Writing, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """Answered by an `Outcome` for each, in this order."""

    asked: tuple[SharePartitionKey, ...]


@dataclass(frozen=True, slots=True)
class ReadSummary:
    """Answered by a `PartitionState` without batches for each, in this order."""

    asked: tuple[Reading, ...]


ShareStateRequest: TypeAlias = Initialize | Read | Write | Delete | ReadSummary
