"""A producer's batch on its way to one partition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import trio

from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.records.compression import Compression
from pykbroker.protocol.topic_partition import TopicPartition

from .errors import ClientError

_RECORD_OVERHEAD_BYTES = 21
"""At most this many bytes of length prefixes and deltas stand around a record's key, value and headers."""


class ProducerIdentity(NamedTuple):
    """The id and epoch that InitProducerId gave; -1 for a producer that is not idempotent."""

    producer_id: int = -1
    producer_epoch: int = -1


@dataclass(slots=True, eq=False)
class ProducerBatch:
    """Grows until `closed`, then is encoded once: every retry sends the same bytes."""

    partition: TopicPartition
    deadline: float
    records: list[Record] = field(default_factory=list)
    size_bytes: int = 0
    closed: bool = False
    encoded: bytes = b""
    done: trio.Event = field(default_factory=trio.Event)
    base_offset: int = -1
    log_append_time_ms: int = -1
    error: ClientError | None = None

    def append(self, record: Record, size_bytes: int) -> None:
        self.records.append(record)
        self.size_bytes += size_bytes

    def encode(
        self,
        compression: Compression,
        identity: ProducerIdentity,
        base_sequence: int,
        *,
        is_transactional: bool = False,
    ) -> None:
        self.closed = True
        if not self.encoded:
            self.encoded = encode_batch(
                self.records,
                compression=compression,
                producer_id=identity.producer_id,
                producer_epoch=identity.producer_epoch,
                base_sequence=base_sequence,
                is_transactional=is_transactional,
            )


@dataclass(frozen=True, slots=True)
class Delivery:
    """The promise that `Producer.send` gives for one record."""

    batch: ProducerBatch
    index: int

    @property
    def partition(self) -> TopicPartition:
        return self.batch.partition

    async def wait(self) -> int:
        """The record's offset, once it is acknowledged; -1 with acks=0. Raises ClientError."""
        await self.batch.done.wait()
        if self.batch.error is not None:
            raise self.batch.error
        return self.batch.base_offset + self.index if self.batch.base_offset >= 0 else -1


def estimated_size(record: Record) -> int:
    size = _RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
    if not record.headers:
        return size
    return size + sum(_RECORD_OVERHEAD_BYTES + len(name) + len(value or b"") for name, value in record.headers)
