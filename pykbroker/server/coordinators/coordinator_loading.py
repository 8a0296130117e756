"""Coordinator loading reads the logs of shards that are to be led: many at the same time, piece by piece.

The rules are these:

- Loading goes from the log's start to the end that the log has when loading begins; the shard appends nothing before it
  is loaded.
- A piece is read and decoded in a thread, and applied in slices, between which others get the event loop. A few pieces
  are in memory at once, and each log waits its turn for the next: a short log is there soon however long the others
  are.
- Records may be deleted while the log is read; loading goes on at the new start.
- A piece that was not checked since the start of the node is checked first, and read again. A damaged log is
  quarantined; a failed disk ends the load, and whoever owns the directory says so. The shard never becomes active then.
- A shard that is closed meanwhile ends its load at the next piece.

Not handled here: what a record means to the shard (`Replayer`), and what follows a load (`coordinator_driver`). Kafka's
counterpart is `CoordinatorLoaderImpl`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, Protocol

import trio

from pykbroker.replication.partition import Partition
from pykbroker.storage.files.errors import CorruptLog, FileError
from pykbroker.storage.log.log_reads import LogSlice
from pykbroker.storage.segments.verification import Check, NotVerified

from ..runtime.threads import Threads
from .coordinated_shard import LoggedRecord
from .coordinator_log import DecodedPiece, Replayer, decode_piece
from .led_shard import CoordinatorState, LedShard, ShardT

_log = logging.getLogger(__name__)

PIECE_BYTES = 1 << 16
PIECES_AT_ONCE = 4


class ReadReplicas(Protocol):
    """The replicas are what is needed here of the node's replica manager."""

    async def verify(self, partition: Partition, check: Check) -> None: ...
    def quarantine(self, partition: Partition, damage: CorruptLog) -> None: ...


class CoordinatorLoading(Generic[ShardT]):
    """The loading is shared by all shards of a coordinator. decode_record: makes a record of its key and value; raises
    BadRecord. It runs in threads.
    """

    def __init__(
        self,
        replicas: ReadReplicas,
        threads: Threads,
        decode_record: Callable[[bytes | None, bytes | None], LoggedRecord],
    ) -> None:
        self._replicas = replicas
        self._threads = threads
        self._decode_record = decode_record
        self._turns = trio.CapacityLimiter(PIECES_AT_ONCE)

    async def load(self, led: LedShard[ShardT], replayer: Replayer) -> bool:
        """Load the shard. False where the shard was closed meanwhile, or its log is out of use: whoever owns the
        directory says so.
        """
        log = led.partition.log
        offset, end_offset = log.log_start_offset, log.log_end_offset
        while led.state is CoordinatorState.LOADING and offset < end_offset:
            offset = max(offset, log.log_start_offset)  # records are deleted at any time
            if offset >= end_offset:
                break
            try:
                read_on = await self._load_piece(led, offset, end_offset, replayer)
            except NotVerified as unverified:
                await self._replicas.verify(led.partition, unverified.check)
                continue
            except CorruptLog as damage:
                self._replicas.quarantine(led.partition, damage)
                return False
            except FileError:
                return False
            if read_on <= offset:
                _log.error(
                    "%s: nothing can be read at offset %d, so the state in later records is lost", led.name, offset
                )
                break
            offset = read_on
        return led.state is CoordinatorState.LOADING

    async def _load_piece(self, led: LedShard[ShardT], offset: int, end_offset: int, replayer: Replayer) -> int:
        """Load a piece, and return where to read on."""
        async with self._turns:
            if led.state is not CoordinatorState.LOADING:
                return end_offset
            piece = led.partition.log.read(
                offset, PIECE_BYTES, max_offset=end_offset, min_one_batch=True, defer_checks=True
            )
            decoded = await self._threads.run(self._read, piece, offset)
            for _ in replayer.apply(decoded):
                await trio.lowlevel.checkpoint()
            return decoded.next_offset

    def _read(self, piece: LogSlice, offset: int) -> DecodedPiece:
        return decode_piece(piece.read(), offset, self._decode_record)
