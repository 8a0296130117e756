"""Digests of what the topics of a run have in them when a round is over: records of earlier rounds stay as they were.

The judge of a round looks at the records of that round alone. A run of many rounds reads all of it once more at its
end, and compares: whatever was lost, changed or written again later shows.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any


class Contents:
    """The committed records of one round: where they begin in each partition, where they end, and a digest of them."""

    def __init__(self, beginnings: Mapping[str, int]) -> None:
        self.beginnings = beginnings
        self.ends: dict[str, int] = {}
        self._digests: dict[str, Any] = {}

    def add(self, found: Mapping[str, Sequence[tuple[int, Any]]]) -> None:
        """Add records that were read, in the order of their offsets."""
        for key, records in found.items():
            digest = self._digests.setdefault(key, hashlib.sha256())
            for record in records:
                digest.update(f"{record}\n".encode())

    def close(self, ends: Mapping[str, int]) -> None:
        self.ends = dict(ends)

    def digest(self, key: str) -> str:
        return self._digests[key].hexdigest() if key in self._digests else ""


class SecondReading:
    """All rounds' records, read once more when the run is over."""

    def __init__(self, rounds: Sequence[Contents]) -> None:
        self._rounds = rounds
        self._again = [Contents(each.beginnings) for each in rounds]
        self._beyond: set[str] = set()
        """Partitions with records behind the end of the last round."""

    def add(self, found: Mapping[str, Sequence[tuple[int, Any]]]) -> None:
        for key, records in found.items():
            ends = [each.ends[key] for each in self._rounds]
            for record in records:
                number = bisect_right(ends, record[0])
                if number < len(ends):
                    self._again[number].add({key: [record]})
                else:
                    self._beyond.add(key)

    def differences(self) -> list[str]:
        """Return a sentence for each partition and round that has other records now."""
        found = [f"{key} has records behind the end of the last round" for key in sorted(self._beyond)]
        for number, (first, second) in enumerate(zip(self._rounds, self._again, strict=True), 1):
            found += [
                f"{key} has other records of round {number} than when the round was over, "
                f"at offsets {first.beginnings.get(key, 0)} to {end}"
                for key, end in sorted(first.ends.items())
                if first.digest(key) != second.digest(key)
            ]
        return found
