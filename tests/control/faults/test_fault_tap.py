"""The tap of faults, without a broker: what becomes of a request, of its answer and of its connection."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pykbroker.control.faults import waits as waits_module
from pykbroker.control.faults.fault_tap import FaultTap, beginning_of
from pykbroker.control.faults.faults import Faults
from pykbroker.control.faults.plan import MOST_RULES
from pykbroker.control.faults.waits import Waits
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.framing import decode_response_header, encode_request, encode_response
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from pykbroker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from pykbroker.protocol.schema import Message
from pykbroker.server.network.handlers import CloseConnection, ConnectionState
from pykbroker.server.runtime.causes import Handling, handling
from pykbroker.server.runtime.threads import OnTheLoop
from tests.api.api_node import in_virtual_time

VERSIONS = {ApiKey.PRODUCE: 9, ApiKey.METADATA: 9, ApiKey.HEARTBEAT: 4, ApiKey.FETCH: 12}
ANSWERS: dict[int, type[Message]] = {
    ApiKey.PRODUCE: ProduceResponse,
    ApiKey.METADATA: MetadataResponse,
    ApiKey.FETCH: FetchResponse,
}


class CountingThreads(OnTheLoop):
    def __init__(self) -> None:
        self.calls = 0
        self.when_called: Callable[[], object] = lambda: None

    async def run(self, fn: Callable[..., Any], *args: Any) -> Any:
        self.calls += 1
        self.when_called()
        return await super().run(fn, *args)


@dataclass
class Stand:
    """A tap with faults in front of a broker that answers everything."""

    faults: Faults = field(default_factory=Faults)
    threads: CountingThreads = field(default_factory=CountingThreads)
    handled: list[str] = field(default_factory=list)
    had_left: list[bool] = field(default_factory=list)
    connection: ConnectionState = field(default_factory=lambda: ConnectionState("PLAINTEXT", "127.0.0.1"))

    def __post_init__(self) -> None:
        self.waits = self.faults._waits = Waits()
        self.tap = FaultTap(self.faults.plan, self.waits, lambda: None, self.threads)

    async def ask(
        self, request: Message, client_id: str | None = "app", connection: ConnectionState | None = None
    ) -> bytes | None:
        """Return the frame of the answer."""
        api_key = request.__schema__.api_key
        assert api_key is not None
        frame = memoryview(encode_request(request, VERSIONS[ApiKey(api_key)], 5, client_id)[4:])

        async def handle() -> list[Any] | None:
            await trio.lowlevel.checkpoint()
            self.handled.append(type(request).__name__)
            self.had_left.append(self.connection.has_left)
            if getattr(request, "acks", -1) == 0:
                return None
            response = ANSWERS.get(api_key, HeartbeatResponse)()
            return list(encode_response(5, response, VERSIONS[ApiKey(api_key)]))

        answer = await self.tap.exchange(frame, connection or self.connection, handle)
        return None if answer is None else b"".join(part for part in answer if isinstance(part, bytes))


def run(test: Callable[[Stand], Awaitable[None]]) -> None:
    async def main() -> None:
        await test(Stand())

    in_virtual_time(main)


def produce(topic: str = "orders", acks: int = -1) -> ProduceRequest:
    partitions = [PartitionProduceData(index=0, records=b"records")]
    return ProduceRequest(acks=acks, topic_data=[TopicProduceData(name=topic, partition_data=partitions)])


def error_of(frame: bytes | None) -> int:
    """The error of a Produce's answer; NONE where it is the broker's own."""
    assert frame is not None
    correlation_id, body = decode_response_header(frame[4:], ApiKey.PRODUCE, VERSIONS[ApiKey.PRODUCE])
    assert correlation_id == 5
    response, _ = decode(ProduceResponse, VERSIONS[ApiKey.PRODUCE], frame[4:], body)
    codes = [partition.error_code for topic in response.responses for partition in topic.partition_responses]
    return codes[0] if codes else ErrorCode.NONE


def test_an_error_comes_in_the_place_of_the_request_or_behind_it() -> None:
    async def test(stand: Stand) -> None:
        stand.faults.add({"api": "Produce", "nth": 1, "error": "NOT_LEADER_OR_FOLLOWER"})
        stand.faults.add({"api": "Produce", "nth": 2, "error": "REQUEST_TIMED_OUT", "when": "after"})
        assert error_of(await stand.ask(produce())) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert stand.handled == []
        assert error_of(await stand.ask(produce())) == ErrorCode.REQUEST_TIMED_OUT
        assert stand.handled == ["ProduceRequest"]
        assert error_of(await stand.ask(produce())) == ErrorCode.NONE

    run(test)


def test_only_what_is_meant_is_counted() -> None:
    async def test(stand: Stand) -> None:
        meant = {"api": "Produce", "topic": "ord*", "client_id": "app"}
        rule = stand.faults.add({**meant, "error": "UNKNOWN_SERVER_ERROR"})
        for request, client_id in (
            (produce(), "other"),
            (produce("others"), "app"),
            (MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), "app"),
            (produce(), None),
        ):
            await stand.ask(request, client_id)
        assert (rule.fitted, rule.taken) == (0, 0)
        await stand.ask(produce())
        assert (rule.fitted, rule.taken) == (1, 1)

    run(test)


def test_waits_of_all_rules_come_about_and_the_first_that_does_more() -> None:
    async def test(stand: Stand) -> None:
        stand.faults.add({"api": "Produce", "delay": "1s"})
        first = stand.faults.add({"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"})
        second = stand.faults.add({"api": "Produce", "drop": "before"})
        stand.faults.add({"api": "Produce", "hold": "2s"})
        began = trio.current_time()
        assert error_of(await stand.ask(produce())) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert trio.current_time() - began == pytest.approx(3)
        assert (first.taken, second.fitted, second.taken) == (1, 1, 0)

    run(test)


def test_a_dropped_request_is_carried_out_or_not_as_it_is_said() -> None:
    async def test(stand: Stand) -> None:
        stand.faults.add({"api": "Produce", "nth": 1, "drop": "before"})
        stand.faults.add({"api": "Produce", "nth": 2, "drop": "after"})
        for handled in (0, 1):
            with pytest.raises(CloseConnection) as raised:
                await stand.ask(produce())
            assert raised.value.answer is None
            assert len(stand.handled) == handled

    run(test)


def test_a_cut_answer_begins_right_and_does_not_end() -> None:
    async def test(stand: Stand) -> None:
        whole = await stand.ask(produce())
        assert whole is not None
        stand.faults.add({"api": "Produce", "cut": True})
        with pytest.raises(CloseConnection) as raised:
            await stand.ask(produce())
        assert raised.value.answer is not None
        part = b"".join(each for each in raised.value.answer if isinstance(each, bytes))
        assert 4 < len(part) < len(whole)
        assert whole.startswith(part)

    run(test)


def test_a_large_answer_is_cut_after_64_kib() -> None:
    parts = beginning_of([b"x" * 1000, b"y" * 10_000_000, b"z"])
    assert sum(len(part) for part in parts if isinstance(part, bytes)) == 65_536


def test_a_producer_that_wants_no_answer_is_closed_as_by_kafka() -> None:
    async def test(stand: Stand) -> None:
        assert await stand.ask(produce(acks=0)) is None
        before = stand.faults.add({"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"})
        with pytest.raises(CloseConnection, match="wants no answer"):
            await stand.ask(produce(acks=0))
        assert len(stand.handled) == 1
        stand.faults.remove(before)
        after = stand.faults.add({"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "when": "after"})
        with pytest.raises(CloseConnection, match="wants no answer"):
            await stand.ask(produce(acks=0))
        assert len(stand.handled) == 2
        stand.faults.remove(after)
        stand.faults.add({"api": "Produce", "cut": True})
        with pytest.raises(CloseConnection, match="cut"):
            await stand.ask(produce(acks=0))

    run(test)


def test_a_hold_ends_when_its_name_is_released_and_not_before() -> None:
    async def test(stand: Stand) -> None:
        rule = stand.faults.add({"api": "Produce", "until": "go", "timeout": "1h"})
        answers: list[bytes | None] = []

        async def ask() -> None:
            answers.append(await stand.ask(produce(), connection=ConnectionState("PLAINTEXT", "127.0.0.1")))

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(ask)
            await stand.faults.wait_taken(rule, 3, 10)
            await wait_all_tasks_blocked()
            assert (len(stand.handled), stand.faults.held, answers) == (3, 3, [])
            with pytest.raises(ValueError, match=r"did you mean go\?"):
                stand.faults.release("goo")
            stand.faults.release("go")
        assert (len(answers), stand.faults.held) == (3, 0)
        await stand.ask(produce())
        assert (rule.fitted, rule.taken, rule.timed_out) == (4, 3, 0)

    run(test)


@pytest.mark.parametrize(("happening", "handled"), [("seen", 0), ("answered", 1)])
def test_a_request_is_held_until_another_one_has_come_or_is_answered(happening: str, handled: int) -> None:
    async def test(stand: Stand) -> None:
        until = {happening: {"api": "Metadata", "topic": "orders"}}
        stand.faults.add({"api": "Produce", "until": until, "held": "request"})
        stand.faults.add({"api": "Metadata", "delay": "10s"})
        order: list[str] = []

        async def ask(request: Message, name: str) -> None:
            await stand.ask(request, connection=ConnectionState("PLAINTEXT", "127.0.0.1"))
            order.append(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, produce(), "produce")
            await wait_all_tasks_blocked()
            assert stand.handled == []
            await ask(MetadataRequest(topics=[MetadataRequestTopic(name="others")]), "others")
            assert stand.handled == ["MetadataRequest"]
            nursery.start_soon(ask, MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), "metadata")
        assert order == (["others", "metadata", "produce"] if handled else ["others", "produce", "metadata"])

    run(test)


def test_a_barrier_of_two_lets_both_go_when_both_are_there() -> None:
    async def test(stand: Stand) -> None:
        until = {"seen": {"api": "Heartbeat", "times": 2}}
        rule = stand.faults.add({"api": "Heartbeat", "until": until, "held": "request"})

        async def ask() -> None:
            await stand.ask(HeartbeatRequest(), connection=ConnectionState("PLAINTEXT", "127.0.0.1"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await wait_all_tasks_blocked()
            assert stand.handled == []
            nursery.start_soon(ask)
        assert len(stand.handled) == 2
        assert (rule.taken, rule.timed_out) == (1, 0)

    run(test)


def test_a_hold_whose_condition_never_comes_ends_at_its_time_and_says_so() -> None:
    async def test(stand: Stand) -> None:
        rule = stand.faults.add({"api": "Produce", "until": "never", "timeout": "5s"})
        began = trio.current_time()
        in_hand = Handling(1)
        handling.set(in_hand)
        await stand.ask(produce())
        assert trio.current_time() - began == pytest.approx(5)
        assert rule.timed_out == 1
        assert list(in_hand.interference) == [
            "fault 1: answer held until 'never' is released, which did not happen in time"
        ]

    run(test)


@pytest.mark.parametrize("held", ["request", "answer"])
def test_a_fault_that_is_removed_lets_go_what_it_holds(held: str) -> None:
    async def test(stand: Stand) -> None:
        rules = [
            stand.faults.add({"api": "Produce", "until": "never", "held": held, "timeout": "1h"}),
            stand.faults.add({"api": "Produce", "delay": "1h"}),
        ]
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stand.ask, produce())
            for rule in rules:
                await wait_all_tasks_blocked()
                stand.faults.remove(rule)
        assert trio.current_time() - began == 0
        assert stand.handled == ["ProduceRequest"]

    run(test)


@pytest.mark.parametrize("wait", [{"hold": "1h"}, {"until": "never", "timeout": "1h"}])
def test_a_fault_that_is_removed_before_its_answer_is_there_does_not_hold_it(wait: dict[str, str]) -> None:
    async def test(stand: Stand) -> None:
        rule = stand.faults.add({"api": "Fetch", **wait})
        is_handled = trio.Event()

        async def poll_for_long() -> None:
            await is_handled.wait()

        frame = memoryview(encode_request(FetchRequest(), VERSIONS[ApiKey.FETCH], 5, "app")[4:])
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stand.tap.exchange, frame, stand.connection, poll_for_long)
            await wait_all_tasks_blocked()
            stand.faults.remove(rule)
            is_handled.set()
        assert trio.current_time() == began
        assert (rule.taken, rule.timed_out) == (1, 0)

    run(test)


def test_a_fault_that_is_removed_while_a_request_is_read_does_nothing() -> None:
    async def test(stand: Stand) -> None:
        rule = stand.faults.add({"api": "Fetch", "topic": "t-*", "drop": "before"})
        many = FetchRequest(topics=[FetchTopic(topic=f"t-{n}", partitions=[FetchPartition()]) for n in range(1500)])
        stand.threads.when_called = lambda: stand.faults.remove(rule)
        await stand.ask(many)
        assert stand.threads.calls
        assert (rule.fitted, rule.taken) == (0, 0)

    run(test)


def test_a_stop_ends_all_waits_and_those_to_come() -> None:
    async def test(stand: Stand) -> None:
        stand.faults.add({"api": "Produce", "until": "never", "held": "request", "timeout": "1h"})
        stand.faults.add({"api": "Heartbeat", "until": "never", "timeout": "1h"})
        began = trio.current_time()
        ends: list[str] = []

        async def ask(request: Message) -> None:
            try:
                await stand.ask(request, connection=ConnectionState("PLAINTEXT", "127.0.0.1"))
                ends.append("answered")
            except CloseConnection:
                ends.append("closed")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, produce())
            nursery.start_soon(ask, HeartbeatRequest())
            await wait_all_tasks_blocked()
            assert stand.faults.held == 2
            stand.waits.stop()
        await ask(HeartbeatRequest())
        assert trio.current_time() == began
        assert sorted(ends) == ["answered", "answered", "closed"]
        assert stand.handled == ["HeartbeatRequest"] * 2

    run(test)


def test_a_kill_leaves_nothing_held() -> None:
    async def test(stand: Stand) -> None:
        rule = stand.faults.add({"api": "Produce", "until": "never", "timeout": "1h"})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stand.ask, produce())
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert stand.faults.held == 0
        assert stand.connection.give_up is None
        assert rule.action.until is not None
        assert rule.action.until.when_met == []

    run(test)


def test_a_request_whose_client_has_left_is_carried_out_when_its_time_comes() -> None:
    async def test(stand: Stand) -> None:
        stand.faults.add({"api": "Produce", "delay": "30s"})
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stand.ask, produce())
            await wait_all_tasks_blocked()
            stand.connection.leave()
            await wait_all_tasks_blocked()
            assert stand.handled == []
        assert stand.handled == ["ProduceRequest"]
        assert stand.had_left == [False], "the broker checks nothing for long of whom it knows to have left"
        assert stand.connection.has_left
        assert trio.current_time() - began == pytest.approx(30)

    run(test)


def test_an_answer_whose_client_has_left_is_not_held() -> None:
    async def test(stand: Stand) -> None:
        stand.faults.add({"api": "Produce", "hold": "30s"})
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stand.ask, produce())
            await wait_all_tasks_blocked()
            stand.connection.leave()
        assert trio.current_time() == began

    run(test)


def test_the_answer_to_a_client_that_has_left_before_is_not_held() -> None:
    async def test(stand: Stand) -> None:
        rule = stand.faults.add({"api": "Produce", "delay": "30s", "hold": "1h"})
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stand.ask, produce())
            await wait_all_tasks_blocked()
            stand.connection.leave()
        assert trio.current_time() - began == pytest.approx(30)
        assert rule.timed_out == 1

    run(test)


@pytest.mark.parametrize("has_left", [False, True])
def test_a_held_request_is_let_go_where_its_memory_is_needed(has_left: bool) -> None:
    async def test(stand: Stand) -> None:
        rule = stand.faults.add({"api": "Produce", "delay": "30s"})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stand.ask, produce())
            await wait_all_tasks_blocked()
            if has_left:
                stand.connection.leave()
                await wait_all_tasks_blocked()
            assert stand.handled == []
            assert stand.connection.give_up is not None
            stand.connection.give_up()
        assert (stand.handled, rule.timed_out) == (["ProduceRequest"], 1)

    run(test)


def test_no_more_is_held_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits_module, "MOST_WAITS", 2)

    async def test(stand: Stand) -> None:
        rule = stand.faults.add({"api": "Produce", "until": "go", "held": "request", "timeout": "1h"})
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(stand.ask, produce(), "app", ConnectionState("PLAINTEXT", "127.0.0.1"))
            await wait_all_tasks_blocked()
            assert (stand.faults.held, len(stand.handled), rule.timed_out) == (2, 1, 1)
            stand.faults.release("go")
        assert len(stand.handled) == 3

    run(test)


def test_a_large_request_is_held_by_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits_module, "MOST_BYTES", 60)

    async def test(stand: Stand) -> None:
        rule = stand.faults.add({"api": "Produce", "delay": "1s"})
        for _ in range(2):  # and there is room again behind it
            await stand.ask(produce())
        assert rule.timed_out == 0
        await stand.ask(produce("a topic with a long name"))
        assert rule.timed_out == 1

    run(test)


def test_what_cannot_be_read_is_the_brokers_matter() -> None:
    async def test(stand: Stand) -> None:
        rule = stand.faults.add({"topic": "orders", "cut": True})
        frames: list[bytes] = []

        async def handle() -> None:
            frames.append(b"")

        good = encode_request(produce(), 9, 5, "app")[4:]
        for bad in (b"", good[:6], good[:-9], b"\x00\x00\x7f\xff" + good[4:]):
            await stand.tap.exchange(memoryview(bad), stand.connection, handle)
        assert len(frames) == 4
        assert rule.fitted == 0

    run(test)


def test_no_slice_of_a_request_is_left_while_the_broker_handles_it() -> None:
    """The receive buffer could not be used again."""

    async def test(stand: Stand) -> None:
        stand.faults.add({"api": "Produce", "topic": "orders", "error": "UNKNOWN_SERVER_ERROR", "when": "after"})
        stand.faults.add({"api": "Produce", "topic": "others", "delay": 1})
        buffer = bytearray(encode_request(produce(), 9, 5, "app")[4:])
        frame = memoryview(buffer)

        async def handle() -> None:
            frame.release()
            buffer.append(0)  # raises BufferError where a slice is alive

        await stand.tap.exchange(frame, stand.connection, handle)

    run(test)


def test_many_topics_are_looked_at_in_a_thread() -> None:
    async def test(stand: Stand) -> None:
        for number in range(20):
            stand.faults.add({"api": "Fetch", "topic": f"t-*-{number}", "error": "NOT_LEADER_OR_FOLLOWER"})
        few = FetchRequest(topics=[FetchTopic(topic="t-1-1", partitions=[FetchPartition()])])
        await stand.ask(few)
        assert stand.threads.calls == 0
        many = FetchRequest(topics=[FetchTopic(topic=f"t-{n}-1", partitions=[FetchPartition()]) for n in range(1500)])
        answer = await stand.ask(many)
        assert stand.threads.calls == 3  # it is decoded, looked at, and answered
        assert answer is not None
        assert len(answer) > 50_000

    run(test)


def test_a_hundred_thousand_requests_and_a_thousand_rules() -> None:
    """Rules that do not mean a request cost it nothing, and a thousand that do cost it less than a turn of the loop."""

    async def test(stand: Stand) -> None:
        for number in range(MOST_RULES - 1):
            await trio.lowlevel.checkpoint()
            stand.faults.add({"api": "Fetch", "client_id": f"c{number}*", "nth": 10**6, "cut": True})
        rule = stand.faults.add({"api": "Heartbeat", "nth": 100_000, "drop": "before"})
        with pytest.raises(ValueError, match="there are 1000 faults already"):
            stand.faults.add({"cut": True})
        frame = memoryview(encode_request(HeartbeatRequest(), 4, 5, "app")[4:])

        async def handle() -> None:
            pass

        began = time.process_time()
        for number in range(99_999):
            await stand.tap.exchange(frame, stand.connection, handle)
            if not number % 100:
                await trio.lowlevel.checkpoint()
        took = time.process_time() - began
        with pytest.raises(CloseConnection):
            await stand.tap.exchange(frame, stand.connection, handle)
        assert (rule.fitted, rule.taken) == (100_000, 1)
        assert took / 100_000 < 0.001

        stand.faults.clear()
        rules = []
        for _ in range(MOST_RULES):
            await trio.lowlevel.checkpoint()
            rules.append(stand.faults.add({"api": "Heartbeat", "nth": 10**6, "cut": True}))
        began = time.process_time()
        for _ in range(20):
            await stand.tap.exchange(frame, stand.connection, handle)
            await trio.lowlevel.checkpoint()
        assert (time.process_time() - began) / 20 < 0.02
        assert {each.fitted for each in rules} == {20}

    run(test)


def test_clients_by_the_thousand_do_not_grow_what_is_remembered() -> None:
    async def test(stand: Stand) -> None:
        stand.faults.add({"client_id": "app-1*", "nth": 10**6, "cut": True})
        for number in range(1000):
            await stand.ask(HeartbeatRequest(), f"app-{number}")
        stand.faults.add({"client_id": "x*", "delay": "1ms"})
        await stand.ask(HeartbeatRequest(), "x" * 30_000)
        assert len(stand.faults.plan.taken[-1].client_id or "") == 250
        assert len(stand.faults.plan._concerned) <= 256

    run(test)
