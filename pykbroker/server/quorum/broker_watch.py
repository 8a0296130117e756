"""The broker watch sees that a broker's process is gone, long before `broker.session.timeout.ms`; Apache Kafka has no
such thing.

A process that dies leaves two traces that a pause or a partition does not: the connection that brought its heartbeats
breaks (`ConnectionState.when_closed`), and the ports where this controller reached it refuse. Then the controller
speaks the broker's last word, which fences it. Where only one of the two is seen, the session's time is waited for as
ever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import trio

from pykbroker.client.errors import code_of
from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.metadata.registrations import BrokerRegistration
from pykbroker.protocol.messages.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse

from ..network.transport import Address, Network
from .controller_channel import LocalController

_log = logging.getLogger(__name__)

_LOOKS_AFTER_S: Final = (0.0, 0.02, 0.1, 0.3, 1.0)
"""A dying process does not close all at once."""
_CONNECT_TIMEOUT_S: Final = 1.0


class BrokerWatch:
    """The watch belongs to one controller, active or not: a controller that becomes active has to know where brokers
    could be reached.
    """

    def __init__(
        self, node_id: int, network: Network, controller: LocalController, image: Callable[[], MetadataImage]
    ) -> None:
        self._node_id = node_id
        self._network = network
        self._controller = controller
        self._image = image
        self._was_active = False
        self._reached: dict[int, tuple[int, frozenset[Address]]] = {}
        """By broker: the epoch, and where it took a connection of ours. An address that never did says nothing."""
        self._connections: dict[int, object] = {}
        """By broker: the connection of its latest heartbeat to this controller."""
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Watch until the surrounding scope is cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None  # the connections of a node that ends are lost too

    def apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        """Try out where a broker can be reached, once it serves."""
        for broker_id in changes.brokers:
            broker = image.brokers.get(broker_id)
            if broker is None:
                self._reached.pop(broker_id, None)
                self._connections.pop(broker_id, None)
            elif broker_id != self._node_id and not broker.fenced:
                known = self._reached.get(broker_id)
                if known is None or known[0] != broker.epoch:
                    self._start(self._reach, broker)

    def activity_may_have_changed(self) -> None:
        """A controller that has just become active looks after all brokers: the last one may have died with one."""
        is_active, was_active = self._controller.is_active, self._was_active
        self._was_active = is_active
        if is_active and not was_active:
            self._connections.clear()
            for broker in self._image().live_brokers:
                if broker.id != self._node_id:
                    self._start(self._look_after, broker.id, broker.epoch, None)

    def heard_of(self, broker_id: int, connection: object) -> None:
        """A heartbeat came by that connection."""
        self._connections[broker_id] = connection

    def lost(self, broker_id: int, broker_epoch: int, connection: object) -> None:
        """That connection has broken, and it had brought heartbeats of that epoch."""
        if self._controller.is_active and self._connections.get(broker_id) is connection:
            self._start(self._look_after, broker_id, broker_epoch, connection)

    def _start(self, function: Callable[..., object], *arguments: object) -> None:
        if self._nursery is not None:
            self._nursery.start_soon(function, *arguments)  # type: ignore[arg-type]

    async def _reach(self, broker: BrokerRegistration) -> None:
        reached = [each for each in _addresses(broker) if await self._connects(each)]
        if reached:
            self._reached[broker.id] = broker.epoch, frozenset(reached)

    async def _look_after(self, broker_id: int, broker_epoch: int, connection: object) -> None:
        for pause_s in _LOOKS_AFTER_S:
            await trio.sleep(pause_s)
            broker = self._image().brokers.get(broker_id)
            if broker is None or broker.epoch != broker_epoch or broker.fenced or not self._controller.is_active:
                return
            if self._connections.get(broker_id) is not connection:
                return  # it has been heard of again
            if await self._is_gone(broker):
                await self._fence(broker)
                return

    async def _is_gone(self, broker: BrokerRegistration) -> bool:
        epoch, reached = self._reached.get(broker.id, (broker.epoch, frozenset[Address]()))
        if epoch != broker.epoch or not reached:
            return False
        for address in sorted(reached):
            if await self._connects(address) is not False:
                return False
        return True

    async def _connects(self, address: Address) -> bool | None:
        """False where the port refuses; None where nothing is known."""
        with trio.move_on_after(_CONNECT_TIMEOUT_S):
            try:
                transport = await self._network.connect(address.host, address.port)
            except ConnectionRefusedError:
                return False
            except OSError:
                return None
            transport.close()
            return True
        return None

    async def _fence(self, broker: BrokerRegistration) -> None:
        _log.warning("broker %d is fenced: its connection broke, and its ports refuse new ones", broker.id)
        last_word = BrokerHeartbeatRequest(
            broker_id=broker.id,
            broker_epoch=broker.epoch,
            current_metadata_offset=self._image().offset,
            want_fence=True,
            want_shut_down=True,
        )
        response: BrokerHeartbeatResponse = await self._controller.submit(last_word)
        if response.error_code:
            _log.info(
                "broker %d is not fenced, the controller answers with %s",
                broker.id,
                code_of(response.error_code).name,
            )


def _addresses(broker: BrokerRegistration) -> list[Address]:
    return [Address(each.host, each.port) for each in broker.endpoints]
