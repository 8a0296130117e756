"""How long each node needs to return after a fault, watched while the next faults go on.

A node is back when every node that no fault is on, itself among them, tells that its broker is not fenced and that it
is in sync in every partition of which it has a replica; but for partitions whose in-sync replicas have a fault on them,
all of them, so that it has nobody to follow. What a node says that a fault is on counts for nothing: it may tell what
was so before it was cut off. Where the next fault hits a node before it is back, nobody knows how long it
would have needed: that is told as unknown, and not as a short time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from compat_tests.clusters.view import ClusterView, NoAnswer

LOOKS_EVERY_S = 0.1
ANSWER_DEADLINE_S = 2.0
"""How long one look waits for a node: one that a fault hits meanwhile holds up the returns of others for so long."""

Ask = Callable[[int], ClusterView]


@dataclass(slots=True)
class Returns:
    """Of the nodes that one fault hit: seconds from its end until each was back; None where that is not known.

    ended_s: the end of the fault, by the monotonic clock. awaited: those that are not back yet.
    """

    ended_s: float
    awaited: set[int]
    back_after_s: dict[int, float | None] = field(default_factory=dict)

    def settle(self, node: int, back_after_s: float | None) -> None:
        self.awaited.discard(node)
        self.back_after_s[node] = back_after_s

    def give_up(self) -> None:
        for node in sorted(self.awaited):
            self.settle(node, None)


class ReturnWatch:
    """A context manager, whose thread asks the nodes as long as somebody is awaited.

    ask: what a node tells of the cluster; raises NoAnswer.
    """

    def __init__(self, node_ids: Iterable[int], ask: Ask, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._ids = frozenset(node_ids)
        self._ask = ask
        self._now_s = now_s
        self._lock = threading.Condition()
        self._hit: frozenset[int] = frozenset()
        self._changes = 0
        """How often a fault began or ended: answers from before count for nothing behind it."""
        self._open: list[Returns] = []
        self._is_over = False
        self._thread = threading.Thread(target=self._watch, name="watch for returning nodes", daemon=True)
        self._threads = ThreadPoolExecutor(len(self._ids))

    def begin_fault(self, nodes: Iterable[int]) -> None:
        """A fault is on these nodes from now on. Who of them was awaited is so no longer."""
        with self._lock:
            self._hit = frozenset(nodes)
            self._changes += 1
            for returns in self._open:
                for node in returns.awaited & self._hit:
                    returns.settle(node, None)
            self._forget_settled()

    def end_fault(self, ended_s: float) -> Returns:
        """The fault is undone, which began at `ended_s`. Return what becomes known of the nodes that it hit."""
        with self._lock:
            returns = Returns(ended_s, set(self._hit))
            self._hit = frozenset()
            self._changes += 1
            self._open.append(returns)
            self._lock.notify()
            return returns

    def assert_nobody_is_late(self, within_s: float) -> None:
        """Raises AssertionError with the nodes that have been awaited for longer."""
        with self._lock:
            waited_s = {node: self._now_s() - each.ended_s for each in self._open for node in each.awaited}
        late = [f"node {node} after {waited:.1f} s" for node, waited in sorted(waited_s.items()) if waited > within_s]
        assert not late, f"not back within {within_s} s of a fault's end: {', '.join(late)}"

    def look(self) -> None:
        """Ask once, where anybody is awaited, and note who is back."""
        with self._lock:
            hit, changes, is_needed = self._hit, self._changes, bool(self._open)
        if not is_needed:
            return
        views = list(self._threads.map(self._view_of, self._ids - hit))
        with self._lock:
            if changes != self._changes:
                return
            now_s = self._now_s()
            for returns in self._open:
                for node in list(returns.awaited):
                    if all(view is not None and has_back(view, node, hit) for view in views):
                        returns.settle(node, round(now_s - returns.ended_s, 3))
            self._forget_settled()

    def _forget_settled(self) -> None:
        self._open = [each for each in self._open if each.awaited]

    def _view_of(self, node: int) -> ClusterView | None:
        try:
            return self._ask(node)
        except NoAnswer:
            return None

    def _watch(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._is_over or self._open)
                if self._is_over:
                    return
            self.look()
            time.sleep(LOOKS_EVERY_S)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._is_over = True
            self._lock.notify()
        self._thread.join()
        self._threads.shutdown()
        for returns in self._open:
            returns.give_up()


def has_back(view: ClusterView, node: int, hit: frozenset[int]) -> bool:
    """Whether a broker is unfenced, and in sync wherever it has a replica and somebody to follow, by this view."""
    replicas = [each for topic in view.topics.values() for each in topic.values() if node in each.replicas]
    followed = [each for each in replicas if not each.isr <= hit]
    return node in view.brokers and bool(replicas) and all(node in each.isr for each in followed)
