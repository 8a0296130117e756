"""The order of a share session's partitions, and how many bytes each may have.

Kafka's `PartitionRotateStrategy` and `PartitionMaxBytesStrategy`, of which there is one each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def rotated(partitions: Sequence[T], session_epoch: int) -> Sequence[T]:
    """Return the partitions in the order of this request: each request of a session begins with another one."""
    if len(partitions) < 2 or session_epoch < 1 or not (begin := session_epoch % len(partitions)):
        return partitions
    return (*partitions[begin:], *partitions[:begin])


def byte_share(max_bytes: int, partitions: int, number: int) -> int:
    """Return how many bytes one of so many partitions may have, in the order in which they are read.

    All have the same, and the first has the rest. Kafka draws by lot who has it, and, where there are fewer bytes than
    partitions, who has one; here that are the first ones, and the order changes from request to request.
    """
    share, rest = divmod(max_bytes, partitions)
    if share == 0:
        return 1 if number < rest else 0
    return share + rest if number == 0 else share
