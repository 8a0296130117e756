"""A controller with its log and the image that a broker would have, without a network and without waiting."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from pykbroker.config import BrokerConfig
from pykbroker.metadata.controller import Controller
from pykbroker.metadata.features import REGISTERED_FEATURES, bootstrap_records
from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.metadata.records import decode_record, encode_record
from pykbroker.metadata.request_context import NO_CONTEXT, ControllerRequestContext
from pykbroker.protocol.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from pykbroker.protocol.schema import Message
from pykbroker.sim.clock import EPOCH_MS
from pykbroker.state_machine import Result, Token

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def directory_id(broker_id: int) -> bytes:
    return bytes([0xD1]) * 15 + bytes([broker_id])


class Cluster:
    """Node 1 is the controller, or the one that is named.

    Every record goes through its bytes; `log` is what a disk would hold.
    """

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        seed: int = 0,
        *,
        node_id: int = 1,
        bootstrap: Sequence[Message] | None = None,
    ) -> None:
        self.config = BrokerConfig(properties or {})
        self.now_ms = 0
        self.log: list[bytes] = []
        self.image = MetadataImage()
        self.changes = ImageChanges()
        self.incarnations = random.Random(seed)
        self._seed = seed
        self._node_id = node_id
        self.controller = self._new_controller()
        self.take(self.controller.activate(bootstrap or bootstrap_records(), self.now_ms))

    def _new_controller(self) -> Controller:
        return Controller(self.config, node_id=self._node_id, cluster_id=CLUSTER_ID, rng=random.Random(self._seed))

    def take(self, result: Result[Message]) -> list[Message]:
        records = []
        for record in result.records:
            self.log.append(encode_record(record))
            records.append(decode_record(self.log[-1]))
            offset = len(self.log) - 1
            self.controller.replay(records[-1], offset)
            self.changes.merge(self.image.replay(records[-1], offset))
        return records

    @property
    def wall_ms(self) -> int:
        return EPOCH_MS + self.now_ms

    def step(self, request: Message, context: ControllerRequestContext = NO_CONTEXT) -> tuple[list[Message], Any]:
        """The records that a request brought about, and its answer."""
        result = self.controller.handle(request, Token(7), self.now_ms, context=context)
        [completion] = result.completed
        assert completion.token == 7
        assert not result.records or result.cause
        return self.take(result), completion.response

    def ask(self, request: Message, context: ControllerRequestContext = NO_CONTEXT) -> Any:
        return self.step(request, context)[1]

    def advance(self, ms: int) -> list[Message]:
        """Lets time pass and sessions expire, each at its time."""
        end_ms = self.now_ms + ms
        records: list[Message] = []
        while (deadline := self.controller.next_deadline_ms()) is not None and deadline <= end_ms:
            self.now_ms = max(self.now_ms, deadline)
            records += self.take(self.controller.expire(self.now_ms, self.wall_ms))
        self.now_ms = end_ms
        return records

    def register(
        self,
        broker_id: int,
        rack: str | None = None,
        incarnation_id: bytes | None = None,
        directories: list[bytes] | None = None,
        previous_epoch: int = -1,
    ) -> BrokerRegistrationResponse:
        response: BrokerRegistrationResponse = self.ask(
            BrokerRegistrationRequest(
                broker_id=broker_id,
                cluster_id=CLUSTER_ID,
                incarnation_id=incarnation_id or self.incarnations.randbytes(16),
                listeners=[Listener(name="PLAINTEXT", host=f"host{broker_id}", port=9092)],
                features=[
                    Feature(name=name, min_supported_version=low, max_supported_version=high)
                    for name, (low, high) in REGISTERED_FEATURES.items()
                ],
                rack=rack,
                log_dirs=[directory_id(broker_id)] if directories is None else directories,
                previous_broker_epoch=previous_epoch,
            )
        )
        return response

    def heartbeat(self, broker_id: int, **wants: bool) -> BrokerHeartbeatResponse:
        response: BrokerHeartbeatResponse = self.ask(
            BrokerHeartbeatRequest(
                broker_id=broker_id,
                broker_epoch=self.image.brokers[broker_id].epoch,
                current_metadata_offset=self.image.offset,
                **wants,
            )
        )
        return response

    def add_broker(self, broker_id: int = 1, rack: str | None = None) -> None:
        assert self.register(broker_id, rack).error_code == 0
        assert not self.heartbeat(broker_id).is_fenced

    def replayed(self) -> MetadataImage:
        """The image that the log alone gives."""
        image = MetadataImage()
        for offset, value in enumerate(self.log):
            image.replay(decode_record(value), offset)
        return image

    def restart_controller(self) -> None:
        """The process ended without a word, and another one reads the log."""
        self.controller = self._new_controller()
        for offset, value in enumerate(self.log):
            self.controller.replay(decode_record(value), offset)
        self.take(self.controller.activate(bootstrap_records(), self.now_ms))


def one_node(properties: Mapping[str, str] | None = None) -> Cluster:
    cluster = Cluster(properties)
    cluster.add_broker(1)
    return cluster
