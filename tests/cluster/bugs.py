"""Mistakes that nodes of a cluster could make: each is planted in all of them, and the simulation must find it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from pykbroker.config import BrokerConfig
from pykbroker.metadata.image import TopicState
from pykbroker.metadata.partition_index import PartitionIndex
from pykbroker.metadata.partition_state import PartitionState
from pykbroker.protocol.messages.metadata_records import PartitionRecord
from pykbroker.raft.node import RaftNode
from pykbroker.raft.timeouts import Timeouts
from pykbroker.replication.isr import InSyncReplicas
from pykbroker.server.coordinators.coordinator_driver import CoordinatorDriver
from pykbroker.server.coordinators.coordinator_log import Replayer
from pykbroker.server.coordinators.led_shard import LedShard
from pykbroker.server.node.composition import raft
from pykbroker.server.replicas.delayed_operation import PartitionChanges
from pykbroker.server.replicas.replica_manager import ReplicaManager
from pykbroker.storage.segments.leader_epochs import LeaderEpochs
from tests.coordination.bugs import BUGS as OF_COORDINATORS
from tests.raft import planted_bugs as of_voters
from tests.replication import bugs as of_replicas
from tests.simulations import Bug, Bugs, is_wrong

from .simulation import simulate

BUGS = Bugs()

BUGS.plant(23)(of_replicas.producers_are_answered_before_the_high_watermark)
BUGS.plant(8)(of_replicas.the_high_watermark_is_the_leaders_own_log_end)
BUGS.plant(11)(of_replicas.readers_see_what_is_not_replicated)
BUGS.plant(28)(of_replicas.followers_do_not_truncate)
BUGS.plant(8)(of_replicas.followers_keep_no_sequences)
BUGS.plant(24)(of_replicas.sequences_are_forgotten_when_a_replica_is_elected)
BUGS.plant(73)(of_replicas.repeated_sequences_are_appended_again)
BUGS.plant(1)(of_replicas.a_new_leader_keeps_the_leader_epoch)
BUGS.plant(8)(of_replicas.a_leader_that_was_replaced_leads_on)

BUGS |= {
    name: Bug(OF_COORDINATORS[name].planted, seed)
    for name, seed in {
        "aborted_records_are_served": 2,
        "open_transactions_are_served": 2,
        "what_is_aborted_is_committed": 2,
        "one_partition_gets_no_marker_of_several": 5,
        "the_epoch_stays_when_another_producer_begins": 12,
    }.items()
}


@BUGS.plant(37)
def coordinators_serve_before_their_log_is_read() -> Iterator[None]:
    async def load(self: CoordinatorDriver[Any, Any, Any], led: LedShard[Any]) -> None:
        self._activate(led, Replayer(led.shard, led.name))

    with patch.object(CoordinatorDriver, "_load_shard", load):
        yield


def _plant_in_every_voter(plant: Callable[[Any], None], seed: int) -> None:
    planned = SimpleNamespace()
    plant(planned)
    init = RaftNode.__init__

    def make(self: RaftNode, *arguments: Any, **keywords: Any) -> None:
        init(self, *arguments, **keywords)
        planned.change_raft(self)

    @contextmanager
    def planted() -> Iterator[None]:
        with patch.object(RaftNode, "__init__", make):
            yield

    BUGS[plant.__name__] = Bug(planted, seed)


_plant_in_every_voter(of_voters.committed_by_one_too_few, 11)
_plant_in_every_voter(of_voters.elected_by_a_minority, 33)
_plant_in_every_voter(of_voters.two_votes_in_an_epoch, 51)


# What clients do not notice, and oracles do


@BUGS.plant(0)
def leader_epochs_are_never_written() -> Iterator[None]:
    nothing = patch.multiple(LeaderEpochs, write=lambda self, end: None, lacks_write=lambda self, end: False)
    with nothing:
        yield


@BUGS.plant(0)
def snapshots_of_the_metadata_lack_partitions_leaders() -> Iterator[None]:
    """Whoever starts from one takes each partition for led by its first replica, in epoch 0."""
    to_record = PartitionState.to_record

    def forget_leader(self: PartitionState, topic_id: bytes, index: int) -> PartitionRecord:
        record = to_record(self, topic_id, index)
        record.leader, record.leader_epoch = record.replicas[0], 0
        return record

    with patch.object(PartitionState, "to_record", forget_leader):
        yield


@BUGS.plant(0)
def the_controllers_index_keeps_what_has_changed() -> Iterator[None]:
    with patch.object(PartitionIndex, "_remove", lambda self, key: None):
        yield


@BUGS.plant(10)
def replicas_that_were_moved_away_stay() -> Iterator[None]:
    apply = ReplicaManager._apply_partition

    def apply_what_is_here(self: ReplicaManager, topic: TopicState, index: int, state: PartitionState) -> None:
        if self._node_id in state.replicas:
            apply(self, topic, index, state)

    with patch.object(ReplicaManager, "_apply_partition", apply_what_is_here):
        yield


@BUGS.plant(0)
def replicas_that_left_the_isr_do_not_return() -> Iterator[None]:
    with patch.object(InSyncReplicas, "growth", lambda self, *where: ()):
        yield


@BUGS.plant(22)
def voters_ask_again_at_once() -> Iterator[None]:
    timeouts = raft._timeouts

    def without_backoff(config: BrokerConfig) -> Timeouts:
        return replace(timeouts(config), retry_backoff_ms=1, reconnect_backoff_ms=1, reconnect_backoff_max_ms=1)

    with patch.object(raft, "_timeouts", without_backoff):
        yield


@BUGS.plant(2)
def whoever_waits_for_a_partition_stays_its_watcher() -> Iterator[None]:
    with patch.object(PartitionChanges, "_unwatch", lambda self: None):
        yield


HUNT = BUGS.hunt("cluster", partial(is_wrong, simulate))
