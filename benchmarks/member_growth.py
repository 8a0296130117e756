"""Groups that grow: CPU time of the broker for a heartbeat, and for everything until all members have their parts.

Nobody waits for an interval here: members ask as often as the measure has them ask, so that the same requests are
counted at each size.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from uuid import uuid4

import trio

from benchmarks.askers import ask_for, asking, finish
from benchmarks.bench import Bench, Figures, Measure
from benchmarks.brokers import cpu_seconds
from benchmarks.classic_members import ClassicMember, connections, run_together
from benchmarks.consumer_members import ConsumerMember
from benchmarks.growing import curve, points, seconds
from pykbroker.protocol.compile import decode
from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatResponse
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse

MEMBERS = (10, 100, 500, 2_000)
DEADLINE_S = 180
PAUSE_S = 0.1
"""Between two rounds of heartbeats of a group that has not settled: what it waits for is not there sooner."""
LASTING_S = 1.5
"""Longer than `group.consumer.assignment.interval.ms`: a group that has settled may have an assignment to come."""
LEAST_REBALANCES = 3
MEMBER_PROPERTIES = {
    # Members may ask as often as they like. The first members of a classic group wait for the others.
    "group.initial.rebalance.delay.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
}
_CONSUMER_VERSION = 0
_CLASSIC_VERSION = 4
_RESPONSE_BODY = {_CONSUMER_VERSION: 4 + 5, _CLASSIC_VERSION: 4 + 5}
"""Behind the size, the correlation id and the tagged fields of the header: both are flexible versions."""

_numbers = itertools.count(1)

JOINING = "CPU ms/member, joining"
REBALANCING = "CPU ms/member, one leaves"
REJOINING = "CPU ms/member, rebalance"
BEATING = "CPU µs/heartbeat"


def consumer_group(bench: Bench) -> Figures:
    """Members of KIP-848 with a partition each: all join at once; all beat as fast as they are answered; one leaves,
    and another one gets its partition.
    """
    return _grow(bench, _consumer)


def classic_group(bench: Bench) -> Figures:
    """Members of the classic protocol with a partition each: all join; all beat; all join again."""
    return _grow(bench, _classic)


def _grow(bench: Bench, work: Callable[[Bench, str, int], Awaitable[dict[str, float]]]) -> Figures:
    costs: dict[str, dict[int, float]] = {}
    sizes = points(MEMBERS, bench.scale)
    for members in (sizes[1], *sizes):  # Kafka's code is compiled in the first round, which the second one overwrites
        topic = f"members-{next(_numbers)}"
        bench.create_topic(topic, members)
        for figure, cost in trio.run(work, bench, topic, members).items():
            costs.setdefault(figure, {})[members] = cost
        bench.delete_topic(topic)
    figures: Figures = {}
    for figure, of_each in costs.items():
        figures |= curve(figure, {members: of_each[members] for members in sizes})
    return figures


async def _consumer(bench: Bench, topic: str, count: int) -> dict[str, float]:
    group_id = f"group-{uuid4()}"
    with trio.fail_after(DEADLINE_S):
        async with connections(bench.broker.address, group_id, count) as opened:
            members = [ConsumerMember(connection, group_id, topic) for connection in opened]
            joining = await _cpu_of(bench, lambda: _settle(members, count))
            requests = [encode_request(member.idle_beat(), _CONSUMER_VERSION, 1, "bench") for member in members]
            beating = _cpu_of_a_beat(bench, requests, _check_consumer)
            leaver, *others = members
            await leaver.leave()
            rebalancing = await _cpu_of(bench, lambda: _settle(others, count))
            await run_together([member.leave for member in others])
    return {JOINING: joining * 1e3 / count, BEATING: beating * 1e6, REBALANCING: rebalancing * 1e3 / count}


async def _classic(bench: Bench, topic: str, count: int) -> dict[str, float]:
    group_id = f"group-{uuid4()}"
    with trio.fail_after(DEADLINE_S):
        async with connections(bench.broker.address, group_id, count) as opened:
            members = [ClassicMember(connection, group_id, topic, count) for connection in opened]
            joining = await _cpu_of(bench, lambda: _join_all(members))
            requests = [_classic_beat(member) for member in members]
            beating = _cpu_of_a_beat(bench, requests, _check_classic)
            rounds = max(LEAST_REBALANCES, MEMBERS[1] // count)
            rejoining = await _cpu_of(bench, lambda: _join_all(members, rounds)) / rounds
    return {JOINING: joining * 1e3 / count, BEATING: beating * 1e6, REJOINING: rejoining * 1e3 / count}


async def _cpu_of(bench: Bench, work: Callable[[], Awaitable[None]]) -> float:
    before = cpu_seconds(bench.broker)
    await work()
    return cpu_seconds(bench.broker) - before


async def _settle(members: Sequence[ConsumerMember], partitions: int) -> None:
    """Rounds of heartbeats of all members until they own all partitions among them, evenly, in one epoch that lasts."""
    settled_epoch = -1
    most = -(-partitions // len(members))
    while True:
        await run_together([partial(_beat_until_acknowledged, member) for member in members])
        owned = sorted(partition for member in members for partition in member.partitions)
        is_even = all(len(member.partitions) <= most for member in members)
        if not (is_even and owned == list(range(partitions)) and len({member.epoch for member in members}) == 1):
            await trio.sleep(PAUSE_S)
        elif members[0].epoch == settled_epoch:
            return
        else:
            settled_epoch = members[0].epoch
            await trio.sleep(LASTING_S)


async def _beat_until_acknowledged(member: ConsumerMember) -> None:
    while await member.beat() is None:
        pass


async def _join_all(members: Sequence[ClassicMember], rounds: int = 1) -> None:
    for _ in range(rounds):
        await run_together([member.rebalance for member in members])
        while len({member.generation_id for member in members}) > 1:  # some came late, to a generation of their own
            await run_together([member.rebalance for member in members])
        owned = sorted(partition for member in members for partition in member.partitions)
        assert owned == list(range(members[0].topic_partitions)), "the members have all partitions among them"


def _cpu_of_a_beat(bench: Bench, requests: Sequence[bytes], check: Callable[[bytes], None]) -> float:
    """Seconds of the broker for each of the heartbeats, which come on connections of their own."""
    measured_s = seconds(bench.scale)
    with asking(bench.broker.address, requests, check) as selector:
        before = cpu_seconds(bench.broker)
        per_second = ask_for(selector, measured_s)
        cpu_s = cpu_seconds(bench.broker) - before
        finish(selector)  # a heartbeat that is answered later may begin an epoch of which its member does not hear
        return cpu_s / (per_second * measured_s)


def _classic_beat(member: ClassicMember) -> bytes:
    request = HeartbeatRequest(group_id=member.group_id, generation_id=member.generation_id, member_id=member.member_id)
    return encode_request(request, _CLASSIC_VERSION, 1, "bench")


def _check_consumer(answer: bytes) -> None:
    response, _ = decode(ConsumerGroupHeartbeatResponse, _CONSUMER_VERSION, answer, _RESPONSE_BODY[_CONSUMER_VERSION])
    assert response.error_code == 0, f"a heartbeat was answered with {response.error_code}: {response.error_message}"


def _check_classic(answer: bytes) -> None:
    response, _ = decode(HeartbeatResponse, _CLASSIC_VERSION, answer, _RESPONSE_BODY[_CLASSIC_VERSION])
    assert response.error_code == 0, f"a heartbeat was answered with {response.error_code}"


MEMBER_GROWTH: dict[str, Measure] = {
    "growth: members of a consumer group": consumer_group,
    "growth: members of a classic group": classic_group,
}
