"""What each client of a run has got done: where nobody works, or somebody never works again, a run proves nothing."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping

from compat_tests.waiting import until


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

    def wait_for(self, clients: Iterable[str], count: int, deadline_s: float) -> None:
        """Raises AssertionError where one of them does not get so much more done."""
        before, names = self.so_far(), list(clients)

        def late() -> Mapping[str, int]:
            done = self.so_far() - before
            return {name: done[name] for name in names if done[name] < count}

        try:
            until(lambda: not late(), f"each client gets {count} more things done", deadline_s)
        except AssertionError as failed:
            raise AssertionError(f"{failed}; these did not: {late()}") from None
