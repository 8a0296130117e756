"""What happens to a cluster, step by step; `transcripts/` has how Apache Kafka's controller takes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pykbroker.protocol.messages.brokers import (
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    FeatureUpdateKey,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)
from pykbroker.protocol.messages.log_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from pykbroker.protocol.messages.reassignments import ListPartitionReassignmentsRequest
from pykbroker.protocol.messages.topics import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)

from .dialogue import BROKER, TOPIC, Dialogue, directory

Scenario = Callable[[Dialogue], None]
SCENARIOS: Final[dict[str, Scenario]] = {}
PROPERTIES: Final[dict[str, dict[str, str]]] = {}
"""Of single scenarios, beside those of all."""

PREFERRED, UNCLEAN = 0, 1
UNCLEAN_KEY = "unclean.leader.election.enable"


def scenario(**properties: str) -> Callable[[Scenario], Scenario]:
    def register(function: Scenario) -> Scenario:
        SCENARIOS[function.__name__] = function
        PROPERTIES[function.__name__] = {name.replace("_", "."): value for name, value in properties.items()}
        return function

    return register


@scenario()
def registrations(talk: Dialogue) -> None:
    talk.register(1)
    talk.note("It has not read of itself yet.")
    talk.beat(1, read=0)
    talk.beat(1, want_fence=True)
    talk.beat(1)
    talk.note("The same process again, and another one in its place.")
    talk.register(1)
    talk.register(1, 2)
    talk.beat(1, broker_epoch=0)
    talk.ask(BrokerHeartbeatRequest(broker_id=9), 1)
    talk.expire()
    talk.register(1, 2)
    talk.beat(1)
    talk.register(2, cluster_id="another")
    talk.register(2, log_dirs=[])
    talk.register(2, log_dirs=[directory(2), directory(2)])
    talk.register(2, log_dirs=[bytes(16)])
    talk.register(2, log_dirs=[directory(1)])
    talk.register(2, features=[])
    talk.ask(UnregisterBrokerRequest(broker_id=2))
    talk.ask(UnregisterBrokerRequest(broker_id=1))


@scenario()
def in_sync_replicas(talk: Dialogue) -> None:
    talk.join(1, 2, 3, 4)
    talk.create("t", [1, 2, 3], [2, 3, 1])
    talk.propose("t", 0, 1, [1, 2])
    talk.propose("t", 0, 1, [1, 2, 3], version=2)
    talk.propose("t", 0, 1, [1, 2, 3])
    talk.note("Nonsense of all kinds.")
    talk.propose("t", 7, 1, [1])
    talk.propose("u", 0, 1, [1])
    talk.propose("t", 0, 1, [1], leader_epoch=9)
    talk.propose("t", 0, 1, [1], partition_epoch=9)
    talk.propose("t", 0, 1, [1], leader_epoch=-1)
    talk.propose("t", 0, 1, [1], partition_epoch=0)
    talk.propose("t", 0, 2, [2])
    talk.propose("t", 0, 1, [2, 3])
    talk.propose("t", 0, 1, [1, 1])
    talk.propose("t", 0, 1, [1, 4])
    talk.propose("t", 0, 1, [1, 9])
    talk.propose("t", 0, 1, [])
    talk.propose("t", 0, 1, [1], leader_recovery_state=1)
    talk.propose("t", 0, 1, [1, 2], leader_recovery_state=1)
    talk.ask(AlterPartitionRequest(broker_id=1, broker_epoch=0))
    talk.ask(AlterPartitionRequest(broker_id=9, broker_epoch=0))
    talk.note("Broker 3 is away, and back.")
    talk.beat(3, want_fence=True)
    talk.propose("t", 0, 1, [1, 2, 3])
    talk.beat(3)
    talk.propose("t", 0, 1, [1, 2, 3])


@scenario()
def fencing(talk: Dialogue) -> None:
    talk.join(1, 2, 3)
    talk.create("t", [1, 2, 3], [2, 3, 1], [3, 1, 2], [1])
    talk.create("u", [1, 2])
    talk.expire(2, 3)
    talk.beat(2, want_fence=True)
    talk.beat(1)
    talk.beat(2)
    talk.beat(3, want_fence=True)
    talk.beat(1, want_fence=True, want_shut_down=True)


@scenario()
def controlled_shutdown(talk: Dialogue) -> None:
    talk.join(1, 2, 3)
    talk.create("t", [1, 2, 3], [2, 3, 1])
    talk.beat(2, read=0)
    talk.beat(1, want_shut_down=True)
    talk.note("Broker 2 has not read of it yet.")
    talk.beat(1, want_shut_down=True)
    talk.create("u", [1], [1, 2])
    talk.create("v", [2, 1])
    talk.propose("t", 0, 2, [2, 3, 1])
    talk.beat(2)
    talk.beat(3)
    talk.beat(1, want_shut_down=True)
    talk.note("One that leads nothing goes at once, and one that is alone stays until nobody is waited for.")
    talk.beat(3)
    talk.elect(PREFERRED, "t", 0, 1)
    talk.beat(2, want_shut_down=True)
    talk.beat(3)
    talk.beat(2, want_shut_down=True)
    talk.beat(3, want_shut_down=True)
    talk.beat(3, want_shut_down=True)


@scenario()
def eligible_leaders(talk: Dialogue) -> None:
    talk.join(1, 2, 3)
    talk.create("t", [1, 2, 3], min_insync_replicas="2")
    talk.create("lone", [1])
    talk.beat(1, want_fence=True)
    talk.beat(2, want_fence=True)
    talk.beat(3, want_fence=True)
    talk.note("Not in the ISR, not eligible.")
    talk.beat(1)
    talk.elect(PREFERRED, "t", 0)
    talk.beat(2)
    talk.propose("t", 0, 2, [2, 1])
    talk.propose("t", 0, 2, [2])
    talk.note("Another minimum.")
    talk.configure(TOPIC, "t", "min.insync.replicas", "1")
    talk.configure(TOPIC, "t", "min.insync.replicas", "3")
    talk.beat(1, want_fence=True)
    talk.beat(2, want_fence=True)
    talk.ask(UnregisterBrokerRequest(broker_id=3))
    talk.ask(UnregisterBrokerRequest(broker_id=2))


@scenario()
def unclean_restarts(talk: Dialogue) -> None:
    talk.join(1, 2, 3)
    talk.create("t", [1, 2, 3], min_insync_replicas="3")
    talk.create("lone", [1])
    talk.expire()
    talk.note("Cleanly, uncleanly, and as the one that led last.")
    talk.register(2, 2, cleanly=True)
    talk.register(3, 2)
    talk.beat(3)
    talk.register(1, 2)
    talk.expire()
    talk.register(2, 3)
    talk.beat(2)
    talk.beat(3)
    talk.beat(1)
    talk.propose("t", 0, talk.partition("t").leader, [talk.partition("t").leader])
    talk.propose("lone", 0, 1, [1])


@scenario()
def without_eligible_leaders(talk: Dialogue) -> None:
    downgrade = FeatureUpdateKey(feature="eligible.leader.replicas.version", max_version_level=0, upgrade_type=2)
    talk.join(1, 2, 3)
    talk.create("t", [1, 2, 3], [2, 3], min_insync_replicas="3")
    talk.beat(1, want_fence=True)
    talk.ask(UpdateFeaturesRequest(feature_updates=[downgrade]))
    talk.beat(2, want_fence=True)
    talk.beat(3, want_fence=True)
    talk.beat(2)
    talk.elect(UNCLEAN, "t", 0)
    talk.configure(BROKER, "2", "min.insync.replicas", "2")
    upgrade = FeatureUpdateKey(feature="eligible.leader.replicas.version", max_version_level=1, upgrade_type=1)
    talk.ask(UpdateFeaturesRequest(feature_updates=[upgrade]))
    talk.configure(BROKER, "2", "min.insync.replicas", "2")
    talk.configure(BROKER, "", "min.insync.replicas", None)
    talk.configure(BROKER, "", "min.insync.replicas", "2")


@scenario()
def elections(talk: Dialogue) -> None:
    talk.join(1, 2, 3)
    talk.create("t", [1, 2], [2, 1])
    talk.elect(PREFERRED, "t", 0, 1, 7)
    talk.elect(PREFERRED, "v", 0)
    talk.elect(7, "t", 0)
    talk.elect(PREFERRED)
    talk.elect(UNCLEAN)
    talk.beat(1, want_fence=True)
    talk.elect(PREFERRED)
    talk.beat(1)
    talk.propose("t", 0, 2, [2, 1])
    talk.elect(PREFERRED, "t", 0)
    talk.elect(UNCLEAN, "t", 0)
    talk.note("Only broker 2 is in sync, and it leaves.")
    talk.propose("t", 0, 1, [1])
    talk.propose("t", 1, 2, [2])
    talk.beat(2, want_fence=True)
    talk.elect(UNCLEAN, "t", 0, 1)
    talk.propose("t", 1, 1, [1], leader_recovery_state=1)
    talk.propose("t", 1, 1, [1])
    talk.beat(1, want_fence=True)
    talk.elect(UNCLEAN, "t", 0, 1)


@scenario(unclean_leader_election_interval_ms="1000")
def unclean_topics(talk: Dialogue) -> None:
    talk.join(1, 2)
    talk.create("t", [1, 2], [2, 1], unclean_leader_election_enable="true")
    talk.create("u", [1, 2])
    talk.propose("t", 0, 1, [1])
    talk.propose("u", 0, 1, [1])
    talk.beat(1, want_fence=True)
    talk.propose("t", 0, 2, [2, 1], leader_recovery_state=1)
    talk.propose("t", 0, 2, [2])
    talk.configure(BROKER, "", UNCLEAN_KEY, "true")
    talk.wait(2500, 2)
    talk.beat(1)
    talk.beat(2, want_fence=True)


@scenario(leader_imbalance_check_interval_seconds="1")
def balancing(talk: Dialogue) -> None:
    talk.join(1, 2)
    talk.create("t", [1, 2], [2, 1], [1, 2])
    talk.beat(1, want_fence=True)
    talk.wait(1500, 2)
    talk.beat(1)
    talk.propose("t", 0, 2, [2, 1])
    talk.propose("t", 2, 2, [2, 1])
    talk.wait(2500, 1, 2)


@scenario()
def reassignments(talk: Dialogue) -> None:
    talk.join(1, 2, 3, 4, 5)
    talk.create("t", [1, 2, 3], [2, 3, 1])
    talk.reassign("t", 0, [4, 5, 1])
    talk.ask(ListPartitionReassignmentsRequest(topics=None))
    talk.propose("t", 0, 1, [1, 2, 3, 4])
    talk.propose("t", 0, 1, [1, 2, 3, 4, 5])
    talk.ask(ListPartitionReassignmentsRequest(topics=None))
    talk.note("The leader moves away.")
    talk.reassign("t", 0, [4])
    talk.reassign("t", 0, [3])
    talk.propose("t", 0, 4, [4, 3])
    talk.note("Cancelled, replaced, refused.")
    talk.reassign("t", 1, None)
    talk.reassign("t", 1, [4, 3, 1])
    talk.reassign("t", 1, [5, 2, 1])
    talk.propose("t", 1, 2, [2, 1])
    talk.reassign("t", 1, None)
    talk.reassign("t", 1, [])
    talk.reassign("t", 1, [1, 1])
    talk.reassign("t", 1, [1, 9])
    talk.reassign("t", 1, [-1])
    talk.reassign("t", 7, [1])
    talk.reassign("u", 0, [1])
    talk.reassign("t", 1, [1, 2], may_change_factor=False)
    talk.reassign("t", 1, [1, 2, 4, 5], may_change_factor=False)
    talk.reassign("t", 1, list(talk.partition("t", 1).replicas))
    talk.note("Only a new replica is in sync.")
    talk.create("v", [1, 2])
    talk.reassign("v", 0, [3, 4])
    talk.propose("v", 0, 1, [1, 3])
    talk.beat(1, want_fence=True)
    talk.reassign("v", 0, None)
    talk.configure(TOPIC, "v", UNCLEAN_KEY, "true")
    talk.reassign("v", 0, None)


@scenario()
def directories(talk: Dialogue) -> None:
    talk.join(1, 2, 3, directories=2)
    talk.create("t", [1, 2], [2, 1], [1, 3])
    assign(talk, 1, directory(1), "t", 0, 2)
    assign(talk, 1, directory(1, 1), "t", 1, 7)
    assign(talk, 3, directory(3), "t", 0)
    assign(talk, 2, directory(2, 1), "t", 0, 1)
    talk.beat(1, offline_log_dirs=[directory(1)])
    talk.beat(1, offline_log_dirs=[directory(1)])
    talk.propose("t", 0, 2, [2, 1])
    talk.note("Its own word that it is where nothing can be read.")
    assign(talk, 1, directory(1), "t", 1)
    assign(talk, 1, directory(1, 1), "t", 0)
    talk.propose("t", 0, 2, [2, 1])


def assign(talk: Dialogue, broker_id: int, directory_id: bytes, topic: str, *indexes: int) -> None:
    found = talk.image.topic(topic)
    assert found is not None
    partitions = [AssignReplicasToDirsRequestPartitionData(partition_index=index) for index in indexes]
    topics = [AssignReplicasToDirsRequestTopicData(topic_id=found.topic_id, partitions=partitions)]
    talk.ask(
        AssignReplicasToDirsRequest(
            broker_id=broker_id,
            broker_epoch=talk.image.brokers[broker_id].epoch,
            directories=[AssignReplicasToDirsRequestDirectoryData(id=directory_id, topics=topics)],
        )
    )


@scenario()
def creation_with_brokers_away(talk: Dialogue) -> None:
    talk.join(1, 2)
    talk.register(3)
    talk.create("t", [1, 3], [3, 2])
    talk.create("u", [3])
    talk.create("v", [1, 9])
    talk.create("w", [1, 1])
    talk.create("x", [1, 2], [1])
    talk.create("y", [])
    more(talk, "t", 3, [[3]])
    more(talk, "t", 3, [[3, 2]])
    more(talk, "t", 4, [[3, 9]])
    more(talk, "t", 3, [[1, 2]])
    talk.beat(2, want_fence=True)
    talk.beat(1, want_fence=True)
    more(talk, "t", 4, [[1, 2]])
    more(talk, "t", 4, None)


def more(talk: Dialogue, topic: str, count: int, assignments: list[list[int]] | None) -> None:
    rows = None if assignments is None else [CreatePartitionsAssignment(broker_ids=each) for each in assignments]
    wanted = CreatePartitionsTopic(name=topic, count=count, assignments=rows)
    talk.ask(CreatePartitionsRequest(topics=[wanted], timeout_ms=10_000))
