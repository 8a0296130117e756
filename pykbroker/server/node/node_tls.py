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
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pykbroker.config import BrokerConfig, ConfigurationError, InvalidValue, ListenerConfig
from pykbroker.config.listener_keys import listener_prefix
from pykbroker.config.listeners import uses_sasl
from pykbroker.metadata.configs import SSL_STORES
from pykbroker.metadata.image import BROKER_RESOURCE, ImageChanges, MetadataImage
from pykbroker.security.tls.contexts import ServerTls, client_context, server_context
from pykbroker.security.tls.principals import PrincipalMapper
from pykbroker.security.tls.refusals import RefusedReplacement
from pykbroker.security.tls.reload import BothEnds, check_trust_stores, server_in_place_of, verify
from pykbroker.security.tls.settings import TlsSettings

from ..network.listener_tls import ListenerTls
from ..network.tls_network import TlsNetwork
from ..network.tls_transport import Handshakes
from ..network.transport import Network
from ..runtime.metadata_errors import MetadataErrors
from ..runtime.signal import Signal
from ..runtime.threads import Threads

_log = logging.getLogger(__name__)


Stamp: TypeAlias = tuple[str, int, int]
"""The path of a file, when it was written, and its size."""
Stamps: TypeAlias = tuple[Stamp | None, ...]


@dataclass(frozen=True, slots=True)
class _Stores:
    """Stores as they were read: from which settings, when their files had been written, and what came of it."""

    settings: TlsSettings
    written: Stamps
    server: ServerTls
    ends: BothEnds | None
    """Of a listener by which nodes reach each other."""


class SecuredListener:
    """One listener's TLS, and that of the connections that this node makes to others' listener of the same name.

    static: all keys that the node was given. verifies_itself: nodes reach each other by it, so that its certificate
    must satisfy its own trust store.
    """

    def __init__(self, name: str, security_protocol: str, static: Mapping[str, str], *, verifies_itself: bool) -> None:
        """Read the stores. Raises ConfigurationError."""
        self.name = name
        self._prefix = listener_prefix(name)
        self._over_sasl = uses_sasl(security_protocol)
        self._static = static
        self._verifies_itself = verifies_itself
        self._stores = self._given()
        self._dynamic: dict[str, str] = {}
        self._comes_at_run_time = False
        self._listeners: list[ListenerTls] = []
        self._networks: list[TlsNetwork] = []

    @classmethod
    def added(
        cls, name: str, security_protocol: str, given: Mapping[str, str], dynamic: Mapping[str, str]
    ) -> SecuredListener:
        """Read the stores of a listener that comes while the node runs. Blocks. Raises ConfigurationError.

        given: all keys that the node was given. dynamic: what the cluster has set for it.
        """
        prefix = listener_prefix(name)
        own = {key: text for key, text in dynamic.items() if key.startswith(prefix)}
        listener = cls(name, security_protocol, {**given, **own}, verifies_itself=False)
        stores = listener._own(own, *SSL_STORES)
        listener._static = {**given, **{key: text for key, text in own.items() if key not in stores}}
        listener._dynamic = stores
        listener._comes_at_run_time = bool(stores)
        return listener

    def _given(self) -> _Stores:
        settings = self._settings(self._static)
        try:
            return self._read(settings)
        except RefusedReplacement as error:
            key, trust = settings.name_of("ssl.keystore.location"), settings.name_of("ssl.truststore.location")
            reason = f"nodes reach each other by this listener, and do not trust it ({trust}): {error}"
            raise InvalidValue(key, settings.keystore_location or "[hidden]", reason) from None

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

    def use(self, dynamic: Mapping[str, str]) -> None:
        """Take what the cluster has set before this node began to serve, whatever the stores were before.

        Raises ConfigurationError where it cannot be used; then what the node was given is.
        """
        own, stores = self._own(dynamic, "ssl."), self._own(dynamic, *SSL_STORES)
        if not own:
            return
        self._take(self._read(self._settings({**self._static, **own})))
        # What is no store does not change any more, and stays when a store is replaced.
        self._static = {**self._static, **{name: text for name, text in own.items() if name not in stores}}
        self._dynamic = stores

    def _own(self, dynamic: Mapping[str, str], *beginnings: str) -> dict[str, str]:
        """The settings of this listener among those that the cluster has for this broker."""
        prefixes = tuple(self._prefix + each for each in beginnings)
        return {name: text for name, text in dynamic.items() if name.startswith(prefixes)}

    def check(self, dynamic: Mapping[str, str]) -> None:
        """Check that this listener could go on with these settings of the cluster; those that it has are not read.

        Raises ConfigurationError.
        """
        own = self._own(dynamic, *SSL_STORES)
        if own != self._dynamic:
            self._replacement({**self._static, **own})

    def read_again(self, dynamic: Mapping[str, str]) -> None:
        """Use the stores that these settings name, if the settings or the files have changed.

        Raises ConfigurationError where they cannot be used; then the old ones are.
        """
        own = self._own(dynamic, *SSL_STORES)
        if self._comes_at_run_time and not own:
            return  # the listener is about to go with them
        if own == self._dynamic and self._stores.written == _written(self._stores.settings):
            return
        self._dynamic = own  # also where it fails: it is said once
        self._take(self._replacement({**self._static, **own}))
        _log.info("listener %s has read its stores again", self.name)

    def _take(self, stores: _Stores) -> None:
        contexts = [client_context(stores.settings) for _ in self._networks]
        self._stores = stores
        for listener in self._listeners:
            listener.server = stores.server
        for network, context in zip(self._networks, contexts, strict=True):
            network.context = context

    def _replacement(self, values: Mapping[str, str]) -> _Stores:
        """Read what the values name. Raises ConfigurationError where it cannot take the place of what there is."""
        old = self._stores
        settings = self._settings(values)
        check_trust_stores(old.settings, settings)
        stamps = _written(settings)
        server = server_in_place_of(
            old.server.identity,
            settings,
            allow_dn_changes=old.settings.allow_dn_changes,
            allow_san_changes=old.settings.allow_san_changes,
        )
        new = self._stores_of(settings, stamps, server)
        if new.ends is not None and old.ends is not None:
            verify(old.ends, new.ends)
        return new

    def _settings(self, values: Mapping[str, str]) -> TlsSettings:
        return TlsSettings.of(values, prefix=self._prefix, over_sasl=self._over_sasl)

    def _read(self, settings: TlsSettings) -> _Stores:
        stamps = _written(settings)  # before the files are read: what changes meanwhile is read again
        return self._stores_of(settings, stamps, server_context(settings))

    def _stores_of(self, settings: TlsSettings, written: Stamps, server: ServerTls) -> _Stores:
        ends = BothEnds.of(settings, server) if self._verifies_itself else None
        if ends is not None:
            verify(ends, ends)
        return _Stores(settings, written, server, ends)


class NodeTls:
    """The TLS of one node. `apply` is a listener of the image."""

    def __init__(self, config: BrokerConfig, threads: Threads) -> None:
        """Read the stores of all listeners. Blocks. Raises ConfigurationError."""
        self._threads = threads
        self._node_id = config.node_id
        self._handshakes = Handshakes(threads)
        self.errors = MetadataErrors()
        """Settings of the metadata that could not be used are counted here."""
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

    def check_listener(self, each: ListenerConfig, given: Mapping[str, str], dynamic: Mapping[str, str]) -> None:
        """Check that there could be such a listener. Blocks. Raises ConfigurationError."""
        SecuredListener.added(each.name, each.security_protocol, given, dynamic)

    def add_listener(self, each: ListenerConfig, given: Mapping[str, str], dynamic: Mapping[str, str]) -> None:
        """Read the stores of another listener. Blocks. Raises ConfigurationError."""
        self._secured[each.name] = SecuredListener.added(each.name, each.security_protocol, given, dynamic)

    def remove_listener(self, name: str) -> None:
        """Forget the stores of a listener that is gone, unless nodes reach each other by its name."""
        if name not in (self._inter_broker_name, self._controller_name):
            self._secured.pop(name, None)

    def to_brokers(self, network: Network) -> Network:
        """The network by which this node reaches others at `inter.broker.listener.name`."""
        return self._to(self._inter_broker_name, network)

    def to_controllers(self, network: Network) -> Network:
        """The network by which this node reaches the first of `controller.listener.names`."""
        return self._to(self._controller_name, network)

    def _to(self, name: str, network: Network) -> Network:
        secured = self._secured.get(name)
        return network if secured is None else secured.network(network, self._handshakes)

    def check_changes(
        self, image: MetadataImage, changes: Mapping[str, str | None], going: Collection[str] = ()
    ) -> None:
        """Check that the stores could be replaced as these changes of this broker's keys say; None deletes a key.

        going: the names of listeners that go with the same change, and need no stores any more. Files are read, which
        blocks: for a thread. Raises ConfigurationError.
        """
        dynamic = image.broker_config(self._node_id)
        for name, text in changes.items():
            if text is None:
                dynamic.pop(name, None)
            else:
                dynamic[name] = text
        for name, secured in list(self._secured.items()):
            if name not in going:
                secured.check(dynamic)

    async def use(self, image: MetadataImage) -> None:
        """Take what the cluster has set before this node began to serve."""
        self._dynamic = image.broker_config(self._node_id)
        await self._threads.run(self._each, SecuredListener.use)

    def apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        if (BROKER_RESOURCE, str(self._node_id)) in changes.configs:
            self._dynamic = image.broker_config(self._node_id)
            self._changed.set()

    async def run(self) -> None:
        """Read stores again when settings change, until cancelled."""
        while True:
            await self._changed.wait()
            await self._threads.run(self._each, SecuredListener.read_again)

    def _each(self, read: Callable[[SecuredListener, Mapping[str, str]], None]) -> None:
        for secured in list(self._secured.values()):
            try:
                read(secured, self._dynamic)
            except ConfigurationError as error:
                self.errors.apply += 1
                _log.error("listener %s keeps its old stores, the new ones cannot be used: %s", secured.name, error)


def _written(settings: TlsSettings) -> Stamps:
    return tuple(_stamp(path) for path in (settings.keystore_location, settings.truststore_location))


def _stamp(path: str | None) -> Stamp | None:
    if path is None:
        return None
    try:
        status = os.stat(path)
    except OSError:
        return path, -1, -1
    return path, status.st_mtime_ns, status.st_size
