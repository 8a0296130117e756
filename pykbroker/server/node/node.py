"""One node, broker or controller or both, on its log directories and listeners, from the start to a clean shutdown.

It owns everything it starts. `run` ends in two ways: after `stop` everything is drained, closed and marked as cleanly
shut down; when it is cancelled it just ends, as after a crash, and the next start recovers.
"""

from __future__ import annotations

import logging
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TypeAlias

import trio

from pykbroker.config import BrokerConfig
from pykbroker.config import Listener as ListenerConfig
from pykbroker.protocol.uuids import random_uuid
from pykbroker.raft.voters import Endpoint
from pykbroker.storage.files.disk import Disk
from pykbroker.storage.files.errors import FileError

from ..logs.cleaning_process import ThisThread
from ..logs.log_cleaner import NewWorkplace
from ..logs.log_loading import OnLoading
from ..network.client_memory import REQUEST_BYTES, ClientMemory
from ..network.dispatch import Dispatcher
from ..network.handlers import HandlerTable, NodeT
from ..network.listener import ConnectionLimits, Listener
from ..network.node_connections import NodeAddress, NodeConnections
from ..network.receive_buffer import BufferPool
from ..network.socket_transport import LISTEN_BACKLOG, SEND_BUFFER_BYTES, SocketOptions
from ..network.transport import Acceptor, Network
from ..quorum.broker_watch import BrokerWatch
from ..quorum.controller_channel import ControllerChannel
from ..quorum.image_conditions import ImageConditions
from ..quorum.raft_driver import RaftDriver
from ..runtime.clock import Clock
from ..runtime.log_lines import RateLimitedLog
from ..runtime.startup_error import StartupError
from ..runtime.threads import Threads
from .broker import BoundListener, ClusterNode
from .broker_role import BrokerRole
from .controller_registration import ControllerRegistrar
from .handlers import Handlers
from .node_storage import NodeStorage, refusing_start

_log = logging.getLogger(__name__)

Acceptors: TypeAlias = Mapping[str, Acceptor]
"""By the names of their listeners."""


class NeverServed(Exception):
    """The node was asked to stop before it served, and has stopped cleanly."""


@dataclass(frozen=True, slots=True)
class Ready:
    """What a node says when it serves."""

    node_id: int
    cluster_id: str
    listeners: tuple[BoundListener, ...]
    log_directories: tuple[str, ...]

    def __str__(self) -> str:
        where = " ".join(map(str, self.listeners))
        directories = ",".join(self.log_directories)
        return f"{where} node.id={self.node_id} cluster.id={self.cluster_id} log.dirs={directories}"


def socket_options(config: BrokerConfig) -> SocketOptions:
    """Sizes where they were given: Kafka's defaults are those of slower days."""
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


def client_memory(config: BrokerConfig) -> ClientMemory:
    limit_bytes = config.int("queued.max.request.bytes")
    return ClientMemory(limit_bytes if limit_bytes > 0 else REQUEST_BYTES)


class Node:
    def __init__(
        self,
        config: BrokerConfig,
        *,
        handlers: Handlers,
        disk: Disk,
        network: Network,
        clock: Clock,
        threads: Threads,
        rng: random.Random,
        new_workplace: NewWorkplace = ThisThread,
        on_loading: OnLoading | None = None,
    ) -> None:
        """new_workplace: where a log is cleaned; another process has to see the same disk.

        on_loading: is told how far the logs are opened, where that takes a while.
        """
        self._config = config
        self._handlers = handlers
        self._disk = disk
        self._network = network
        self._clock = clock
        self._threads = threads
        self._rng = rng
        self._new_workplace = new_workplace
        self._on_loading = on_loading
        self._pool = BufferPool(client_memory(config))
        self._controller_pool = BufferPool(client_memory(config))
        """Of its own: clients must not take a controller's memory."""
        self._request_numbers = count(1)
        self._stopping = trio.Event()
        self.serves = False
        self.stopped = trio.Event()
        """Set when a clean shutdown is done."""

    def stop(self) -> None:
        """Ask for a clean shutdown, also while it waits for its quorum; `run` returns when it is done."""
        self._stopping.set()

    async def run(self, *, task_status: trio.TaskStatus[Ready] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until `stop`. Raises NeverServed, StartupError or StorageError, possibly in a group."""
        with self._closing(await self._listen()) as acceptors:
            storage = await self._threads.run(self._open_storage)
            try:
                await self._run_on(storage, acceptors, task_status)
                await self._threads.run(storage.close)
            finally:
                storage.release()
        self.stopped.set()
        if not self.serves:
            raise NeverServed

    def _open_storage(self) -> NodeStorage:
        return NodeStorage.open(self._disk, self._config, clock=self._clock, rng=self._rng)

    # Listening

    async def _listen(self) -> dict[str, Acceptor]:
        """Bind all listeners first: a port in use is found before anything is written."""
        acceptors: dict[str, Acceptor] = {}
        for listener in self._config.listeners.all:
            try:
                acceptors[listener.name] = await self._network.listen(listener.host, listener.port)
            except BaseException as error:
                with self._closing(acceptors):
                    if isinstance(error, OSError):
                        raise StartupError(f"cannot listen on {listener}: {error.strerror or error}") from None
                    raise
        return acceptors

    @contextmanager
    def _closing(self, acceptors: dict[str, Acceptor]) -> Iterator[dict[str, Acceptor]]:
        try:
            yield acceptors
        finally:
            for acceptor in acceptors.values():
                acceptor.close()

    def _listeners(
        self,
        configured: Sequence[ListenerConfig],
        acceptors: Acceptors,
        node: NodeT,
        handlers: HandlerTable[NodeT],
        pool: BufferPool,
        disk_failed: Callable[[FileError], None],
    ) -> list[Listener]:
        config = self._config
        limits = ConnectionLimits(
            max_request_bytes=config.int("socket.request.max.bytes"),
            max_idle_ms=config.int("connections.max.idle.ms"),
            max_connections=config.int("max.connections"),
            max_connections_per_ip=config.int("max.connections.per.ip"),
        )
        refusals = RateLimitedLog(logging.getLogger(f"{__package__}.refusals"), self._clock)
        return [
            Listener(
                each.name,
                acceptors[each.name],
                Dispatcher(node, handlers, self._threads, disk_failed=disk_failed, numbers=self._request_numbers),
                limits,
                pool,
                refusals,
            )
            for each in configured
        ]

    # Serving

    async def _run_on(self, storage: NodeStorage, acceptors: Acceptors, task_status: trio.TaskStatus[Ready]) -> None:
        config = self._config
        node = self._cluster_node(storage, acceptors)
        role = self._broker_role(node, storage, acceptors) if "broker" in config.roles else None
        snapshots = storage.snapshot_generator(config, clock=self._clock, threads=self._threads)
        node.metadata.subscribe(snapshots.apply)
        disk_failed = _ignore if role is None else role.broker.partitions.failures.at_path
        controllers = self._listeners(
            config.listeners.controller, acceptors, node, self._handlers.controller, self._controller_pool, disk_failed
        )
        clients = []
        if role is not None:
            clients = self._listeners(
                config.listeners.client, acceptors, role.broker, self._handlers.broker, self._pool, disk_failed
            )
        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as serving:
                if node.broker_watch is not None:
                    await nursery.start(node.broker_watch.run)
                for listener in controllers:  # without them a quorum of several finds no leader
                    serving.start_soon(listener.serve)
                async with _until(self._stopping.wait):
                    with refusing_start():
                        await nursery.start(node.raft.run)
                        await nursery.start(node.metadata.run, None if role is None else role.broker.partitions.prepare)
                        if node.controller is not None:
                            await nursery.start(node.controller.run)
                    nursery.start_soon(snapshots.run)
                    async with trio.open_nursery() as joining:
                        if node.controller is not None:
                            joining.start_soon(nursery.start, self._registrar(node, acceptors).run)
                        if role is not None:
                            await nursery.start(role.run)
                    self.serves = True
                if self.serves:
                    for listener in clients:
                        serving.start_soon(listener.serve)
                    task_status.started(self._ready(node, acceptors))
                    await self._stopping.wait()
                _log.info("node %d shuts down", node.node_id)
                if role is not None and self.serves:
                    async with _until(node.raft.wait_until_alone):
                        await role.lifecycle.leave()
                for listener in clients + controllers:
                    listener.stop()
            if role is not None:
                storage.broker_epoch = storage.previous_broker_epoch
                if self.serves:
                    await role.broker.partitions.checkpoint()
                    storage.broker_epoch = role.lifecycle.epoch
            await node.raft.leave()
            await node.controller_channel.aclose()
            nursery.cancel_scope.cancel()

    def _cluster_node(self, storage: NodeStorage, acceptors: Acceptors) -> ClusterNode:
        config, clock, threads = self._config, self._clock, self._threads
        controllers = _bound(config.listeners.advertised_controller, acceptors)
        endpoints = [Endpoint(each.name, each.host, each.port) for each in controllers]
        rng = self._fork_rng()
        raft = storage.raft_driver(config, self._network, endpoints, clock=clock, threads=threads, rng=rng)
        metadata = storage.metadata_publisher(config, raft)
        controller = None
        if "controller" in config.roles:
            controller = storage.controller_driver(config, raft, metadata, clock=clock, rng=self._fork_rng())
        watch = None
        if controller is not None:
            watch = BrokerWatch(config.node_id, self._network, controller, lambda: metadata.image)
            metadata.subscribe(watch.apply)
        timeout_ms = config.int("request.timeout.ms")
        channel = ControllerChannel(
            NodeConnections(self._network, client_id=f"broker-{config.node_id}", request_timeout_ms=timeout_ms),
            local=controller,
            find=partial(_leader_elsewhere, raft),
            timeout_ms=timeout_ms,
            threads=threads,
        )
        raft.watch(channel.leader_may_have_changed)
        if controller is not None:
            controller.watch(channel.leader_may_have_changed)
        if controller is not None and watch is not None:
            controller.watch(watch.activity_may_have_changed)
        return ClusterNode(
            config=config,
            node_id=config.node_id,
            cluster_id=storage.cluster_id,
            clock=clock,
            rng=self._rng,
            threads=threads,
            raft=raft,
            metadata=metadata,
            controller=controller,
            controller_channel=channel,
            broker_watch=watch,
            image_conditions=ImageConditions(metadata),
        )

    def _broker_role(self, node: ClusterNode, storage: NodeStorage, acceptors: Acceptors) -> BrokerRole:
        return BrokerRole(
            node,
            storage,
            _bound(self._config.listeners.advertised, acceptors),
            network=self._network,
            new_workplace=self._new_workplace,
            on_loading=self._on_loading,
        )

    def _registrar(self, node: ClusterNode, acceptors: Acceptors) -> ControllerRegistrar:
        listeners = _bound(self._config.listeners.advertised_controller, acceptors)
        incarnation_id = random_uuid(self._rng)
        registrar = ControllerRegistrar(
            node.node_id, incarnation_id, listeners, node.controller_channel, lambda: node.image
        )
        node.metadata.subscribe(registrar.apply)
        return registrar

    def _ready(self, node: ClusterNode, acceptors: Acceptors) -> Ready:
        listeners = self._config.listeners
        shown = _bound(listeners.advertised or listeners.advertised_controller, acceptors)
        return Ready(node.node_id, node.cluster_id, shown, tuple(self._config.log_dirs))

    def _fork_rng(self) -> random.Random:
        return random.Random(self._rng.getrandbits(64))


def _ignore(failure: FileError) -> None:
    """A controller's answers are not made of files."""


@asynccontextmanager
async def _until(wait: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """What is in it is given up when the wait is over."""

    async def give_up(scope: trio.CancelScope) -> None:
        await wait()
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(give_up, nursery.cancel_scope)
        yield
        nursery.cancel_scope.cancel()


def _leader_elsewhere(raft: RaftDriver) -> NodeAddress | None:
    leader = raft.leader_endpoint
    if leader is None or leader.node_id == raft.node_id:
        return None
    return NodeAddress(f"controller {leader.node_id}", leader.host, leader.port)


def _bound(listeners: Sequence[ListenerConfig], acceptors: Acceptors) -> tuple[BoundListener, ...]:
    """As they are advertised: with ports that were bound, and this machine's name in place of all interfaces."""
    return tuple(
        BoundListener(
            each.name,
            each.host or socket.getfqdn(),
            each.port or acceptors[each.name].address.port,
            each.security_protocol,
        )
        for each in listeners
    )
