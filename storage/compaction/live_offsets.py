"""The records of a log's dirty part that are the latest of their keys, as a byte for each offset (`LiveOffsets`).

Reading the keys finds that out anyway. With it the second pass need not look into a batch to know that none of it
stays, or all of it.
"""

from collections.abc import Iterable

from pykbroker.protocol.records.record_parts import TOMBSTONE, WITHOUT_KEY

_UNKNOWN = 255
_GONE = WITHOUT_KEY
"""Records without a key go as well."""


class LiveOffsets:
    """The kind of each offset, of those in `record_parts`; none where nothing was said."""

    def __init__(self, first_offset: int, max_bytes: int) -> None:
        """Make room for at most `max_bytes` offsets; nothing is known of the others."""
        self._first_offset = first_offset
        self._max_bytes = max_bytes
        self._kinds = bytearray()

    def add(self, base_offset: int, last_offset: int, offset_deltas: list[int], kinds: bytes) -> None:
        """A batch: the offsets and kinds of its records. Batches come in the order of the log."""
        count = last_offset - base_offset + 1
        start = base_offset - self._first_offset
        if start < len(self._kinds) or start + count > self._max_bytes:
            return
        if len(offset_deltas) != count:
            if not all(0 <= delta < count for delta in offset_deltas):
                return
            spread = bytearray([_GONE]) * count
            for delta, kind in zip(offset_deltas, kinds, strict=True):
                spread[delta] = kind
            kinds = bytes(spread)
        elif offset_deltas != list(range(count)):
            return
        self._kinds += bytes([_UNKNOWN]) * (start - len(self._kinds)) + kinds

    def supersede(self, offsets: Iterable[int]) -> None:
        """There are later records with the keys of these."""
        first_offset, kinds, size = self._first_offset, self._kinds, len(self._kinds)
        for offset in offsets:
            if 0 <= offset - first_offset < size and kinds[offset - first_offset] != _UNKNOWN:
                kinds[offset - first_offset] = _GONE

    def of_batch(self, base_offset: int, last_offset: int) -> bytes | None:
        """A kind for each offset of a batch; None where not all of them are known."""
        start, stop = base_offset - self._first_offset, last_offset + 1 - self._first_offset
        if start < 0 or stop > len(self._kinds):
            return None
        kinds = bytes(self._kinds[start:stop])
        return None if _UNKNOWN in kinds else kinds


def count_live(kinds: bytes) -> int:
    return len(kinds) - kinds.count(_GONE)


def without_tombstones(kinds: bytes) -> bytes:
    return kinds.replace(bytes([TOMBSTONE]), bytes([_GONE]))
