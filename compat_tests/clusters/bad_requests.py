"""Requests that no node of a cluster sends: malformed, of another cluster, of nobody, on the wrong listener.

Each with the answer of both kinds of clusters. None of them may change anything: epochs and ids are chosen so that a
node which took one for good would be seen to do so by the test that follows.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from compat_tests.cases import CLOSED, ComparedCase, code
from compat_tests.wire import Wire, header, uvarint
from pykbroker.protocol import compile
from pykbroker.protocol.framing import SIZE_BYTES, encode_request
from pykbroker.protocol.messages import brokers, fetch, quorum, voters
from pykbroker.protocol.messages.metadata import MetadataRequest
from pykbroker.protocol.messages.principals import DefaultPrincipalData
from pykbroker.protocol.messages.produce import ProduceRequest
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from pykbroker.protocol.schema import Message
from pykbroker.protocol.uuids import METADATA_TOPIC_ID, random_uuid

from .cluster import Cluster

ENDS = "the node ends"
"""With an exception in its raft thread, so it is not asked."""
METADATA = "__cluster_metadata"
NOBODY = 77
FOREIGN = "AAAAAAAAAAAAAAAAAAAAAA"
_rng = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class Scene:
    """controller: the active one. broker: another node. epoch: of the quorum."""

    cluster: Cluster
    controller: int
    broker: int
    epoch: int
    topic_id: bytes

    @property
    def other_voter(self) -> int:
        return next(each for each in self.cluster.nodes if each not in (self.controller, self.broker))

    def controllers_wire(self, node_id: int | None = None) -> Wire:
        place = self.cluster.nodes[self.controller if node_id is None else node_id].place
        return Wire((place.host, place.controller_port))

    def brokers_wire(self) -> Wire:
        return Wire(self.cluster.nodes[self.broker].address)


@dataclass(frozen=True, slots=True)
class Case(ComparedCase[Scene]):
    name: str
    run: Callable[[Scene], Any]
    kafka: Any
    ours: Any = None


def answered(build: Callable[[Scene], Message], version: int, *, to_broker: bool = False) -> Callable[[Scene], Any]:
    """The errors of the answer, of the whole and of its parts."""

    def run(scene: Scene) -> Any:
        with scene.brokers_wire() if to_broker else scene.controllers_wire() as wire:
            return errors_of(wire.call(build(scene), version))

    return run


def errors_of(message: Any) -> str:
    """`NONE`, or the first error in it, the outermost first."""
    number = getattr(message, "error_code", 0)
    if number:
        return code(number)
    for each in message.__schema__.fields:
        value = getattr(message, each.name)
        if each.is_array and isinstance(value, list):
            for part in value:
                if hasattr(part, "__schema__") and (found := errors_of(part)) != "NONE":
                    return found
    return "NONE"


# Quorum


def vote(scene: Scene, **changes: Any) -> quorum.VoteRequest:
    """A pre-vote: even one that is granted has no consequences."""
    of_request = {key: changes.pop(key) for key in ("cluster_id", "voter_id", "topics") if key in changes}
    fields: dict[str, Any] = {"replica_epoch": scene.epoch, "replica_id": scene.other_voter, "pre_vote": True}
    partition = quorum.VoteRequestPartitionData(**(fields | changes))
    topics = [quorum.VoteRequestTopicData(topic_name=METADATA, partitions=[partition])]
    given: dict[str, Any] = {"cluster_id": scene.cluster.cluster_id, "voter_id": scene.controller, "topics": topics}
    return quorum.VoteRequest(**(given | of_request))


def begin(scene: Scene, **changes: Any) -> quorum.BeginQuorumEpochRequest:
    of_request = {key: changes.pop(key) for key in ("cluster_id", "voter_id", "topics") if key in changes}
    fields: dict[str, Any] = {"leader_id": scene.controller, "leader_epoch": scene.epoch}
    partition = quorum.BeginQuorumEpochRequestPartitionData(**(fields | changes))
    topics = [quorum.BeginQuorumEpochRequestTopicData(topic_name=METADATA, partitions=[partition])]
    given: dict[str, Any] = {"cluster_id": scene.cluster.cluster_id, "voter_id": scene.controller, "topics": topics}
    return quorum.BeginQuorumEpochRequest(**(given | of_request))


def end(scene: Scene, **changes: Any) -> quorum.EndQuorumEpochRequest:
    of_request = {key: changes.pop(key) for key in ("cluster_id", "topics") if key in changes}
    fields: dict[str, Any] = {"leader_id": scene.other_voter, "leader_epoch": scene.epoch}
    partition = quorum.EndQuorumEpochRequestPartitionData(**(fields | changes))
    topics = [quorum.EndQuorumEpochRequestTopicData(topic_name=METADATA, partitions=[partition])]
    return quorum.EndQuorumEpochRequest(**({"cluster_id": scene.cluster.cluster_id, "topics": topics} | of_request))


def fetch_metadata(scene: Scene, **changes: Any) -> fetch.FetchRequest:
    """As an observer that nobody knows."""
    of_request = {key: changes.pop(key) for key in ("cluster_id", "topics", "replica_id") if key in changes}
    replica = fetch.ReplicaState(replica_id=of_request.pop("replica_id", NOBODY))
    topic_id = changes.pop("topic_id", METADATA_TOPIC_ID)
    fields: dict[str, Any] = {"current_leader_epoch": scene.epoch, "fetch_offset": 0, "last_fetched_epoch": 0}
    partition = fetch.FetchPartition(**(fields | changes))
    topics = [fetch.FetchTopic(topic_id=topic_id, partitions=[partition])]
    given: dict[str, Any] = {"cluster_id": scene.cluster.cluster_id, "topics": topics}
    return fetch.FetchRequest(replica_state=replica, max_bytes=1000, **(given | of_request))


def fetch_snapshot(scene: Scene, **changes: Any) -> quorum.FetchSnapshotRequest:
    of_request = {key: changes.pop(key) for key in ("cluster_id", "topics") if key in changes}
    topic = changes.pop("topic", METADATA)
    snapshot = quorum.SnapshotId(end_offset=10**9, epoch=1)
    fields: dict[str, Any] = {"current_leader_epoch": scene.epoch, "snapshot_id": snapshot, "position": 0}
    partition = quorum.FetchSnapshotRequestPartitionSnapshot(**(fields | changes))
    topics = [quorum.FetchSnapshotRequestTopicSnapshot(name=topic, partitions=[partition])]
    given: dict[str, Any] = {"cluster_id": scene.cluster.cluster_id, "topics": topics}
    return quorum.FetchSnapshotRequest(replica_id=NOBODY, **(given | of_request))


def describe(topic: str, partition: int = 0) -> quorum.DescribeQuorumRequest:
    partitions = [quorum.DescribeQuorumRequestPartitionData(partition_index=partition)]
    return quorum.DescribeQuorumRequest(
        topics=[quorum.DescribeQuorumRequestTopicData(topic_name=topic, partitions=partitions)]
    )


def two_partitions(request: Any) -> Any:
    request.topics[0].partitions.append(request.topics[0].partitions[0])
    return request


def add_voter(scene: Scene, **changes: Any) -> voters.AddRaftVoterRequest:
    listener = voters.Listener(name="CONTROLLER", host="127.0.0.1", port=1)
    fields: dict[str, Any] = {
        "cluster_id": scene.cluster.cluster_id,
        "timeout_ms": 1000,
        "voter_id": NOBODY,
        "voter_directory_id": random_uuid(_rng),
        "listeners": [listener],
    }
    return voters.AddRaftVoterRequest(**(fields | changes))


def remove_voter(scene: Scene, **changes: Any) -> voters.RemoveRaftVoterRequest:
    fields = {"cluster_id": scene.cluster.cluster_id, "voter_id": NOBODY, "voter_directory_id": random_uuid(_rng)}
    return voters.RemoveRaftVoterRequest(**(fields | changes))


def update_voter(scene: Scene, **changes: Any) -> voters.UpdateRaftVoterRequest:
    fields: dict[str, Any] = {
        "cluster_id": scene.cluster.cluster_id,
        "current_leader_epoch": scene.epoch,
        "voter_id": NOBODY,
        "voter_directory_id": random_uuid(_rng),
        "listeners": [voters.Listener(name="CONTROLLER", host="127.0.0.1", port=1)],
        "kraft_version_feature": voters.KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
    }
    return voters.UpdateRaftVoterRequest(**(fields | changes))


def cases_of_epochs(name: str, build: Any, version: int) -> list[Case]:
    return [
        Case(f"{name} of another cluster", answered(lambda s: build(s, cluster_id=FOREIGN), version), CLUSTER_ID),
        Case(f"{name} without topics", answered(lambda s: build(s, topics=[]), version), "INVALID_REQUEST"),
        Case(f"{name} about two partitions", answered(lambda s: two_partitions(build(s)), version), "INVALID_REQUEST"),
        Case(
            f"{name} about another partition",
            answered(lambda s: build(s, partition_index=1), version),
            "INVALID_REQUEST",
        ),
    ]


CLUSTER_ID = "INCONSISTENT_CLUSTER_ID"

QUORUM = [
    *cases_of_epochs("Vote", vote, 2),
    Case("Vote of a negative node", answered(lambda s: vote(s, replica_id=-3), 2), "INVALID_REQUEST"),
    Case(
        "Vote of whom it is sent to", answered(lambda s: vote(s, replica_id=s.controller), 2), "NONE", "INVALID_REQUEST"
    ),
    Case(
        "Vote with a log of the future",
        answered(lambda s: vote(s, last_offset_epoch=s.epoch + 1), 2),
        "INVALID_REQUEST",
    ),
    Case("Vote with a negative offset", answered(lambda s: vote(s, last_offset=-1), 2), "INVALID_REQUEST"),
    Case("Vote of an old epoch", answered(lambda s: vote(s, replica_epoch=0), 2), "FENCED_LEADER_EPOCH"),
    Case("Vote for another voter", answered(lambda s: vote(s, voter_id=NOBODY), 2), "INVALID_VOTER_KEY"),
    Case(
        "Vote for another directory",
        answered(lambda s: vote(s, voter_directory_id=random_uuid(_rng)), 2),
        "INVALID_VOTER_KEY",
    ),
    *cases_of_epochs("BeginQuorumEpoch", begin, 1),
    Case("BeginQuorumEpoch of an old epoch", answered(lambda s: begin(s, leader_epoch=0), 1), "FENCED_LEADER_EPOCH"),
    Case("BeginQuorumEpoch of nobody", answered(lambda s: begin(s, leader_id=-1), 1), "INVALID_REQUEST"),
    Case(
        "BeginQuorumEpoch of a second leader",
        answered(lambda s: begin(s, leader_id=s.other_voter), 1),
        ENDS,
        "INVALID_REQUEST",
    ),
    *cases_of_epochs("EndQuorumEpoch", end, 1),
    Case("EndQuorumEpoch of an old epoch", answered(lambda s: end(s, leader_epoch=0), 1), "FENCED_LEADER_EPOCH"),
    Case("EndQuorumEpoch of nobody", answered(lambda s: end(s, leader_id=-1), 1), "INVALID_REQUEST"),
    Case("EndQuorumEpoch of who does not lead", answered(end, 1), ENDS, "INVALID_REQUEST"),
    Case("Fetch of another cluster", answered(lambda s: fetch_metadata(s, cluster_id=FOREIGN), 17), CLUSTER_ID),
    Case("Fetch without topics", answered(lambda s: fetch_metadata(s, topics=[]), 17), "INVALID_REQUEST"),
    Case("Fetch of two partitions", answered(lambda s: two_partitions(fetch_metadata(s)), 17), "INVALID_REQUEST"),
    Case("Fetch of a topic", answered(lambda s: fetch_metadata(s, topic_id=s.topic_id), 17), "INVALID_REQUEST"),
    Case(
        "Fetch of an old epoch",
        answered(lambda s: fetch_metadata(s, current_leader_epoch=0), 17),
        "FENCED_LEADER_EPOCH",
    ),
    Case(
        "Fetch of an epoch to come",
        answered(lambda s: fetch_metadata(s, current_leader_epoch=s.epoch + 7), 17),
        "UNKNOWN_LEADER_EPOCH",
    ),
    Case("Fetch of a negative offset", answered(lambda s: fetch_metadata(s, fetch_offset=-1), 17), "INVALID_REQUEST"),
    Case(
        "Fetch behind a negative epoch",
        answered(lambda s: fetch_metadata(s, last_fetched_epoch=-1), 17),
        "INVALID_REQUEST",
    ),
    Case("Fetch of a negative replica", answered(lambda s: fetch_metadata(s, replica_id=-5), 17), "NONE"),
    Case("FetchSnapshot of another cluster", answered(lambda s: fetch_snapshot(s, cluster_id=FOREIGN), 1), CLUSTER_ID),
    Case("FetchSnapshot without topics", answered(lambda s: fetch_snapshot(s, topics=[]), 1), ENDS, "INVALID_REQUEST"),
    Case(
        "FetchSnapshot of another topic",
        answered(lambda s: fetch_snapshot(s, topic="t"), 1),
        "UNKNOWN_SERVER_ERROR",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ),
    Case("FetchSnapshot of none that is", answered(fetch_snapshot, 1), "UNKNOWN_SERVER_ERROR", "SNAPSHOT_NOT_FOUND"),
    Case(
        "FetchSnapshot of an old epoch",
        answered(lambda s: fetch_snapshot(s, current_leader_epoch=0), 1),
        "UNKNOWN_SERVER_ERROR",
        "FENCED_LEADER_EPOCH",
    ),
    Case("DescribeQuorum of a topic", answered(lambda s: describe("t"), 2), "UNKNOWN_TOPIC_OR_PARTITION"),
    Case("DescribeQuorum of partition -1", answered(lambda s: describe(METADATA, -1), 2), "UNKNOWN_TOPIC_OR_PARTITION"),
    Case("AddRaftVoter of another cluster", answered(lambda s: add_voter(s, cluster_id=FOREIGN), 1), CLUSTER_ID),
    Case("AddRaftVoter with a negative id", answered(lambda s: add_voter(s, voter_id=-1), 1), "INVALID_REQUEST"),
    Case("AddRaftVoter without endpoints", answered(lambda s: add_voter(s, listeners=[]), 1), "INVALID_REQUEST"),
    Case("AddRaftVoter to static voters", answered(add_voter, 1), "UNSUPPORTED_VERSION"),
    Case("RemoveRaftVoter of another cluster", answered(lambda s: remove_voter(s, cluster_id=FOREIGN), 0), CLUSTER_ID),
    Case("RemoveRaftVoter from static voters", answered(remove_voter, 0), "UNSUPPORTED_VERSION"),
    Case("UpdateRaftVoter of another cluster", answered(lambda s: update_voter(s, cluster_id=FOREIGN), 0), CLUSTER_ID),
    Case(
        "UpdateRaftVoter of an old epoch",
        answered(lambda s: update_voter(s, current_leader_epoch=0), 0),
        "FENCED_LEADER_EPOCH",
    ),
]

# Brokers


def registration(scene: Scene, **changes: Any) -> brokers.BrokerRegistrationRequest:
    """Of a broker that could register, but for the changes."""
    fields: dict[str, Any] = {
        "broker_id": NOBODY,
        "cluster_id": scene.cluster.cluster_id,
        "incarnation_id": random_uuid(_rng),
        "listeners": [brokers.Listener(name="PLAINTEXT", host="127.0.0.1", port=1)],
        "features": [
            brokers.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in EVERY_FEATURE.items()
        ],
        "log_dirs": [random_uuid(_rng)],
    }
    return brokers.BrokerRegistrationRequest(**(fields | changes))


EVERY_FEATURE = {
    "metadata.version": (7, 30),
    "kraft.version": (0, 1),
    "group.version": (0, 1),
    "transaction.version": (0, 2),
    "eligible.leader.replicas.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
}


def features(**levels: tuple[int, int]) -> list[brokers.Feature]:
    changed = EVERY_FEATURE | {name.replace("_", "."): level for name, level in levels.items()}
    return [
        brokers.Feature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in changed.items()
    ]


def alter_partition(scene: Scene, broker_id: int, epoch: int) -> brokers.AlterPartitionRequest:
    isr = [brokers.BrokerState(broker_id=broker_id, broker_epoch=epoch)]
    partition = brokers.AlterPartitionRequestPartitionData(leader_epoch=0, new_isr_with_epochs=isr)
    topic = brokers.AlterPartitionRequestTopicData(topic_id=scene.topic_id, partitions=[partition])
    return brokers.AlterPartitionRequest(broker_id=broker_id, broker_epoch=epoch, topics=[topic])


def heartbeat(broker_id: int, epoch: int = 5) -> brokers.BrokerHeartbeatRequest:
    return brokers.BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=1)


BROKERS = [
    Case(
        "BrokerRegistration of another cluster", answered(lambda s: registration(s, cluster_id=FOREIGN), 4), CLUSTER_ID
    ),
    Case(
        "BrokerRegistration without directories",
        answered(lambda s: registration(s, log_dirs=[]), 4),
        "INVALID_REGISTRATION",
    ),
    Case(
        "BrokerRegistration with one directory twice",
        answered(lambda s: registration(s, log_dirs=[b"1" * 16] * 2), 4),
        "INVALID_REGISTRATION",
    ),
    Case(
        "BrokerRegistration with a reserved directory",
        answered(lambda s: registration(s, log_dirs=[bytes(16)]), 4),
        "INVALID_REGISTRATION",
    ),
    Case(
        "BrokerRegistration without features",
        answered(lambda s: registration(s, features=[]), 4),
        "INVALID_REGISTRATION",
    ),
    Case(
        "BrokerRegistration of an older metadata.version",
        answered(lambda s: registration(s, features=features(metadata_version=(7, 29))), 4),
        "UNSUPPORTED_VERSION",
    ),
    Case(
        "BrokerRegistration of a newer metadata.version",
        answered(lambda s: registration(s, features=features(metadata_version=(31, 40))), 4),
        "UNSUPPORTED_VERSION",
    ),
    Case(
        "BrokerRegistration with a range that is none",
        answered(lambda s: registration(s, features=features(metadata_version=(31, 7))), 4),
        "UNSUPPORTED_VERSION",
    ),
    Case(
        "BrokerRegistration that needs a feature nobody knows",
        answered(lambda s: registration(s, features=features(no_such_feature=(1, 2))), 4),
        "UNSUPPORTED_VERSION",
    ),
    Case("BrokerHeartbeat of nobody", answered(lambda s: heartbeat(NOBODY), 1), "STALE_BROKER_EPOCH"),
    Case("BrokerHeartbeat of a negative id", answered(lambda s: heartbeat(-1), 1), "STALE_BROKER_EPOCH"),
    Case("BrokerHeartbeat of an old epoch", answered(lambda s: heartbeat(s.broker, -1), 1), "STALE_BROKER_EPOCH"),
    Case(
        "BrokerHeartbeat of an epoch to come", answered(lambda s: heartbeat(s.broker, 2**62), 1), "STALE_BROKER_EPOCH"
    ),
    Case("AlterPartition of nobody", answered(lambda s: alter_partition(s, NOBODY, 5), 3), "STALE_BROKER_EPOCH"),
    Case(
        "AlterPartition of an old epoch", answered(lambda s: alter_partition(s, s.broker, -1), 3), "STALE_BROKER_EPOCH"
    ),
    Case(
        "AllocateProducerIds of nobody",
        answered(lambda s: brokers.AllocateProducerIdsRequest(broker_id=NOBODY, broker_epoch=5), 0),
        "STALE_BROKER_EPOCH",
    ),
    Case(
        "UnregisterBroker of nobody",
        answered(lambda s: brokers.UnregisterBrokerRequest(broker_id=NOBODY), 0),
        "BROKER_ID_NOT_REGISTERED",
    ),
    Case(
        "UnregisterBroker of nobody, by a broker",
        answered(lambda s: brokers.UnregisterBrokerRequest(broker_id=-1), 0, to_broker=True),
        "BROKER_ID_NOT_REGISTERED",
    ),
]

# Replicas


def follow(scene: Scene, replica_id: int, topic_id: bytes | None = None, leader_epoch: int = -1) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(current_leader_epoch=leader_epoch, partition_max_bytes=100)
    topic = fetch.FetchTopic(topic_id=topic_id or scene.topic_id, partitions=[partition])
    state = fetch.ReplicaState(replica_id=replica_id, replica_epoch=5)
    return fetch.FetchRequest(replica_state=state, max_bytes=1000, topics=[topic])


REPLICAS = [
    Case("Fetch by nobody", answered(lambda s: follow(s, NOBODY), 17, to_broker=True), "NOT_LEADER_OR_FOLLOWER"),
    Case("Fetch by a negative replica", answered(lambda s: follow(s, -5), 17, to_broker=True), "NONE"),
    Case(
        "Fetch by the leader itself",
        answered(lambda s: follow(s, s.broker), 17, to_broker=True),
        "NOT_LEADER_OR_FOLLOWER",
    ),
    Case(
        "Fetch by a follower of another epoch",
        answered(lambda s: follow(s, s.controller), 17, to_broker=True),
        "NOT_LEADER_OR_FOLLOWER",
    ),
    Case(
        "Fetch by nobody, of no topic",
        answered(lambda s: follow(s, NOBODY, b"1" * 16), 17, to_broker=True),
        "UNKNOWN_TOPIC_ID",
    ),
    Case(
        "Fetch by nobody, of a leader's epoch to come",
        answered(lambda s: follow(s, NOBODY, leader_epoch=99), 17, to_broker=True),
        "UNKNOWN_LEADER_EPOCH",
    ),
]

# Envelopes

PRINCIPAL = struct.pack(">h", 0) + compile.encode(DefaultPrincipalData(type="User", name="ANONYMOUS"), 0)
LOCALHOST = bytes([127, 0, 0, 1])


def enclosed(request: Message, version: int) -> bytes:
    return encode_request(request, version, 7, "hostile")[SIZE_BYTES:]


def envelope(data: bytes, principal: bytes | None = PRINCIPAL, address: bytes = LOCALHOST) -> Callable[[Scene], Any]:
    request = brokers.EnvelopeRequest(request_data=data, request_principal=principal, client_host_address=address)
    return answered(lambda scene: request, 0)


CREATION = enclosed(CreateTopicsRequest(topics=[CreatableTopic(name="!", num_partitions=1, replication_factor=1)]), 7)
IN_ENVELOPE = enclosed(
    brokers.EnvelopeRequest(request_data=CREATION, request_principal=PRINCIPAL, client_host_address=LOCALHOST), 0
)

ENVELOPES = [
    Case("an envelope with a request that fails", envelope(CREATION), "NONE"),
    Case("an empty envelope", envelope(b""), "UNSUPPORTED_VERSION"),
    Case("an envelope with two bytes", envelope(b"\x00\x13"), "UNSUPPORTED_VERSION"),
    Case("an envelope with rubbish", envelope(b"\xff" * 40), "UNSUPPORTED_VERSION"),
    Case("an envelope with API key 9999", envelope(header(9999, 0)), "UNSUPPORTED_VERSION"),
    Case(
        "an envelope with a version of the future",
        envelope(header(19, 99, tags=b"\x00") + b"\x01"),
        "UNSUPPORTED_VERSION",
    ),
    Case("an envelope with a header alone", envelope(header(19, 7, tags=b"\x00")), "UNSUPPORTED_VERSION"),
    Case("an envelope with a body that is cut off", envelope(CREATION[:-4]), "UNSUPPORTED_VERSION"),
    Case(
        "an envelope with an endless array",
        envelope(header(19, 7, tags=b"\x00") + uvarint(2**31)),
        "UNSUPPORTED_VERSION",
    ),
    Case("an envelope in an envelope", envelope(IN_ENVELOPE), "INVALID_REQUEST"),
    Case("an envelope with a Produce", envelope(enclosed(ProduceRequest(acks=1), 9)), "INVALID_REQUEST"),
    Case(
        "an envelope with a heartbeat",
        envelope(enclosed(heartbeat(NOBODY), 1)),
        "INVALID_REQUEST",
    ),
    Case("an envelope without a principal", envelope(CREATION, None), "PRINCIPAL_DESERIALIZATION_FAILURE"),
    Case("an envelope with half a principal", envelope(CREATION, PRINCIPAL[:5]), "PRINCIPAL_DESERIALIZATION_FAILURE"),
    Case(
        "an envelope with a principal of version 9",
        envelope(CREATION, b"\x00\x09" + PRINCIPAL[2:]),
        "PRINCIPAL_DESERIALIZATION_FAILURE",
    ),
    Case("an envelope from nowhere", envelope(CREATION, address=b""), "INVALID_REQUEST"),
    Case("an envelope from seven bytes", envelope(CREATION, address=b"1234567"), "INVALID_REQUEST"),
]

# Listeners


def raw(data: bytes, *, to_broker: bool = False) -> Callable[[Scene], Any]:
    def run(scene: Scene) -> Any:
        with scene.brokers_wire() if to_broker else scene.controllers_wire() as wire:
            wire.send_raw(data)
            return wire.receive()

    return run


def frame(body: bytes) -> Callable[[Scene], Any]:
    return raw(struct.pack(">i", len(body)) + body)


LISTENERS = [
    Case("a controller's frame of -1 bytes", raw(struct.pack(">i", -1)), CLOSED),
    Case("a controller's frame of 2 GiB", raw(struct.pack(">i", 2**31 - 1)), CLOSED),
    Case("HTTP to a controller", raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), CLOSED),
    Case("a controller's request with two bytes", frame(b"\x00\x34"), CLOSED),
    Case("a Vote without a body", frame(header(52, 2, tags=b"\x00")), CLOSED),
    Case(
        "a Vote with an endless array",
        frame(header(52, 2, tags=b"\x00") + b"\x00" + bytes(4) + uvarint(2**31 - 1)),
        CLOSED,
    ),
    Case("a Vote of version 99", frame(header(52, 99, tags=b"\x00") + b"\x00" * 9), CLOSED),
    Case("a registration of rubbish", frame(header(62, 4, tags=b"\x00") + b"\xff" * 60), CLOSED),
    Case("Metadata to a controller", answered(lambda s: MetadataRequest(), 12), CLOSED),
    Case("Produce to a controller", answered(lambda s: ProduceRequest(acks=1), 9), CLOSED),
    Case("Vote to a broker", answered(vote, 2, to_broker=True), CLOSED),
    Case("FetchSnapshot to a broker", answered(fetch_snapshot, 1, to_broker=True), CLOSED),
    Case("BrokerRegistration to a broker", answered(registration, 4, to_broker=True), CLOSED),
    Case("BrokerHeartbeat to a broker", answered(lambda s: heartbeat(NOBODY), 1, to_broker=True), CLOSED),
    Case("AlterPartition to a broker", answered(lambda s: alter_partition(s, NOBODY, 5), 3, to_broker=True), CLOSED),
    Case(
        "Envelope to a broker",
        answered(
            lambda s: brokers.EnvelopeRequest(
                request_data=CREATION, request_principal=PRINCIPAL, client_host_address=LOCALHOST
            ),
            0,
            to_broker=True,
        ),
        CLOSED,
    ),
]

CASES = [*QUORUM, *BROKERS, *REPLICAS, *ENVELOPES, *LISTENERS]
