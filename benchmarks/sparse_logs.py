"""Logs of any size that take next to no room: their batches are whole, and nearly all of their bytes are holes.

A block of a log is a small record with a time of its own, and a record of a megabyte of zeros behind it. A file system
keeps the zeros as a hole; read, they are the bytes that the checksum was made of. Each block has an entry in both
indexes, as a broker makes one for every 4 kB that were written.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.storage.producers.producer_snapshots import SNAPSHOT_SUFFIX, encode_snapshot

SEGMENT_BYTES = 1 << 30
BLOCK_BYTES = 1_000_000
BLOCK_OFFSETS = 1_000
BLOCKS = SEGMENT_BYTES // BLOCK_BYTES
"""In a segment."""
SMALL_BYTES = 100
TIME_STEP_MS = 1_000
"""Between two small records."""
_FILLER_OVERHEAD = 100
"""At most: what the filler's value has around it."""
_LEADER_EPOCH = 0
_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_BASE_OFFSET = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class SparseLog:
    """What is in a partition of `segments` full segments. first_ms: the time of its first record. segment_blocks: fewer
    of them make segments that are not full.
    """

    segments: int
    first_ms: int
    segment_blocks: int = BLOCKS

    @property
    def blocks(self) -> int:
        return self.segments * self.segment_blocks

    @property
    def end_offset(self) -> int:
        """Behind the last record; there are records for two offsets of each block's, as compaction would leave them."""
        return self.blocks * BLOCK_OFFSETS

    def small_record(self, block: int) -> tuple[int, int]:
        """Its offset, and its time in milliseconds."""
        return block * BLOCK_OFFSETS, self.first_ms + block * TIME_STEP_MS

    def write(self, directory: Path) -> None:
        """In the place of an empty partition's files, while no broker has them open."""
        for path in directory.glob(f"*{SNAPSHOT_SUFFIX}"):
            path.unlink()
        filler = self._filler()
        for segment in range(self.segments):
            self._write_segment(directory, segment, filler)
        # As a roll leaves one: whoever opens the log need not look for producers in all of it.
        (directory / f"{self.end_offset:020}{SNAPSHOT_SUFFIX}").write_bytes(encode_snapshot({}))
        epochs = f"0\n1\n{_LEADER_EPOCH} 0\n"
        (directory / "leader-epoch-checkpoint").write_text(epochs)

    def _write_segment(self, directory: Path, segment: int, filler: bytes) -> None:
        first = segment * self.segment_blocks
        base_offset = first * BLOCK_OFFSETS
        stem = f"{base_offset:020}"
        offsets, times = bytearray(), bytearray()
        descriptor = os.open(directory / f"{stem}.log", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        try:
            os.ftruncate(descriptor, self.segment_blocks * BLOCK_BYTES)
            for number in range(self.segment_blocks):
                offset, time_ms = self.small_record(first + number)
                small = _small(offset, time_ms)
                position = number * BLOCK_BYTES
                os.pwrite(descriptor, small + _BASE_OFFSET.pack(offset + 1) + filler[_BASE_OFFSET.size :], position)
                offsets += _OFFSET_ENTRY.pack(offset - base_offset, position)
                times += _TIME_ENTRY.pack(time_ms, offset - base_offset)
        finally:
            os.close(descriptor)
        # An index has no entry for the offset that its file's name tells.
        (directory / f"{stem}.index").write_bytes(offsets[_OFFSET_ENTRY.size :])
        (directory / f"{stem}.timeindex").write_bytes(times)

    def _filler(self) -> bytes:
        """The batch behind a small record, without the zeros at its end."""
        room = BLOCK_BYTES - len(_small(0, self.first_ms))
        whole = b""
        for value_bytes in range(room - _FILLER_OVERHEAD, room):
            whole = self._filler_with(value_bytes)
            if len(whole) == room:
                return whole.rstrip(b"\0")
        raise AssertionError(f"no batch with one record of zeros has {room} bytes")

    def _filler_with(self, value_bytes: int) -> bytes:
        return encode_batch(
            [_record(bytes(value_bytes), self.first_ms)],
            base_offset=1,
            partition_leader_epoch=_LEADER_EPOCH,
            last_offset_delta=BLOCK_OFFSETS - 2,
        )


def _small(offset: int, time_ms: int) -> bytes:
    return encode_batch(
        [_record(b"s" * SMALL_BYTES, time_ms)], base_offset=offset, partition_leader_epoch=_LEADER_EPOCH
    )


def _record(value: bytes, time_ms: int) -> Record:
    return Record(key=None, value=value, headers=(), timestamp=time_ms, offset=0)


def write_recovery_points(data_directory: Path, ends: Iterable[tuple[str, int]]) -> None:
    """Everything is flushed: of each topic's partition 0 up to its end. Other topics keep what the file says."""
    path = data_directory / "recovery-point-offset-checkpoint"
    rows = {tuple(line.split()[:2]): line for line in path.read_text().splitlines()[2:]}
    rows |= {(topic, "0"): f"{topic} 0 {end}" for topic, end in ends}
    path.write_text("\n".join(("0", str(len(rows)), *rows.values(), "")))
