"""Whether a node led when it read something: whom it asks, how often, and what it makes of their answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
import trio
import trio.testing

from pykbroker.client.errors import ConnectionLost
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.offsets import OffsetForLeaderEpochRequest
from pykbroker.replication.partition import Partition
from pykbroker.server.coordinators.leadership import Lead, Leadership
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.log.log import Log, LogConfig
from tests.api.api_node import in_virtual_time
from tests.replication.brokers import Proposals

from .followers import told

LOCAL, ONE, OTHER = 1, 2, 3
ALL = (LOCAL, ONE, OTHER)
TIMEOUT_MS = 5_000
FOLLOWS = ErrorCode.NOT_LEADER_OR_FOLLOWER
BEHIND = ErrorCode.UNKNOWN_LEADER_EPOCH
DEPOSED = ErrorCode.FENCED_LEADER_EPOCH

Answer = Callable[[], Awaitable[ErrorCode]]


@dataclass(frozen=True)
class State:
    leader: int = LOCAL
    leader_epoch: int = 5
    isr: Sequence[int] = ALL
    replicas: Sequence[int] = ALL
    partition_epoch: int = 0
    adding_replicas: Sequence[int] = ()


def says(error_code: ErrorCode) -> Answer:
    async def answer() -> ErrorCode:
        await trio.sleep(0.001)
        return error_code

    return answer


async def is_gone() -> ErrorCode:
    await trio.sleep(0.001)
    raise ConnectionLost("closed")


async def is_silent() -> ErrorCode:
    await trio.sleep_forever()
    raise AssertionError


class Cluster:
    """A partition that is led here, and others who may be asked: replicas by their ids, and the controller.

    caught_up: what is done when this node reads what is committed; whether it can. asked: whom, in this order. closed:
    connections to whom.
    """

    def __init__(self, state: State = State(), *, min_isr: int = 1) -> None:
        log = Log.open(SimulatedDisk(Random(1)), "/t-0", LogConfig(min_insync_replicas=min_isr), now_ms=0)
        self.partition = Partition("t", bytes(16), 0, log, LOCAL, Proposals().rules())
        self.apply(state)
        self.replicas: dict[int, Answer] = {ONE: says(FOLLOWS), OTHER: says(FOLLOWS)}
        self.caught_up: Callable[[], bool] = lambda: False
        self.asked: list[int] = []
        self.epochs: list[int] = []
        self.closed: list[int] = []
        self.leadership = Leadership(self, self._Metadata(self), timeout_ms=TIMEOUT_MS)

    def apply(self, state: State) -> None:
        self.partition.apply_state(state, 0)

    async def request(
        self, node_id: int, request: Any, response_type: type[Any], *, purpose: str = "", timeout_ms: int | None = None
    ) -> Any:
        assert isinstance(request, OffsetForLeaderEpochRequest)
        assert request.replica_id == LOCAL
        (topic,) = request.topics
        (asked,) = topic.partitions
        assert (topic.topic, asked.partition) == ("t", 0)
        self.asked.append(node_id)
        self.epochs.append(asked.current_leader_epoch)
        return told(request, await self.replicas[node_id]())

    async def close(self, node_id: int, purpose: str = "") -> None:
        self.closed.append(node_id)

    @dataclass
    class _Metadata:
        cluster: Cluster

        async def caught_up(self, timeout_ms: int) -> bool:
            self.cluster.asked.append(0)
            await trio.sleep(0.001)
            return self.cluster.caught_up()

    async def leads(self, lead: Lead | None = None) -> bool:
        lost = await self.leadership.lost([lead or Lead(self.partition)])
        assert lost <= {self.partition}
        return not lost


def leads(cluster: Cluster) -> bool:
    return in_virtual_time(cluster.leads)


def test_who_is_alone_in_sync_asks_nobody() -> None:
    cluster = Cluster(State(isr=(LOCAL,)))
    assert leads(cluster)
    assert not cluster.asked


@pytest.mark.parametrize("other", [FOLLOWS, BEHIND])
def test_every_replica_in_sync_is_asked_and_knows_of_no_later_epoch(other: ErrorCode) -> None:
    cluster = Cluster()
    cluster.replicas[OTHER] = says(other)
    assert leads(cluster)
    assert sorted(cluster.asked) == [ONE, OTHER]
    assert cluster.epochs == [5, 5]


def test_a_replica_out_of_sync_has_no_say() -> None:
    cluster = Cluster(State(isr=(LOCAL, ONE)))
    cluster.replicas[OTHER] = is_silent
    assert leads(cluster)
    assert cluster.asked == [ONE]


def test_one_that_knows_of_a_later_epoch_is_enough_whatever_the_others_say() -> None:
    cluster = Cluster()
    cluster.replicas |= {ONE: is_silent, OTHER: says(DEPOSED)}
    cluster.caught_up = lambda: True
    assert not leads(cluster)
    assert 0 not in cluster.asked


@pytest.mark.parametrize("strange", [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID])
def test_an_answer_that_says_nothing_of_the_epoch_confirms_nothing(strange: ErrorCode) -> None:
    cluster = Cluster()
    cluster.replicas[ONE] = says(strange)
    assert not leads(cluster)


@pytest.mark.parametrize("replica", [is_gone, is_silent])
def test_the_controller_is_asked_where_a_replica_does_not_tell(replica: Answer) -> None:
    cluster = Cluster()
    cluster.replicas[ONE] = replica
    cluster.caught_up = lambda: True
    assert leads(cluster)
    assert cluster.asked[-1] == 0


def test_a_replica_that_says_nothing_has_another_connection_for_the_next_question() -> None:
    """A firewall may have forgotten the old one, and no packet tells."""
    cluster = Cluster()
    cluster.replicas[ONE] = is_silent
    cluster.caught_up = lambda: True
    assert leads(cluster)
    assert cluster.closed == [ONE]


def test_one_that_was_not_waited_for_keeps_its_connection() -> None:
    cluster = Cluster()
    cluster.replicas |= {ONE: is_silent, OTHER: says(DEPOSED)}
    assert not leads(cluster)
    assert cluster.closed == []


def test_metadata_that_were_read_for_it_may_say_that_another_one_leads() -> None:
    cluster = Cluster()
    cluster.replicas[ONE] = is_gone

    def learn() -> bool:
        cluster.apply(State(leader=OTHER, leader_epoch=6, partition_epoch=1))
        return True

    cluster.caught_up = learn
    assert not leads(cluster)


def test_a_late_word_of_the_replicas_counts_where_no_controller_answers() -> None:
    async def late() -> ErrorCode:
        await trio.sleep(3)
        return FOLLOWS

    cluster = Cluster()
    cluster.replicas[ONE] = late
    assert leads(cluster)


def test_a_node_that_nobody_answers_says_so_in_time() -> None:
    cluster = Cluster()
    cluster.replicas |= {ONE: is_silent, OTHER: is_silent}

    async def main() -> tuple[bool, float]:
        began = trio.current_time()
        return await cluster.leads(), trio.current_time() - began

    assert in_virtual_time(main) == (False, TIMEOUT_MS / 1000)


def test_with_too_few_in_sync_only_the_controller_knows() -> None:
    """A replica that left the ISR may be elected as an eligible leader replica (KIP-966)."""
    cluster = Cluster(State(isr=(LOCAL,)), min_isr=2)
    assert not leads(cluster)
    cluster.caught_up = lambda: True
    assert leads(cluster)
    assert cluster.asked == [0, 0]


def test_who_has_led_again_meanwhile_tells_nothing_that_was_read_before() -> None:
    cluster = Cluster()
    lead = Lead(cluster.partition)
    cluster.apply(State(leader=ONE, leader_epoch=6, partition_epoch=1))
    cluster.apply(State(leader=LOCAL, leader_epoch=7, partition_epoch=2))

    async def main() -> tuple[bool, bool]:
        return await cluster.leads(lead), await cluster.leads()

    assert in_virtual_time(main) == (False, True)


def test_a_leader_that_goes_on_in_a_later_epoch_asks_for_that_one() -> None:
    cluster = Cluster()
    lead = Lead(cluster.partition)
    cluster.apply(State(leader_epoch=6, partition_epoch=1))

    async def main() -> bool:
        return await cluster.leads(lead)

    assert in_virtual_time(main)
    assert cluster.epochs == [6, 6]


def test_who_loses_the_lead_while_the_others_are_asked_tells_nothing() -> None:
    cluster = Cluster()

    async def loses() -> ErrorCode:
        await trio.sleep(0.001)
        cluster.apply(State(leader=ONE, leader_epoch=6, partition_epoch=1))
        return FOLLOWS

    cluster.replicas[ONE] = loses
    assert not leads(cluster)


@pytest.mark.parametrize("outcome", [FOLLOWS, DEPOSED])
def test_reads_that_come_while_others_are_asked_share_the_next_question(outcome: ErrorCode) -> None:
    cluster = Cluster()
    cluster.replicas = dict.fromkeys((ONE, OTHER), says(outcome))

    async def main() -> None:
        async def read() -> None:
            assert await cluster.leads() is (outcome is FOLLOWS)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            for _ in range(1_000):
                nursery.start_soon(read)

    in_virtual_time(main)
    assert len(cluster.asked) == 2 * 2


def test_the_next_reader_asks_anew_where_the_one_that_asked_has_left() -> None:
    cluster = Cluster()
    cluster.replicas[ONE] = is_silent

    async def main() -> bool:
        async with trio.open_nursery() as nursery:
            leaving = trio.CancelScope()

            async def leave() -> None:
                with leaving:
                    await cluster.leads()

            nursery.start_soon(leave)
            await trio.testing.wait_all_tasks_blocked()
            outcomes: list[bool] = []

            async def stay() -> None:
                outcomes.append(await cluster.leads())

            nursery.start_soon(stay)
            await trio.testing.wait_all_tasks_blocked()
            cluster.replicas[ONE] = says(FOLLOWS)
            leaving.cancel()
        (outcome,) = outcomes
        return outcome

    assert in_virtual_time(main)


def test_many_partitions_are_asked_for_at_the_same_time() -> None:
    clusters = [Cluster() for _ in range(50)]
    clusters[7].replicas[ONE] = says(DEPOSED)

    async def main() -> tuple[int, float]:
        began = trio.current_time()
        lost = await clusters[7].leadership.lost([Lead(each.partition) for each in clusters])
        return len(lost), trio.current_time() - began

    lost, seconds = in_virtual_time(main)
    assert lost == 50
    assert seconds < 0.1
