"""Partitions of a read whose leaders answer with errors that may pass: told once, given up when a consumer gives up.

The consumer tries such partitions again without a word. Here their leaders are asked why nothing comes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import trio

from pykbroker.client.consumer import FAILING_TIMEOUT_MS
from pykbroker.client.errors import ClientError, KafkaError, code_of
from pykbroker.client.fetching import fetch_from
from pykbroker.client.offsets import LATEST_TIMESTAMP, list_reachable_offsets
from pykbroker.error_groups import first_of
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from ..command import CommandFailed, one_line
from ..output import warn

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster
    from pykbroker.client.metadata import Node

ASK_AGAIN_AFTER_S: Final = 1.0
_LIMIT_S: Final = FAILING_TIMEOUT_MS / 1000


class FailingPartitions:
    """The partitions that fail, each since when."""

    def __init__(self, cluster: Cluster, isolation_level: int) -> None:
        self._cluster = cluster
        self._isolation_level = isolation_level
        self._since: dict[TopicPartition, float] = {}
        self._is_told = False

    async def look(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the ends of partitions whose leaders tell them. Raises CommandFailed for what fails for too long."""
        ends = await self._ends(positions)
        errors = {of: end if isinstance(end, ClientError) else None for of, end in ends.items()}
        errors |= await self._fetched({of: positions[of] for of, error in errors.items() if error is None})
        self._note(errors)
        return {of: end for of, end in ends.items() if isinstance(end, int)}

    @asynccontextmanager
    async def watched(self, partitions: Iterable[TopicPartition]) -> AsyncIterator[None]:
        """Look after the partitions while something else asks for their offsets. Raises CommandFailed."""
        wanted = list(partitions)

        async def watch() -> None:
            while True:
                await trio.sleep(ASK_AGAIN_AFTER_S)
                ends = await self._ends(wanted)
                self._note({of: end if isinstance(end, ClientError) else None for of, end in ends.items()})

        failure: BaseException | None = None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watch)
                yield
                nursery.cancel_scope.cancel()
        except* (ClientError, CommandFailed) as group:
            failure = first_of(group)
        if failure is not None:
            raise failure

    async def _ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | ClientError]:
        """Return ends, or why they are not told. Raises what no retry can help."""
        times = dict.fromkeys(partitions, LATEST_TIMESTAMP)
        found = await list_reachable_offsets(self._cluster, times, isolation_level=self._isolation_level)
        for each in found.values():
            if isinstance(each, ClientError) and not each.retriable:
                raise each
        return {of: each if isinstance(each, ClientError) else each.offset for of, each in found.items()}

    async def _fetched(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, ClientError | None]:
        """Return why partitions do not give their records; None where they do."""
        by_leader: dict[Node, dict[TopicPartition, int]] = {}
        for of, position in positions.items():
            leader = self._cluster.metadata.leader(of)
            if leader is not None:
                by_leader.setdefault(leader, {})[of] = position
        found: dict[TopicPartition, ClientError | None] = {}
        for node, of_node in by_leader.items():
            try:
                answers = await fetch_from(
                    self._cluster,
                    node,
                    of_node,
                    isolation_level=self._isolation_level,
                    max_wait_ms=0,
                    min_bytes=0,
                    max_bytes=1,
                    partition_max_bytes=1,
                )
            except ClientError as error:
                found |= dict.fromkeys(of_node, error)
                continue
            for of, data in answers.items():
                code = code_of(data.error_code)
                found[of] = None if code is ErrorCode.NONE else KafkaError(code)
        return found

    def _note(self, errors: Mapping[TopicPartition, ClientError | None]) -> None:
        now = trio.current_time()
        failing = {of: error for of, error in errors.items() if error is not None and error.retriable}
        self._since = {of: self._since.get(of, now) for of in failing}
        if not failing:
            return
        if not self._is_told:
            self._is_told = True
            of = min(failing)
            more = f" and {len(failing) - 1} more" if len(failing) > 1 else ""
            warn(f"Partition {of}{more}: {_told(failing[of])}; trying again, for {_LIMIT_S:g} s at most")
        late = min((of for of in failing if now - self._since[of] > _LIMIT_S), default=None)
        if late is not None:
            raise CommandFailed(f"Partition {late}: {_told(failing[late])}; it has been so for {_LIMIT_S:g} s")


def _told(error: ClientError) -> str:
    name = f"{error.error_code.name}: " if isinstance(error, KafkaError) else ""
    return f"{name}{one_line(error).removesuffix('.')}"
