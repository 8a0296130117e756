"""A broker's membership of its cluster: it registers with the controller, and its heartbeats keep it unfenced.

Kafka's counterpart is `BrokerLifecycleManager`. A laptop's broker registers as one of many does (KIP-500, KIP-631).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import trio

from pykbroker.metadata.features import SUPPORTED_FEATURES
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)

from .broker import BoundListener
from .controller_driver import ControllerDriver

_log = logging.getLogger(__name__)

_RETRY_S = 0.1


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """What a broker says of itself when it registers."""

    node_id: int
    cluster_id: str
    incarnation_id: bytes
    rack: str | None
    listeners: tuple[BoundListener, ...]
    log_directory_ids: tuple[bytes, ...]
    previous_epoch: int = -1

    def registration(self) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            broker_id=self.node_id,
            cluster_id=self.cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=[
                Listener(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol_id)
                for each in self.listeners
            ],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(SUPPORTED_FEATURES.items())
            ],
            rack=self.rack,
            log_dirs=list(self.log_directory_ids),
            previous_broker_epoch=self.previous_epoch,
        )


class RegistrationRefused(Exception):
    """The controller does not want this broker in its cluster."""


class BrokerLifecycle:
    def __init__(self, identity: BrokerIdentity, controller: ControllerDriver, heartbeat_interval_ms: int) -> None:
        self._identity = identity
        self._controller = controller
        self._interval_s = heartbeat_interval_ms / 1000
        self.epoch = -1
        self._leaving = False

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Started once the broker is unfenced; then it sends heartbeats until it is cancelled."""
        await self._register()
        fenced = True
        while True:
            answer = await self._heartbeat()
            if fenced and not answer.is_fenced:
                fenced = False
                task_status.started()
            await trio.sleep(_RETRY_S if fenced else self._interval_s)
            if answer.error_code in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED):
                await self._register()

    async def leave(self) -> None:
        """Tell the controller that this broker shuts down: others take over what it leads, then it is fenced."""
        self._leaving = True
        answer = await self._heartbeat()
        while not answer.should_shut_down and not answer.error_code:
            answer = await self._heartbeat()

    async def _register(self) -> None:
        response: BrokerRegistrationResponse = await self._controller.submit(self._identity.registration())
        if response.error_code:
            error = ErrorCode(response.error_code)
            raise RegistrationRefused(f"the controller refuses broker {self._identity.node_id}: {error.name}")
        self.epoch = response.broker_epoch

    async def _heartbeat(self) -> BrokerHeartbeatResponse:
        response: BrokerHeartbeatResponse = await self._controller.submit(
            BrokerHeartbeatRequest(
                broker_id=self._identity.node_id,
                broker_epoch=self.epoch,
                current_metadata_offset=self._controller.image.offset,
                want_shut_down=self._leaving,
            )
        )
        if response.error_code:
            _log.warning("heartbeat of broker %d: %s", self._identity.node_id, ErrorCode(response.error_code).name)
        return response
