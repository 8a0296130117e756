"""Record batches without a producer id that were sent twice: the broker cannot tell the second one from a new one.

The same bytes may come twice by chance, from a program that writes the same at the same millisecond. What counts here
is a batch that the client sends again because it does not know what became of the first one: that one had no answer, or
an error, or its connection is another one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.records.batch import MAGIC_VALUE_V2, decode_batch_header

from .findings import Kind
from .remembered import Remembered
from .who import Place, Who, of_client_at

MOST_BATCHES: Final = 20_000
_UNCERTAIN: Final = frozenset(
    {None, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.NETWORK_EXCEPTION}
)
"""With none of these answers, and without one, does a client know that its batch is not in the log."""

Find = Callable[[Kind, str, dict[str, Any]], None]


class Batch(NamedTuple):
    """A batch: who sent it and where to, and what tells it from others."""

    who: Who
    place: Place
    crc: int
    records: int
    first_timestamp: int
    largest_timestamp: int


@dataclass(slots=True)
class _Sent:
    """The first time that a batch was sent. error: None without an answer. base_offset: None where nobody was told."""

    connection: int
    error: int | None
    base_offset: int | None


class Sends:
    """The batches of an audit. find: takes what is found."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._sent: Remembered[Batch, _Sent] = Remembered(MOST_BATCHES)

    def answered(
        self, connection: int, batches: Sequence[Batch], answers: Mapping[Place, tuple[int, int]] | None
    ) -> None:
        """Look at a Produce and its answer. answers: error code and base offset of each partition; None without one."""
        for batch in batches:
            error, base_offset = (None, None) if answers is None else answers.get(batch.place, (None, None))
            before = self._sent.get(batch)
            if error != ErrorCode.NONE and error not in _UNCERTAIN:
                continue  # it is not in the log, and the client knows it
            self._sent.put(batch, _Sent(connection, error, base_offset))
            if before is not None and (before.connection != connection or before.error in _UNCERTAIN):
                self._tell(batch, before, base_offset)

    def _tell(self, batch: Batch, before: _Sent, base_offset: int | None) -> None:
        at = [offset for offset in (before.base_offset, base_offset) if offset is not None and offset >= 0]
        count = "a record" if batch.records == 1 else f"{batch.records} records"
        where = f", in the log at {at[0]} and at {at[1]}" if len(at) > 1 else ""
        self._find(
            Kind.DUPLICATE,
            f"{batch.who} has sent {count} to {batch.place} twice, without idempotence{where}",
            {**of_client_at(batch.who, batch.place), "records": batch.records, "base_offsets": at},
        )


def batch_of(who: Who, place: Place, records: bytes | memoryview) -> Batch | None:
    """Return what a client sends to a partition; None where it has a producer id, which tells a second one."""
    try:
        header = decode_batch_header(records)
    except struct.error:
        return None
    if header.magic != MAGIC_VALUE_V2 or header.has_producer_id:
        return None
    return Batch(who, place, header.crc, header.records_count, header.base_timestamp, header.max_timestamp)
