"""Decided transactions whose markers cannot be written at once: leaders elsewhere or nowhere, new coordinators."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio

from pykbroker.api.add_partitions_to_txn import add_partitions_to_txn
from pykbroker.api.end_txn import end_txn
from pykbroker.api.init_producer_id import init_producer_id
from pykbroker.api.list_transactions import list_transactions
from pykbroker.api.write_txn_markers import write_txn_markers
from pykbroker.metadata.features import TRANSACTION_VERSION
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata_records import FeatureLevelRecord
from pykbroker.protocol.messages.transaction_admin import ListTransactionsRequest
from pykbroker.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    EndTxnRequest,
    InitProducerIdRequest,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.server.coordinators import transaction_markers
from pykbroker.server.coordinators.transaction_coordinator import TRANSACTION_STATE
from pykbroker.state_machine import CoordinatorContext
from pykbroker.transactions.effects import WriteMarkers
from pykbroker.transactions.requests import AddPartitions, MarkersWritten
from tests.api.api_node import ApiNode, batch, in_virtual_time
from tests.replication.truncations import truncate

from .other_broker import OtherBroker
from .serving import eventually

TOPIC = "orders"
HERE, ELSEWHERE, NOWHERE = 1, 2, -1


class Coordinating:
    """Node 1 coordinates all transactions; a producer has begun one."""

    def __init__(self, node: ApiNode) -> None:
        self.node = node
        self.producer_id = -1
        self.epoch = -1

    async def begin(self, *partitions: int) -> None:
        request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
        answer = await self.node.call(init_producer_id, request, 5)
        assert answer.error_code == ErrorCode.NONE
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        request_to_add = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=list(partitions))],
        )
        added: AddPartitionsToTxnResponse = await self.node.call(add_partitions_to_txn, request_to_add, 3)
        (result,) = added.results_by_topic_v3_and_below
        assert all(each.partition_error_code == ErrorCode.NONE for each in _rows(result))

    async def end(self, *, commit: bool = True, version: int = 4) -> ErrorCode:
        request = EndTxnRequest(
            transactional_id="t", producer_id=self.producer_id, producer_epoch=self.epoch, committed=commit
        )
        return ErrorCode((await self.node.call(end_txn, request, version)).error_code)

    async def state(self) -> str:
        (listed,) = (await self.node.call(list_transactions, ListTransactionsRequest(), 1)).transaction_states
        return str(listed.transaction_state)

    async def wait_for(self, state: str) -> None:
        with trio.fail_after(60):
            while await self.state() != state:  # noqa: ASYNC110 - what is waited for has no event
                await trio.sleep(0.05)

    async def elect_anew(self) -> None:
        """The coordinator is this node again, in another epoch."""
        for leader in (ELSEWHERE, HERE):
            self.node.change_partition(TRANSACTION_STATE, 0, leader=leader)
        assert await self.node.transactions.coordinator.wait_until_active(0)


def _rows(result: AddPartitionsToTxnTopicResult) -> list[Any]:
    return list(result.results_by_partition)


def coordinating(
    tmp_path: Path,
    main: Callable[[Coordinating, OtherBroker], Awaitable[None]],
    *,
    replicas: list[int] | None = None,
    coordinators: int = 1,
) -> None:
    async def run() -> None:
        node = ApiNode(tmp_path)
        node.create_topic(TRANSACTION_STATE, coordinators)
        node.create_topic(TOPIC, 2, replicas=replicas)
        other = OtherBroker()
        async with trio.open_nursery() as nursery:
            await nursery.start(node.transactions.run)
            for index in range(coordinators):
                assert await node.transactions.coordinator.wait_until_active(index)
            await main(Coordinating(node), other)
            nursery.cancel_scope.cancel()
        node.close()

    in_virtual_time(run)


def test_a_transaction_is_complete_before_its_producer_hears_of_it(tmp_path: Path) -> None:
    async def main(coordinating: Coordinating, other: OtherBroker) -> None:
        await coordinating.begin(0, 1)
        assert await coordinating.end() is ErrorCode.NONE
        assert await coordinating.state() == "CompleteCommit"
        assert [coordinating.node.partition(TOPIC, each).log.log_end_offset for each in (0, 1)] == [1, 1]

    coordinating(tmp_path, main)


def test_a_transaction_is_not_complete_before_its_marker_is_replicated(tmp_path: Path) -> None:
    async def main(coordinating: Coordinating, other: OtherBroker) -> None:
        await coordinating.begin(0)
        assert await coordinating.end() is ErrorCode.NONE
        await trio.sleep(5)
        partition = coordinating.node.partition(TOPIC, 0)
        assert (partition.high_watermark, partition.log.log_end_offset) == (0, 1), "written once, though it takes long"
        assert await coordinating.state() == "PrepareCommit"
        partition.read_as_replica(ELSEWHERE, 1, 1000, now_ms=0)
        with trio.fail_after(0.5):
            await coordinating.wait_for("CompleteCommit")

    coordinating(tmp_path, main, replicas=[HERE, ELSEWHERE])


def test_a_shard_that_is_loaded_while_the_node_stops_leaves_its_markers_to_the_next_coordinator(tmp_path: Path) -> None:
    async def run() -> None:
        node = ApiNode(tmp_path)
        node.create_topic(TOPIC, 2)
        node.change_partition(TOPIC, 1, leader=NOWHERE)
        markers, written = node.transactions.markers, list[MarkersWritten]()
        async with trio.open_nursery() as nursery:
            await nursery.start(markers.run)
            nursery.cancel_scope.cancel()
        places = tuple(TopicPartition(TOPIC, index) for index in (0, 1))
        effect = WriteMarkers(
            transactional_id="t",
            producer_id=7,
            producer_epoch=0,
            is_commit=True,
            partitions=places,
            coordinator_epoch=0,
            transaction_version=1,
        )
        markers.write(effect, is_wanted=lambda: True, written=written.append)
        assert [each.partitions for each in written] == [places[:1]]
        node.close()

    in_virtual_time(run)


@pytest.mark.parametrize("is_replicated", [True, False])
def test_another_coordinator_hears_of_its_marker_when_it_is_replicated(tmp_path: Path, is_replicated: bool) -> None:
    async def main(coordinating: Coordinating, other: OtherBroker) -> None:
        node = coordinating.node
        partition = node.partition(TOPIC, 0)
        topic = WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])
        marker = WritableTxnMarker(
            producer_id=7, producer_epoch=0, transaction_result=True, topics=[topic], coordinator_epoch=0
        )
        answers = []

        async def ask() -> None:
            answers.append(await node.call(write_txn_markers, WriteTxnMarkersRequest(markers=[marker]), 1))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.sleep(5)
            assert (partition.log.log_end_offset, answers) == (1, [])
            if is_replicated:
                partition.read_as_replica(ELSEWHERE, 1, 1000, now_ms=0)
                await trio.sleep(0.1)
                assert answers
        (result,) = answers[0].markers
        expected = ErrorCode.NONE if is_replicated else ErrorCode.REQUEST_TIMED_OUT
        assert [each.error_code for each in result.topics[0].partitions] == [expected]

    coordinating(tmp_path, main, replicas=[HERE, ELSEWHERE])


def test_markers_go_to_the_leader(tmp_path: Path) -> None:
    async def main(coordinating: Coordinating, other: OtherBroker) -> None:
        coordinating.node.change_partition(TOPIC, 1, leader=ELSEWHERE)
        await coordinating.begin(0, 1)
        other.told = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR]
        async with other.serving(coordinating.node.network):
            assert await coordinating.end() is ErrorCode.NONE
            assert await coordinating.state() == "PrepareCommit"
            assert await coordinating.end() is ErrorCode.CONCURRENT_TRANSACTIONS
            await coordinating.wait_for("CompleteCommit")
        assert other.asked == [(0, [1])] * 3
        assert coordinating.node.partition(TOPIC, 0).log.log_end_offset == 1, "once, whatever becomes of the others"

    coordinating(tmp_path, main)


def test_a_broker_that_cannot_be_reached_is_tried_again(tmp_path: Path) -> None:
    async def main(coordinating: Coordinating, other: OtherBroker) -> None:
        coordinating.node.change_partition(TOPIC, 0, leader=ELSEWHERE)
        await coordinating.begin(0)
        assert await coordinating.end(commit=False) is ErrorCode.NONE
        await trio.sleep(10)
        assert await coordinating.state() == "PrepareAbort"
        async with other.serving(coordinating.node.network):
            await coordinating.wait_for("CompleteAbort")

    coordinating(tmp_path, main)


def test_a_partition_that_has_no_leader_gets_its_marker_when_it_has_one(tmp_path: Path) -> None:
    async def main(coordinating: Coordinating, other: OtherBroker) -> None:
        coordinating.node.change_partition(TOPIC, 0, leader=NOWHERE)
        await coordinating.begin(0)
        assert await coordinating.end() is ErrorCode.NONE
        await trio.sleep(5)
        assert await coordinating.state() == "PrepareCommit"
        coordinating.node.change_partition(TOPIC, 0, leader=HERE)
        await coordinating.wait_for("CompleteCommit")
        assert coordinating.node.partition(TOPIC, 0).log.log_end_offset == 1

    coordinating(tmp_path, main)


def test_a_partition_that_is_gone_needs_no_marker(tmp_path: Path) -> None:
    async def main(coordinating: Coordinating, other: OtherBroker) -> None:
        await coordinating.begin(0, 1)
        coordinating.node.change_partition(TOPIC, 1, leader=NOWHERE)
        assert await coordinating.end() is ErrorCode.NONE
        assert await coordinating.state() == "PrepareCommit"
        coordinating.node.delete_topic(TOPIC)
        await coordinating.wait_for("CompleteCommit")

    coordinating(tmp_path, main)


def test_the_next_coordinator_carries_on_and_the_one_before_stops(tmp_path: Path) -> None:
    async def main(coordinating: Coordinating, other: OtherBroker) -> None:
        coordinating.node.change_partition(TOPIC, 0, leader=ELSEWHERE)
        await coordinating.begin(0)
        assert await coordinating.end() is ErrorCode.NONE
        await coordinating.elect_anew()
        assert await coordinating.state() == "PrepareCommit"
        async with other.serving(coordinating.node.network):
            await coordinating.wait_for("CompleteCommit")
            await trio.sleep(5)
        epoch = coordinating.node.partition(TRANSACTION_STATE).leader_epoch
        assert epoch > 0
        assert other.asked == [(epoch, [0])]

    coordinating(tmp_path, main)


@pytest.mark.parametrize("version", [4, 5])
def test_a_marker_that_was_written_for_the_coordinator_before_is_written_again(tmp_path: Path, version: int) -> None:
    """KAFKA-19999: the next one has the same epoch for it, and the transaction must not stay prepared for ever."""

    async def main(coordinating: Coordinating, other: OtherBroker) -> None:
        node = coordinating.node
        node.replay(FeatureLevelRecord(name=TRANSACTION_VERSION, feature_level=2))
        await coordinating.begin(0)
        here, producer = node.partition(TOPIC, 0), {"producer_id": coordinating.producer_id, "base_sequence": 0}
        data = batch(b"v", producer_epoch=coordinating.epoch, is_transactional=True, **producer)
        node.replicas.append(here, data, 0, 1)
        here.read_as_replica(ELSEWHERE, 1, 1000, now_ms=0)
        assert await coordinating.end(version=version) is ErrorCode.NONE
        await eventually(lambda: here.log.log_end_offset == 2)
        assert await coordinating.state() == "PrepareCommit"
        await coordinating.elect_anew()
        await eventually(lambda: here.log.log_end_offset == 3)
        here.read_as_replica(ELSEWHERE, 3, 1000, now_ms=0)
        await coordinating.wait_for("CompleteCommit")
        assert here.last_stable_offset == 3

    coordinating(tmp_path, main, replicas=[HERE, ELSEWHERE])


def test_what_was_complete_stays_so_under_the_next_coordinator(tmp_path: Path) -> None:
    async def main(coordinating: Coordinating, other: OtherBroker) -> None:
        await coordinating.begin(0)
        await coordinating.elect_anew()
        assert await coordinating.state() == "Ongoing"
        assert await coordinating.end(commit=False) is ErrorCode.NONE
        await coordinating.elect_anew()
        assert await coordinating.state() == "CompleteAbort"
        assert coordinating.node.partition(TOPIC, 0).log.log_end_offset == 1

    coordinating(tmp_path, main)


def test_a_coordinator_that_is_fenced_gives_up(tmp_path: Path) -> None:
    async def main(coordinating: Coordinating, other: OtherBroker) -> None:
        coordinating.node.change_partition(TOPIC, 0, leader=ELSEWHERE)
        await coordinating.begin(0)
        other.told = [ErrorCode.TRANSACTION_COORDINATOR_FENCED]
        async with other.serving(coordinating.node.network):
            assert await coordinating.end() is ErrorCode.NONE
            await eventually(lambda: bool(other.asked))
            await trio.sleep(20)
        assert other.asked == [(0, [0])]
        assert await coordinating.state() == "PrepareCommit"

    coordinating(tmp_path, main)


def test_a_marker_that_was_truncated_while_others_were_written_is_written_again(tmp_path: Path) -> None:
    """Its leader, which coordinates, is demoted and elected again while it waits for a slow broker."""

    async def main(coordinating: Coordinating, other: OtherBroker) -> None:
        node = coordinating.node
        node.change_partition(TOPIC, 1, leader=ELSEWHERE)
        await coordinating.begin(0, 1)
        here, producer = node.partition(TOPIC, 0), {"producer_id": coordinating.producer_id, "base_sequence": 0}
        data = batch(b"aborted", producer_epoch=coordinating.epoch, is_transactional=True, **producer)
        node.replicas.append(here, data, 0, 1)
        here.read_as_replica(ELSEWHERE, 1, 1000, now_ms=0)
        other.takes_s = 20
        async with other.serving(node.network):
            assert await coordinating.end(commit=False) is ErrorCode.NONE
            await eventually(lambda: bool(other.asked))
            assert here.log.log_end_offset == 2
            node.change_partition(TOPIC, 0, leader=ELSEWHERE, isr=[ELSEWHERE])
            truncate(here, 1)
            for offset in (1, 2):
                here.append_as_follower(batch(b"v", base_offset=offset, partition_leader_epoch=1))
            await trio.sleep(1)
            node.change_partition(TOPIC, 0, leader=HERE, isr=[HERE])
            await coordinating.wait_for("CompleteAbort")
        assert here.log.first_unstable_offset is None
        assert here.last_stable_offset == here.high_watermark == 4

    coordinating(tmp_path, main, replicas=[HERE, ELSEWHERE])


def test_a_marker_that_takes_long_delays_no_verification(tmp_path: Path) -> None:
    """Of another producer, whose coordinator is the broker that has the marker written."""

    async def main(coordinating: Coordinating, other: OtherBroker) -> None:
        node = coordinating.node
        here = node.transactions.coordinator.partition_for("t")
        another = next(f"x{i}" for i in range(9) if node.transactions.coordinator.partition_for(f"x{i}") != here)
        node.change_partition(TOPIC, 1, leader=ELSEWHERE)
        node.change_partition(TRANSACTION_STATE, 1, leader=ELSEWHERE)
        await coordinating.begin(0, 1)
        other.takes_s = 20
        async with other.serving(node.network):
            await coordinating.end()
            await eventually(lambda: bool(other.asked))
            question = AddPartitions(
                transactional_id=another,
                producer_id=5,
                producer_epoch=0,
                partitions=(TopicPartition(TOPIC, 0),),
                verify_only=True,
            )
            with trio.fail_after(other.takes_s / 2):
                errors = await node.transactions.membership.verify(question)
            assert list(errors.values()) == [ErrorCode.NONE]
            assert await coordinating.state() == "PrepareCommit"

    coordinating(tmp_path, main, coordinators=2)


def test_nobody_waits_for_a_broker_that_leads_no_more(tmp_path: Path) -> None:
    async def main(coordinating: Coordinating, other: OtherBroker) -> None:
        coordinating.node.change_partition(TOPIC, 0, leader=ELSEWHERE)
        await coordinating.begin(0)
        other.takes_s = 1000
        async with other.serving(coordinating.node.network):
            assert await coordinating.end() is ErrorCode.NONE
            await eventually(lambda: bool(other.asked))
            coordinating.node.change_partition(TOPIC, 0, leader=HERE)
            with trio.fail_after(5):
                await coordinating.wait_for("CompleteCommit")

    coordinating(tmp_path, main)


def test_a_transaction_of_very_many_partitions_leaves_the_event_loop_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, at_once = 40, 8
    monkeypatch.setattr(transaction_markers, "WRITTEN_AT_ONCE", at_once)

    async def main(coordinating: Coordinating, other: OtherBroker) -> None:
        node = coordinating.node
        node.create_topic("many", count)
        await coordinating.begin(0)
        coordinator = node.transactions.coordinator
        many = tuple(TopicPartition("many", index) for index in range(count))
        adding = AddPartitions(
            transactional_id="t",
            producer_id=coordinating.producer_id,
            producer_epoch=coordinating.epoch,
            partitions=many,
        )
        await coordinator.submit("t", adding, CoordinatorContext(api_version=3))
        written_between: list[int] = []
        ended = await coordinating.end()
        for _ in range(100):
            written_between.append(sum(node.partition("many", each).log.log_end_offset for each in range(count)))
            await trio.lowlevel.checkpoint()
        assert ended is ErrorCode.NONE
        await coordinating.wait_for("CompleteCommit")
        seen = sorted({*written_between, count})
        assert max(later - earlier for earlier, later in pairwise(seen)) <= 2 * at_once

    coordinating(tmp_path, main)
