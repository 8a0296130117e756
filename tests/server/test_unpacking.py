"""Where a frame is unpacked: at once, or in a thread where it lists so much that the loop would be held."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.groups import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from pykbroker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from pykbroker.protocol.schema import Message
from pykbroker.server.network.handlers import ConnectionState, HandlerTable, RequestContext
from pykbroker.server.network.large_requests import COPIED_AT_ONCE_BYTES, FEW_ENTRIES, IN_HAND_BYTES
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.runtime.threads import OnTheLoop

from .serving import dispatcher_of

MANY = FEW_ENTRIES + 1
MOST = 3 * FEW_ENTRIES


def produced(partitions: int, size: int = 20) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=bytes(size)) for index in range(partitions)]
    return ProduceRequest(topic_data=[TopicProduceData(name="apples", partition_data=data)])


def joined(protocols: int, size: int = 20) -> JoinGroupRequest:
    named = [JoinGroupRequestProtocol(name=str(number), metadata=bytes(size)) for number in range(protocols)]
    return JoinGroupRequest(group_id="group", protocols=named)


def synced(members: int, size: int = 20) -> SyncGroupRequest:
    assigned = [SyncGroupRequestAssignment(member_id=str(number), assignment=bytes(size)) for number in range(members)]
    return SyncGroupRequest(group_id="group", assignments=assigned)


class CountingThreads(OnTheLoop):
    """How much is unpacked in them. Answers may be packed there, too."""

    jobs = 0

    async def run(self, fn, *args):  # type: ignore[no-untyped-def]
        self.jobs += getattr(fn, "__name__", "").startswith("decode")
        return await super().run(fn, *args)


class Unpacked:
    """A listener whose handlers note what they get, and answer when they may."""

    def __init__(self) -> None:
        self.threads = CountingThreads()
        self.contexts: list[RequestContext] = []
        self.may_answer = trio.Event()
        table = HandlerTable("broker")

        @table.handles(ProduceRequest, needs=NOTHING, most_entries=MOST)
        async def produce(context: RequestContext, request: ProduceRequest) -> ProduceResponse:
            await self._handle(context)
            return ProduceResponse()

        @table.handles(JoinGroupRequest, needs=NOTHING, most_entries=MOST)
        async def join(context: RequestContext, request: JoinGroupRequest) -> JoinGroupResponse:
            await self._handle(context)
            return JoinGroupResponse(protocol_name="")

        @table.handles(SyncGroupRequest, needs=NOTHING, most_entries=MOST)
        async def sync(context: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
            await self._handle(context)
            return SyncGroupResponse()

        self.dispatcher = dispatcher_of(table, self.threads)

    async def _handle(self, context: RequestContext) -> None:
        self.contexts.append(context)
        await self.may_answer.wait()

    async def ask(self, request: Message, version: int) -> None:
        frame = memoryview(encode_request(request, version, 1, "test"))[4:]
        assert await self.dispatcher.answer(frame, ConnectionState("PLAINTEXT", "127.0.0.1")) is not None


def jobs_of(request: Message, version: int) -> int:
    async def run() -> int:
        unpacked = Unpacked()
        unpacked.may_answer.set()
        await unpacked.ask(request, version)
        assert len(unpacked.contexts) == 1
        return unpacked.threads.jobs

    return trio.run(run)


@pytest.mark.parametrize(
    ("request_", "version"),
    [(produced(MANY), 12), (joined(MANY), 9), (synced(MANY), 5)],
    ids=["produce", "join", "sync"],
)
def test_many_entries_are_unpacked_in_a_thread(request_: Message, version: int) -> None:
    assert jobs_of(request_, version) == 1


@pytest.mark.parametrize("size", [100, 100_000])
def test_records_of_few_partitions_are_taken_at_once(size: int) -> None:
    assert jobs_of(produced(10, size), 12) == 0


@pytest.mark.parametrize(
    ("request_", "version"), [(joined(1, COPIED_AT_ONCE_BYTES), 9), (synced(1, COPIED_AT_ONCE_BYTES), 5)]
)
def test_megabytes_that_are_copied_are_copied_in_a_thread(request_: Message, version: int) -> None:
    assert jobs_of(request_, version) == 1


def test_more_than_an_api_allows_is_refused_wherever_it_is_unpacked() -> None:
    async def run() -> None:
        with pytest.raises(MalformedMessage):
            await Unpacked().ask(produced(MOST), 12)

    trio.run(run)


def test_produce_requests_of_many_partitions_wait_for_each_other_until_one_lets_them() -> None:
    """Each entry takes hundreds of bytes beside its records."""

    async def run() -> None:
        unpacked = Unpacked()
        request = produced(MANY, IN_HAND_BYTES // MANY)
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(unpacked.ask, request, 12)
                await wait_all_tasks_blocked()
            assert len(unpacked.contexts) == 1
            (first,) = unpacked.contexts
            assert first.admission is not None
            first.admission.leave()
            await wait_all_tasks_blocked()
            assert len(unpacked.contexts) == 2
            unpacked.may_answer.set()

    trio.run(run)


def test_members_with_many_entries_do_not_wait_for_each_other() -> None:
    async def run() -> None:
        unpacked = Unpacked()
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(unpacked.ask, joined(MANY, IN_HAND_BYTES // MANY), 9)
            await wait_all_tasks_blocked()
            assert len(unpacked.contexts) == 3
            unpacked.may_answer.set()

    trio.run(run)
