"""Whatever happens to brokers and partitions, in any order: what must always hold of the metadata."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pykbroker.long_work import whole
from pykbroker.metadata.partition_index import PartitionIndex
from pykbroker.metadata.partition_state import PartitionState
from pykbroker.protocol.messages.brokers import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from pykbroker.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.examples import examples
from tests.metadata.cluster import Cluster
from tests.metadata.test_elect_leaders import allow_unclean
from tests.metadata.test_topics import creatable, create

BROKERS = (1, 2, 3, 4)
brokers = st.sampled_from(BROKERS)
indexes = st.sampled_from((0, 1, 2))


class ClusterMachine(RuleBasedStateMachine):
    """Four brokers that come and go, a controller elsewhere, one topic of three partitions."""

    @initialize(min_isr=st.sampled_from(("1", "2", "3")))
    def begin(self, min_isr: str) -> None:
        self.cluster = Cluster(node_id=3000)
        for broker_id in BROKERS:
            self.cluster.add_broker(broker_id)
        assignments = [[1, 2, 3], [2, 3, 4], [4, 1, 2]]
        create(self.cluster, creatable("t", -1, -1, assignments=assignments, configs={"min.insync.replicas": min_isr}))
        self.before: dict[int, PartitionState] = {}

    @rule(broker_id=brokers, want_fence=st.booleans(), want_shut_down=st.booleans())
    def heartbeat(self, broker_id: int, want_fence: bool, want_shut_down: bool) -> None:
        self.cluster.heartbeat(broker_id, want_fence=want_fence, want_shut_down=want_shut_down)

    @rule(ms=st.sampled_from((1_000, 9_000, 300_000)))
    def time_passes(self, ms: int) -> None:
        self.cluster.advance(ms)

    @rule(broker_id=brokers, cleanly=st.booleans())
    def restart(self, broker_id: int, cleanly: bool) -> None:
        epoch = self.cluster.image.brokers[broker_id].epoch if cleanly else -1
        self.cluster.register(broker_id, previous_epoch=epoch)

    @rule(index=indexes, isr=st.lists(brokers, min_size=1, max_size=4, unique=True), recovered=st.booleans())
    def propose(self, index: int, isr: list[int], recovered: bool) -> None:
        partition = self.partitions[index]
        leader = self.cluster.image.brokers.get(partition.leader)
        topic = self.cluster.image.topic("t")
        if leader is None or topic is None:
            return
        row = AlterPartitionRequestPartitionData(
            partition_index=index,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            new_isr_with_epochs=[BrokerState(broker_id=each, broker_epoch=-1) for each in isr],
            leader_recovery_state=0 if recovered else partition.leader_recovery_state,
        )
        topics = [AlterPartitionRequestTopicData(topic_id=topic.topic_id, partitions=[row])]
        self.cluster.ask(AlterPartitionRequest(broker_id=leader.id, broker_epoch=leader.epoch, topics=topics))

    @rule(index=indexes, replicas=st.none() | st.lists(brokers, min_size=1, max_size=3, unique=True))
    def reassign(self, index: int, replicas: list[int] | None) -> None:
        wanted = ReassignablePartition(partition_index=index, replicas=replicas)
        topics = [ReassignableTopic(name="t", partitions=[wanted])]
        self.cluster.ask(AlterPartitionReassignmentsRequest(topics=topics))

    @rule(election_type=st.sampled_from((0, 1)))
    def elect(self, election_type: int) -> None:
        self.cluster.ask(ElectLeadersRequest(election_type=election_type, topic_partitions=None))

    @rule()
    def allow_unclean(self) -> None:
        allow_unclean(self.cluster, 2, "t")

    @rule(level=st.sampled_from((0, 1)))
    def keep_eligible_leaders(self, level: int) -> None:
        update = FeatureUpdateKey(
            feature="eligible.leader.replicas.version", max_version_level=level, upgrade_type=1 if level else 2
        )
        self.cluster.ask(UpdateFeaturesRequest(feature_updates=[update]))

    @rule()
    def another_controller(self) -> None:
        self.cluster.restart_controller()

    @property
    def partitions(self) -> dict[int, PartitionState]:
        topic = self.cluster.image.topic("t")
        assert topic is not None
        return dict(topic.partitions)

    def each(self, holds: Callable[[PartitionState], bool]) -> bool:
        return all(holds(partition) for partition in self.partitions.values())

    @invariant()
    def leaders_are_in_sync_and_there(self) -> None:
        image = self.cluster.image
        assert self.each(lambda p: p.leader == -1 or (p.leader in p.isr and image.is_alive(p.leader)))

    @invariant()
    def who_is_in_sync_or_eligible_is_a_replica_and_not_both(self) -> None:
        assert self.each(lambda p: {*p.isr, *p.eligible_leader_replicas} <= {*p.replicas})
        assert self.each(lambda p: not {*p.isr} & {*p.eligible_leader_replicas})
        assert self.each(lambda p: len({*p.isr}) == len(p.isr) and len({*p.replicas}) == len(p.replicas))

    @invariant()
    def each_replica_has_a_directory_and_moves_are_of_replicas(self) -> None:
        assert self.each(lambda p: len(p.directories) == len(p.replicas))
        assert self.each(lambda p: {*p.adding_replicas, *p.removing_replicas} <= {*p.replicas})

    @invariant()
    def an_empty_isr_leaves_word_of_who_may_lead(self) -> None:
        assert self.each(lambda p: bool(p.isr or p.eligible_leader_replicas or p.last_known_elr))

    @invariant()
    def epochs_grow_with_every_change(self) -> None:
        for index, partition in self.partitions.items():
            before = self.before.get(index)
            if before is not None and before != partition:
                assert partition.leader_epoch >= before.leader_epoch
                forgotten = partition.partition_epoch == before.partition_epoch
                assert partition.partition_epoch > before.partition_epoch or forgotten
                if partition.leader != before.leader:
                    assert partition.leader_epoch > before.leader_epoch
        self.before = self.partitions

    @invariant()
    def the_log_alone_gives_the_same_and_the_index_follows(self) -> None:
        image = self.cluster.image
        assert self.cluster.replayed() == image
        state = self.cluster.controller._state
        anew = whole(PartitionIndex.of(image))
        for broker_id in BROKERS:
            assert state.partitions.in_sync(broker_id) == anew.in_sync(broker_id)
            assert state.partitions.eligible(broker_id) == anew.eligible(broker_id)
            assert state.partitions.leads_any(broker_id) == anew.leads_any(broker_id)
        assert state.partitions.leaderless == anew.leaderless
        assert state.partitions.imbalanced == anew.imbalanced


TestCluster = ClusterMachine.TestCase
TestCluster.settings = examples(25, stateful_step_count=30)
