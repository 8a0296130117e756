"""Mistakes of replicas that simulations of one partition and of whole clusters must find."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from pykbroker.metadata.partition_change import Election, PartitionChange
from pykbroker.metadata.partition_state import PartitionState
from pykbroker.replication.appended import Appended
from pykbroker.replication.fetch_session import WatchedContext
from pykbroker.replication.follower import Follower
from pykbroker.replication.isr import InSyncReplicas
from pykbroker.replication.partition import Partition
from pykbroker.replication.session_watch import SessionWatch
from pykbroker.server.replicas.image_brokers import ImageBrokers
from pykbroker.storage.log.log import Log
from pykbroker.storage.producers.producer_state import ProducerStateManager


def producers_are_answered_before_the_high_watermark() -> Iterator[None]:
    with patch.object(Appended, "is_replicated", True):
        yield


def a_wait_knows_an_offset_and_no_leader_epoch() -> Iterator[None]:
    """Whoever leads again answers for what was truncated meanwhile."""
    with patch.object(Partition, "has_led_since", lambda self, leader_epoch: self.is_leader):
        yield


def a_new_leader_shows_what_it_never_flushed() -> Iterator[None]:
    """What it wrote as a follower, or found at its start, counts as if it were on its disk."""
    lacks_flush, point = Log.lacks_flush, Partition._maybe_increment_high_watermark

    def increment(self: Partition) -> bool:
        start = self.leader_epoch_start_offset
        with patch.object(Log, "lacks_flush", lambda log, end: end > start and lacks_flush(log, end)):
            return point(self)

    with patch.object(Partition, "_maybe_increment_high_watermark", increment):
        yield


def a_request_that_its_follower_broke_off_takes_it_back() -> Iterator[None]:
    """What is read again for a request counts once more, whichever request came meanwhile, and settles the session."""
    read, was_read, note = Partition.read_as_replica, SessionWatch.was_read, Partition._note_fetch

    def read_and_count(self: Partition, *arguments: Any, counts: bool = True, **keywords: Any) -> Any:
        return read(self, *arguments, counts=True, **keywords)

    def note_alone(self: Partition, follower: Any, *arguments: Any) -> bool:
        follower.end_quiet()
        return note(self, follower, *arguments)

    def settle(self: SessionWatch, key: Any, partition: Partition, data: Any, replica_id: int, offset: int) -> None:
        was_read(self, key, partition, data, replica_id, partition.log.log_end_offset)

    with (
        patch.object(Partition, "read_as_replica", read_and_count),
        patch.object(Partition, "_note_fetch", note_alone),
        patch.object(SessionWatch, "was_read", settle),
        patch.object(WatchedContext, "is_overtaken", False),
    ):
        yield


def the_high_watermark_is_the_leaders_own_log_end() -> Iterator[None]:
    with patch.object(InSyncReplicas, "least_end_offset", lambda self, log_end_offset: log_end_offset):
        yield


def followers_do_not_truncate() -> Iterator[None]:
    with patch.object(Follower, "_diverged", lambda self, followed, diverging, now_ms: None):
        yield


def followers_keep_no_sequences() -> Iterator[None]:
    append_as_follower = Log.append_as_follower

    def append_without(self: Log, *arguments: Any, **keywords: Any) -> Any:
        result = append_as_follower(self, *arguments, **keywords)
        self.producers.clear(self.log_end_offset)
        return result

    with patch.object(Log, "append_as_follower", append_without):
        yield


def repeated_sequences_are_appended_again() -> Iterator[None]:
    with patch.object(ProducerStateManager, "check_client_batch", lambda self, header: None):
        yield


def the_isr_shrinks_without_the_controllers_word() -> Iterator[None]:
    shrunk = InSyncReplicas.shrunk

    def shrink_at_once(self: InSyncReplicas, log_end_offset: int, now_ms: int) -> tuple[int, ...]:
        isr = shrunk(self, log_end_offset, now_ms)
        if isr:
            self.committed = self.maximal = isr
        return ()

    with patch.object(InSyncReplicas, "shrunk", shrink_at_once):
        yield


def the_high_watermark_does_not_wait_for_whom_a_pending_change_removes() -> Iterator[None]:
    propose = InSyncReplicas.propose

    def propose_and_count_on_it(self: InSyncReplicas, isr: tuple[int, ...], *rest: int) -> Any:
        change = propose(self, isr, *rest)
        self.maximal = isr
        return change

    with patch.object(InSyncReplicas, "propose", propose_and_count_on_it):
        yield


def metadata_that_are_known_already_end_a_pending_change() -> Iterator[None]:
    begin = InSyncReplicas.begin

    def begin_and_forget(self: InSyncReplicas, replicas: Any, isr: Any, *rest: Any, **more: Any) -> None:
        begin(self, replicas, isr, *rest, **more)
        self.commit(isr)

    with patch.object(InSyncReplicas, "begin", begin_and_forget):
        yield


def readers_see_what_is_not_replicated() -> Iterator[None]:
    read = Partition.read

    def read_to_the_end(self: Partition, *arguments: Any, **keywords: Any) -> Any:
        before, self.high_watermark = self.high_watermark, self.log.log_end_offset
        try:
            return read(self, *arguments, **keywords)
        finally:
            self.high_watermark = before

    with patch.object(Partition, "read", read_to_the_end):
        yield


def what_a_leader_lacks_on_its_disk_counts_as_replicated() -> Iterator[None]:
    """Where each message is flushed."""
    with patch.object(Log, "lacks_flush", lambda self, end_offset: False):
        yield


def followers_truncate_to_their_high_watermark_alone() -> Iterator[None]:
    """As before KIP-101: what the leader has behind it is taken for the same."""

    def truncate(self: Follower, followed: Any, diverging: Any, now_ms: int) -> None:
        partition = followed.partition
        self._truncate(followed, partition.high_watermark, "so it is", now_ms)

    with (
        patch.object(Follower, "_diverged", truncate),
        patch.object(Partition, "_diverging_epoch", lambda self, offset, last_fetched_epoch: None),
    ):
        yield


def followers_name_no_epoch_of_their_last_record() -> Iterator[None]:
    ask = Follower._ask

    def ask_without(self: Follower, followed: Any, now_ms: int) -> Any:
        asked = ask(self, followed, now_ms)
        if asked is not None:
            asked.last_fetched_epoch = -1
        return asked

    with patch.object(Follower, "_ask", ask_without):
        yield


def sequences_are_forgotten_when_a_replica_is_elected() -> Iterator[None]:
    start_leader_epoch = Partition._start_leader_epoch

    def start_with_nothing(self: Partition) -> None:
        start_leader_epoch(self)
        self.log.producers.clear(self.log.log_end_offset)

    with patch.object(Partition, "_start_leader_epoch", start_with_nothing):
        yield


def a_broker_leads_what_its_last_process_led() -> Iterator[None]:
    """It does not wait until its own registration is among the metadata that it follows."""
    with patch.object(ImageBrokers, "knows_this_process", lambda self: True):
        yield


def whoever_lives_is_elected() -> Iterator[None]:
    """Unclean elections where they are not allowed."""
    elect = PartitionChange._elect

    def elect_anybody(self: PartitionChange, *arguments: Any) -> Any:
        self.election = Election.UNCLEAN
        return elect(self, *arguments)

    with patch.object(PartitionChange, "_elect", elect_anybody):
        yield


def a_new_leader_keeps_the_leader_epoch() -> Iterator[None]:
    changed_by = PartitionState.changed_by

    def change_without(self: PartitionState, record: Any) -> PartitionState:
        return replace(changed_by(self, record), leader_epoch=self.leader_epoch)

    with patch.object(PartitionState, "changed_by", change_without):
        yield


def a_leader_that_was_replaced_leads_on() -> Iterator[None]:
    apply_state = Partition.apply_state

    def stay(self: Partition, state: Any, now_ms: int) -> bool:
        return apply_state(self, state, now_ms) if state.leader == self.local_id or not self.is_leader else False

    with patch.object(Partition, "apply_state", stay):
        yield


def a_follower_takes_the_leaders_high_watermark_for_its_own() -> Iterator[None]:
    def follow(self: Partition, high_watermark: int, log_start_offset: int) -> bool:
        self.high_watermark = max(high_watermark, self.high_watermark)
        return True

    with patch.object(Partition, "follow_watermarks", follow):
        yield
