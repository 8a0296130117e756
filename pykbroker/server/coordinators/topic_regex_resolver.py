"""The topics that members' regular expressions match, looked for in a thread, once for all who have one expression.

`TopicRegexResolver` serves all shards of a node; Kafka's has the same name, and the executor of `GroupMetadataManager`
runs it. The shards see it as `pykbroker.groups.consumer.regular_expressions.TopicRegexes`. What was found is kept until
somebody wants it newer, for as many expressions as there is room for: it has to last until the members' next heartbeat,
and is in their groups' records then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import trio

from pykbroker.metadata.image import MetadataImage

from ..runtime.signal import Signal
from ..runtime.threads import Threads

if TYPE_CHECKING:
    from pykbroker.groups.consumer.regular_expressions import ResolvedTopics

MOST_KEPT = 256
"""Expressions whose topics are kept; of ten thousand topics, 80 kB each."""
AT_ONCE = 2
MOST_WANTED = 1_000
"""Expressions that wait for their turn; whoever comes then asks again with its next heartbeat."""


class TopicRegexResolver:
    """The resolver keeps what was found for the expressions of a node's groups. image: the newest
    committed metadata.
    """

    def __init__(self, image: Callable[[], MetadataImage], threads: Threads) -> None:
        self._image = image
        self._threads = threads
        self._found: dict[str, tuple[int, tuple[str, ...]]] = {}
        """Those that were asked for last are at the end."""
        self._wanted: dict[str, trio.Event] = {}
        self._more = Signal()

    def find(self, expression: str, least_version: int) -> ResolvedTopics | None:
        """Return the topics as of that version of the metadata or a later one; None where that is not known, and is
        looked for now.
        """
        found = self._found.pop(expression, None)
        if found is not None:
            self._found[expression] = found
            version, topics = found
            if version >= least_version:
                return version, frozenset(topics)
        self._want(expression)
        return None

    async def prepare(self, expression: str) -> Sequence[str]:
        """Return when `find` knows the expression's topics as they are now, or it is no expression; the topics."""
        least_version = self._image().offset
        known = self._found.get(expression)
        if known is not None and known[0] >= least_version:
            return known[1]
        from pykbroker.groups.consumer.regular_expressions import invalid_reason

        if invalid_reason(expression) is None and self.find(expression, least_version) is None:
            wanted = self._wanted.get(expression)
            if wanted is not None:
                await wanted.wait()
        found = self._found.get(expression)
        return () if found is None else found[1]

    def _want(self, expression: str) -> None:
        if expression not in self._wanted and len(self._wanted) < MOST_WANTED:
            self._wanted[expression] = trio.Event()
            self._more.set()

    async def run(self) -> None:
        """Look for what is wanted until the surrounding scope is cancelled."""
        busy: set[str] = set()
        async with trio.open_nursery() as nursery:
            for _ in range(AT_ONCE):
                nursery.start_soon(self._look_for_all, busy)

    async def _look_for_all(self, busy: set[str]) -> None:
        while True:
            expression = next((each for each in self._wanted if each not in busy), None)
            if expression is None:
                await self._more.next()
                continue
            busy.add(expression)
            image = self._image()
            version, names = image.offset, tuple(image.topics)
            topics = await self._threads.run(_matching_topics, expression, names)
            busy.remove(expression)
            self._keep(expression, version, tuple(topics))
            self._wanted.pop(expression).set()

    def _keep(self, expression: str, version: int, topics: tuple[str, ...]) -> None:
        self._found[expression] = version, topics
        while len(self._found) > MOST_KEPT:
            del self._found[next(iter(self._found))]


def _matching_topics(expression: str, names: Sequence[str]) -> frozenset[str]:
    from pykbroker.groups.consumer.regular_expressions import matching_topics

    return matching_topics(expression, names)
