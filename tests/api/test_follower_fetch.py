"""A follower's long polls at the handler: those that it broke off, or left behind, say nothing of it any more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from pykbroker.api.fetch import fetch
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from pykbroker.replication.appended import Appended
from pykbroker.replication.partition import Partition
from pykbroker.server.network.handlers import ConnectionState
from tests.api.api_node import ApiNode, in_virtual_time

VERSION = 17
MAX_WAIT_MS = 10_000


class FollowerAtTheLeader:
    """Broker 2 and a partition that node 1 leads; what it asks is told request by request."""

    def __init__(self, node: ApiNode) -> None:
        self._node = node
        self.topic_id = node.create_topic("apples", replicas=[1, 2])

    @property
    def partition(self) -> Partition:
        return self._node.partition("apples")

    @property
    def offset(self) -> int:
        return self.partition.in_sync.followers[2].log_end_offset

    def append(self) -> Appended:
        self._node.append("apples", b"a")
        return Appended(self.partition, self.partition.log.log_end_offset)

    async def fetch(
        self,
        offset: int | None = None,
        *,
        session: tuple[int, int] = (0, 0),
        max_wait_ms: int = 0,
        connection: ConnectionState | None = None,
    ) -> FetchResponse:
        """session: its id and epoch. offset: None where the partition is not named."""
        session_id, session_epoch = session
        asked = [] if offset is None else [FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)]
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=2),
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=1000,
            session_id=session_id,
            session_epoch=session_epoch,
            topics=[FetchTopic(topic_id=self.topic_id, partitions=asked)] if asked else [],
        )
        response: FetchResponse = await self._node.call(fetch, request, VERSION, connection=connection)
        return response

    async def open_session(self, offset: int) -> int:
        """And settle it: the follower has everything."""
        session_id = (await self.fetch(offset)).session_id
        assert session_id
        await self.fetch(session=(session_id, 1))
        return session_id


@pytest.fixture
def follower(node: ApiNode) -> FollowerAtTheLeader:
    return FollowerAtTheLeader(node)


def with_a_waiting_request(
    begin: Callable[[], Awaitable[FetchResponse]], meanwhile: Callable[[], Awaitable[None]]
) -> tuple[FetchResponse, float]:
    """The answer of the request that waits, and when it came."""
    answers: list[tuple[FetchResponse, float]] = []

    async def wait() -> None:
        started = trio.current_time()
        answers.append((await begin(), trio.current_time() - started))

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.sleep(0.1)
            await meanwhile()

    in_virtual_time(run)
    return answers[0]


def test_a_long_poll_that_was_broken_off_does_not_take_its_follower_back(follower: FollowerAtTheLeader) -> None:
    """The follower has asked anew, and has told of more; what comes then is read once more for the first request."""

    async def broken_off() -> FetchResponse:
        return await follower.fetch(0, max_wait_ms=MAX_WAIT_MS)

    async def ask_anew() -> None:
        first = follower.append()
        # The first request is about to be answered, on a connection that is gone.
        session_id = (await follower.fetch(0)).session_id
        await follower.fetch(1, session=(session_id, 1))
        assert (follower.offset, first.settled()) == (1, ErrorCode.NONE)
        await trio.sleep(1)
        assert follower.offset == 1

    with_a_waiting_request(broken_off, ask_anew)
    second = follower.append()
    assert second.settled() is None


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_request_that_was_overtaken_ends_its_wait(follower: FollowerAtTheLeader, is_replaced: bool) -> None:
    """By a new session in place of its own, or by the next request of that on another connection."""

    async def wait() -> FetchResponse:
        wait.session_id = session_id = await follower.open_session(0)  # type: ignore[attr-defined]
        return await follower.fetch(session=(session_id, 2), max_wait_ms=MAX_WAIT_MS)

    async def overtake() -> None:
        epoch = 0 if is_replaced else 3
        await follower.fetch(0, session=(wait.session_id, epoch))  # type: ignore[attr-defined]
        follower.append()

    answer, took_s = with_a_waiting_request(wait, overtake)
    assert took_s < 1
    assert not answer.responses
    if not is_replaced:
        assert answer.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_changes_go_to_the_request_that_speaks_for_the_session(follower: FollowerAtTheLeader) -> None:
    async def overtaken() -> FetchResponse:
        overtaken.session_id = session_id = await follower.open_session(0)  # type: ignore[attr-defined]
        return await follower.fetch(session=(session_id, 2), max_wait_ms=1000)

    async def overtake() -> None:
        started = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(append_later)
            session = overtaken.session_id, 3  # type: ignore[attr-defined]
            answer = await follower.fetch(session=session, max_wait_ms=MAX_WAIT_MS)
        assert answer.responses
        assert trio.current_time() - started == pytest.approx(2)

    async def append_later() -> None:
        await trio.sleep(2)
        follower.append()

    with_a_waiting_request(overtaken, overtake)


def test_a_connection_that_ends_leaves_no_watcher(follower: FollowerAtTheLeader) -> None:
    connection = ConnectionState("PLAINTEXT", "127.0.0.2")

    async def run() -> None:
        for _ in range(3):  # sessions that the follower forgot
            session_id = (await follower.fetch(0)).session_id
            await follower.fetch(session=(session_id, 1), connection=connection)
        assert follower.partition.watchers
        assert connection.when_closed is not None
        connection.when_closed()
        assert not follower.partition.watchers

    in_virtual_time(run)


def test_a_session_that_goes_on_elsewhere_is_watched_on(follower: FollowerAtTheLeader) -> None:
    first = ConnectionState("PLAINTEXT", "127.0.0.2")

    async def run() -> None:
        session_id = (await follower.fetch(0)).session_id
        await follower.fetch(session=(session_id, 1), connection=first)
        await follower.fetch(session=(session_id, 2), connection=ConnectionState("PLAINTEXT", "127.0.0.3"))
        assert first.when_closed is not None
        first.when_closed()
        assert len(follower.partition.watchers) == 1

    in_virtual_time(run)
