"""The registration of a controller with its cluster (KIP-919); Kafka's counterpart is `ControllerRegistrationManager`.

Every start of the process is a new incarnation and registers anew: listeners, ports and features may have changed. It
does so again whenever the metadata says something else of this node.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import trio

from pykbroker.client.errors import code_of
from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.protocol.messages.brokers import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)

from ..quorum.controller_channel import ControllerChannel
from ..runtime.signal import Signal
from .bound_listeners import BoundListener
from .registered import registered_features, registered_listeners

_log = logging.getLogger(__name__)

_RETRY_S = 0.5


class ControllerRegistrar:
    def __init__(
        self,
        node_id: int,
        incarnation_id: bytes,
        listeners: Sequence[BoundListener],
        channel: ControllerChannel,
        image: Callable[[], MetadataImage],
    ) -> None:
        self._node_id = node_id
        self._incarnation_id = incarnation_id
        self._listeners = listeners
        self._channel = channel
        self._image = image
        self._news = Signal()

    def apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        if changes.others:
            self._news.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled; started when this controller is registered."""
        while True:
            self._news.clear()
            if self._is_registered():
                task_status.started()
                task_status = trio.TASK_STATUS_IGNORED
                await self._news.wait()
            elif await self._register():
                # What was answered elsewhere is seen here a moment later, maybe after other news.
                with trio.move_on_after(_RETRY_S):
                    while not self._is_registered():
                        await self._news.wait()
            else:
                await trio.sleep(_RETRY_S)

    def _is_registered(self) -> bool:
        known = self._image().controllers.get(self._node_id)
        return known is not None and known.incarnation_id == self._incarnation_id

    async def _register(self) -> bool:
        response: ControllerRegistrationResponse = await self._channel.submit(self._request())
        if response.error_code:
            error = code_of(response.error_code).name
            _log.warning("controller %d is not registered yet, and tries again: %s", self._node_id, error)
        return not response.error_code

    def _request(self) -> ControllerRegistrationRequest:
        return ControllerRegistrationRequest(
            controller_id=self._node_id,
            incarnation_id=self._incarnation_id,
            listeners=registered_listeners(self._listeners),
            features=registered_features(),
        )
