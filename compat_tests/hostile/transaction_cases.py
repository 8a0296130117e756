"""Transactions of nobody, without a name, or without their partitions: rows 63 and 70."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from compat_tests.cases import code
from pykbroker.protocol.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from pykbroker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from pykbroker.protocol.messages.transactions import (
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

from .record_cases import batch
from .scene import COORDINATOR_IS_STARTING, STARTING_DEADLINE_S, Case, Scene

PRODUCE_BEFORE_KIP_890 = 10
TRANSACTION = 1
"""The key type of FindCoordinator."""


def init(scene: Scene, transactional_id: str, timeout_ms: int = 60_000) -> InitProducerIdResponse:
    """Waits for the coordinator where it is still starting."""
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
    deadline = time.monotonic() + STARTING_DEADLINE_S
    with scene.wire() as wire:
        wire.call(FindCoordinatorRequest(key=transactional_id, key_type=TRANSACTION), 3)
        while True:
            answer = wire.call(request, 4)
            assert isinstance(answer, InitProducerIdResponse)
            if code(answer.error_code) not in COORDINATOR_IS_STARTING or time.monotonic() > deadline:
                return answer
            time.sleep(0.05)


def init_answer(transactional_id: str | None = None, timeout_ms: int = 60_000) -> Callable[[Scene], str]:
    def run(scene: Scene) -> str:
        named = scene.name("transaction") if transactional_id is None else transactional_id
        return code(init(scene, named, timeout_ms).error_code)

    return run


def produce_answer(*, is_named: bool) -> Callable[[Scene], str]:
    """A transactional batch for a partition that was never added to the transaction, by a client that should do so."""

    def run(scene: Scene) -> str:
        topic, transactional_id = scene.topic(), scene.name("transaction")
        producer = init(scene, transactional_id)
        of_producer: dict[str, Any] = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
        records = batch(is_transactional=True, base_sequence=0, **of_producer)
        request = ProduceRequest(
            transactional_id=transactional_id if is_named else None,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])],
        )
        with scene.wire() as wire:
            answer = wire.call(request, PRODUCE_BEFORE_KIP_890)
        assert isinstance(answer, ProduceResponse)
        return code(answer.responses[0].partition_responses[0].error_code)

    return run


def commit_answer(
    version: int, *, group: str | None = None, epoch_too_high: int = 0, offset: int = 1
) -> Callable[[Scene], str]:
    """Offsets of a transaction that the group was never added to."""

    def run(scene: Scene) -> str:
        topic, transactional_id = scene.topic(), scene.name("transaction")
        group_id = scene.group() if group is None else group
        producer = init(scene, transactional_id)
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id=transactional_id,
            group_id=group_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch + epoch_too_high,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        with scene.wire() as wire:
            answer = wire.call(request, version)
        assert isinstance(answer, TxnOffsetCommitResponse)
        return code(answer.topics[0].partitions[0].error_code)

    return run


def end_nothing(scene: Scene) -> str:
    """A transactional id that nobody has."""
    transactional_id = scene.name("transaction")
    init(scene, transactional_id)
    with scene.wire() as wire:
        answer = wire.call(
            EndTxnRequest(transactional_id=transactional_id + "-other", producer_id=1, committed=True), 3
        )
    assert isinstance(answer, EndTxnResponse)
    return code(answer.error_code)


def find_answer(key_type: int) -> Callable[[Scene], str]:
    def run(scene: Scene) -> str:
        with scene.wire() as wire:
            answer = wire.call(FindCoordinatorRequest(key="key", key_type=key_type), 3)
        assert isinstance(answer, FindCoordinatorResponse)
        return code(answer.error_code)

    return run


CASES = [
    Case("63", "a transaction without a name", produce_answer(is_named=False), "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
    Case("63", "a partition that was never added", produce_answer(is_named=True), "INVALID_TXN_STATE"),
    Case("63", "offsets of a group that was never added", commit_answer(3), "INVALID_TXN_STATE"),
    Case("63", "offsets of a group without a name", commit_answer(5, group=""), "INVALID_GROUP_ID"),
    Case("63", "offsets in an epoch that is to come", commit_answer(5, epoch_too_high=1), "INVALID_PRODUCER_EPOCH"),
    Case("69", "offset -2 in a transaction", commit_answer(5, offset=-2), "NONE"),
    Case("63", "the end of a transaction of nobody", end_nothing, "INVALID_PRODUCER_ID_MAPPING"),
    Case("70", "a transactional id without a character", init_answer(""), "INVALID_REQUEST"),
    Case("70", "a transaction timeout of 0", init_answer(timeout_ms=0), "INVALID_TRANSACTION_TIMEOUT"),
    Case("70", "a transaction timeout of 10**9", init_answer(timeout_ms=10**9), "INVALID_TRANSACTION_TIMEOUT"),
    Case("70", "a coordinator of type 99", find_answer(99), "INVALID_REQUEST"),
]
