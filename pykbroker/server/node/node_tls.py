"""TLS of a node: of each listener that has it, and of the connections to other nodes; stores are read anew at run time.

As in Kafka (`DynamicBrokerConfig`, `SslFactory`): the key and trust store of a listener may be replaced by
`listener.name.<name>.ssl.…` of one broker while it runs. A broker that is asked checks the new stores first
(`check_changes`). When the change is committed, each listener whose values changed, or whose files did, reads its
stores again (`apply`, `run`); where that fails, it keeps what it has, and one line says why. Other `ssl.*` keys count
when the node starts.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.config.listener_keys import listener_prefix
from pykbroker.config.listeners import uses_sasl
from pykbroker.metadata.configs import SSL_STORES
from pykbroker.metadata.image import BROKER_RESOURCE, ImageChanges, MetadataImage
from pykbroker.security.tls.contexts import ServerTls, client_context, server_context
from pykbroker.security.tls.principals import PrincipalMapper
from pykbroker.security.tls.reload import check_replacement, verify_against_each_other, verify_against_itself
from pykbroker.security.tls.settings import TlsSettings

from ..network.listener_tls import ListenerTls
from ..network.tls_network import TlsNetwork
from ..network.tls_transport import Handshakes
from ..network.transport import Network
from ..runtime.signal import Signal
from ..runtime.threads import Threads

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Stores:
    """What has been read: from which settings, when its files had been written, and what came of it."""

    settings: TlsSettings
    written: tuple[tuple[str, int, int] | None, ...]
    server: ServerTls


class SecuredListener:
    """One listener's TLS, and that of the connections that this node makes to others' listener of the same name.

    static: all keys that the node was given. verifies_itself: nodes reach each other by it, so that its certificate
    must satisfy its own trust store.
    """

    def __init__(self, name: str, security_protocol: str, static: Mapping[str, str], *, verifies_itself: bool) -> None:
        """Read the stores. Raises ConfigurationError."""
        self.name = name
        self._prefix = listener_prefix(name)
        # Clients of SASL need no certificate, unless the listener's own key says so (`SslChannelBuilder`).
        self._static = {
            key: text for key, text in static.items() if not (uses_sasl(security_protocol) and key == "ssl.client.auth")
        }
        self._verifies_itself = verifies_itself
        self._stores = _read(TlsSettings.of(self._static, prefix=self._prefix))
        self._dynamic: dict[str, str] = {}
        self._listeners: list[ListenerTls] = []
        self._networks: list[TlsNetwork] = []

    def listener(self, handshakes: Handshakes) -> ListenerTls:
        settings = self._stores.settings
        key = settings.name_of("ssl.principal.mapping.rules")
        listener = ListenerTls(self._stores.server, PrincipalMapper(settings.principal_mapping_rules, key), handshakes)
        self._listeners.append(listener)
        return listener

    def network(self, inner: Network, handshakes: Handshakes) -> TlsNetwork:
        network = TlsNetwork(inner, client_context(self._stores.settings), handshakes)
        self._networks.append(network)
        return network

    def own_settings(self, dynamic: Mapping[str, str], *, at_start: bool = False) -> dict[str, str]:
        """The settings of this listener among those that the cluster has for this broker."""
        return {
            name: text
            for name, text in dynamic.items()
            if name.startswith(self._prefix)
            and name.removeprefix(self._prefix).startswith("ssl." if at_start else SSL_STORES)
        }

    def check(self, dynamic: Mapping[str, str]) -> None:
        """Check that this listener could go on with these settings of the cluster; those that it has are not read.

        Raises ConfigurationError.
        """
        own = self.own_settings(dynamic)
        if own != self._dynamic:
            self._replacement({**self._static, **own})

    def read_again(self, dynamic: Mapping[str, str], *, at_start: bool = False) -> None:
        """Use the stores that these settings name, if the settings or the files have changed.

        Raises ConfigurationError where they cannot be used; then the old ones are.
        """
        own = self.own_settings(dynamic, at_start=at_start)
        values = {**self._static, **own}
        if own == self._dynamic and self._stores.written == _written(self._stores.settings):
            return
        self._dynamic = own  # also where it fails: it is said once
        self._stores = _read(TlsSettings.of(values, prefix=self._prefix)) if at_start else self._replacement(values)
        for listener in self._listeners:
            listener.server = self._stores.server
        for network in self._networks:
            network.context = client_context(self._stores.settings)
        if not at_start:
            _log.info("listener %s has read its stores again", self.name)

    def _replacement(self, values: Mapping[str, str]) -> _Stores:
        """What the values give. Raises ConfigurationError where it cannot take the place of what this listener has."""
        old = self._stores
        new = _read(TlsSettings.of(values, prefix=self._prefix))
        if _has_trust_store(old.settings) != _has_trust_store(new.settings):
            change = "remove the SSL truststore from" if _has_trust_store(old.settings) else "add an SSL truststore to"
            raise ConfigurationError(f"Cannot {change} a listener that runs: {self._prefix}ssl.truststore.location")
        check_replacement(
            old.server.identity,
            new.server.identity,
            allow_dn_changes=old.settings.allow_dn_changes,
            allow_san_changes=old.settings.allow_san_changes,
        )
        if self._verifies_itself:
            verify_against_itself(new.settings)
            verify_against_each_other(old.settings, new.settings)
        return new


class NodeTls:
    """The TLS of one node. `apply` is a listener of the image."""

    def __init__(self, config: BrokerConfig, threads: Threads) -> None:
        """Read the stores of all listeners. Blocks. Raises ConfigurationError."""
        self._threads = threads
        self._node_id = config.node_id
        self._handshakes = Handshakes(threads)
        self._changed = Signal()
        self._dynamic: dict[str, str] = {}
        listeners = config.listeners
        others = {listeners.inter_broker_name, *listeners.controller_names}
        self._secured: dict[str, SecuredListener] = {
            name: SecuredListener(name, protocol, config.given, verifies_itself=name in others)
            for name, protocol in listeners.with_tls.items()
        }
        self._inter_broker_name = listeners.inter_broker_name
        self._controller_name = listeners.controller_names[0]

    def of_listener(self, name: str) -> ListenerTls | None:
        secured = self._secured.get(name)
        return None if secured is None else secured.listener(self._handshakes)

    def to_brokers(self, network: Network) -> Network:
        """The network by which this node reaches others at `inter.broker.listener.name`."""
        return self._to(self._inter_broker_name, network)

    def to_controllers(self, network: Network) -> Network:
        """The network by which this node reaches the first of `controller.listener.names`."""
        return self._to(self._controller_name, network)

    def _to(self, name: str, network: Network) -> Network:
        secured = self._secured.get(name)
        return network if secured is None else secured.network(network, self._handshakes)

    def check_changes(self, image: MetadataImage, changes: Mapping[str, str | None]) -> None:
        """Check that the stores could be replaced as these changes of this broker's keys say; None deletes a key.

        Reads files, and blocks: for a thread. Raises ConfigurationError.
        """
        dynamic = image.broker_config(self._node_id)
        for name, text in changes.items():
            if text is None:
                dynamic.pop(name, None)
            else:
                dynamic[name] = text
        for secured in self._secured.values():
            secured.check(dynamic)

    async def use(self, image: MetadataImage) -> None:
        """Take what the cluster has set before this node began to serve."""
        self._dynamic = image.broker_config(self._node_id)
        await self._threads.run(self._read_again, True)

    def apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        if (BROKER_RESOURCE, str(self._node_id)) in changes.configs:
            self._dynamic = image.broker_config(self._node_id)
            self._changed.set()

    async def run(self) -> None:
        """Read stores again when settings change, until cancelled."""
        while True:
            await self._changed.wait()
            await self._threads.run(self._read_again, False)

    def _read_again(self, at_start: bool) -> None:
        for secured in self._secured.values():
            try:
                secured.read_again(self._dynamic, at_start=at_start)
            except ConfigurationError as error:
                _log.error("listener %s keeps its old stores, the new ones cannot be used: %s", secured.name, error)


def _read(settings: TlsSettings) -> _Stores:
    written = _written(settings)  # before they are read: what changes meanwhile is read again
    return _Stores(settings, written, server_context(settings))


def _has_trust_store(settings: TlsSettings) -> bool:
    return settings.truststore_location is not None or settings.truststore_certificates is not None


def _written(settings: TlsSettings) -> tuple[tuple[str, int, int] | None, ...]:
    return tuple(_stamp(path) for path in (settings.keystore_location, settings.truststore_location))


def _stamp(path: str | None) -> tuple[str, int, int] | None:
    if path is None:
        return None
    try:
        status = os.stat(path)
    except OSError:
        return path, -1, -1
    return path, status.st_mtime_ns, status.st_size
