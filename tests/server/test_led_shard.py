"""When the answers and effects of a coordinator's steps are due."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from pykbroker.groups.common.config import GroupConfig
from pykbroker.groups.shard import GroupShard
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.replication.appended import Appended
from pykbroker.replication.partition import ACKS_ALL, Partition
from pykbroker.server.coordinators.led_shard import LedShard
from pykbroker.server.coordinators.shared_appends import HeldStep
from pykbroker.server.runtime.deferred_answer import DeferredAnswer
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.state_machine import Completion, Result, Token
from pykbroker.storage.log.log import Log, LogConfig
from tests.replication.brokers import Proposals
from tests.replication.truncations import truncate

LEADER, FOLLOWER = 1, 2
TIMEOUT_MS = 5_000


@dataclass(frozen=True)
class State:
    isr: tuple[int, ...]
    leader: int = LEADER
    leader_epoch: int = 0
    partition_epoch: int = 0
    adding_replicas: tuple[int, ...] = ()

    @property
    def replicas(self) -> tuple[int, ...]:
        return self.isr


class Led:
    """happened: the effects that were carried out, each with the answers that were given by then."""

    def __init__(self, *, isr: tuple[int, ...] = (LEADER,)) -> None:
        log = Log.open(SimulatedDisk(Random(1)), "/t-0", LogConfig(), now_ms=0)
        self.partition = Partition("t", bytes(16), 0, log, LEADER, Proposals().rules())
        self.partition.apply_state(State(isr), 0)
        self.answers: dict[str, DeferredAnswer[object]] = {}
        self.happened: list[tuple[str, list[str]]] = []
        self.shard = LedShard(self.partition, GroupShard(GroupConfig(), Random(1)), TIMEOUT_MS, self.carry_out)
        self.shard.open()

    def carry_out(self, shard: LedShard[GroupShard], effect: object) -> None:
        self.happened.append((str(effect), self.answered))
        if effect == "leads to a step":
            self.step("inner", "inner effect")

    @property
    def answered(self) -> list[str]:
        return [name for name, answer in self.answers.items() if answer.is_complete]

    def error_of(self, name: str) -> ErrorCode:
        error = self.answers[name].error
        assert isinstance(error, ApiError)
        return error.code

    def step(self, name: str, *effects: str) -> None:
        token = Token(len(self.answers))
        self.answers[name] = self.shard.await_answer(token)
        self.partition.append_as_leader(encode_batch([Record(key=None, value=b"v", timestamp=1)]), 1, ACKS_ALL)
        self.shard.appended(Appended(self.partition, self.partition.log.log_end_offset))
        self.shard.complete([HeldStep(Result(completed=[Completion(token, name)], effects=effects), now_ms=0)])

    def replicate(self) -> None:
        end = self.partition.log.log_end_offset
        self.partition.read_as_replica(FOLLOWER, end, 0, now_ms=0)


def test_effects_are_carried_out_before_the_answers_of_their_step() -> None:
    led = Led()
    led.step("first", "a", "b")
    assert led.happened == [("a", []), ("b", [])]
    assert led.answered == ["first"]


def test_nothing_is_carried_out_before_it_is_committed() -> None:
    led = Led(isr=(LEADER, FOLLOWER))
    led.step("first", "a")
    assert (led.happened, led.answered) == ([], [])
    led.replicate()
    assert (led.happened, led.answered) == ([("a", [])], ["first"])


def test_an_effect_that_leads_to_a_step_comes_whole_before_the_answers() -> None:
    led = Led()
    led.step("outer", "leads to a step", "outer effect")
    assert led.happened == [("leads to a step", []), ("outer effect", []), ("inner effect", [])]
    assert led.answered == ["outer", "inner"]


def test_an_answer_that_is_given_up_leaves_the_effect() -> None:
    led = Led(isr=(LEADER, FOLLOWER))
    led.step("first", "a")
    led.shard.give_up_uncommitted(TIMEOUT_MS)
    assert led.error_of("first") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    led.replicate()
    assert led.happened == [("a", ["first"])]


def test_a_shard_that_is_closed_carries_out_nothing_more() -> None:
    led = Led(isr=(LEADER, FOLLOWER))
    led.step("first", "a")
    led.shard.close(ErrorCode.NOT_COORDINATOR)
    led.replicate()
    assert led.happened == []
    assert led.error_of("first") is ErrorCode.NOT_COORDINATOR


def test_nothing_is_committed_by_records_of_another_leader() -> None:
    """KAFKA-20634: the partition is demoted and truncated while answers wait, and led here again."""
    led = Led(isr=(LEADER, FOLLOWER))
    led.step("first", "a")
    both, partition = (LEADER, FOLLOWER), led.partition
    partition.apply_state(State(both, leader=FOLLOWER, leader_epoch=1, partition_epoch=1), 0)
    truncate(partition, 0)
    partition.append_as_follower(encode_batch([Record(None, b"another", timestamp=1)], partition_leader_epoch=1))
    partition.apply_state(State(both, leader_epoch=2, partition_epoch=2), 0)
    led.replicate()
    assert partition.high_watermark == 1
    assert (led.happened, led.answered) == ([], [])
