"""`GET /api/topics/{name}/records/tail`: records as they come, as live events.

The broker is asked some times a second for what is new in all partitions together. What is more than a reader can read
is not unpacked at all, but counted. Leaders that move are found again, new partitions are followed from their
beginning, and a topic that is deleted ends the stream.

Events: `begin` with what is followed, `records` with rows and the count of what is left out, `trouble` with Kafka's
name of an error that may pass, or null once it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import ClientError, KafkaError
from pykbroker.client.metadata import Node
from pykbroker.client.offsets import EARLIEST_TIMESTAMP
from pykbroker.console.endpoint import Arguments, Asking, Events
from pykbroker.console.failures import name_of
from pykbroker.console.records.fetching import Fetched, fetch, one_of_few
from pykbroker.console.records.unpacking import Entry, Part, Piece, entries_of
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from .partition_offsets import Found, find_offsets
from .record_rows import isolation_asked, partition_asked, row_of
from .record_spans import spans_of
from .topic import leaders
from .topic_rows import metadata_of

MOST_PARTITIONS: Final = 1000
MOST_ROWS: Final = 25
"""Of one event."""
MOST_BYTES: Final = 4 * 1024 * 1024
"""Of one answer of a leader."""
PERIOD_S: Final = 0.5
LOOK_AGAIN_S: Final = 5.0
"""So often the topic's leaders and partitions are asked for."""
FAILING_S: Final = 60.0
"""A cluster that answers nothing for so long ends the stream."""


async def tail(asking: Asking, given: Arguments, events: Events) -> None:
    """Raises UnknownTopic, BadInput, KafkaError, ClientError."""
    name, partition, isolation_level = given.text("name"), partition_asked(given), isolation_asked(given)
    topic = await spans_of(asking, name, partition, isolation_level)
    followed = dict(list(topic.spans.items())[:MOST_PARTITIONS])
    await events.send("begin", {"partitions": topic.total, "followed": len(followed)})
    async with asking.new_cluster() as cluster:
        positions = {at: span.end for at, span in followed.items()}
        await _Tail(asking, cluster, events, name, partition, isolation_level, positions).run()


class _Tail:
    """One reader's tail. positions: the next offsets, by partition."""

    def __init__(
        self,
        asking: Asking,
        cluster: Cluster,
        events: Events,
        topic: str,
        partition: int | None,
        isolation_level: int,
        positions: dict[int, int],
    ) -> None:
        self._asking = asking
        self._cluster = cluster
        self._events = events
        self._topic = topic
        self._partition = partition
        self._isolation_level = isolation_level
        self._positions = positions
        self._by_leader: Mapping[Node, list[TopicPartition]] = {}
        self._looked_s = float("-inf")
        self._answered_s = trio.current_time()
        self._trouble: str | None = None

    async def run(self) -> None:
        while True:
            began_s = trio.current_time()
            trouble: ClientError | None = None
            try:
                await self._round()
                self._answered_s = trio.current_time()
            except ClientError as error:
                if not error.retriable or trio.current_time() > self._answered_s + FAILING_S:
                    raise
                self._looked_s = float("-inf")
                trouble = error
            await self._tell(trouble)
            took_s = trio.current_time() - began_s
            await trio.sleep(max(PERIOD_S - took_s, took_s, 0.05))

    async def _tell(self, trouble: ClientError | None) -> None:
        name = None if trouble is None else name_of(trouble)
        if name != self._trouble:
            self._trouble = name
            await self._events.send("trouble", {"name": name})

    async def _round(self) -> None:
        """Ask every leader once. Raises the first failure when all have been asked."""
        if trio.current_time() >= self._looked_s + LOOK_AGAIN_S:
            await self._look()
        failures: list[ClientError] = []
        entries: list[Entry] = []
        left_out = 0
        for node, partitions in self._by_leader.items():
            try:
                found, passed = await one_of_few(self._asking, partial(self._news, node, partitions, len(entries)))
            except ClientError as error:
                failures.append(error)
                continue
            entries += found
            left_out += passed
        if entries or left_out:
            rows = [row_of(each) for each in sorted(entries, key=lambda each: each.timestamp)]
            await self._events.send("records", {"rows": rows, "left_out": left_out})
        if failures:
            raise failures[0]

    async def _look(self) -> None:
        """Find the leaders anew, and partitions that have come. Raises UnknownTopic once the topic is deleted."""
        response, topic = await metadata_of(self._cluster, self._topic)
        self._cluster.metadata.topics.pop(self._topic, None)  # its id is another one if it was created anew
        rows = [each for each in topic.partitions if self._partition in (None, each.partition_index)]
        self._by_leader = leaders(response, self._topic, rows)
        await self._follow(
            [at for each in self._by_leader.values() for at in each if at.partition not in self._positions]
        )
        self._by_leader = {
            node: kept
            for node, each in self._by_leader.items()
            if (kept := [at for at in each if at.partition in self._positions])
        }
        self._looked_s = trio.current_time()

    async def _follow(self, partitions: list[TopicPartition]) -> None:
        """Take partitions in from their beginning, as far as there is room."""
        room = max(0, MOST_PARTITIONS - len(self._positions))
        wanted = set(sorted(partitions)[:room])
        if not wanted:
            return
        found = Found({}, {})
        by_leader = {node: [at for at in each if at in wanted] for node, each in self._by_leader.items()}
        await find_offsets(
            self._cluster, {node: each for node, each in by_leader.items() if each}, EARLIEST_TIMESTAMP, found
        )
        self._positions.update({at.partition: offset for at, offset in found.offsets.items()})

    async def _news(self, node: Node, partitions: list[TopicPartition], have: int) -> tuple[list[Entry], int]:
        """Return the new records of a leader's partitions as far as there is room, and the count of the others."""
        offsets = {at: self._positions[at.partition] for at in partitions}
        answers = await fetch(self._cluster, node, offsets, MOST_BYTES, self._isolation_level)
        entries: list[Entry] = []
        passed = 0
        failed: ErrorCode | None = None
        for at, answer in answers.items():
            if not isinstance(answer, Fetched):
                failed = await self._failed(at, answer) or failed
                continue
            piece = await self._taken(at, answer, MOST_ROWS - have - len(entries))
            entries += piece.entries
            position = max(piece.next_offset, answer.end)
            passed += position - piece.next_offset
            self._positions[at.partition] = position
        if failed is not None and not entries:
            raise KafkaError(failed)
        return entries, passed

    async def _taken(self, at: TopicPartition, answer: Fetched, room: int) -> Piece:
        start = self._positions[at.partition]
        if room <= 0 or not len(answer.records):
            return Piece([], start, len(answer.records), 0)
        return await self._asking.threads.run(entries_of, answer, Part(at.partition, start, 2**63 - 1, room))

    async def _failed(self, at: TopicPartition, code: ErrorCode) -> ErrorCode | None:
        """Go to the first offset there is where the position is none any more; return other errors."""
        self._looked_s = float("-inf")
        if code is not ErrorCode.OFFSET_OUT_OF_RANGE:
            return code
        del self._positions[at.partition]
        return None
