"""ListTransactions and DescribeTransactions."""

from __future__ import annotations

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from .world import START_MS, TransactionWorld

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def world() -> TransactionWorld:
    """Three ids: one that is idle, one with an open transaction, one that is complete."""
    world = TransactionWorld()
    world.producer("idle")
    world.add(world.producer("open"), ORDERS, transactional_id="open")
    producer = world.producer("complete")
    world.add(producer, ORDERS, transactional_id="complete")
    world.end(producer, commit=True, transactional_id="complete")
    world.write_markers()
    world.pass_time(500)
    return world


def test_without_filters_everything_is_listed(world: TransactionWorld) -> None:
    listed = {each.transactional_id: each.transaction_state for each in world.list().transaction_states}
    assert listed == {"idle": "Empty", "open": "Ongoing", "complete": "CompleteCommit"}


def test_states_are_named_exactly_and_unknown_ones_are_told(world: TransactionWorld) -> None:
    assert world.listed(state_filters=["Ongoing", "Empty"]) == ["idle", "open"]
    response = world.list(state_filters=["ongoing", "Ongoing"])
    assert response.unknown_state_filters == ["ongoing"]
    assert [each.transactional_id for each in response.transaction_states] == ["open"]
    assert world.listed(state_filters=["Nonsense"]) == []
    assert world.list(state_filters=["Dead", "PrepareEpochFence"]).unknown_state_filters == []


def test_filters_are_all_to_be_met(world: TransactionWorld) -> None:
    producer_id = world.describe("open").producer_id
    assert world.listed(producer_id_filters=[producer_id]) == ["open"]
    assert world.listed(producer_id_filters=[producer_id], state_filters=["Empty"]) == []


def test_a_duration_is_to_be_exceeded(world: TransactionWorld) -> None:
    assert world.listed(duration_filter=499, state_filters=["Ongoing"]) == ["open"]
    assert world.listed(duration_filter=500, state_filters=["Ongoing"]) == []
    assert world.listed(duration_filter=500) == ["idle"]


def test_a_pattern_matches_whole_ids(world: TransactionWorld) -> None:
    assert world.listed(transactional_id_pattern="op.*|idle") == ["idle", "open"]
    assert world.listed(transactional_id_pattern="ope") == []
    assert world.listed(transactional_id_pattern="") == ["idle", "open", "complete"]


@pytest.mark.parametrize("pattern", ["(", "a(?!b)", "(a)\\1", "a" + "{1000}" * 3])
def test_a_pattern_that_re2_refuses_is_refused(world: TransactionWorld, pattern: str) -> None:
    response = world.list(transactional_id_pattern=pattern)
    assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert not response.transaction_states


@pytest.mark.parametrize("pattern", ["[\\pL\\pN.-]{0,300}", "(?i)\\pL" * 300])
def test_a_pattern_whose_program_takes_long_to_compile_is_refused(world: TransactionWorld, pattern: str) -> None:
    """Of 17 bytes one took 200 ms, in which nobody else was served."""
    assert world.list(transactional_id_pattern=pattern).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert world.listed(transactional_id_pattern="[\\pL\\pN.-]{0,20}") == ["idle", "open", "complete"]


def test_a_pattern_that_would_be_slow_elsewhere_is_not() -> None:
    world = TransactionWorld()
    world.producer("a" * 5000 + "!")
    assert world.listed(transactional_id_pattern="(a*)*b") == []


def test_a_transaction_is_described_with_its_partitions(world: TransactionWorld) -> None:
    described = world.describe("open")
    assert described.transaction_state == "Ongoing"
    assert described.transaction_timeout_ms == 60_000
    assert described.transaction_start_time_ms == START_MS
    assert [(topic.topic, topic.partitions) for topic in described.topics] == [("orders", [0])]
    assert world.describe("idle").transaction_start_time_ms == -1


def test_ids_that_there_are_not_are_told_so(world: TransactionWorld) -> None:
    assert world.describe("other").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert world.describe("").error_code == ErrorCode.INVALID_REQUEST
