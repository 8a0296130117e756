"""Offsets of a source beside those of its copy, as far as a position of a group can keep them (KIP-545).

A copy has other offsets: markers of transactions take some, and what the source has deleted or compacted is missing.
MirrorMaker 2 keeps pairs of offsets in a topic of its own; here they stand in the metadata of the position that the
copy commits with its records, so that they are never ahead of these, nor behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

MOST_SYNCS = 60
"""With numbers of 19 digits they fit into the 4,096 bytes that a broker accepts as metadata of an offset."""
_SMALLEST_SLOPE = 1 / 16


class OffsetSync(NamedTuple):
    """An offset of the source, and that of the same record in the target. records: so many offsets from there on, each
    has its counterpart at the same distance; 0 where only the places are the same.
    """

    source: int
    target: int
    records: int


@dataclass(frozen=True, slots=True)
class CopyPosition:
    """A committed position. next_offset: where the source goes on. leader_epoch: none of the records in front of it is
    of a later one; -1 for not known. syncs: oldest first.
    """

    next_offset: int
    run_id: str
    leader_epoch: int = -1
    syncs: tuple[OffsetSync, ...] = ()

    @property
    def metadata(self) -> str:
        """All but the offset, as text: `run id;leader epoch;source,target,records;…`."""
        if not self.syncs and self.leader_epoch < 0:
            return self.run_id
        return ";".join([self.run_id, str(self.leader_epoch), *(",".join(map(str, each)) for each in self.syncs)])

    @classmethod
    def of(cls, next_offset: int, metadata: str) -> CopyPosition:
        """Raises ValueError. metadata: confluent-kafka writes a NUL behind the text."""
        run_id, *rest = metadata.removesuffix("\0").split(";")
        if not rest:
            return cls(next_offset, run_id)
        return cls(next_offset, run_id, int(rest[0]), tuple(map(_parsed, rest[1:])))


def _parsed(text: str) -> OffsetSync:
    source, target, records = text.split(",")
    return OffsetSync(int(source), int(target), int(records))


def thinned(syncs: Sequence[OffsetSync]) -> tuple[OffsetSync, ...]:
    """Leave out as many as do not fit. The gaps grow with their distance from the newest; the oldest stays."""
    found = tuple(syncs)
    slope = _SMALLEST_SLOPE
    while len(found) > MOST_SYNCS:
        found = _thinned(found, slope)
        slope *= 2
    return found


def _thinned(syncs: tuple[OffsetSync, ...], slope: float) -> tuple[OffsetSync, ...]:
    """Leave out what lies in a gap that is smaller than `slope` times its distance from the newest."""
    newest = syncs[-1].source
    kept = [syncs[-1]]
    for older, sync in zip(reversed(syncs[:-2]), reversed(syncs[1:-1]), strict=True):
        later = kept[-1].source
        if later - older.source > slope * (newest - later):
            kept.append(sync)
    kept.append(syncs[0])
    return tuple(reversed(kept))


def translated(syncs: Sequence[OffsetSync], offset: int) -> int | None:
    """The offset of the target at which a consumer goes on who would go on at `offset` of the source.

    No record is left out by it; some may be read twice where the syncs are too far from each other, as with
    MirrorMaker 2. None without syncs.
    """
    if not syncs:
        return None
    best = syncs[0]  # in front of the oldest the source had nothing any more when the copy began
    for sync in syncs:
        if sync.source > offset:
            break
        best = sync
    return best.target + max(0, min(offset - best.source, best.records))
