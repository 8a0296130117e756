"""SASL of a node: what its listeners offer, and how it authenticates with other nodes; both may change at run time.

Of one broker the cluster may set JAAS lines (`listener.name.<name>.<mechanism>.sasl.jaas.config`), the mechanisms that
are offered and the lifetime of sessions (`is_sasl_at_run_time`). A broker that is asked checks a change first
(`check_changes`). When it is committed, the listeners that it concerns take it for log-ins to come, re-authentications
among them; connections that are there live on (`apply`, `run`). Where new settings cannot be used a listener keeps what
it has as a whole, and one line says why. Kafka stores whatever it is told of these keys, and its listeners never look
at it.

Addresses of keys for tokens come from the properties alone: no listener takes tokens before their keys are there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from pykbroker.config import BrokerConfig, ConfigurationError, InvalidValue
from pykbroker.config.listener_keys import check_listeners_exist, is_of_a_listener, is_sasl_at_run_time, listener_prefix
from pykbroker.config.listeners import uses_sasl
from pykbroker.metadata.image import BROKER_RESOURCE, ImageChanges, MetadataImage
from pykbroker.security.sasl.credentials import Credentials
from pykbroker.security.sasl.mechanism import OAUTHBEARER
from pykbroker.security.sasl.node_settings import (
    JAAS,
    NodeCredentials,
    SaslSettings,
    between_brokers,
    sasl_settings,
    to_controllers,
)
from pykbroker.security.sasl.process_options import NO_OPTIONS, ProcessOptions

from ..network.sasl_gate import ListenerSasl
from ..runtime.clock import Clock
from ..runtime.metadata_errors import MetadataErrors
from ..runtime.signal import Signal
from ..runtime.threads import Threads
from .offered_mechanisms import SaslParts, offered_mechanisms

_log = logging.getLogger(__name__)


class OwnCredentials:
    """The credentials of this node for others, made at first need."""

    def __init__(self, settings: NodeCredentials) -> None:
        self._settings = settings
        self._made: Credentials | None = None

    def take(self, settings: NodeCredentials) -> None:
        """Use other settings for connections to come."""
        if settings != self._settings:
            self._settings, self._made = settings, None

    def credentials(self) -> Credentials:
        """Raises ConfigurationError where the node has none."""
        if self._made is None:
            self._made = _made(self._settings)
        return self._made


@dataclass(frozen=True, slots=True)
class _Read:
    """The settings of one listener: what it offers, None where it is another node's, and how this node uses it."""

    offered: SaslSettings | None
    brokers: NodeCredentials | None
    controllers: NodeCredentials | None


class NodeSasl:
    """The SASL of one node. `apply` is a listener of the image."""

    def __init__(
        self,
        config: BrokerConfig,
        parts: SaslParts,
        clock: Clock,
        threads: Threads,
        options: ProcessOptions = NO_OPTIONS,
    ) -> None:
        """Raises ConfigurationError. options: what those say who have started the process."""
        self._config = config
        self._options = options
        self._parts = parts
        self._threads = threads
        self._clock = clock
        self.errors = MetadataErrors()
        """Settings of the metadata that could not be used are counted here."""
        self._changed = Signal()
        self._wanted: dict[str, str] = {}
        self._taken: dict[str, str] = {}
        own = [each.name for each in config.listeners.all if uses_sasl(each.security_protocol)]
        self._listeners = {name: self._listener(name, clock, config) for name in own}
        self._between_brokers = _own_credentials(between_brokers(config, options))
        self._to_controllers = _own_credentials(to_controllers(config, options))

    def _listener(self, name: str, clock: Clock, config: BrokerConfig) -> ListenerSasl:
        settings = sasl_settings(config, name, self._options)
        offered = offered_mechanisms(settings, name, self._parts)
        return ListenerSasl(offered, clock, settings.max_receive_bytes, settings.failure_delay_ms / 1000)

    def of_listener(self, name: str) -> ListenerSasl | None:
        return self._listeners.get(name)

    def check_listener(self, name: str, dynamic: Mapping[str, str]) -> None:
        """Check that there could be such a listener; JAAS lines are read. Blocks. Raises ConfigurationError."""
        self._new_listener(name, dynamic)

    def add_listener(self, name: str, dynamic: Mapping[str, str]) -> None:
        """Read the settings of another listener. Blocks. Raises ConfigurationError."""
        self._listeners[name] = self._new_listener(name, dynamic)

    def remove_listener(self, name: str) -> None:
        """Forget the settings of a listener that is gone."""
        self._listeners.pop(name, None)

    def _new_listener(self, name: str, dynamic: Mapping[str, str]) -> ListenerSasl:
        prefix = listener_prefix(name)
        own = {
            key: text for key, text in _of_sasl(dynamic).items() if key.startswith(prefix) or not is_of_a_listener(key)
        }
        config = self._config.overlaid(own)
        settings = sasl_settings(config, name, self._options)
        self._check_token_keys(config, name, settings)
        return self._listener(name, self._clock, config)

    @property
    def to_brokers(self) -> Callable[[], Credentials] | None:
        """The credentials for other brokers; None where they ask for none."""
        return None if self._between_brokers is None else self._between_brokers.credentials

    @property
    def to_controllers(self) -> Callable[[], Credentials] | None:
        """The credentials for controllers; None where they ask for none."""
        return None if self._to_controllers is None else self._to_controllers.credentials

    def check_changes(
        self,
        image: MetadataImage,
        changes: Mapping[str, str | None],
        known_names: Collection[str] | None = None,
        going: Collection[str] = (),
    ) -> None:
        """Check that the listeners could go on with these changes of this broker's keys; None deletes a key.

        known_names: of the listeners that there are to be; None where they stay the same. going: of those that go.

        Long JAAS lines take their time: for a thread. Raises ConfigurationError.
        """
        before = _of_sasl(image.broker_config(self._config.node_id))
        after = _of_sasl({**before, **{name: text for name, text in changes.items() if text is not None}})
        for name in changes:
            if changes[name] is None:
                after.pop(name, None)
        check_listeners_exist(after.keys() - before.keys(), known_names or self._config.listeners.known_names)
        for listener in self._concerned(before, after):
            if listener not in going:
                self._read(listener, after)

    async def use(self, image: MetadataImage) -> None:
        """Take what the cluster has set before this node began to serve."""
        self._wanted = _of_sasl(image.broker_config(self._config.node_id))
        await self._take_wanted()

    def apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        if (BROKER_RESOURCE, str(self._config.node_id)) in changes.configs:
            self._wanted = _of_sasl(image.broker_config(self._config.node_id))
            self._changed.set()

    async def run(self) -> None:
        """Take settings when they change, until cancelled."""
        while True:
            await self._changed.wait()
            await self._take_wanted()

    async def _take_wanted(self) -> None:
        wanted = self._wanted
        concerned = list(self._concerned(self._taken, wanted))
        self._taken = wanted  # also where it fails: it is said once
        for listener in concerned:
            try:
                read = await self._threads.run(self._read, listener, wanted)
            except ConfigurationError as error:
                if self._is_gone(listener):
                    continue
                self.errors.apply += 1
                _log.error("listener %s keeps its SASL settings, the new ones cannot be used: %s", listener, error)
            else:
                self._take(listener, read)
                _log.info("listener %s has other SASL settings", listener)

    def _is_gone(self, listener: str) -> bool:
        """Tell whether nobody needs the settings of a listener any more: it went together with them."""
        listeners = self._config.listeners
        others = (listeners.inter_broker_name, listeners.controller_names[0])
        return listener not in self._listeners and listener not in others

    def _concerned(self, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
        """The listeners whose settings differ, this node's and those of other nodes that it connects to."""
        changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        is_of_all = not all(map(is_of_a_listener, changed))
        listeners = self._config.listeners
        for listener in dict.fromkeys((*self._listeners, listeners.inter_broker_name, listeners.controller_names[0])):
            prefix = listener_prefix(listener)
            if is_of_all or any(name.startswith(prefix) for name in changed):
                yield listener

    def _read(self, listener: str, dynamic: Mapping[str, str]) -> _Read:
        """Read the settings of one listener. Raises ConfigurationError."""
        prefix = listener_prefix(listener)
        own = {name: text for name, text in dynamic.items() if name.startswith(prefix) or not is_of_a_listener(name)}
        config, listeners = self._config.overlaid(own), self._config.listeners
        offered = sasl_settings(config, listener, self._options) if listener in self._listeners else None
        if offered is not None:
            self._check_token_keys(config, listener, offered)
        return _Read(
            offered,
            between_brokers(config, self._options) if listener == listeners.inter_broker_name else None,
            to_controllers(config, self._options) if listener == listeners.controller_names[0] else None,
        )

    def _check_token_keys(self, config: BrokerConfig, listener: str, settings: SaslSettings) -> None:
        """Raises ConfigurationError where the listener would need keys that this node has not fetched."""
        for each in settings.mechanisms:
            if each.name == OAUTHBEARER and not self._parts.token_keys.has_keys_of(each.tokens):
                key = config.mechanism_key(listener, OAUTHBEARER, JAAS)
                raise InvalidValue(
                    key, "[hidden]", "keys for its tokens are fetched when the node starts, and not later"
                )

    def _take(self, listener: str, read: _Read) -> None:
        if read.offered is not None and listener in self._listeners:
            self._listeners[listener].offered = offered_mechanisms(read.offered, listener, self._parts)
        if self._between_brokers is not None and read.brokers is not None:
            self._between_brokers.take(read.brokers)
        if self._to_controllers is not None and read.controllers is not None:
            self._to_controllers.take(read.controllers)


def changes_sasl(names: Iterable[str]) -> bool:
    """Tell whether one of the keys is of what changes here."""
    return any(map(is_sasl_at_run_time, names))


def _of_sasl(dynamic: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in dynamic.items() if is_sasl_at_run_time(name)}


def _own_credentials(settings: NodeCredentials | None) -> OwnCredentials | None:
    return None if settings is None else OwnCredentials(settings)


def _made(own: NodeCredentials) -> Credentials:
    """Raises ConfigurationError where the node has none."""
    if own.mechanism != OAUTHBEARER:
        return own.credentials()
    from pykbroker.client.oauth_tokens import BearerCredentials

    return BearerCredentials(own.token_login())
