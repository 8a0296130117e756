"""What the hostile cases share: a broker with topics to attack, and short ways to name its answers."""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from compat_tests.brokers import Broker
from compat_tests.cases import ComparedCase, code
from compat_tests.names import RUN
from compat_tests.topics import wait_for_leaders
from compat_tests.wire import ANSWER_DEADLINE_S, CLIENT_ID, Wire
from pykbroker.protocol.messages.groups import FindCoordinatorRequest, HeartbeatRequest, HeartbeatResponse
from pykbroker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from pykbroker.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from pykbroker.protocol.records.batch import Record

STARTING_DEADLINE_S = 120
COORDINATOR_IS_STARTING = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS")
PRODUCE_VERSION = 9
CREATE_TOPICS_VERSION = 7

_numbers = itertools.count(1)


@dataclass
class Scene:
    broker: Broker
    _topics: dict[str, str] = field(default_factory=dict)

    def wire(self) -> Wire:
        return Wire(self.broker.address)

    def name(self, noun: str = "topic") -> str:
        return f"hostile-{noun}-{RUN}-{next(_numbers)}"

    def topic(self, **configs: str) -> str:
        """A new topic with one partition; `cleanup_policy="compact"` sets cleanup.policy."""
        name = self.name()
        properties = {key.replace("_", "."): value for key, value in configs.items()}
        assert self.create(CreatableTopic(name=name, num_partitions=1, replication_factor=1), properties) == "NONE"
        wait_for_leaders(self.broker, name, 1)
        return name

    def create(self, topic: CreatableTopic, configs: dict[str, str | None] | None = None) -> str:
        topic.configs = [CreatableTopicConfig(name=name, value=value) for name, value in (configs or {}).items()]
        return self.create_all([topic])[0]

    def create_all(self, topics: list[CreatableTopic]) -> list[str]:
        with self.wire() as wire:
            answer = wire.call(CreateTopicsRequest(topics=topics), CREATE_TOPICS_VERSION, deadline_s=120)
        assert isinstance(answer, CreateTopicsResponse)
        return [code(topic.error_code) for topic in answer.topics]

    def produce(
        self, batch: bytes | None, topic: str | None = None, *, version: int = PRODUCE_VERSION, **of_request: Any
    ) -> str:
        """The name of the error code that the batch's one partition is answered with."""
        return code(self.produce_partition(batch, topic, version=version, **of_request).error_code)

    def produce_partition(
        self,
        batch: bytes | None,
        topic: str | None = None,
        *,
        partition: int = 0,
        version: int = PRODUCE_VERSION,
        acks: int = -1,
        client_id: str = CLIENT_ID,
        deadline_s: float = ANSWER_DEADLINE_S,
    ) -> Any:
        data = [PartitionProduceData(index=partition, records=batch)]
        topics = [TopicProduceData(name=topic or self.topic(), partition_data=data)]
        request = ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=topics)
        with self.wire() as wire:
            answer = wire.call(request, version, client_id=client_id, deadline_s=deadline_s)
        assert isinstance(answer, ProduceResponse)
        return answer.responses[0].partition_responses[0]

    def group(self) -> str:
        """The name of a new group whose coordinator is at work."""
        group = self.name("group")
        deadline = time.monotonic() + STARTING_DEADLINE_S
        while (answered := self._heartbeat_of_nobody(group)) in COORDINATOR_IS_STARTING:
            assert time.monotonic() < deadline, f"the coordinator still answers {answered}"
            time.sleep(0.05)
        return group

    def _heartbeat_of_nobody(self, group: str) -> str:
        with self.wire() as wire:
            wire.call(FindCoordinatorRequest(key=group, key_type=0), 3)
            answer = wire.call(HeartbeatRequest(group_id=group, generation_id=1, member_id="nobody"), 3)
        assert isinstance(answer, HeartbeatResponse)
        return code(answer.error_code)

    def producer_id(self) -> int:
        deadline = time.monotonic() + STARTING_DEADLINE_S
        with self.wire() as wire:
            while True:
                answer = wire.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4)
                assert isinstance(answer, InitProducerIdResponse)
                if code(answer.error_code) not in COORDINATOR_IS_STARTING:
                    assert code(answer.error_code) == "NONE"
                    return answer.producer_id
                assert time.monotonic() < deadline, "no producer id"
                time.sleep(0.05)


@dataclass(frozen=True, slots=True)
class Case(ComparedCase[Scene]):
    row: str
    name: str
    run: Callable[[Scene], Any]
    kafka: Any
    ours: Any = None


def now_ms() -> int:
    return int(time.time() * 1000)


def record(value: bytes | None = b"value", **fields: Any) -> Record:
    return Record(key=fields.pop("key", b"key"), value=value, timestamp=fields.pop("timestamp", now_ms()), **fields)
