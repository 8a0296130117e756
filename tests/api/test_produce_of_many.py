"""Produce requests that name many partitions: what they do for each of them is bounded, and done in turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import pykbroker.api.current_leader
from pykbroker.api.produce import produce
from pykbroker.protocol.errors import ErrorCode
from pykbroker.replication.appended import Appended
from pykbroker.server.logs.record_checks import RecordChecks
from pykbroker.server.network.large_requests import LargeRequests
from pykbroker.server.runtime.turns import STEPS_PER_TURN
from tests.api.api_node import ApiNode, batch, in_virtual_time
from tests.api.held_threads import HeldThreads
from tests.api.test_long_produce import long_batch
from tests.api.test_produce import NEWEST, answers, errors, request
from tests.api.turns_taken import context_of

MANY = 60


def follow(node: ApiNode, index: int) -> None:
    """Broker 2 tells that it has what there is."""
    partition = node.partition("apples", index)
    partition.read_as_replica(2, partition.log.log_end_offset, 1000, 0, True, now_ms=0, broker_epoch=-1)


def test_what_has_changed_is_looked_at_and_not_all_that_is_open(node: ApiNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.create_topic("apples", MANY, replicas=[1, 2])
    looks = 0
    settled = Appended.settled

    def counted(appended: Appended) -> ErrorCode | None:
        nonlocal looks
        looks += 1
        return settled(appended)

    monkeypatch.setattr(Appended, "settled", counted)
    found: list[Any] = []

    async def ask() -> None:
        sent = [("apples", index, batch(b"a")) for index in range(MANY)]
        found.extend(answers(await node.call(produce, request(*sent), NEWEST)))

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            for index in range(MANY):
                await wait_all_tasks_blocked()
                assert not found
                follow(node, index)

    in_virtual_time(run)
    assert errors(found) == [ErrorCode.NONE] * MANY
    assert looks <= 3 * MANY  # at the append, before the wait, and at the change


def test_only_what_is_open_times_out(node: ApiNode) -> None:
    node.create_topic("apples", 3, replicas=[1, 2])
    found: list[Any] = []

    async def ask() -> None:
        sent = [("apples", index, batch(b"a")) for index in range(3)]
        found.extend(answers(await node.call(produce, request(*sent), NEWEST)))

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await wait_all_tasks_blocked()
            follow(node, 1)

    in_virtual_time(run)
    assert errors(found) == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT]


def in_hand_while(node: ApiNode, sent: bytes, meanwhile: Callable[[], Awaitable[None]]) -> int:
    """How many bytes of large requests are in hand while this one waits."""

    async def run() -> int:
        large = LargeRequests()
        context = context_of(node.broker, asked := request(("apples", 0, sent)), NEWEST)
        context.admission = await large.enter(1000)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(produce, context, asked)
            await wait_all_tasks_blocked()
            in_hand = large.in_hand_bytes
            await meanwhile()
        return in_hand

    return in_virtual_time(run)


def test_a_large_request_that_waits_for_replicas_lets_the_next_one_in(node: ApiNode) -> None:
    node.create_topic("apples", replicas=[1, 2])

    async def replicated() -> None:
        follow(node, 0)

    assert in_hand_while(node, batch(b"a"), replicated) == 0


def test_a_large_request_that_waits_for_a_check_lets_the_next_one_in(node: ApiNode) -> None:
    node.create_topic("apples")
    threads = HeldThreads()
    node.replicas.record_checks = RecordChecks(threads)

    async def checked() -> None:
        threads.let_go()

    assert in_hand_while(node, long_batch(), checked) == 0


def test_leaders_elsewhere_are_looked_up_in_turns(node: ApiNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.create_topic("pears", 3 * STEPS_PER_TURN, leader=2)
    looked_up = most_in_a_turn = 0
    current_leader = pykbroker.api.current_leader.current_leader

    def counted(*args: Any) -> Any:
        nonlocal looked_up
        looked_up += 1
        return current_leader(*args)

    monkeypatch.setattr(pykbroker.api.current_leader, "current_leader", counted)

    async def others() -> None:
        nonlocal most_in_a_turn
        while True:
            before = looked_up
            await trio.lowlevel.checkpoint()
            most_in_a_turn = max(most_in_a_turn, looked_up - before)

    async def run() -> None:
        sent = [("pears", index, b"") for index in range(3 * STEPS_PER_TURN)]
        asked = request(*sent)
        asked.topic_data[0].partition_data = [each.partition_data[0] for each in asked.topic_data]
        del asked.topic_data[1:]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(others)
            response = await node.call(produce, asked, NEWEST)
            await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        assert {each.current_leader.leader_id for each in answers(response)} == {2}
        assert [each.node_id for each in response.node_endpoints] == [2]

    trio.run(run)
    assert looked_up == 3 * STEPS_PER_TURN
    assert most_in_a_turn < STEPS_PER_TURN
