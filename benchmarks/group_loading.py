"""How long a broker with many groups takes until it serves them all again."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import trio

from benchmarks.bench import Bench, Figures
from benchmarks.brokers import cpu_seconds, spawn
from benchmarks.classic_members import connections, run_together
from compat_tests.brokers import BrokerFailed, BrokerProcess
from compat_tests.raw_client import RawClient
from pykbroker.client.connection import Connection
from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)

GROUPS = 10_000
OFFSETS_EACH = 10
CONNECTIONS = 20
TOPIC = "offsets-of-many"

_FETCH_VERSION = 8
_FETCHED_AT_ONCE = 1000
_DEADLINE_S = 120.0
_POLL_INTERVAL_S = 0.02
_STARTING = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class _Loading(Exception):
    """Not every group is served so far."""


def load_groups(bench: Bench) -> Figures:
    """10,000 groups with ten offsets each, a clean stop, and a start until every offset of them all is told again."""
    bench.create_topic(TOPIC, OFFSETS_EACH)
    groups = [f"group-{number}" for number in range(bench.count(GROUPS))]
    trio.run(_commit_all, bench, groups)
    broker = bench.broker
    broker.stop()
    spawn(broker)
    _wait_until(broker, lambda client: client.call(_fetch([])))
    started = time.perf_counter()
    _wait_until(broker, partial(_check_offsets, groups=groups))
    return {"s": time.perf_counter() - started, "CPU s of the start": cpu_seconds(broker)}


async def _commit_all(bench: Bench, groups: list[str]) -> None:
    async with connections(bench.broker.address, groups[0], CONNECTIONS) as opened:
        shares = [groups[number::CONNECTIONS] for number in range(CONNECTIONS)]
        await run_together([partial(_commit, *each) for each in zip(opened, shares, strict=True)])


async def _commit(connection: Connection, groups: list[str]) -> None:
    for group_id in groups:
        partitions = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=index + 1, committed_metadata="")
            for index in range(OFFSETS_EACH)
        ]
        request = OffsetCommitRequest(
            group_id=group_id, topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)]
        )
        while True:
            answer = await connection.request(request, OffsetCommitResponse, version=9)
            code = ErrorCode(answer.topics[0].partitions[0].error_code)
            if code is ErrorCode.NONE:
                break
            assert code in _STARTING, f"the commit was refused: {code.name}"


def _fetch(groups: list[str]) -> bytes:
    asked = [OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in groups]
    return encode_request(OffsetFetchRequest(groups=asked), _FETCH_VERSION, 1, "bench")


def _check_offsets(client: RawClient, groups: list[str]) -> None:
    """Raises _Loading."""
    for start in itertools.count(0, _FETCHED_AT_ONCE):
        chunk = groups[start : start + _FETCHED_AT_ONCE]
        if not chunk:
            return
        answer, _ = decode(OffsetFetchResponse, _FETCH_VERSION, client.call(_fetch(chunk)), 5)
        if any(group.error_code for group in answer.groups):
            raise _Loading
        for group in answer.groups:
            found = [each.committed_offset for topic in group.topics for each in topic.partitions]
            assert sorted(found) == list(range(1, OFFSETS_EACH + 1)), f"{group.group_id} has {found}"


def _wait_until(broker: BrokerProcess, answers: Callable[[RawClient], object]) -> None:
    """Raises BrokerFailed."""
    deadline = time.perf_counter() + _DEADLINE_S
    while True:
        with suppress(OSError, _Loading), RawClient(broker.address, timeout_s=60) as client:
            answers(client)
            return
        if time.perf_counter() > deadline:
            raise BrokerFailed(f"{broker.kind} does not serve its groups:\n{broker.log_tail()}")
        time.sleep(_POLL_INTERVAL_S)
