"""What each client of a round has got done: where nobody works, or somebody never works again, a run proves nothing.

Clients that are given up for another one of their kind are counted with what they said: what Apache Kafka's nodes do to
them under the same faults tells which of that is the client's own.
"""

from __future__ import annotations

import threading
from collections import Counter

from .ends import name_of


class Progress:
    """Counts by client, which are threads: each notes for itself, under its thread's name."""

    def __init__(self) -> None:
        self._done: Counter[str] = Counter()
        self._given_up: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def note(self, count: int = 1) -> None:
        """Something that the cluster has confirmed: a record, a transaction, a read, a commit."""
        with self._lock:
            self._done[threading.current_thread().name] += count

    def note_end(self, reason: object) -> None:
        """A client is done for, and another one takes its place: reason is what it said."""
        with self._lock:
            self._given_up[threading.current_thread().name, name_of(reason)] += 1

    def given_up(self) -> Counter[tuple[str, str]]:
        """Return how many clients were given up, by their names and what they said."""
        with self._lock:
            return self._given_up.copy()

    def so_far(self) -> Counter[str]:
        with self._lock:
            return self._done.copy()
