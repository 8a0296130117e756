"""What nodes write into their logs, as often as they do, whether or not anybody reads it.

HotLines: no line comes more than `MOST_LINES` times within 100 ms of virtual time, whatever goes wrong: there are some
twenty partitions on each of three nodes to tell something of.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager

from pykbroker.sim.determinism import virtual_time_s
from tests.replication.simulation.invariants import ensure

MOST_LINES = 100
_WITHIN_S = 0.1

Line = tuple[int, str, str]
"""Level, logger and format."""


class Lines(logging.Handler):
    """counts: of lines since the beginning."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.counts: Counter[Line] = Counter()
        self.hot: list[str] = []
        self._times: dict[Line, deque[float]] = defaultdict(lambda: deque(maxlen=MOST_LINES))

    def emit(self, record: logging.LogRecord) -> None:
        line = record.levelno, record.name, str(record.msg)
        self.counts[line] += 1
        times, now_s = self._times[line], virtual_time_s()
        if len(times) == MOST_LINES and now_s - times[0] < _WITHIN_S:
            self.hot.append(f"{MOST_LINES + 1} times from {times[0]:.3f} to {now_s:.3f}: {record.name}: {record.msg}")
            times.clear()
        times.append(now_s)

    def check_hot_lines(self) -> None:
        ensure(not self.hot, "HotLines", "; ".join(self.hot[:3]))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Have all that nodes say, whatever is switched off. Where nobody else would have seen it nobody does."""
        logger, disabled = logging.getLogger("pykbroker"), logging.root.manager.disable
        level, propagates = logger.level, logger.propagate
        is_read = logger.isEnabledFor(logging.INFO)
        logging.disable(logging.NOTSET)
        logger.setLevel(logging.INFO)
        logger.propagate = propagates and is_read
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)
            logger.propagate = propagates
            logger.setLevel(level)
            logging.disable(disabled)
