"""The latest offset of each key, in a fixed amount of memory (`SkimpyOffsetMap`).

A table of 24 bytes per slot, addressed openly: 16 bytes of the key's hash and its offset. Keys themselves are not
kept, so that two keys with one hash would be taken for the same; 128 bits make that as unlikely as anything.

A dict takes several times the memory, and a fifth of the time. While what the table leaves of the memory is enough for
one, the keys are in a dict.
"""

import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from itertools import repeat

SLOT_BYTES = 24

_WORDS = 3
"""Of a slot: the two halves of the hash, and one more than the offset, since zero stands for an empty slot."""
_SALT = b"the other half: "
_DICT_ENTRY_BYTES = 192
"""Besides the bytes of the key: the objects for key and offset, and their part of a dict that has just grown."""

Hash = Callable[[bytes], int]


def _digest(key: bytes) -> int:
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "little", signed=True)


def _choose_hash() -> Hash:
    """The interpreter's own is the fastest by far. Where it is not SipHash with 64 bits it is not good enough."""
    is_siphash = (
        sys.hash_info.algorithm.startswith("siphash") and sys.hash_info.width == 64 and not sys.hash_info.cutoff
    )
    return hash if is_siphash else _digest


_hash = _choose_hash()


def slots_in(memory_bytes: int) -> int:
    """Return how many slots fit: a power of two, which lets every probe sequence meet every slot."""
    return 1 << max(memory_bytes // SLOT_BYTES, 2).bit_length() - 1


class KeyOffsetMap:
    """A map from keys to their latest offsets.

    latest_offset: up to where the log's keys are in it; -1 where none are.
    """

    def __init__(self, *, memory_bytes: int, load_factor: float, expected_keys: int, reserved_bytes: int = 0) -> None:
        """No more memory is taken than `expected_keys` need. reserved_bytes: of what the table leaves, for others."""
        wanted = int(expected_keys / load_factor) + 2
        self._slots = min(slots_in(memory_bytes), 1 << (wanted - 1).bit_length())
        self._room = min(max(int(self._slots * load_factor), 1), self._slots - 1)
        self._dict: dict[bytes, int] | None = {}
        self._dict_room_bytes = memory_bytes - self.size_bytes - reserved_bytes
        self._table: array[int] = array("q")
        self.latest_offset = -1

    @property
    def size_bytes(self) -> int:
        """The size of the table, if it comes to that."""
        return self._slots * SLOT_BYTES

    def put(self, keys: Sequence[bytes], offsets: Sequence[int]) -> list[int] | None:
        """Offsets ascend. Returns those that these keys had before; None where there is no room for another key."""
        if self._dict is not None:
            size = sum(map(len, keys)) + len(keys) * _DICT_ENTRY_BYTES
            if size <= self._dict_room_bytes and len(self._dict) + len(keys) <= self._room:
                return self._put_into_dict(self._dict, keys, offsets, size)
            known, self._dict = self._dict, None
            self._table = array("q", bytes(SLOT_BYTES)) * self._slots
            self._put_into_table(known.keys(), known.values())
        return self._put_into_table(keys, offsets)

    def _put_into_dict(
        self, latest: dict[bytes, int], keys: Sequence[bytes], offsets: Sequence[int], size: int
    ) -> list[int]:
        before = len(latest)
        superseded = [offset for offset in map(latest.get, keys) if offset is not None]
        new = dict(zip(keys, offsets, strict=True))
        if len(new) < len(keys):
            # A key more than once: only the first of them supersedes what was there, and only the last one stays.
            superseded = list(dict.fromkeys(superseded))
            superseded += set(offsets).difference(new.values())
        latest.update(new)
        self._dict_room_bytes -= size * (len(latest) - before) // max(len(keys), 1)
        return superseded

    def _put_into_table(self, keys: Iterable[bytes], offsets: Iterable[int]) -> list[int] | None:
        # One loop without a call: this is done for every record of a log.
        table, mask, hash_of = self._table, self._slots - 1, _hash
        superseded: list[int] = []
        for key, offset in zip(keys, offsets, strict=True):
            first = hash_of(key)
            second = hash_of(_SALT + key)
            at = (first & mask) * _WORDS
            number = first
            while before := table[at + 2]:
                if table[at] == first and table[at + 1] == second:
                    superseded.append(before - 1)
                    break
                number += second | 1
                at = (number & mask) * _WORDS
            else:
                if not self._room:
                    return None
                self._room -= 1
                table[at] = first
                table[at + 1] = second
            table[at + 2] = offset + 1
        return superseded

    def get(self, keys: Iterable[bytes]) -> list[int]:
        """-1 for a key that is not in here."""
        if self._dict is not None:
            return list(map(self._dict.get, keys, repeat(-1)))
        table, mask, hash_of = self._table, self._slots - 1, _hash
        found: list[int] = []
        for key in keys:
            first = hash_of(key)
            second = hash_of(_SALT + key)
            at = (first & mask) * _WORDS
            number = first
            while (offset := table[at + 2]) and (table[at] != first or table[at + 1] != second):
                number += second | 1
                at = (number & mask) * _WORDS
            found.append(offset - 1)
        return found
