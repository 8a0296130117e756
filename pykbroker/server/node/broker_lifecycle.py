"""A broker's membership of its cluster: it registers with the controller, and its heartbeats keep it unfenced.

Kafka's counterpart is `BrokerLifecycleManager`. A laptop's broker registers as one of many does (KIP-500, KIP-631).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import trio

from pykbroker.client.errors import code_of
from pykbroker.config import BrokerConfig
from pykbroker.metadata.features import METADATA_VERSION_LEVEL, NEWEST_METADATA_VERSION
from pykbroker.metadata.image import BROKER_RESOURCE, METADATA_VERSION, ImageChanges, MetadataImage
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

from ..quorum.controller_channel import ControllerChannel
from ..runtime.clock import Clock
from ..runtime.signal import Signal
from ..runtime.startup_error import StartupError
from .bound_listeners import BoundListener
from .registered import registered_features, registered_listeners

_log = logging.getLogger(__name__)

_FIRST_RETRY_S: Final = 0.1
_LONGEST_RETRY_S: Final = 1.0
_NO_ROOM_RETRY_S: Final = 1.0
_LEAVING_RETRY_S: Final = 0.02
_LONGEST_SILENCE_WHILE_LEAVING_MS: Final = 5000
"""A controller that is gone as well, as when a whole cluster stops, must not keep a broker from stopping."""

_WAITING_MAY_HELP: Final = frozenset(
    {
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,  # until the session of a process that was killed is over
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)
_REASONS: Final = {
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: "another broker with this id is in the cluster",
    ErrorCode.INCONSISTENT_CLUSTER_ID: "the controllers are those of a cluster with another cluster.id",
    ErrorCode.UNSUPPORTED_VERSION: (
        "the cluster has a feature at a level that this broker does not know; "
        f"{METADATA_VERSION} has to be from {METADATA_VERSION_LEVEL} to {NEWEST_METADATA_VERSION}"
    ),
    ErrorCode.INVALID_REGISTRATION: "another broker has one of its log directories, or it has none",
    ErrorCode.REQUEST_TIMED_OUT: "no controller answers",
}
_REGISTER_AGAIN: Final = (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED)


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """The identity of a broker, as it registers."""

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
            listeners=registered_listeners(self.listeners),
            features=registered_features(),
            rack=self.rack,
            log_dirs=list(self.log_directory_ids),
            previous_broker_epoch=self.previous_epoch,
        )


class RegistrationError(StartupError):
    """The controller does not accept the registration of this broker."""


class UnreportedDirectoryFailure(StartupError):
    """No controller heard within `log.dir.failure.timeout.ms` that a log directory has failed (KIP-858).

    The broker stops, since the partitions of the directory would keep a leader that does not serve them.
    """


class BrokerLifecycle:
    """The broker's life in its cluster.

    offline_directories: ids of log directories that have failed since the start (KIP-858). cordoned_directories: ids of
    those that get no new replicas (KIP-1066).

    `wake` is to be called when the controller should hear of something at once.
    """

    def __init__(
        self,
        identity: BrokerIdentity,
        channel: ControllerChannel,
        image: Callable[[], MetadataImage],
        config: BrokerConfig,
        clock: Clock,
        *,
        offline_directories: Callable[[], Sequence[bytes]],
        cordoned_directories: Callable[[], Sequence[bytes]],
    ) -> None:
        self.epoch = -1
        self._identity = identity
        self._node_id = identity.node_id
        self._channel = channel
        self._image = image
        self._clock = clock
        self._interval_s = config.int("broker.heartbeat.interval.ms") / 1000
        self._session_timeout_ms = config.int("broker.session.timeout.ms")
        self._registration_timeout_ms = config.int("initial.broker.registration.timeout.ms")
        self._failure_timeout_ms = config.int("log.dir.failure.timeout.ms")
        self._leaves_orderly = config.bool("controlled.shutdown.enable")
        self._offline_directories = offline_directories
        self._cordoned_directories = cordoned_directories
        self._told_directories: frozenset[bytes] = frozenset()
        self._leaving = False
        self._has_to_register = False
        self._news = Signal()

    def wake(self) -> None:
        self._news.set()

    def advertise(self, listeners: tuple[BoundListener, ...]) -> None:
        """Tell the cluster of these listeners from now on; a broker that is registered registers again for it."""
        if listeners != self._identity.listeners:
            self._identity = replace(self._identity, listeners=listeners)
            self._has_to_register = self.epoch >= 0
            self.wake()

    def apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        """Some changes are not left to the next heartbeat: this broker's own registration or configuration, and that
        another one leaves, which waits until all have read who leads in its place.
        """
        changed = (image.brokers.get(each) for each in changes.brokers)
        is_own = self._node_id in changes.brokers or (BROKER_RESOURCE, str(self._node_id)) in changes.configs
        if is_own or any(each and each.in_controlled_shutdown for each in changed):
            self.wake()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled; started when the broker is unfenced, and this node has heard of it.

        Raises RegistrationError, UnreportedDirectoryFailure.
        """
        await self._register()
        failed_since_ms: int | None = None
        failures = 0
        has_begun = False
        while True:
            self._news.clear()
            answer = await self._heartbeat()
            failures = failures + 1 if answer.error_code else 0
            failed_since_ms = self._check_directories(failed_since_ms)
            if not has_begun and not answer.is_fenced and self._image().is_alive(self._node_id):
                has_begun = True
                task_status.started()
            await self._news.wait(self._pause_s(failures, is_waiting=not has_begun or answer.is_fenced))
            if (answer.error_code in _REGISTER_AGAIN or self._has_to_register) and not self._leaving:
                self._has_to_register = False
                await self._register()

    def _pause_s(self, failures: int, *, is_waiting: bool) -> float:
        if failures:
            return min(_FIRST_RETRY_S * 2.0 ** (failures - 1), _LONGEST_RETRY_S, self._interval_s)
        return min(_FIRST_RETRY_S, self._interval_s) if is_waiting else self._interval_s

    async def leave(self) -> None:
        """Tell the controller that this broker shuts down: others take over what it leads, then it is fenced."""
        if not self._leaves_orderly:
            return
        self._leaving = True
        heard_ms = self._clock.monotonic_ms()
        pause_s = 0.0  # where there are no others who have to read of it, the next answer lets go
        while self._clock.monotonic_ms() - heard_ms < _LONGEST_SILENCE_WHILE_LEAVING_MS:
            answer = await self._heartbeat(timeout_ms=_LONGEST_SILENCE_WHILE_LEAVING_MS)
            if answer.should_shut_down or (answer.error_code and answer.error_code not in _WAITING_MAY_HELP):
                return
            if not answer.error_code:
                heard_ms = self._clock.monotonic_ms()
            await trio.sleep(pause_s)
            pause_s = _LEAVING_RETRY_S
        _log.warning(
            "broker %d shuts down and no controller answers: others lead only when its session expires",
            self._node_id,
        )

    async def _register(self) -> None:
        deadline_ms = self._clock.monotonic_ms() + self._registration_timeout_ms
        pause_s = _FIRST_RETRY_S
        while True:
            response: BrokerRegistrationResponse = await self._channel.submit(
                self._identity.registration(), timeout_ms=self._session_timeout_ms
            )
            error = code_of(response.error_code)
            if error is ErrorCode.NONE:
                self.epoch = response.broker_epoch
                return
            if error is ErrorCode.KAFKA_STORAGE_ERROR:
                deadline_ms = self._clock.monotonic_ms() + self._registration_timeout_ms
                pause_s = _NO_ROOM_RETRY_S
            elif error not in _WAITING_MAY_HELP or self._clock.monotonic_ms() >= deadline_ms:
                reason = _REASONS.get(error, error.description)
                raise RegistrationError(f"broker {self._node_id} cannot register: {reason} ({error.name})")
            _log.info("broker %d is not registered yet, and tries again: %s", self._node_id, error.name)
            await trio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_RETRY_S)

    async def _heartbeat(self, timeout_ms: int | None = None) -> BrokerHeartbeatResponse:
        offline = self._offline_directories()
        response: BrokerHeartbeatResponse = await self._channel.submit(
            BrokerHeartbeatRequest(
                broker_id=self._node_id,
                broker_epoch=self.epoch,
                current_metadata_offset=self._image().offset,
                want_shut_down=self._leaving,
                offline_log_dirs=list(offline),
                cordoned_log_dirs=self._known_cordoned(),
            ),
            timeout_ms=self._session_timeout_ms if timeout_ms is None else timeout_ms,
        )
        if response.error_code:
            _log.warning(
                "the controller answers the heartbeat of broker %d with %s",
                self._node_id,
                code_of(response.error_code).name,
            )
        else:
            self._told_directories = frozenset(offline)
        return response

    def _known_cordoned(self) -> list[bytes] | None:
        """Return None before the metadata are as new as the registration: until then what was set at run time may be
        missing. The controller keeps the broker fenced for so long.
        """
        return list(self._cordoned_directories()) if self._image().offset >= self.epoch else None

    def _check_directories(self, failed_since_ms: int | None) -> int | None:
        """Check for how long no controller has heard of a failure. Raises UnreportedDirectoryFailure."""
        if self._told_directories.issuperset(self._offline_directories()):
            return None
        now_ms = self._clock.monotonic_ms()
        if failed_since_ms is not None and now_ms - failed_since_ms >= self._failure_timeout_ms:
            raise UnreportedDirectoryFailure(
                f"a log directory is offline, and no controller could be told within {self._failure_timeout_ms} ms "
                "(log.dir.failure.timeout.ms)"
            )
        return now_ms if failed_since_ms is None else failed_since_ms
