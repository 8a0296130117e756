"""What partitions propose for their in-sync replicas reaches the controller, however many propose at once."""

from __future__ import annotations

from random import Random

import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from pykbroker.replication.partition import IsrRules, Partition
from pykbroker.server.replicas.alter_partition import IsrChanges
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.log.log import Log, LogConfig
from tests.api.api_node import batch, in_virtual_time
from tests.replication.brokers import FixedBrokers
from tests.replication.replicas import LAG_TIME_MAX_MS, NOW_MS, TOPIC, TOPIC_ID, State

MANY = 2500
MOST_IN_A_REQUEST = 1000


class Controller:
    """Commits what it is asked for, but for some partitions as long as it does not know what to say of them."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.undecided = range(0)

    async def submit(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        await trio.sleep(0.001)
        partitions = request.topics[0].partitions
        self.asked.append([each.partition_index for each in partitions])
        answers = [
            AlterPartitionResponsePartitionData(
                partition_index=each.partition_index,
                error_code=ErrorCode.UNKNOWN_SERVER_ERROR if each.partition_index in self.undecided else ErrorCode.NONE,
                leader_id=1,
                isr=[broker.broker_id for broker in each.new_isr_with_epochs],
                partition_epoch=each.partition_epoch + 1,
            )
            for each in partitions
        ]
        return AlterPartitionResponse(topics=[AlterPartitionResponseTopicData(topic_id=TOPIC_ID, partitions=answers)])


def lagging(changes: IsrChanges) -> list[Partition]:
    """Partitions of one log, whose follower asks for nothing: all of them have proposed to go on without it."""
    rules = IsrRules(FixedBrokers({1: 101, 2: 102}), LAG_TIME_MAX_MS, changes.propose)
    log = Log.open(SimulatedDisk(Random(1)), "/apples-0", LogConfig(), now_ms=NOW_MS)
    log.append_as_leader(batch(b"a"), 0, NOW_MS)
    partitions = [Partition(TOPIC, TOPIC_ID, index, log, 1, rules) for index in range(MANY)]
    for partition in partitions:
        partition.apply_state(State(1, 0, 0, (1, 2), (1, 2)), 0)
        partition.maybe_shrink_isr(LAG_TIME_MAX_MS + 1)
    return partitions


def ask(controller: Controller, seconds: float) -> list[Partition]:
    changes = IsrChanges(1)
    partitions = lagging(changes)

    async def run() -> None:
        with trio.move_on_after(seconds):
            await changes.run(controller.submit, lambda: 101)

    in_virtual_time(run)
    return partitions


def test_a_request_names_some_of_the_partitions_that_propose_at_once() -> None:
    controller = Controller()
    partitions = ask(controller, seconds=1)
    assert [len(each) for each in controller.asked] == [MOST_IN_A_REQUEST, MOST_IN_A_REQUEST, 500]
    assert all(each.isr == (1,) for each in partitions)


def test_those_that_the_controller_does_not_decide_keep_nobody_waiting() -> None:
    controller = Controller()
    controller.undecided = range(MOST_IN_A_REQUEST)
    partitions = ask(controller, seconds=1)
    assert all(each.isr == (1,) for each in partitions[MOST_IN_A_REQUEST:])
    assert all(each.isr == (1, 2) for each in partitions[:MOST_IN_A_REQUEST])
    assert len(controller.asked) > 10
    assert max(map(len, controller.asked)) == MOST_IN_A_REQUEST
