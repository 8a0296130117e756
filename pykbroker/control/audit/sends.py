"""Record batches without a producer id that were sent twice: the broker cannot tell the second one from a new one.

The same bytes may come twice by chance, from programs that write the same at the same millisecond, and on purpose, with
a timestamp of the program's own. What counts here is a batch that the client sends again because it does not know what
became of the first one: that one had no answer, or an error that leaves it open, or the client has waited for it and
then closed its connection.
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
SHORTEST_WAIT_MS: Final = 1_000
"""A client that closes its connection sooner has ended, and another one may have written the same just then."""
LONGEST_RETRY_MS: Final = 600_000
"""Clients give up after two minutes, by their defaults; records with older timestamps are those of a program."""
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

    at_ms: int
    connection: int
    error: int | None
    base_offset: int | None


class Sends:
    """The batches of an audit. find: takes what is found. now_ms: the wall clock. is_open: tells of a connection's
    number whether its client is there still.
    """

    def __init__(self, find: Find, now_ms: Callable[[], int], is_open: Callable[[int], bool]) -> None:
        self._find = find
        self._now_ms = now_ms
        self._is_open = is_open
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
            self._sent.put(batch, _Sent(self._now_ms(), connection, error, base_offset))
            if before is not None and (before.error in _UNCERTAIN or self._has_moved(batch, before, connection)):
                self._tell(batch, before, base_offset)

    def _has_moved(self, batch: Batch, before: _Sent, connection: int) -> bool:
        """Tell whether the client may have lost the answer together with its connection."""
        now_ms = self._now_ms()
        return (
            before.connection != connection
            and batch.who.is_named
            and now_ms - before.at_ms >= SHORTEST_WAIT_MS
            and abs(now_ms - batch.largest_timestamp) <= LONGEST_RETRY_MS
            and not self._is_open(before.connection)
        )

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
