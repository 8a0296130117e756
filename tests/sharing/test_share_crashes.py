"""A share coordinator against a naive model, through crashes, pruned logs and steps that were taken back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pykbroker.protocol.errors import ErrorCode
from pykbroker.sharing.coordinator.config import ShareCoordinatorConfig
from pykbroker.sharing.coordinator.requests import Delete, Initialize, Read, ShareStateRequest, Write
from pykbroker.sharing.persister import Initialization, Reading, SharePartitionKey, StateBatch, Writing
from pykbroker.state_machine import CoordinatorContext, Token
from tests.sharing.memory_persister import START_MS, MemoryShareState

TOPICS = (b"a" * 16, b"b" * 16)
keys = st.builds(SharePartitionKey, st.sampled_from(("g", "h")), st.sampled_from(TOPICS), st.integers(0, 1))
epochs = st.integers(-1, 3)
batches = st.lists(
    st.builds(
        lambda first, length, state, count: StateBatch(first, first + length, state, count),
        st.integers(0, 20),
        st.integers(0, 6),
        st.sampled_from((0, 2, 3, 4)),
        st.integers(1, 3),
    ),
    max_size=4,
).map(tuple)


@dataclass(slots=True)
class Expected:
    """A share partition as whoever was answered knows it."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)


class ShareStateModel(RuleBasedStateMachine):
    """Each share partition is a dict of offsets. Steps are tried and taken back before they are made."""

    @initialize(updates=st.integers(0, 4))
    def begin(self, updates: int) -> None:
        self.topics = dict.fromkeys(TOPICS, 2)
        config = ShareCoordinatorConfig(updates_per_snapshot=updates, cold_snapshot_interval_ms=1000)
        self.state = MemoryShareState(config, lambda topic_id: self.topics.get(topic_id, 0))
        self.expected: dict[SharePartitionKey, Expected] = {}

    def take_back(self, request: ShareStateRequest) -> None:
        """The log has no room: nothing of the step happened."""
        shard = self.state.shard
        before = dict(shard.states), shard.next_deadline_ms(), set(shard._states.by_topic)  # type: ignore[reportPrivateUsage]
        shard.begin_trial()
        shard.handle(request, Token(1), self.state.now_ms, CoordinatorContext(api_version=0), START_MS)
        shard.end_trial(is_kept=False)
        after = dict(shard.states), shard.next_deadline_ms(), set(shard._states.by_topic)  # type: ignore[reportPrivateUsage]
        assert after == before

    @rule(key=keys, state_epoch=epochs, start_offset=st.integers(-1, 15))
    def initialize_state(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        asked = Initialization(key, state_epoch, start_offset)
        self.take_back(Initialize((asked,)))
        (outcome,) = self.state.initialize([asked])
        before = self.expected.get(key)
        if before is not None and -1 != state_epoch < before.state_epoch:
            assert outcome.error_code is ErrorCode.FENCED_STATE_EPOCH
        elif key.topic_id not in self.topics:
            assert outcome.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            assert outcome.error_code is ErrorCode.NONE
            leader_epoch = 0 if before is None else before.leader_epoch
            highest = state_epoch if before is None else max(before.state_epoch, state_epoch)
            self.expected[key] = Expected(highest, leader_epoch, start_offset)

    @rule(key=keys, state_epoch=epochs, leader_epoch=epochs, start_offset=st.integers(-1, 25), written=batches)
    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        written: tuple[StateBatch, ...],
    ) -> None:
        asked = Writing(key, state_epoch, leader_epoch, start_offset, 0, written)
        self.take_back(Write((asked,)))
        (outcome,) = self.state.write([asked])
        expected = self.expected.get(key)
        if expected is None:
            assert outcome.error_code is ErrorCode.INVALID_REQUEST
        elif -1 != leader_epoch < expected.leader_epoch:
            assert outcome.error_code is ErrorCode.FENCED_LEADER_EPOCH
        elif -1 != state_epoch < expected.state_epoch:
            assert outcome.error_code is ErrorCode.FENCED_STATE_EPOCH
        else:
            assert outcome.error_code is ErrorCode.NONE
            if start_offset != -1:
                expected.start_offset = start_offset
            for batch in written:
                for offset in range(batch.first_offset, batch.last_offset + 1):
                    delivery = batch.delivery_count, batch.delivery_state
                    expected.offsets[offset] = max(expected.offsets.get(offset, (0, 0)), delivery)
            kept = expected.offsets.items()
            expected.offsets = {offset: each for offset, each in kept if offset >= expected.start_offset}

    @rule(key=keys, leader_epoch=epochs)
    def read(self, key: SharePartitionKey, leader_epoch: int) -> None:
        asked = Reading(key, leader_epoch)
        self.take_back(Read((asked,)))
        (state,) = self.state.read([asked])
        expected = self.expected.get(key)
        if expected is None:
            assert state.error_code is ErrorCode.INVALID_REQUEST
        elif -1 != leader_epoch < expected.leader_epoch:
            assert state.error_code is ErrorCode.FENCED_LEADER_EPOCH
        else:
            assert state.error_code is ErrorCode.NONE
            assert state.start_offset == expected.start_offset
            expected.leader_epoch = max(expected.leader_epoch, leader_epoch)

    @rule(key=keys)
    def delete(self, key: SharePartitionKey) -> None:
        self.take_back(Delete((key,)))
        (outcome,) = self.state.delete([key])
        if key.topic_id in self.topics:
            assert outcome.error_code is ErrorCode.NONE
            self.expected.pop(key, None)
        else:
            assert outcome.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    @rule(topic_id=st.sampled_from(TOPICS), is_told=st.booleans())
    def delete_topic(self, topic_id: bytes, is_told: bool) -> None:
        """A coordinator that is told of the deletion forgets at once, one that is not when it looks next."""
        if len(self.topics) < len(TOPICS):
            return
        del self.topics[topic_id]
        if is_told:
            self.state.take(self.state.shard.forget_topics([topic_id], self.state.now_ms, START_MS))
        else:
            self.state.crash()
            self.state.pass_time(1000)
        self.expected = {key: each for key, each in self.expected.items() if key.topic_id != topic_id}

    @rule()
    def crash(self) -> None:
        self.state.crash()

    @rule()
    def prune(self) -> None:
        self.state.prune()

    @rule(ms=st.integers(0, 1500))
    def pass_time(self, ms: int) -> None:
        self.state.pass_time(ms)

    @invariant()
    def states_are_as_expected(self) -> None:
        """What a crash would leave counts: fencing epochs of before the last snapshot may be gone with the log."""
        if not hasattr(self, "state"):
            return
        shard = self.state.shard
        assert set(shard.states) == set(self.expected)
        assert shard._states.cold == sum(each.is_cold for each in shard.states.values())  # type: ignore[reportPrivateUsage]
        for key, expected in self.expected.items():
            state = shard.states[key]
            offsets = {
                offset: (batch.delivery_count, batch.delivery_state)
                for batch in state.batches
                for offset in range(batch.first_offset, batch.last_offset + 1)
            }
            assert (state.start_offset, offsets) == (expected.start_offset, expected.offsets)
            self.expected[key] = replace(
                expected, leader_epoch=state.fencing_leader_epoch, state_epoch=_known(state.fencing_state_epoch)
            )
            assert state.fencing_leader_epoch <= expected.leader_epoch


def _known(epoch: int | None) -> int:
    return -1 if epoch is None else epoch


TestShareState = ShareStateModel.TestCase
TestShareState.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
