"""What each client of a run has got done: where nobody works, or somebody never works again, a run proves nothing."""

from __future__ import annotations

import threading
from collections import Counter


class Progress:
    """Counts by client, which are threads: each notes for itself, under its thread's name."""

    def __init__(self) -> None:
        self._done: Counter[str] = Counter()
        self._lock = threading.Lock()

    def note(self, count: int = 1) -> None:
        """Something that the cluster has confirmed: a record, a transaction, a read, a commit."""
        with self._lock:
            self._done[threading.current_thread().name] += count

    def so_far(self) -> Counter[str]:
        with self._lock:
            return self._done.copy()
