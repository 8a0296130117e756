"""Lookups of timestamps: what is done beside the event loop, and what may change meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pykbroker.api.list_offsets import list_offsets
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from pykbroker.protocol.records import compression
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.records.compression import Compression
from pykbroker.server.logs.record_checks import RecordChecks
from pykbroker.server.network.handlers import CloseConnection
from pykbroker.server.runtime.threads import WorkerThreads
from pykbroker.storage.files.disk import OsDiskFile
from tests.api.api_node import ApiNode, in_virtual_time
from tests.api.held_threads import HeldThreads, do_meanwhile
from tests.api.turns_taken import context_of

FIRST_MS = 1000
RECORDS = 3000
NEWEST = 11
LATEST = -1
MAX_TIMESTAMP = -3


def append_compressed(node: ApiNode, topic: str, index: int = 0, first_ms: int = FIRST_MS) -> None:
    records = [Record(None, bytes(100), (), first_ms + number) for number in range(RECORDS)]
    data = encode_batch(records, compression=Compression.GZIP)
    node.replicas.append(node.partition(topic, index), data, node.clock.now_ms(), 1)


def request(*asked: tuple[int, int], epoch: int = -1) -> ListOffsetsRequest:
    partitions = [
        ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)
        for index, timestamp in asked
    ]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="apples", partitions=partitions)])


Answer = tuple[int, ErrorCode, int]
"""Index, error, offset."""


def answers(response: ListOffsetsResponse) -> list[Answer]:
    return [
        (each.partition_index, ErrorCode(each.error_code), each.offset)
        for topic in response.topics
        for each in topic.partitions
    ]


def ask(node: ApiNode, sent: ListOffsetsRequest, meanwhile: Callable[[], Any] = int) -> list[Answer]:
    """`meanwhile` is done while a thread looks for the first timestamp."""

    async def run() -> list[Answer]:
        threads = HeldThreads()
        node.replicas.timestamp_lookups = RecordChecks(threads)
        found: list[Answer] = []

        async def call() -> None:
            found.extend(answers(await node.call(list_offsets, sent, NEWEST)))

        await do_meanwhile(threads, call, meanwhile)
        return found

    return in_virtual_time(run)


def test_no_records_are_read_or_decompressed_on_the_event_loop(node: ApiNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.create_topic("apples")
    append_compressed(node, "apples")
    append_compressed(node, "apples", first_ms=FIRST_MS + RECORDS)
    decompressed: list[int] = []
    read: list[int] = []
    decompressobj, read_at = compression.zlib.decompressobj, OsDiskFile.read_at

    def noted_decompressobj(**options: Any) -> Any:
        decompressed.append(threading.get_ident())
        return decompressobj(**options)

    def noted_read_at(file: OsDiskFile, position: int, size: int) -> bytes:
        if file.path.endswith(".log"):
            read.append(threading.get_ident())
        return read_at(file, position, size)

    monkeypatch.setattr(compression.zlib, "decompressobj", noted_decompressobj)
    monkeypatch.setattr(OsDiskFile, "read_at", noted_read_at)
    node.replicas.timestamp_lookups = RecordChecks(WorkerThreads())
    last = 2 * RECORDS - 1

    async def run() -> list[Answer]:
        return [
            answers(await node.call(list_offsets, request((0, timestamp)), NEWEST))[0]
            for timestamp in (FIRST_MS + RECORDS - 1, FIRST_MS + last, MAX_TIMESTAMP)
        ]

    found = trio.run(run)
    assert found == [(0, ErrorCode.NONE, offset) for offset in (RECORDS - 1, last, last)]
    assert len(decompressed) == 3
    assert read
    assert threading.get_ident() not in {*decompressed, *read}


def test_answers_come_in_the_order_of_the_request(node: ApiNode) -> None:
    node.create_topic("apples", 3)
    for index in range(3):
        append_compressed(node, "apples", index)
    sent = request((2, FIRST_MS + 5), (0, LATEST), (1, FIRST_MS + 7), (9, FIRST_MS))
    assert ask(node, sent) == [
        (2, ErrorCode.NONE, 5),
        (0, ErrorCode.NONE, RECORDS),
        (1, ErrorCode.NONE, 7),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]


@pytest.mark.parametrize(("epoch", "error"), [(-1, "NOT_LEADER_OR_FOLLOWER"), (0, "FENCED_LEADER_EPOCH")])
def test_a_leader_that_is_demoted_during_a_lookup_has_no_answer(node: ApiNode, epoch: int, error: str) -> None:
    node.create_topic("apples", replicas=[1, 2])
    append_compressed(node, "apples")
    demote = lambda: node.change_partition("apples", 0, leader=2)  # noqa: E731
    assert ask(node, request((0, FIRST_MS), epoch=epoch), demote) == [(0, ErrorCode[error], -1)]


def test_a_topic_that_is_deleted_during_a_lookup_is_unknown(node: ApiNode) -> None:
    node.create_topic("apples")
    append_compressed(node, "apples")
    found = ask(node, request((0, FIRST_MS)), lambda: node.delete_topic("apples"))
    assert found == [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]


def test_a_topic_that_is_created_anew_during_a_lookup_is_looked_through(node: ApiNode) -> None:
    node.create_topic("apples")
    append_compressed(node, "apples")

    def create_anew() -> None:
        node.delete_topic("apples")
        node.create_topic("apples")
        node.append("apples", b"a", b"b", timestamp=FIRST_MS + 99)

    assert ask(node, request((0, FIRST_MS + 100)), create_anew) == [(0, ErrorCode.NONE, 1)]


def test_records_that_are_deleted_during_a_lookup_are_not_found(node: ApiNode) -> None:
    node.create_topic("apples")
    append_compressed(node, "apples")
    delete = lambda: node.partition("apples").delete_records(77)  # noqa: E731
    assert ask(node, request((0, FIRST_MS)), delete) == [(0, ErrorCode.NONE, 77)]


def test_for_a_client_that_has_left_nothing_more_is_looked_for(node: ApiNode) -> None:
    node.create_topic("apples", 2)
    for index in range(2):
        append_compressed(node, "apples", index)

    async def run() -> None:
        threads = HeldThreads()
        node.replicas.timestamp_lookups = RecordChecks(threads)
        sent = request((0, FIRST_MS), (1, FIRST_MS))
        context = context_of(node.broker, sent, NEWEST)

        async def leave() -> None:
            await wait_all_tasks_blocked()
            context.connection.has_left = True
            threads.let_go()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(leave)
            with pytest.raises(CloseConnection):
                await list_offsets(context, sent)
        assert threads.begun == 1

    in_virtual_time(run)


def test_damage_that_a_lookup_finds_quarantines_the_partition(node: ApiNode) -> None:
    node.create_topic("apples")
    append_compressed(node, "apples")
    (path,) = node.path.glob("data/apples-0/*.log")
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    assert ask(node, request((0, FIRST_MS))) == [(0, ErrorCode.KAFKA_STORAGE_ERROR, -1)]
    assert node.replicas.get_partition("apples", 0) is ErrorCode.KAFKA_STORAGE_ERROR
