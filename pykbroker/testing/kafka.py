"""Questions that a test may ask of any cluster: its topics, its groups, and to wait until something is so.

Blocking programs have `KafkaUnderTest`, `Topic` and `Group`; coroutines have `AsyncKafkaUnderTest`, `AsyncTopic` and
`AsyncGroup`, whose methods have the same names and are awaited. Errors of brokers are `ClientError`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeVar, TypeVarTuple, Unpack

from .errors import NoJournal
from .lazy_module import LazyModule

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster
    from pykbroker.client.conditions import Wanted
    from pykbroker.client.fetched import ConsumedRecord
    from pykbroker.client.groups import MemberDescription
    from pykbroker.control.journal.recorded_request import RecordedRequest
    from pykbroker.protocol.topic_partition import TopicPartition

    from . import journal as broker_journal
    from . import operations
    from .journal import AsyncBrokerJournal, BrokerJournal
    from .operations import Bytes, Reading
else:
    broker_journal = LazyModule("pykbroker.testing.journal")
    operations = LazyModule("pykbroker.testing.operations")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

WAIT_S: Final = 10.0
BROKER_DEFAULT: Final = -1


class Caller(Protocol):
    """A caller runs coroutines in the thread that has the client of a cluster."""

    def call(self, fn: Callable[[Cluster, Unpack[Ts]], Awaitable[T]], *args: *Ts) -> T: ...
    async def call_async(self, fn: Callable[[Cluster, Unpack[Ts]], Awaitable[T]], *args: *Ts) -> T: ...


class _Named(str):
    """A name that clients take as the text that it is, and that knows its cluster."""

    _caller: Caller

    def __new__(cls, name: str, caller: Caller) -> Self:
        self = super().__new__(cls, name)
        self._caller = caller
        return self

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


class Topic(_Named):
    """A topic of a cluster. It is a `str`, its name, which any client takes."""

    def records(self, **options: Unpack[Reading]) -> list[ConsumedRecord]:
        """Return what a consumer with read_committed sees from the beginning to the end, partition by partition.

        options: `partition`, this one alone; `read_uncommitted`, open and aborted transactions, too; `most`, 100,000
        records where nothing else is said. Raises UnknownTopic, and BadInput where there are more than `most`.
        """
        return self._caller.call(operations.records_of, str(self), options)

    def values(self, **options: Unpack[Reading]) -> list[bytes | None]:
        """Return the values of `records`, with its options."""
        return [record.value for record in self.records(**options)]

    def produce(
        self,
        *values: Bytes,
        key: Bytes = None,
        partition: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> list[tuple[int, int]]:
        """Write values, all with this key, and return partition and offset of each once all are acknowledged."""
        pairs = [(key, value) for value in values]
        return self._caller.call(operations.produce, str(self), pairs, partition, headers)

    def produce_all(self, records: Iterable[tuple[Bytes, Bytes]]) -> list[tuple[int, int]]:
        """Write records of key and value, and return partition and offset of each once all are acknowledged."""
        return self._caller.call(operations.produce, str(self), list(records), None, ())

    def partition_count(self) -> int:
        return len(self._caller.call(operations.partitions_of, str(self)))

    def start_offsets(self) -> dict[int, int]:
        """Return the log start offset of each partition."""
        return self._caller.call(operations.start_offsets, str(self))

    def end_offsets(self) -> dict[int, int]:
        """Return the high watermark of each partition."""
        return self._caller.call(operations.end_offsets, str(self))

    def configs(self) -> dict[str, str | None]:
        """Return the topic's effective configurations."""
        return self._caller.call(operations.topic_configs, str(self))

    def alter_configs(self, configs: Mapping[str, object]) -> None:
        """Change these configurations and leave the others; None takes one back to its default."""
        self._caller.call(operations.alter_topic_configs, str(self), configs)

    def add_partitions(self, total: int) -> None:
        self._caller.call(operations.grow, str(self), total)

    def delete(self) -> None:
        self._caller.call(operations.delete, str(self))


class Group(_Named):
    """A consumer group of a cluster, of either protocol. It is a `str`, its id."""

    def state(self) -> str:
        """Return the state as Kafka spells it. Raises KafkaError with GROUP_ID_NOT_FOUND."""
        return self._caller.call(operations.state_of, str(self))

    def members(self) -> tuple[MemberDescription, ...]:
        return self._caller.call(operations.members_of, str(self))

    def lag(self, topic: str | None = None) -> int:
        """Return how many offsets the group is behind in the topics that it has committed offsets in.

        topic: in this topic alone. A partition without a committed offset counts as a whole.
        """
        return self._caller.call(operations.lag_of, str(self), None if topic is None else str(topic))

    def offsets(self) -> dict[TopicPartition, int]:
        """Return the committed offsets."""
        return self._caller.call(operations.committed_of, str(self))

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets of (topic, partition) from outside of the group, which must have no members."""
        self._caller.call(operations.commit, str(self), offsets)

    def delete(self) -> None:
        self._caller.call(operations.delete_a_group, str(self))


class KafkaUnderTest:
    """A cluster that a test looks at. caller: runs what is asked of it."""

    _caller: Caller

    @property
    def bootstrap_servers(self) -> str:
        raise NotImplementedError

    @property
    def aio(self) -> AsyncKafkaUnderTest:
        """The same cluster for coroutines."""
        return AsyncKafkaUnderTest(self)

    @property
    def journal(self) -> BrokerJournal:
        """The record of what clients have asked and were answered, and of what came of it. Raises NoJournal."""
        raise NoJournal("only a broker of pykbroker in this process has a journal, not one that runs elsewhere")

    def requests(
        self,
        api: str | None = None,
        *,
        client_id: str | None = None,
        topic: str | None = None,
        error: str | None = None,
        since: int = 0,
    ) -> list[RecordedRequest]:
        """Return the requests of clients that fit all that is given, the oldest first (`BrokerJournal.requests`)."""
        return self.journal.requests(api, client_id=client_id, topic=topic, error=error, since=since)

    def topic(self, name: str) -> Topic:
        """Return the topic of this name, whether or not it exists."""
        return Topic(name, self._caller)

    def group(self, group_id: str) -> Group:
        """Return the group of this id, whether or not it exists."""
        return Group(group_id, self._caller)

    def topics(self) -> list[Topic]:
        """Return all topics but internal ones, by name."""
        return [self.topic(name) for name in self._caller.call(operations.topic_names)]

    def groups(self) -> list[Group]:
        return [self.group(group_id) for group_id in self._caller.call(operations.group_ids)]

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = BROKER_DEFAULT,
        replication_factor: int = BROKER_DEFAULT,
        configs: Mapping[str, object] | None = None,
    ) -> Topic:
        """Create a topic, and return when every client of a broker finds it. Raises KafkaError.

        In a cluster a node may hear of it, and take up what it leads, a moment later: clients ask again until then.
        """
        self._caller.call(operations.create, name, partitions, replication_factor, configs or {})
        return self.topic(name)

    def wait_for(self, *, timeout: float = WAIT_S, **what: Unpack[Wanted]) -> None:
        """Wait until something is so, for `timeout` seconds at most.

        what: `topic=` (it is there), with `partitions=` or `records=` (at least so many); `group=` (it is stable), with
        `state=`, `members=` or `lag=` (at most), of one `topic=` where that is given. Raises ConditionNotMet, a
        TimeoutError of sorts, which says what there was instead, and BadInput for a wait that means nothing.
        """
        self._caller.call(operations.wait, what, timeout)


class AsyncTopic(_Named):
    """`Topic` for coroutines."""

    async def records(self, **options: Unpack[Reading]) -> list[ConsumedRecord]:
        return await self._caller.call_async(operations.records_of, str(self), options)

    async def values(self, **options: Unpack[Reading]) -> list[bytes | None]:
        return [record.value for record in await self.records(**options)]

    async def produce(
        self,
        *values: Bytes,
        key: Bytes = None,
        partition: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> list[tuple[int, int]]:
        pairs = [(key, value) for value in values]
        return await self._caller.call_async(operations.produce, str(self), pairs, partition, headers)

    async def produce_all(self, records: Iterable[tuple[Bytes, Bytes]]) -> list[tuple[int, int]]:
        return await self._caller.call_async(operations.produce, str(self), list(records), None, ())

    async def partition_count(self) -> int:
        return len(await self._caller.call_async(operations.partitions_of, str(self)))

    async def start_offsets(self) -> dict[int, int]:
        return await self._caller.call_async(operations.start_offsets, str(self))

    async def end_offsets(self) -> dict[int, int]:
        return await self._caller.call_async(operations.end_offsets, str(self))

    async def configs(self) -> dict[str, str | None]:
        return await self._caller.call_async(operations.topic_configs, str(self))

    async def alter_configs(self, configs: Mapping[str, object]) -> None:
        await self._caller.call_async(operations.alter_topic_configs, str(self), configs)

    async def add_partitions(self, total: int) -> None:
        await self._caller.call_async(operations.grow, str(self), total)

    async def delete(self) -> None:
        await self._caller.call_async(operations.delete, str(self))


class AsyncGroup(_Named):
    """`Group` for coroutines."""

    async def state(self) -> str:
        return await self._caller.call_async(operations.state_of, str(self))

    async def members(self) -> tuple[MemberDescription, ...]:
        return await self._caller.call_async(operations.members_of, str(self))

    async def lag(self, topic: str | None = None) -> int:
        return await self._caller.call_async(operations.lag_of, str(self), None if topic is None else str(topic))

    async def offsets(self) -> dict[TopicPartition, int]:
        return await self._caller.call_async(operations.committed_of, str(self))

    async def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        await self._caller.call_async(operations.commit, str(self), offsets)

    async def delete(self) -> None:
        await self._caller.call_async(operations.delete_a_group, str(self))


class AsyncKafkaUnderTest:
    """`KafkaUnderTest` for coroutines; what `async with` gives."""

    def __init__(self, kafka: KafkaUnderTest) -> None:
        self.blocking: Final = kafka
        """The same cluster with methods that block."""
        self._caller = kafka._caller

    @property
    def bootstrap_servers(self) -> str:
        return self.blocking.bootstrap_servers

    @property
    def journal(self) -> AsyncBrokerJournal:
        """The record of what clients have asked and were answered, and of what came of it. Raises NoJournal."""
        return broker_journal.AsyncBrokerJournal(self.blocking.journal)

    async def requests(
        self,
        api: str | None = None,
        *,
        client_id: str | None = None,
        topic: str | None = None,
        error: str | None = None,
        since: int = 0,
    ) -> list[RecordedRequest]:
        """Return the requests of clients that fit all that is given, the oldest first (`BrokerJournal.requests`)."""
        return await self.journal.requests(api, client_id=client_id, topic=topic, error=error, since=since)

    def topic(self, name: str) -> AsyncTopic:
        return AsyncTopic(name, self._caller)

    def group(self, group_id: str) -> AsyncGroup:
        return AsyncGroup(group_id, self._caller)

    async def topics(self) -> list[AsyncTopic]:
        return [self.topic(name) for name in await self._caller.call_async(operations.topic_names)]

    async def groups(self) -> list[AsyncGroup]:
        return [self.group(group_id) for group_id in await self._caller.call_async(operations.group_ids)]

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = BROKER_DEFAULT,
        replication_factor: int = BROKER_DEFAULT,
        configs: Mapping[str, object] | None = None,
    ) -> AsyncTopic:
        await self._caller.call_async(operations.create, name, partitions, replication_factor, configs or {})
        return self.topic(name)

    async def wait_for(self, *, timeout: float = WAIT_S, **what: Unpack[Wanted]) -> None:
        """Wait as `KafkaUnderTest.wait_for` does."""
        await self._caller.call_async(operations.wait, what, timeout)
