"""Questions why, to the brokers of a test: `broker.why.group("g")` and its kin. Each answer is a value; `str` of it
reads well, `verdict` is its one sentence, and `reason` a word for assertions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .lazy_module import LazyModule

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import TypeVar

    from pykbroker.control.why import consumer, group, lso, requests, sources, throttle
    from pykbroker.control.why.answers import ConsumerAnswer, GroupAnswer, LsoAnswer, ThrottleAnswer

    from .hosted_node import HostedNode
    from .loop_thread import LoopThread

    T = TypeVar("T")
else:
    consumer = LazyModule("pykbroker.control.why.consumer")
    group = LazyModule("pykbroker.control.why.group")
    lso = LazyModule("pykbroker.control.why.lso")
    requests = LazyModule("pykbroker.control.why.requests")
    sources = LazyModule("pykbroker.control.why.sources")
    throttle = LazyModule("pykbroker.control.why.throttle")


class Hosted(Protocol):
    """A cluster whose nodes run in this process."""

    nodes: Sequence[HostedNode]

    def running_loop(self) -> LoopThread: ...
    def check_running(self) -> None: ...


class Why:
    """The questions. Those who do not run are not asked. Raises BrokerNotRunning, and ValueError for a bad question."""

    def __init__(self, kafka: Hosted) -> None:
        self._kafka = kafka

    def group(self, group_id: str) -> GroupAnswer:
        """Return why a group is as it is: members, rebalances and their causes, who is waited for, lag."""
        return self._ask(_group, group_id)

    def consumer(
        self,
        group_id: str | None = None,
        *,
        client_id: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
    ) -> ConsumerAnswer:
        """Return why the consumers of a group, or the client of that id, get what they get, or nothing."""
        return self._ask(_consumer, group_id, client_id, topic, partition)

    def lso(self, topic: str, partition: int = 0) -> LsoAnswer:
        """Return what holds the last stable offset of a partition."""
        return self._ask(_lso, topic, partition)

    def throttle(self, client_id: str = "", *, user: str = "ANONYMOUS") -> ThrottleAnswer:
        """Return which quotas apply to a client, and whether it is throttled."""
        return self._ask(_throttle, client_id, user)

    def _ask(self, question: Callable[..., Awaitable[T]], *args: object) -> T:
        return self._kafka.running_loop().call(question, self._kafka, *args)


class AsyncWhy:
    """The questions for coroutines."""

    def __init__(self, kafka: Hosted) -> None:
        self._kafka = kafka

    async def group(self, group_id: str) -> GroupAnswer:
        return await self._ask(_group, group_id)

    async def consumer(
        self,
        group_id: str | None = None,
        *,
        client_id: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
    ) -> ConsumerAnswer:
        return await self._ask(_consumer, group_id, client_id, topic, partition)

    async def lso(self, topic: str, partition: int = 0) -> LsoAnswer:
        return await self._ask(_lso, topic, partition)

    async def throttle(self, client_id: str = "", *, user: str = "ANONYMOUS") -> ThrottleAnswer:
        return await self._ask(_throttle, client_id, user)

    async def _ask(self, question: Callable[..., Awaitable[T]], *args: object) -> T:
        return await self._kafka.running_loop().call_async(question, self._kafka, *args)


def _sources(kafka: Hosted) -> sources.Sources:
    kafka.check_running()
    return sources.Sources(requests.brokers_of(node.node for node in kafka.nodes))


async def _group(kafka: Hosted, group_id: str) -> GroupAnswer:
    return await group.why_group(_sources(kafka), requests.named("group", str(group_id)))


async def _consumer(
    kafka: Hosted, group_id: str | None, client_id: str | None, topic: str | None, partition: int | None
) -> ConsumerAnswer:
    return await consumer.why_consumer(_sources(kafka), group_id, client_id=client_id, topic=topic, partition=partition)


async def _lso(kafka: Hosted, topic: str, partition: int) -> LsoAnswer:
    return await lso.why_lso(_sources(kafka), requests.named("topic", topic), partition)


async def _throttle(kafka: Hosted, client_id: str, user: str) -> ThrottleAnswer:
    return await throttle.why_throttle(_sources(kafka), user, client_id)
