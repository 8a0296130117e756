"""The controller's rules as one state machine: Kafka's `QuorumController` without its threads and its log.

A request gives records and an answer; the driver appends the records, replays them here at once and answers when they
are committed. What a request may do depends on the records before it, committed or not. One request at a time.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from pykbroker.config import BrokerConfig
from pykbroker.protocol.messages.brokers import (
    AllocateProducerIdsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
)
from pykbroker.protocol.messages.configs import IncrementalAlterConfigsRequest
from pykbroker.protocol.messages.metadata_records import AbortTransactionRecord
from pykbroker.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from pykbroker.protocol.schema import Message
from pykbroker.protocol.uuids import uuid_to_text
from pykbroker.state_machine import Completion, Result, Token

from . import brokers, configs, producer_ids, topics
from .controller_state import NOT_HEARD_OF, ControllerState
from .features import bootstrap_transaction, check_metadata_version
from .image import MetadataImage


class Controller:
    """node_id: of the node it runs on, whose broker, if it is one, lives as long as the controller does."""

    def __init__(self, config: BrokerConfig, *, node_id: int, cluster_id: str, rng: random.Random) -> None:
        self._state = ControllerState(config, node_id, cluster_id, rng)

    @property
    def image(self) -> MetadataImage:
        """The metadata with every record that was replayed here, committed or not."""
        return self._state.image

    def activate(self, bootstrap: Sequence[Message], now_ms: int, next_offset: int | None = None) -> Result[Message]:
        """This node leads the quorum now and has replayed the log; an empty one begins with the bootstrap records.

        next_offset: the log's end, where it is behind the last metadata record. Raises UnsupportedMetadataVersion.
        """
        state = self._state
        state.contacts.clear()
        if next_offset is not None:
            state.next_offset = max(state.next_offset, next_offset)
        check_metadata_version(state.image)
        for broker in state.image.brokers.values():
            if not broker.fenced and broker.id != state.node_id:
                state.contacts[broker.id] = (now_ms, NOT_HEARD_OF)
        if state.image.in_transaction:
            return Result([AbortTransactionRecord(reason="The controller changed.")], cause="an unfinished transaction")
        if not state.image.features:
            return Result(bootstrap_transaction(bootstrap), cause="a new cluster")
        return Result()

    def handle(self, request: Message, token: Token, now_ms: int) -> Result[Message]:
        """now_ms is monotonic. Every request is answered, a refused one with an error code."""
        records, response, cause = self._handle(request, now_ms)
        return Result(records, [Completion(token, response)], cause)

    def _handle(self, request: Message, now_ms: int) -> tuple[Sequence[Message], Message, str]:
        state = self._state
        match request:
            case CreateTopicsRequest():
                names = ", ".join(topic.name for topic in request.topics)
                return *topics.create_topics(state, request), f"CreateTopics {names}"
            case DeleteTopicsRequest():
                names = ", ".join([*request.topic_names, *map(_shown, request.topics)])
                return *topics.delete_topics(state, request), f"DeleteTopics {names}"
            case CreatePartitionsRequest():
                names = ", ".join(topic.name for topic in request.topics)
                return *topics.create_partitions(state, request), f"CreatePartitions {names}"
            case IncrementalAlterConfigsRequest():
                names = ", ".join(resource.resource_name or "of all brokers" for resource in request.resources)
                return *configs.incremental_alter_configs(state, request), f"IncrementalAlterConfigs {names}"
            case AllocateProducerIdsRequest():
                cause = f"AllocateProducerIds of broker {request.broker_id}"
                return *producer_ids.allocate_producer_ids(state, request), cause
            case BrokerHeartbeatRequest():
                return *brokers.heartbeat(state, request, now_ms), f"heartbeat of broker {request.broker_id}"
            case BrokerRegistrationRequest():
                cause = f"registration of broker {request.broker_id}"
                return *brokers.register_broker(state, request, now_ms), cause
            case ControllerRegistrationRequest():
                cause = f"registration of controller {request.controller_id}"
                return *brokers.register_controller(state, request), cause
            case _:
                raise TypeError(f"the controller has no rule for {type(request).__name__}")

    def replay(self, record: Message, offset: int) -> None:
        """Applies the next record of the log, be it one of its own or from before its time."""
        self._state.image.replay(record, offset)
        self._state.next_offset = offset + 1

    def next_deadline_ms(self) -> int | None:
        """When `expire` has something to do, on the clock of `now_ms`."""
        return brokers.next_session_deadline_ms(self._state)

    def expire(self, now_ms: int) -> Result[Message]:
        """Fences brokers that were silent for too long; call it again until nothing comes."""
        records = brokers.fence_silent_brokers(self._state, now_ms)
        return Result(records, cause="a broker's session has expired" if records else "")


def _shown(topic: DeleteTopicState) -> str:
    return uuid_to_text(topic.topic_id) if topic.name is None else topic.name
