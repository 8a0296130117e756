"""A node, broker or controller or both, runs on its log directories and listeners from its start to its shutdown.

The order of a start: certificates and keys are read, the listeners are bound, the storage is opened, the parts are
composed, controllers' listeners serve, raft and the image catch up, a controller and a broker register, and then
clients' listeners serve.

`run` ends in two ways. After `stop` everything is drained, closed and marked as cleanly shut down. When `run` is
cancelled, it ends as after a crash, and the next start recovers. The roles of a node, and what they ask of other keys,
are the business of `config.roles`.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import trio

from pykbroker.config import BrokerConfig, ConfigurationError

from ..network.listener import Listener
from ..network.socket_transport import LISTEN_BACKLOG, SEND_BUFFER_BYTES, SocketOptions
from ..network.transport import Acceptor
from ..runtime.startup_error import PortInUse, StartupError
from .bound_listeners import Acceptors, BoundListener, bound
from .broker import ClusterNode
from .composition.parts import NodeParts, compose
from .environment import Environment
from .handlers import Handlers
from .node_storage import NodeStorage, refusing_start

if TYPE_CHECKING:
    from .node_tls import NodeTls

_FIRST_PORT_OF_USERS: Final = 1024
_log = logging.getLogger(__name__)


class NeverServed(Exception):
    """The node was asked to stop before it served, and has stopped cleanly."""


@dataclass(frozen=True, slots=True)
class NodeReady:
    """A node serves, and tells its process where."""

    node_id: int
    cluster_id: str
    listeners: tuple[BoundListener, ...]
    log_directories: tuple[str, ...]

    @property
    def where(self) -> str:
        return " ".join(map(str, self.listeners))

    def __str__(self) -> str:
        return self.told()

    def told(self, *more: str) -> str:
        """Return the ready line's text, with more words, `key=value`, before the directories, which may have spaces."""
        names = [f"node.id={self.node_id}", f"cluster.id={self.cluster_id}", *more]
        return " ".join([self.where, *names, f"log.dirs={','.join(self.log_directories)}"])


def socket_options(config: BrokerConfig) -> SocketOptions:
    """Sockets get sizes where the file gives them: Kafka's defaults are too small for today's networks."""
    given = config.originals
    return SocketOptions(
        send_buffer_bytes=config.int("socket.send.buffer.bytes")
        if "socket.send.buffer.bytes" in given
        else SEND_BUFFER_BYTES,
        receive_buffer_bytes=config.int("socket.receive.buffer.bytes")
        if "socket.receive.buffer.bytes" in given
        else -1,
        listen_backlog=config.int("socket.listen.backlog.size")
        if "socket.listen.backlog.size" in given
        else LISTEN_BACKLOG,
    )


class Node:
    """One node of a cluster. `composition` tells of what it consists."""

    def __init__(self, config: BrokerConfig, handlers: Handlers, environment: Environment) -> None:
        self._config = config
        self._handlers = handlers
        self._environment = environment
        self._stopping = trio.Event()
        self.serves = False
        self.parts: NodeParts | None = None
        """What it consists of while it runs: for who controls it (`pykbroker.control`)."""
        self.stopped = trio.Event()
        """Set when a clean shutdown is done, whether or not the node has served."""

    def stop(self) -> None:
        """Ask for a clean shutdown, also while it waits for its quorum; `run` returns when it is done."""
        self._stopping.set()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    async def run(self, *, task_status: trio.TaskStatus[NodeReady] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until `stop`. Raises NeverServed, StartupError or StorageError, possibly in a group."""
        threads = self._environment.threads
        tls = await threads.run(self._read_tls) if self._config.listeners.with_tls else None
        with _closing(await self._listen()) as acceptors:
            storage = await threads.run(self._open_storage)
            try:
                await self._run_on(storage, acceptors, tls, task_status)
                await threads.run(storage.close)
            finally:
                self.parts = None
                storage.release()
        self.stopped.set()
        if not self.serves:
            raise NeverServed

    def _read_tls(self) -> NodeTls:
        from .node_tls import NodeTls

        try:
            return NodeTls(self._config, self._environment.threads)
        except ConfigurationError as error:
            raise StartupError(str(error)) from None

    async def _listen(self) -> dict[str, Acceptor]:
        """Bind all listeners first: a port in use is found before anything is written."""
        acceptors: dict[str, Acceptor] = {}
        for listener in self._config.listeners.all:
            try:
                acceptors[listener.name] = await self._environment.network.listen(listener.host, listener.port)
            except BaseException as error:
                with _closing(acceptors):
                    if isinstance(error, OSError):
                        if error.errno == errno.EADDRINUSE:
                            raise PortInUse(listener.name, str(listener), listener.port) from None
                        raise StartupError(f"cannot listen on {listener}: {_why(error, listener.port)}") from None
                    raise
        return acceptors

    def _open_storage(self) -> NodeStorage:
        environment = self._environment
        levels = None if environment.offer is None else environment.offer.initial_levels
        return NodeStorage.open(
            environment.disk, self._config, clock=environment.clock, rng=environment.rng, feature_levels=levels
        )

    async def _run_on(
        self,
        storage: NodeStorage,
        acceptors: dict[str, Acceptor],
        tls: NodeTls | None,
        task_status: trio.TaskStatus[NodeReady],
    ) -> None:
        self.parts = parts = compose(self._config, self._handlers, storage, acceptors, self._environment, tls)
        node, role = parts.node, parts.broker_role
        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as serving:
                if node.broker_watch is not None:
                    await nursery.start(node.broker_watch.run)
                for quotas in parts.connection_quotas:
                    nursery.start_soon(quotas.run)
                if parts.key_refreshes:  # no listener serves without keys for its tokens
                    async with _until(self._stopping.wait):
                        for refresh in parts.key_refreshes:
                            await nursery.start(refresh.run)
                early, late = self._by_start(parts.controller_listeners)
                for listener in early:  # without them a quorum of several finds no leader
                    serving.start_soon(listener.serve)
                async with _until(self._stopping.wait):
                    with refusing_start():
                        await nursery.start(node.raft.run)
                        await nursery.start(node.metadata.run, None if role is None else role.broker.partitions.prepare)
                        for listener in late:
                            serving.start_soon(listener.serve)
                        if node.controller is not None:
                            await nursery.start(node.controller.run)
                    nursery.start_soon(parts.snapshots.run)
                    if tls is not None:
                        await tls.use(node.image)
                        nursery.start_soon(tls.run)
                    if node.sasl is not None:
                        await node.sasl.use(node.image)
                        nursery.start_soon(node.sasl.run)
                    async with trio.open_nursery() as joining:
                        if parts.registrar is not None:
                            joining.start_soon(nursery.start, parts.registrar.run)
                        if role is not None:
                            await nursery.start(role.run)
                    self.serves = True
                if self.serves:
                    if parts.dynamic_listeners is not None:
                        await parts.dynamic_listeners.use(node.image)
                        nursery.start_soon(parts.dynamic_listeners.run, serving)
                    for listener in parts.client_listeners:
                        serving.start_soon(listener.serve)
                    task_status.started(self._ready(node, acceptors))
                    await self._stopping.wait()
                _log.info("node %d shuts down", node.node_id)
                if parts.dynamic_listeners is not None:
                    parts.dynamic_listeners.stop()
                if self._environment.when_stopping is not None:
                    self._environment.when_stopping()
                if role is not None and self.serves:
                    async with _until(node.raft.wait_until_alone):
                        await role.lifecycle.leave()
                for listener in parts.client_listeners + parts.controller_listeners:
                    listener.stop()
            if role is not None:
                storage.broker_epoch = storage.previous_broker_epoch
                if self.serves:
                    await role.broker.partitions.checkpoint()
                    storage.broker_epoch = role.lifecycle.epoch
            await node.raft.leave()
            if node.controller is not None:
                await node.controller.close_policies()
            await node.controller_channel.aclose()
            nursery.cancel_scope.cancel()

    def _by_start(self, listeners: Sequence[Listener]) -> tuple[list[Listener], list[Listener]]:
        """Return the listeners that serve at once, and those that wait until the ACLs are loaded."""
        authorizer = self._config.authorizer
        if authorizer is None:
            return list(listeners), []
        early = [each for each in listeners if each.name in authorizer.early_start_listeners]
        return early, [each for each in listeners if each not in early]

    def _ready(self, node: ClusterNode, acceptors: Acceptors) -> NodeReady:
        listeners = self._config.listeners
        shown = bound(listeners.advertised or listeners.advertised_controller, acceptors)
        return NodeReady(node.node_id, node.cluster_id, shown, tuple(self._config.log_dirs))


@contextmanager
def _closing(acceptors: dict[str, Acceptor]) -> Iterator[dict[str, Acceptor]]:
    """Close all acceptors at the end of the body."""
    try:
        yield acceptors
    finally:
        for acceptor in acceptors.values():
            acceptor.close()


@asynccontextmanager
async def _until(wait: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Cancel the body when `wait` returns before the body has ended."""

    async def give_up(scope: trio.CancelScope) -> None:
        await wait()
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(give_up, nursery.cancel_scope)
        yield
        nursery.cancel_scope.cancel()


def _why(error: OSError, port: int) -> str:
    why = error.strerror or str(error)
    if error.errno == errno.EACCES and 0 < port < _FIRST_PORT_OF_USERS:
        return f"{why}; ports below {_FIRST_PORT_OF_USERS} need root, or CAP_NET_BIND_SERVICE"
    return why
