"""The latest offset of each key, in a fixed amount of memory (`SkimpyOffsetMap`).

A table of 24 bytes per slot, addressed openly: 16 bytes of the key's hash and its offset. Keys themselves are not
kept, so that two keys with one hash would be taken for the same; 128 bits make that as unlikely as anything.
"""

import struct
from hashlib import blake2b

SLOT_BYTES = 24

_DIGEST_BYTES = 16
_OFFSET = struct.Struct("<q")
_EMPTY = bytes(_OFFSET.size)


def slots_in(memory_bytes: int) -> int:
    """How many slots fit: a power of two, which lets every probe sequence meet every slot."""
    return 1 << max(memory_bytes // SLOT_BYTES, 2).bit_length() - 1


class KeyOffsetMap:
    """latest_offset: up to where the log's keys are in here; -1 where none are."""

    def __init__(self, *, memory_bytes: int, load_factor: float, expected_keys: int) -> None:
        """No more memory is taken than `expected_keys` need."""
        wanted = int(expected_keys / load_factor) + 2
        slots = min(slots_in(memory_bytes), 1 << (wanted - 1).bit_length())
        self._mask = slots - 1
        self._table = bytearray(slots * SLOT_BYTES)
        self._room = min(max(int(slots * load_factor), 1), slots - 1)
        self.latest_offset = -1

    def put(self, key: bytes, offset: int) -> bool:
        """False where there is no room for another key."""
        at, is_known = self._find(key)
        if not is_known:
            if not self._room:
                return False
            self._room -= 1
        # One more than the offset, since zeros stand for an empty slot.
        _OFFSET.pack_into(self._table, at, offset + 1)
        return True

    def get(self, key: bytes) -> int:
        """-1 for a key that is not in here."""
        at, is_known = self._find(key, insert=False)
        return int(_OFFSET.unpack_from(self._table, at)[0]) - 1 if is_known else -1

    def _find(self, key: bytes, *, insert: bool = True) -> tuple[int, bool]:
        """Where the key's offset is, or is to be written, and whether there is one already."""
        digest = blake2b(key, digest_size=_DIGEST_BYTES).digest()
        table, mask = self._table, self._mask
        slot = int.from_bytes(digest[:8], "little")
        step = int.from_bytes(digest[8:], "little") | 1
        while True:
            at = (slot & mask) * SLOT_BYTES
            if table.startswith(_EMPTY, at + _DIGEST_BYTES):
                if insert and self._room:
                    table[at : at + _DIGEST_BYTES] = digest
                return at + _DIGEST_BYTES, False
            if table.startswith(digest, at):
                return at + _DIGEST_BYTES, True
            slot += step
