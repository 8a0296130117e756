"""What brokers and administrators ask a controller, written down: requests, answers, and the records they bring about.

A scenario (`controller_scenarios`) talks to a `ControllerUnderTest`: the real Apache Kafka when transcripts are
recorded, our pure controller when they are checked. Brokers are made up: nobody but the test registers. What is
different in every run (epochs of brokers, ids of topics) has a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Protocol

from pykbroker.metadata.features import REGISTERED_FEATURES
from pykbroker.metadata.image import MetadataImage
from pykbroker.metadata.partition_state import PartitionState
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerState,
    Feature,
    Listener,
)
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.metadata_records import NoOpRecord, PartitionChangeRecord, RegisterBrokerRecord
from pykbroker.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
    TopicPartitions,
)
from pykbroker.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from pykbroker.protocol.schema import Message, Struct

SESSION_TIMEOUT_MS = 3000
PROPERTIES = {
    "broker.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "broker.heartbeat.interval.ms": "500",
    "metadata.max.idle.interval.ms": "0",
}
"""In the server.properties of the controller."""

TOPIC, BROKER = 2, 4
VERSIONS: dict[type[Message], int] = {AlterPartitionRequest: 3}
_NOT_TOLD = {
    "throttle_time_ms",
    "cluster_id",
    "features",
    "end_points",
    "listeners",
    "current_metadata_offset",
    "timeout_ms",
    "rack",
}


_WITH_DEFAULT_MESSAGES = {
    ErrorCode.ELECTION_NOT_NEEDED,
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}
"""Kafka sends the description of the error along, and ours are our own words."""


def directory(broker_id: int, number: int = 0) -> bytes:
    return bytes([0xD0 + number]) * 15 + bytes([broker_id])


class ControllerUnderTest(Protocol):
    cluster_id: str

    def ask(self, request: Message, version: int) -> Message: ...

    def wait(self, ms: int) -> None: ...

    def log(self) -> Sequence[Message]:
        """Every record so far, without those that the log itself needs."""
        ...


class Dialogue:
    """lines: the transcript so far."""

    def __init__(self, controller: ControllerUnderTest) -> None:
        self._controller = controller
        self.lines: list[str] = []
        self.image = MetadataImage()
        self._read = 0
        self._epochs: dict[int, str] = {}
        self._topics: dict[bytes, str] = {}
        self._read_log()

    def ask(self, request: Message, version: int | None = None) -> Any:
        version = VERSIONS.get(type(request), max_version(request)) if version is None else version
        self.lines.append(f"> {self._shown(request)}")
        response = self._controller.ask(request, version)
        records = self._read_log()
        self.lines.append(f"< {self._shown(response)}")
        self._tell(records)
        return response

    def expire(self, *alive: int) -> None:
        """Lets the sessions of all others end."""
        self.lines.append(f"... only {', '.join(map(str, alive)) or 'nobody'} shows to be alive")
        for _ in range(0, SESSION_TIMEOUT_MS * 3 // 2, 500):
            for broker_id in alive:
                self._controller.ask(self._heartbeat(broker_id), 1)
            self._controller.wait(500)
        self._tell(self._read_log())

    def wait(self, ms: int, *alive: int) -> None:
        self.lines.append(f"... {ms} ms")
        for _ in range(0, ms, 500):
            for broker_id in alive:
                self._controller.ask(self._heartbeat(broker_id), 1)
            self._controller.wait(500)
        self._tell(self._read_log())

    def note(self, text: str) -> None:
        self.lines.append(f"# {text}")

    # Brokers.

    def register(
        self, broker_id: int, life: int = 1, *, cleanly: bool = False, directories: int = 1, **fields: Any
    ) -> None:
        registered = self.image.brokers.get(broker_id)
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=self._controller.cluster_id,
            incarnation_id=bytes([life]) * 15 + bytes([broker_id]),
            listeners=[Listener(name="PLAINTEXT", host="127.0.0.1", port=9000 + broker_id)],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in REGISTERED_FEATURES.items()
            ],
            rack=None,
            log_dirs=[directory(broker_id, number) for number in range(directories)],
            previous_broker_epoch=registered.epoch if cleanly and registered is not None else -1,
        )
        for name, value in fields.items():
            setattr(request, name, value)
        self.ask(request)

    def beat(self, broker_id: int, *, read: int | None = None, **fields: Any) -> None:
        self.ask(self._heartbeat(broker_id, read, **fields))

    def join(self, *broker_ids: int, directories: int = 1) -> None:
        """These are brokers of the cluster now; nothing is told of it."""
        lines = list(self.lines)
        for broker_id in broker_ids:
            self.register(broker_id, directories=directories)
            self.beat(broker_id)
            assert self.image.is_alive(broker_id)
        self.lines = [*lines, f"# brokers {', '.join(map(str, broker_ids))} are there"]

    def _heartbeat(self, broker_id: int, read: int | None = None, **fields: Any) -> BrokerHeartbeatRequest:
        broker = self.image.brokers.get(broker_id)
        return BrokerHeartbeatRequest(
            broker_id=broker_id,
            current_metadata_offset=1 << 40 if read is None else read,
            **{"broker_epoch": -1 if broker is None else broker.epoch, **fields},
        )

    def propose(
        self, topic: str, index: int, leader: int, isr: Sequence[int], *, version: int = 3, **fields: Any
    ) -> None:
        """fields: of the partition's row, where it is not what the leader knows."""
        state, found = self.partition(topic, index), self.image.topic(topic)
        brokers = self.image.brokers
        row = AlterPartitionRequestPartitionData(
            partition_index=index,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            new_isr=list(isr) if version < 3 else [],
            new_isr_with_epochs=[
                BrokerState(broker_id=each, broker_epoch=brokers[each].epoch if each in brokers else -1) for each in isr
            ]
            if version >= 3
            else [],
        )
        for name, value in fields.items():
            setattr(row, name, value)
        topics = [AlterPartitionRequestTopicData(topic_id=found.topic_id if found else b"?" * 16, partitions=[row])]
        epoch = brokers[leader].epoch if leader in brokers else -1
        self.ask(AlterPartitionRequest(broker_id=leader, broker_epoch=epoch, topics=topics), version)

    # Administrators.

    def create(self, name: str, *assignments: Sequence[int], **configs: str) -> None:
        topic = CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreatableReplicaAssignment(partition_index=index, broker_ids=list(each))
                for index, each in enumerate(assignments)
            ],
            configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
        )
        self.lines.append(f"> CreateTopics {name} {[list(each) for each in assignments]} {configs}")
        response: Any = self._controller.ask(CreateTopicsRequest(topics=[topic]), 7)
        [row] = response.topics
        self.lines.append(f"< {ErrorCode(row.error_code).name} {row.error_message}")
        self._tell(self._read_log())

    def configure(self, type_: int, name: str, key: str, value: str | None) -> None:
        config = IncrementalAlterConfigsRequestAlterableConfig(
            name=key, config_operation=0 if value is not None else 1, value=value
        )
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=type_, resource_name=name, configs=[config]
        )
        self.ask(IncrementalAlterConfigsRequest(resources=[resource]))

    def elect(self, election_type: int, topic: str | None = None, *indexes: int) -> None:
        partitions = None if topic is None else [TopicPartitions(topic=topic, partitions=list(indexes))]
        self.ask(ElectLeadersRequest(election_type=election_type, topic_partitions=partitions))

    def reassign(
        self, topic: str, index: int, replicas: Sequence[int] | None, *, may_change_factor: bool = True
    ) -> None:
        partition = ReassignablePartition(partition_index=index, replicas=None if replicas is None else list(replicas))
        self.ask(
            AlterPartitionReassignmentsRequest(
                allow_replication_factor_change=may_change_factor,
                topics=[ReassignableTopic(name=topic, partitions=[partition])],
            )
        )

    def partition(self, topic: str, index: int = 0) -> PartitionState:
        return self.image.partition(topic, index) or PartitionState((), ())

    # Writing down.

    def _read_log(self) -> list[Message]:
        new = list(self._controller.log())[self._read :]
        for record in new:
            self.image.replay(record, self._read)
            self._read += 1
            if isinstance(record, RegisterBrokerRecord) and record.broker_epoch not in self._epochs:
                lives = sum(name.startswith(f"<{record.broker_id}.") for name in self._epochs.values())
                self._epochs[record.broker_epoch] = f"<{record.broker_id}.{lives + 1}>"
        for name, topic in self.image.topics.items():
            self._topics[topic.topic_id] = name
        return [record for record in new if not isinstance(record, NoOpRecord)]

    def _tell(self, records: Sequence[Message]) -> None:
        """Partitions that change together are told in their order: that of the controller says nothing."""
        for changes, group in groupby(records, lambda each: isinstance(each, PartitionChangeRecord)):
            told = [f"+ {self._shown(record)}" for record in group]
            self.lines += sorted(told) if changes else told

    def _shown(self, value: Any, name: str = "") -> str:
        match value:
            case Message() | Struct():
                empty = type(value)()
                by_default = getattr(value, "error_code", 0) in _WITH_DEFAULT_MESSAGES
                fields = [each.name for each in type(value).__schema__.fields if each.name not in _NOT_TOLD]
                told = [
                    f"{field}={self._shown(getattr(value, field), field)}"
                    for field in fields
                    if getattr(value, field) != getattr(empty, field) and not (by_default and field == "error_message")
                ]
                title = type(value).__name__ if isinstance(value, Message) else ""
                return f"{title}{{{', '.join(told)}}}"
            case list():
                return f"[{', '.join(self._shown(each, name) for each in value)}]"
            case bytes() | memoryview():
                return self._named(bytes(value))
            case int() if name.endswith("broker_epoch"):
                return self._epochs.get(value, str(value))
            case int() if name == "error_code":
                return ErrorCode(value).name
            case _:
                return repr(value)

    def _named(self, value: bytes) -> str:
        if value in self._topics:
            return f"<{self._topics[value]}>"
        if value[0] in (0xD0, 0xD1):
            return f"<directory {value[0] - 0xD0} of {value[15]}>"
        return value.hex().lstrip("0") or "0"


def max_version(request: Message) -> int:
    return request.__schema__.stable_versions.high
