"""The image: the same log gives the same image, whatever happened, and a view stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pykbroker.metadata.image import ImageChanges, InconsistentMetadata, MetadataImage, TopicState
from pykbroker.metadata.records import decode_record, encode_record
from pykbroker.protocol.messages.brokers import AllocateProducerIdsRequest
from pykbroker.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    EntityData,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from pykbroker.protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState
from pykbroker.protocol.schema import Message
from tests.examples import examples
from tests.metadata.cluster import Cluster
from tests.metadata.test_configs import APPEND, DELETE, SET, SUBTRACT, alter
from tests.metadata.test_topics import creatable, create, create_partitions, grow

NAMES = st.sampled_from(["a", "b", "c.d", "c_d", "../x"])
BROKERS = st.integers(1, 4)


class AnyHistory(RuleBasedStateMachine):
    """Requests in any order; after each, the log gives what the controller and the broker hold."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.views: list[tuple[MetadataImage, list[bytes]]] = []
        self.epochs: dict[tuple[bytes, int], tuple[int, int]] = {}

    @rule(broker_id=BROKERS, rack=st.sampled_from([None, "r", "s"]))
    def register(self, broker_id: int, rack: str | None) -> None:
        self.cluster.register(broker_id, rack)

    @rule(broker_id=BROKERS, want_fence=st.booleans(), want_shut_down=st.booleans())
    def heartbeat(self, broker_id: int, want_fence: bool, want_shut_down: bool) -> None:
        if broker_id in self.cluster.image.brokers:
            self.cluster.heartbeat(broker_id, want_fence=want_fence, want_shut_down=want_shut_down)

    @rule(broker_ids=st.sets(BROKERS, min_size=1))
    def unfence(self, broker_ids: set[int]) -> None:
        for broker_id in sorted(broker_ids):
            if broker_id not in self.cluster.image.brokers:
                self.cluster.register(broker_id)
            self.cluster.heartbeat(broker_id)

    @rule(ms=st.integers(0, 10_000))
    def time_passes(self, ms: int) -> None:
        self.cluster.advance(ms)

    @rule()
    def another_controller(self) -> None:
        self.cluster.restart_controller()

    @rule(name=NAMES, partitions=st.integers(-2, 4), replicas=st.integers(-1, 3), retention=st.none() | st.just("5"))
    def create(self, name: str, partitions: int, replicas: int, retention: str | None) -> None:
        configs = {"retention.ms": retention} if retention else None
        create(self.cluster, creatable(name, partitions, replicas, configs))

    @rule(names=st.lists(NAMES, max_size=3))
    def delete(self, names: list[str]) -> None:
        self.cluster.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names]))

    @rule(name=NAMES, count=st.integers(0, 6))
    def grow(self, name: str, count: int) -> None:
        create_partitions(self.cluster, grow(name, count))

    @rule(
        target_name=NAMES.map(lambda name: (2, name)) | st.sampled_from([(4, ""), (4, "1")]),
        operation=st.sampled_from([SET, DELETE, APPEND, SUBTRACT]),
        change=st.sampled_from([("cleanup.policy", "compact"), ("segment.ms", "7"), ("log.cleaner.threads", "2")]),
    )
    def alter(self, target_name: tuple[int, str], operation: int, change: tuple[str, str]) -> None:
        alter(self.cluster, *target_name, (change[0], operation, change[1]))

    @precondition(lambda self: 1 in self.cluster.image.brokers)
    @rule()
    def allocate(self) -> None:
        epoch = self.cluster.image.brokers[1].epoch
        before = self.cluster.image.next_producer_id
        response = self.cluster.ask(AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch))
        assert response.producer_id_start == before

    @rule()
    def take_view(self) -> None:
        self.views.append((self.cluster.image.view(), snapshot(self.cluster.image)))

    @invariant()
    def the_log_gives_the_image(self) -> None:
        image = self.cluster.image
        assert self.cluster.replayed() == image
        assert self.cluster.controller.image == image
        assert image.offset == len(self.cluster.log) - 1

    @invariant()
    def a_snapshot_gives_the_image(self) -> None:
        image = MetadataImage()
        for offset, value in enumerate(snapshot(self.cluster.image)):
            image.replay(decode_record(value), offset)
        assert image == self.cluster.image

    @invariant()
    def views_stay_as_they_are(self) -> None:
        for view, content in self.views:
            assert snapshot(view) == content

    @invariant()
    def partitions_make_sense(self) -> None:
        for topic in self.cluster.image.topics.values():
            assert self.cluster.image.topic_by_id(topic.topic_id) is topic
            assert list(topic.partitions) == list(range(len(topic.partitions)))
            for index, partition in topic.partitions.items():
                # With eligible leader replicas nobody need be in sync: of those that were, one leads again (KIP-966).
                assert partition.isr or partition.eligible_leader_replicas
                assert set(partition.isr) <= set(partition.replicas)
                assert len(partition.directories) == len(partition.replicas)
                assert partition.leader == -1 or partition.leader in partition.isr
                assert partition.leader == -1 or self.cluster.image.is_alive(partition.leader)
                epochs = (partition.leader_epoch, partition.partition_epoch)
                assert epochs >= self.epochs.get((topic.topic_id, index), (0, 0))
                self.epochs[topic.topic_id, index] = epochs


def snapshot(image: MetadataImage) -> list[bytes]:
    return [encode_record(record) for record in image.records()]


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = examples(25, stateful_step_count=25, derandomize=True)


def test_a_partition_change_leaves_alone_what_it_does_not_name() -> None:
    image, topic_id = MetadataImage(), b"t" * 16
    image.replay(TopicRecord(name="t", topic_id=topic_id), 0)
    image.replay(
        PartitionRecord(
            partition_id=0, topic_id=topic_id, replicas=[1, 2], isr=[1, 2], leader=1, leader_epoch=3, partition_epoch=5
        ),
        1,
    )
    image.replay(PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=[2]), 2)
    shrunk = image.partition("t", 0)
    assert shrunk is not None
    assert (shrunk.isr, shrunk.leader, shrunk.leader_epoch, shrunk.partition_epoch) == ((2,), 1, 3, 6)
    image.replay(PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=2), 3)
    moved = image.partition("t", 0)
    assert moved is not None
    assert (moved.leader, moved.leader_epoch, moved.partition_epoch, moved.replicas) == (2, 4, 7, (1, 2))


def test_epochs_begin_at_the_other_end_behind_the_greatest_so_that_a_snapshot_has_room_for_them() -> None:
    """As Java counts."""
    greatest, topic_id = (1 << 31) - 1, b"t" * 16
    image = MetadataImage()
    image.replay(TopicRecord(name="orders", topic_id=topic_id), 0)
    partition = PartitionRecord(partition_id=0, topic_id=topic_id, replicas=[1], isr=[1], leader=1)
    partition.leader_epoch = partition.partition_epoch = greatest
    image.replay(partition, 1)
    image.replay(PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=-1), 2)
    again = MetadataImage()
    for offset, record in enumerate(image.records()):
        again.replay(decode_record(encode_record(record)), offset)
    state = again.partition("orders", 0)
    assert state is not None
    assert (state.leader_epoch, state.partition_epoch) == (-greatest - 1, -greatest - 1)


def test_records_of_a_transaction_count_when_it_ends_and_never_if_it_is_aborted() -> None:
    image = MetadataImage()
    assert not image.replay(BeginTransactionRecord(), 0)
    assert not image.replay(TopicRecord(name="t", topic_id=b"t" * 16), 1)
    assert image.topic("t") is None
    assert image.replay(EndTransactionRecord(), 2)
    assert image.topic("t") is not None
    image.replay(BeginTransactionRecord(), 3)
    image.replay(RemoveTopicRecord(topic_id=b"t" * 16), 4)
    assert not image.replay(AbortTransactionRecord(), 5)
    assert image.topic("t") is not None


def test_changes_of_a_deleted_topic_are_forgotten_when_changes_are_merged() -> None:
    image, topic_id = MetadataImage(), b"t" * 16
    changes = image.replay(TopicRecord(name="t", topic_id=topic_id), 0)
    changes.merge(image.replay(PartitionRecord(partition_id=0, topic_id=topic_id, replicas=[1], isr=[1], leader=1), 1))
    assert changes.partitions == {(topic_id, 0): None}
    changes.merge(image.replay(RemoveTopicRecord(topic_id=topic_id), 2))
    assert not changes.partitions
    assert changes.deleted_topics[topic_id].name == "t"


def test_what_is_not_offered_is_counted_and_changes_nothing() -> None:
    image = MetadataImage()
    assert not image.replay(ZkMigrationStateRecord(), 0)
    assert image.ignored_records == {"ZkMigrationStateRecord": 1}


def test_what_protects_is_in_the_snapshot_as_its_latest_record_says() -> None:
    """Quotas, credentials and tokens are not lost with the log."""

    def quota(key: str, value: float, *, remove: bool = False, turned: bool = False) -> ClientQuotaRecord:
        entity = [EntityData(entity_type="user", entity_name="bob"), EntityData(entity_type="client-id")]
        return ClientQuotaRecord(entity=entity[::-1] if turned else entity, key=key, value=value, remove=remove)

    lasting = [
        quota("producer_byte_rate", 2.0, turned=True),
        UserScramCredentialRecord(name="bob", mechanism=1, iterations=8192),
        DelegationTokenRecord(token_id="t", owner="User:bob"),
    ]
    history = [
        quota("producer_byte_rate", 1.0),
        quota("consumer_byte_rate", 1.0),
        UserScramCredentialRecord(name="bob", mechanism=2),
        DelegationTokenRecord(token_id="u"),
        *lasting,
        quota("consumer_byte_rate", 1.0, remove=True),
        RemoveUserScramCredentialRecord(name="bob", mechanism=2),
        RemoveDelegationTokenRecord(token_id="u"),
    ]
    image = MetadataImage()
    view = image.view()
    for offset, record in enumerate(history):
        image.replay(record, offset)
    assert list(image.records()) == lasting
    assert not list(view.records())
    copy = MetadataImage()
    for record in image.records():
        copy.replay(record, image.offset)
    assert copy == image


@pytest.mark.parametrize(
    "record",
    [
        PartitionRecord(partition_id=0, topic_id=b"x" * 16),
        PartitionChangeRecord(partition_id=7, topic_id=b"t" * 16),
        RemoveTopicRecord(topic_id=b"x" * 16),
        TopicRecord(name="t", topic_id=b"y" * 16),
        BrokerRegistrationChangeRecord(broker_id=5),
    ],
)
def test_a_record_that_makes_no_sense_is_not_applied(record: Message) -> None:
    image = MetadataImage()
    image.replay(TopicRecord(name="t", topic_id=b"t" * 16), 0)
    with pytest.raises(InconsistentMetadata, match="record 1:"):
        image.replay(record, 1)


def test_a_view_keeps_its_topics_partitions_brokers_and_configurations() -> None:
    cluster = Cluster()
    cluster.add_broker(1)
    create(cluster, creatable("t", 1, configs={"retention.ms": "5"}))
    view, before = cluster.image.view(), snapshot(cluster.image)
    create_partitions(cluster, grow("t", 3))
    alter(cluster, 2, "t", ("retention.ms", SET, "6"))
    cluster.heartbeat(1, want_fence=True)
    create(cluster, creatable("u"))
    assert snapshot(view) == before
    assert len(cluster.image.topics["t"].partitions) == 3
    assert view.view() is view
    with pytest.raises(AssertionError):
        view.replay(EndTransactionRecord(), 99)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 9])
def test_changes_in_portions_are_the_same_changes_deletions_first(count: int) -> None:
    topic_id = bytes(16)
    whole = ImageChanges(
        partitions={(topic_id, index): None for index in range(count)},
        deleted_topics={bytes(range(16)): TopicState("gone", bytes(range(16)), {}, 0)},
        configs={(2, "t"): None},
        brokers={1: None},
        others=True,
    )
    portions = list(whole.portions(3))
    assert all(len(portion.partitions) <= 3 for portion in portions)
    assert len(portions) == max(1, -(-count // 3))
    assert portions[0].deleted_topics == whole.deleted_topics
    assert not any(portion.deleted_topics for portion in portions[1:])
    merged = ImageChanges()
    for portion in portions:
        merged.merge(portion)
    assert merged == whole
    assert list(merged.partitions) == list(whole.partitions)
