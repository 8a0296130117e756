"""Requests to a coordinator besides those of the protocol, and their answers.

AddPartitionsToTxn has several transactions in one request from version 4 on, and AddOffsetsToTxn adds a partition as
well: handlers make an `AddPartitions` of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions:
    """One transaction of an AddPartitionsToTxn request, or of AddOffsetsToTxn. Answered by `PartitionsAdded`.

    verify_only: nothing is to be added; a broker asks whether a producer may write there (KIP-890).
    client_transaction_version: 2 where the producer adds partitions implicitly, by writing to them; else 0.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    verify_only: bool = False
    client_transaction_version: int = 0


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    """The answer to `AddPartitions`, for each of its partitions."""

    errors: Mapping[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkersWritten:
    """The markers of a decided transaction are in these partitions, or the partitions exist no longer.

    Answered by an `ErrorCode`, once what follows from it is committed. What comes late, or twice, changes nothing.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
