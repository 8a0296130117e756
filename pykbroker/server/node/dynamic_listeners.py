"""Listeners of a broker that are added, moved and removed while it runs (Kafka's `DynamicListenerConfig`).

A broker that is asked for a change tries it first: the addresses are free, and there is what TLS and SASL need. When
the change is committed, `run` carries it out. A listener that goes accepts nobody any more, and closes its connections
when the requests at hand are answered. A listener that comes is advertised, unless `advertised.listeners` says what is;
the broker registers again with what it advertises. What cannot be carried out then is told in the log, and the broker
goes on with the listeners that it has. What was set at run time counts at the next start, too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

import trio

from pykbroker.config import BrokerConfig, ConfigurationError, InvalidValue, ListenerConfig, Listeners
from pykbroker.config.dynamic_listeners import KEYS, LISTENERS, check_protocols, served, wanted_listeners
from pykbroker.config.listeners import uses_sasl, uses_tls
from pykbroker.metadata.image import BROKER_RESOURCE, ImageChanges, MetadataImage

from ..network.connection_quotas import ConnectionQuotas
from ..network.listener import Listener
from ..network.transport import Acceptor, Network
from ..runtime.metadata_errors import MetadataErrors
from ..runtime.signal import Signal
from ..runtime.threads import Threads
from .bound_listeners import BoundListener, bound

if TYPE_CHECKING:
    from .node_sasl import NodeSasl
    from .node_tls import NodeTls

_log = logging.getLogger(__name__)

MakeListener: TypeAlias = Callable[[ListenerConfig, Acceptor, Listeners], Listener]
"""The last are all listeners that the node is to have."""
Dynamic: TypeAlias = Mapping[str, str]
"""What the cluster has set for this broker, by key."""


class OnAdvertised(Protocol):
    """The broker's membership in its cluster, which tells the controller what it advertises."""

    def advertise(self, listeners: tuple[BoundListener, ...]) -> None: ...


class DynamicListeners:
    """The listeners of one broker. `apply` is a listener of the image.

    listeners: those that are served now, which this changes. acceptors: of all listeners, by name, so that the node
    closes them. tls, sasl: None where the node has had none of that kind since its start, and can have none later.
    """

    def __init__(
        self,
        config: BrokerConfig,
        listeners: list[Listener],
        acceptors: dict[str, Acceptor],
        *,
        make: MakeListener,
        network: Network,
        threads: Threads,
        quotas: ConnectionQuotas,
        membership: OnAdvertised,
        tls: NodeTls | None,
        sasl: NodeSasl | None,
    ) -> None:
        self._config = config
        self._static = config.listeners
        self._listeners = listeners
        self._acceptors = acceptors
        self._make = make
        self._network = network
        self._threads = threads
        self._quotas = quotas
        self._membership = membership
        self._tls = tls
        self._sasl = sasl
        self._current = config.listeners
        self._served = {each.name: each for each in config.listeners.client}
        self._protocols = {each.name: each.security_protocol for each in config.listeners.client}
        self._dynamic: dict[str, str] = {}
        self._changed = Signal()
        self._is_stopping = False
        self._serving: trio.Nursery | None = None
        self.errors = MetadataErrors()
        """Settings of the metadata that could not be used are counted here."""

    def security_protocol(self, name: str) -> str:
        """Return the protocol of a listener that is served, or was: its last connections may still be there."""
        return self._protocols[name]

    # What is asked for

    async def check(self, before: Dynamic, after: Dynamic) -> None:
        """Check that the broker could go on with these settings. Raises ConfigurationError."""
        if all(before.get(key) == after.get(key) for key in KEYS):
            return
        wanted = wanted_listeners(self._config, self._static, after)
        check_protocols(self._current, wanted)
        for name, each in served(self._static, wanted).items():
            current = self._served.get(name)
            if current == each:
                continue
            if current is None:
                await self._threads.run(self._check_security, each, after)
            if each.port and (current is None or current.port != each.port):
                (await self._bind(each)).close()

    def names_after(self, dynamic: Dynamic) -> frozenset[str]:
        """Return the names of all listeners that these settings name, of other nodes included; none where they are
        no settings that could be used.
        """
        try:
            return wanted_listeners(self._config, self._static, dynamic).known_names
        except ConfigurationError:
            return frozenset()

    def going(self, dynamic: Dynamic) -> frozenset[str]:
        """Return the names of the listeners that would go with these settings."""
        try:
            wanted = wanted_listeners(self._config, self._static, dynamic)
        except ConfigurationError:
            return frozenset()
        return frozenset(self._served.keys() - served(self._static, wanted).keys())

    def _check_security(self, listener: ListenerConfig, dynamic: Dynamic) -> None:
        """Read what a new listener needs of keys and users, and keep nothing. Raises ConfigurationError."""
        if uses_tls(listener.security_protocol):
            self._tls_of(listener).check_listener(listener, self._config.given, dynamic)
        if uses_sasl(listener.security_protocol):
            self._sasl_of(listener).check_listener(listener.name, dynamic)

    async def _bind(self, listener: ListenerConfig) -> Acceptor:
        """Raises ConfigurationError where it cannot be listened on."""
        try:
            return await self._network.listen(listener.host, listener.port)
        except OSError as error:
            raise InvalidValue(LISTENERS, str(listener), f"cannot listen there: {error.strerror or error}") from None

    def _tls_of(self, listener: ListenerConfig) -> NodeTls:
        if self._tls is None:
            reason = "this broker has had no listener with TLS since its start, and can have none before the next"
            raise InvalidValue(LISTENERS, str(listener), reason)
        return self._tls

    def _sasl_of(self, listener: ListenerConfig) -> NodeSasl:
        if self._sasl is None:
            reason = "this broker has had no listener with SASL since its start, and can have none before the next"
            raise InvalidValue(LISTENERS, str(listener), reason)
        return self._sasl

    # What is done

    def apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        """Note what is set for this broker, for `run` to carry out."""
        if (BROKER_RESOURCE, str(self._config.node_id)) in changes.configs:
            self._dynamic = image.broker_config(self._config.node_id)
            self._changed.set()

    async def use(self, image: MetadataImage) -> None:
        """Take what the cluster has set before this node began to serve."""
        self._changed.clear()
        self._dynamic = image.broker_config(self._config.node_id)
        await self._take_wanted()

    async def run(self, serving: trio.Nursery) -> None:
        """Carry out changes until cancelled. serving: the nursery in which listeners are served."""
        self._serving = serving
        while True:
            await self._changed.wait()
            await self._take_wanted()

    def stop(self) -> None:
        """Begin with no other listener: the node stops."""
        self._is_stopping = True

    async def _take_wanted(self) -> None:
        dynamic = self._dynamic
        try:
            wanted = wanted_listeners(self._config, self._static, dynamic)
            check_protocols(self._current, wanted)
        except ConfigurationError as error:
            self._tell(error)
            return
        self._current = wanted
        listeners = served(self._static, wanted)
        for name, current in list(self._served.items()):
            if listeners.get(name) != current:
                self._remove(name)
        for name, each in listeners.items():
            if name not in self._served and not self._is_stopping:
                try:
                    await self._add(each, dynamic)
                except ConfigurationError as error:
                    self._tell(error)
        await self._advertise(wanted)

    async def _add(self, each: ListenerConfig, dynamic: Dynamic) -> None:
        """Raises ConfigurationError, and nothing has changed."""
        acceptor = await self._bind(each)
        try:
            await self._threads.run(self._secure, each, dynamic)
        except BaseException:
            acceptor.close()
            raise
        if self._is_stopping:
            acceptor.close()
            return
        self._quotas.add_listener(each.name, dynamic)
        self._served[each.name] = each
        self._protocols[each.name] = each.security_protocol
        self._acceptors[each.name] = acceptor
        listener = self._make(each, acceptor, self._current)
        self._listeners.append(listener)
        if self._serving is not None:
            self._serving.start_soon(listener.serve)
        port = acceptor.address.port
        _log.info("the listener %s is there, on port %d, since the settings of the cluster want it", each, port)

    def _secure(self, each: ListenerConfig, dynamic: Dynamic) -> None:
        if uses_tls(each.security_protocol):
            self._tls_of(each).add_listener(each, self._config.given, dynamic)
        if uses_sasl(each.security_protocol):
            self._sasl_of(each).add_listener(each.name, dynamic)

    def _remove(self, name: str) -> None:
        """Accept nobody there any more; its connections close when their requests are answered."""
        each = self._served.pop(name)
        listener = next(listener for listener in self._listeners if listener.name == name)
        self._listeners.remove(listener)
        self._acceptors.pop(name)
        listener.stop()
        self._quotas.remove_listener(name)
        if self._tls is not None:
            self._tls.remove_listener(name)
        if self._sasl is not None:
            self._sasl.remove_listener(name)
        _log.info("the listener %s is gone, since the settings of the cluster want it", each)

    async def _advertise(self, wanted: Listeners) -> None:
        """Tell the cluster of the listeners that are there, and may be told of. A server of names is perhaps asked for
        this machine's, and takes its time.
        """
        of_file = {each.name: each for each in self._static.advertised}
        shown = [of_file.get(each.name, each) for each in wanted.advertised if each.name in self._served]
        self._membership.advertise(await self._threads.run(bound, shown, dict(self._acceptors)))

    def _tell(self, error: ConfigurationError) -> None:
        self.errors.apply += 1
        _log.error("the listeners stay as they are, those of the cluster's settings cannot be used: %s", error)
