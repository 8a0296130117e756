"""One Fetch of some partitions that a broker leads, which never waits for records.

The broker sends one batch at least, however large, so a bound on bytes may be passed by one batch of each answer. So
few fetches of a console run at once (`Asking.fetches`), and what was fetched is unpacked before the next one begins.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import ClientError, KafkaError, code_of
from pykbroker.client.fetching import fetch_from
from pykbroker.client.metadata import Node
from pykbroker.client.offsets import READ_COMMITTED
from pykbroker.console.endpoint import Asking
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import PartitionData
from pykbroker.protocol.topic_partition import TopicPartition

T = TypeVar("T")

ONE_BATCH: Final = 1
PIECE_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer for one partition. end: the first offset that a reader does not get; aborted: pairs of first offset
    and producer id of transactions whose records are left out.
    """

    records: bytes | memoryview
    end: int
    aborted: tuple[tuple[int, int], ...]


Answers = Mapping[TopicPartition, Fetched | ErrorCode]


async def fetch(
    cluster: Cluster, node: Node, offsets: Mapping[TopicPartition, int], most_bytes: int, isolation_level: int
) -> Answers:
    """Return what a broker has from the offsets on, or its error, for each partition. Raises ClientError."""
    found = await fetch_from(
        cluster,
        node,
        offsets,
        isolation_level=isolation_level,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=most_bytes,
        partition_max_bytes=most_bytes,
    )
    return {at: _fetched(data, isolation_level) for at, data in found.items()}


def _fetched(data: PartitionData, isolation_level: int) -> Fetched | ErrorCode:
    if data.error_code != ErrorCode.NONE:
        return code_of(data.error_code)
    is_committed = isolation_level == READ_COMMITTED
    aborted = data.aborted_transactions or [] if is_committed else []
    records = data.records or b""
    assert isinstance(records, (bytes, memoryview)), "what was decoded is in memory"
    return Fetched(
        records,
        data.last_stable_offset if is_committed else data.high_watermark,
        tuple((each.first_offset, each.producer_id) for each in aborted),
    )


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader of single partitions, wherever their leaders move. cluster: for its reads alone."""

    asking: Asking
    cluster: Cluster
    isolation_level: int

    async def read(self, at: TopicPartition, offset: int, most_bytes: int, unpack: Callable[[Fetched], T]) -> T:
        """Return what `unpack`, in a thread, makes of the records from the offset on. Raises ClientError."""

        async def attempt() -> T:
            try:
                return await self._read_of(await self.cluster.leader(at), at, offset, most_bytes, unpack)
            except ClientError as error:
                if error.retriable:
                    self.cluster.metadata.topics.pop(at.topic, None)  # the next attempt asks where the leader is
                raise

        return await self.cluster.retrying(attempt)

    async def _read_of(
        self, node: Node, at: TopicPartition, offset: int, most_bytes: int, unpack: Callable[[Fetched], T]
    ) -> T:
        async def work() -> T:
            answer = (await fetch(self.cluster, node, {at: offset}, most_bytes, self.isolation_level)).get(at)
            if not isinstance(answer, Fetched):
                code = answer or ErrorCode.UNKNOWN_SERVER_ERROR
                raise KafkaError(code, f"Partition {at}: {code.description}")
            return await self.asking.threads.run(unpack, answer)

        return await one_of_few(self.asking, work)


async def one_of_few(asking: Asking, work: Callable[[], Awaitable[T]]) -> T:
    """Do the work when less than the bound of a console's fetches are under way."""
    async with asking.fetches:
        return await work()
