"""Mistakes that a broker could make: each one is planted while its context lasts, and the simulation must find it.

They are mistakes that pass every test of one request and one answer: what is wrong shows after a crash, under a second
client, or to a reader who comes later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

from pykbroker.api.transaction_verification import TransactionVerification
from pykbroker.groups.classic.rebalance import Rebalance
from pykbroker.groups.shard import GroupShard
from pykbroker.protocol.messages.transactions import EndTxnRequest
from pykbroker.replication.appended import Appended
from pykbroker.server.coordinators.group_coordinator import CONSUMER_OFFSETS
from pykbroker.server.coordinators.transaction_coordinator import TRANSACTION_STATE
from pykbroker.server.replicas.record_appends import RecordAppends
from pykbroker.state_machine import Result
from pykbroker.storage.log.log import AppendResult, Log
from pykbroker.storage.producers.producer_state import ProducerStateManager
from pykbroker.transactions.effects import WriteMarkers
from pykbroker.transactions.shard import TransactionShard
from pykbroker.transactions.timeouts import TransactionTimeouts
from pykbroker.transactions.transaction import Transaction
from tests.simulations import Bugs, is_wrong

from .simulation import simulate

BUGS = Bugs()


def appends_late(topic: str) -> Any:
    """An append to the topic is told of at once and happens at the next one, or never where the process dies."""
    append = RecordAppends.append
    held: dict[Any, tuple[Any, ...]] = {}

    def append_late(self: RecordAppends, partition: Any, records: Any, *rest: Any, **checked: Any) -> Any:
        if partition.topic != topic:
            return append(self, partition, records, *rest, **checked)
        before = held.pop(partition, None)
        if before is not None:
            append(self, partition, *before)
        held[partition] = (bytes(records), *rest)
        end = partition.log.log_end_offset
        return AppendResult(
            first_offset=end - 1, last_offset=end - 1, log_append_time_ms=-1, log_start_offset=0, size_bytes=0
        )

    return patch.object(RecordAppends, "append", append_late)


# Groups


@BUGS.plant(3)
def offsets_are_acknowledged_before_they_are_appended() -> Iterator[None]:
    with appends_late(CONSUMER_OFFSETS):
        yield


@BUGS.plant(7)
def every_member_gets_the_first_ones_partitions() -> Iterator[None]:
    stabilize = Rebalance.stabilize

    def stabilize_badly(self: Rebalance, group: Any, assignments: dict[str, bytes], step: Any) -> None:
        first = next(iter(assignments.values()), b"")
        stabilize(self, group, dict.fromkeys(assignments, first), step)

    with patch.object(Rebalance, "stabilize", stabilize_badly):
        yield


@BUGS.plant(20)
def offsets_of_a_transaction_count_at_once() -> Iterator[None]:
    handle = GroupShard.handle

    def handle_at_once(self: GroupShard, *arguments: Any) -> Any:
        result = handle(self, *arguments)
        if result.producer is not None:
            self.end_transaction(result.producer[0], True)
        return result

    with patch.object(GroupShard, "handle", handle_at_once):
        yield


@BUGS.plant(3)
def offsets_of_a_transaction_are_forgotten_at_its_end() -> Iterator[None]:
    end_transaction = GroupShard.end_transaction

    def forget(self: GroupShard, producer_id: int, is_commit: bool) -> None:
        end_transaction(self, producer_id, False)

    with patch.object(GroupShard, "end_transaction", forget):
        yield


@BUGS.plant(4)
def offsets_of_a_transaction_are_forgotten_when_a_log_is_loaded() -> Iterator[None]:
    with patch.object(GroupShard, "replay_pending", lambda self, producer_id, key, value: None):
        yield


# Logs


@BUGS.plant(12)
def a_repeated_sequence_is_appended_again() -> Iterator[None]:
    with patch.object(ProducerStateManager, "check_client_batch", lambda self, header: None):
        yield


@BUGS.plant(3)
def the_last_batch_is_cut_off_after_a_crash() -> Iterator[None]:
    open_log = Log.open.__func__  # type: ignore[attr-defined]

    def open_shorter(cls: type[Log], *arguments: Any, **keywords: Any) -> Log:
        log: Log = open_log(cls, *arguments, **keywords)
        if "orders" in log.directory and log.log_end_offset > log.log_start_offset:
            log.truncate_to(log.log_end_offset - 1)
        return log

    with patch.object(Log, "open", classmethod(open_shorter)):
        yield


@BUGS.plant(0)
def aborted_records_are_served() -> Iterator[None]:
    with patch.object(Log, "aborted_transactions_of", lambda self, offset, records: []):
        yield


@BUGS.plant(0)
def open_transactions_are_served() -> Iterator[None]:
    with patch.object(ProducerStateManager, "first_undecided_offset", lambda self, high_watermark: None):
        yield


# Transactions


@BUGS.plant(17)
def decisions_are_not_written_down() -> Iterator[None]:
    """The markers follow nevertheless."""
    handle = TransactionShard.handle

    def handle_in_memory(self: TransactionShard, request: Any, *rest: Any) -> Result[Any]:
        result = handle(self, request, *rest)
        return replace(result, records=()) if isinstance(request, EndTxnRequest) else result

    with patch.object(TransactionShard, "handle", handle_in_memory):
        yield


@BUGS.plant(24)
def decisions_are_carried_out_before_they_are_appended() -> Iterator[None]:
    with appends_late(TRANSACTION_STATE):
        yield


@BUGS.plant(4)
def markers_are_not_written_again_after_a_crash() -> Iterator[None]:
    start_timers = TransactionShard.start_timers

    def start_without_markers(self: TransactionShard, now_ms: int, timestamp_ms: int) -> Result[Any]:
        return replace(start_timers(self, now_ms, timestamp_ms), effects=())

    with patch.object(TransactionShard, "start_timers", start_without_markers):
        yield


def _with_effects(change: Callable[[WriteMarkers], WriteMarkers]) -> Any:
    """Decisions as they are carried out, by whatever a request or time brings about."""
    handle = TransactionShard.handle

    def handle_changed(self: TransactionShard, *arguments: Any) -> Result[Any]:
        result = handle(self, *arguments)
        return replace(result, effects=[change(effect) for effect in result.effects])  # type: ignore[arg-type]

    return patch.object(TransactionShard, "handle", handle_changed)


@BUGS.plant(4)
def one_partition_gets_no_marker_of_several() -> Iterator[None]:
    with _with_effects(
        lambda effect: replace(effect, partitions=effect.partitions[: max(1, len(effect.partitions) - 1)])
    ):
        yield


@BUGS.plant(0)
def what_is_aborted_is_committed() -> Iterator[None]:
    with _with_effects(lambda effect: replace(effect, is_commit=True)):
        yield


@BUGS.plant(2)
def the_epoch_stays_when_another_producer_begins() -> Iterator[None]:
    begin_epoch = Transaction.begin_epoch

    def begin_same_epoch(self: Transaction, epoch: int, last_epoch: int, timeout_ms: int, timestamp_ms: int) -> None:
        begin_epoch(self, max(epoch - 1, 0), last_epoch, timeout_ms, timestamp_ms)

    with patch.object(Transaction, "begin_epoch", begin_same_epoch):
        yield


@BUGS.plant(16)
def transactions_never_time_out() -> Iterator[None]:
    with patch.object(TransactionTimeouts, "_abort_timed_out", lambda self, step: True):
        yield


@BUGS.plant(23)
def a_marker_counts_before_it_is_on_the_disk() -> Iterator[None]:
    """Where the topic flushes each message: the decision is forgotten, and the marker lost in a power cut."""

    class WrittenIsEnough(Appended):
        __slots__ = ()
        is_replicated = True  # type: ignore[assignment]

    with (
        patch("pykbroker.server.coordinators.marker_appends.Appended", WrittenIsEnough),
        patch.object(RecordAppends, "flush_what_readers_lack", lambda self, partition: None),
    ):
        yield


@BUGS.plant(2)
def batches_that_come_late_open_transactions() -> Iterator[None]:
    """Nobody asks the coordinator whether the transaction is one of its."""

    async def ask_nobody(self: TransactionVerification) -> None:
        return None

    with patch.object(TransactionVerification, "ask", ask_nobody):
        yield


# Threads


@BUGS.plant(860)
def a_flush_promises_what_is_appended_during_it() -> Iterator[None]:
    """Threads that do their work at once cannot have this: nothing is appended meanwhile."""
    flush = Log._flush

    def flush_and_promise(self: Log) -> None:
        flush(self)
        self.recovery_point = max(self.recovery_point, self.log_end_offset)

    with patch.object(Log, "_flush", flush_and_promise):
        yield


HUNT = BUGS.hunt("coordination", partial(is_wrong, simulate))
