"""One node: broker and controller on their log directories and listeners, from the start to a clean shutdown.

It owns everything it starts. `run` ends in two ways: after `stop` everything is drained, closed and marked as cleanly
shut down; when it is cancelled it just ends, as after a crash, and the next start recovers.
"""

from __future__ import annotations

import logging
import random
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import trio

from pykbroker.config import BrokerConfig
from pykbroker.config import Listener as ListenerConfig
from pykbroker.protocol.messages.brokers import ControllerRegistrationRequest
from pykbroker.protocol.uuids import random_uuid
from pykbroker.replication.fetch_session import FetchSessionCache
from pykbroker.storage.disk import Disk

from .broker import BoundListener, Broker
from .broker_lifecycle import BrokerIdentity, BrokerLifecycle
from .clock import Clock
from .controller_registration import controller_registration
from .coordinator_driver import CONSUMER_OFFSETS, CoordinatorDriver
from .dispatch import Dispatcher, HandlerTable, ListenerKind
from .listener import ConnectionLimits, Listener
from .log_lines import RateLimitedLog
from .node_storage import NodeStorage, refusing_start
from .receive_buffer import BufferPool
from .replica_manager import ReplicaManager
from .socket_transport import SocketOptions
from .start_refused import StartRefused
from .threads import Threads
from .transport import Acceptor, Network

_log = logging.getLogger(__name__)


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
    """Buffer sizes only where they were given: what the operating system picks suits fast links better."""
    given = config.originals
    return SocketOptions(
        send_buffer_bytes=config.int("socket.send.buffer.bytes") if "socket.send.buffer.bytes" in given else -1,
        receive_buffer_bytes=config.int("socket.receive.buffer.bytes")
        if "socket.receive.buffer.bytes" in given
        else -1,
        listen_backlog=config.int("socket.listen.backlog.size"),
    )


class Node:
    def __init__(
        self,
        config: BrokerConfig,
        *,
        handlers: HandlerTable,
        disk: Disk,
        network: Network,
        clock: Clock,
        threads: Threads,
        rng: random.Random,
    ) -> None:
        self._config = config
        self._handlers = handlers
        self._disk = disk
        self._network = network
        self._clock = clock
        self._threads = threads
        self._rng = rng
        self._stopping = trio.Event()
        self.serves = False
        self.stopped = trio.Event()
        """Set when a clean shutdown is done."""

    def stop(self) -> None:
        """Ask for a clean shutdown; `run` returns when it is done."""
        self._stopping.set()

    async def run(self, *, task_status: trio.TaskStatus[Ready] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until `stop`. Raises StartRefused or StorageError, possibly in a group."""
        if self._config.roles != {"broker", "controller"}:
            raise StartRefused("process.roles must be broker,controller: nodes of one role are not offered yet")
        with self._closing(await self._listen()) as acceptors:
            storage = await self._threads.run(self._open_storage)
            try:
                await self._run_on(storage, acceptors, task_status)
                await self._threads.run(storage.close)
            finally:
                storage.release()
        self.stopped.set()

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
                        raise StartRefused(f"cannot listen on {listener}: {error.strerror or error}") from None
                    raise
        return acceptors

    @contextmanager
    def _closing(self, acceptors: dict[str, Acceptor]) -> Iterator[dict[str, Acceptor]]:
        try:
            yield acceptors
        finally:
            for acceptor in acceptors.values():
                acceptor.close()

    def _listeners(self, broker: Broker, acceptors: Mapping[str, Acceptor]) -> list[Listener]:
        config = self._config
        limits = ConnectionLimits(
            max_request_bytes=config.int("socket.request.max.bytes"),
            max_idle_ms=config.int("connections.max.idle.ms"),
            max_connections=config.int("max.connections"),
            max_connections_per_ip=config.int("max.connections.per.ip"),
        )
        pool = BufferPool()
        refusals = RateLimitedLog(logging.getLogger(f"{__package__}.refusals"), self._clock)

        def listener(configured: ListenerConfig, kind: ListenerKind) -> Listener:
            dispatcher = Dispatcher(broker, self._handlers.view(kind))
            return Listener(configured.name, acceptors[configured.name], dispatcher, limits, pool, refusals)

        return [
            *(listener(each, "broker") for each in config.listeners.client),
            *(listener(each, "controller") for each in config.listeners.controller),
        ]

    # Serving

    async def _run_on(
        self, storage: NodeStorage, acceptors: Mapping[str, Acceptor], task_status: trio.TaskStatus[Ready]
    ) -> None:
        broker = self._broker(storage, acceptors)
        lifecycle = BrokerLifecycle(
            self._identity(storage, broker), broker.controller, self._config.int("broker.heartbeat.interval.ms")
        )
        async with trio.open_nursery() as nursery:
            with refusing_start():
                await nursery.start(broker.controller.run)
            await nursery.start(broker.partitions.run)
            await nursery.start(broker.groups.run)
            async with trio.open_nursery() as registering:
                registering.start_soon(broker.controller.submit, self._controller_registration(broker, acceptors))
                await nursery.start(lifecycle.run)
            self.serves = True
            listeners = self._listeners(broker, acceptors)
            async with trio.open_nursery() as serving:
                for listener in listeners:
                    serving.start_soon(listener.serve)
                task_status.started(
                    Ready(broker.node_id, broker.cluster_id, broker.advertised, tuple(self._config.log_dirs))
                )
                await self._stopping.wait()
                _log.info("node %d shuts down", broker.node_id)
                await lifecycle.leave()
                for listener in listeners:
                    listener.stop()
            await broker.partitions.checkpoint()
            storage.broker_epoch = lifecycle.epoch
            nursery.cancel_scope.cancel()

    def _broker(self, storage: NodeStorage, acceptors: Mapping[str, Acceptor]) -> Broker:
        config, clock, threads = self._config, self._clock, self._threads
        controller = storage.controller_driver(config, clock=clock, threads=threads, rng=self._fork_rng())
        replicas = ReplicaManager(config, storage.directories, clock=clock, threads=threads)
        groups = CoordinatorDriver(
            config, replicas, image=lambda: controller.image, clock=clock, threads=threads, rng=self._fork_rng()
        )
        controller.subscribe(replicas.apply)
        replicas.subscribe(CONSUMER_OFFSETS, groups)
        controller.subscribe(groups.apply)
        return Broker(
            config=config,
            node_id=config.node_id,
            cluster_id=storage.cluster_id,
            clock=clock,
            rng=self._rng,
            threads=threads,
            controller=controller,
            partitions=replicas,
            groups=groups,
            fetch_sessions=FetchSessionCache(self._fork_rng(), config.int("max.incremental.fetch.session.cache.slots")),
            advertised=tuple(_bound(listener, acceptors[listener.name]) for listener in config.listeners.advertised),
        )

    def _identity(self, storage: NodeStorage, broker: Broker) -> BrokerIdentity:
        return BrokerIdentity(
            node_id=broker.node_id,
            cluster_id=broker.cluster_id,
            incarnation_id=random_uuid(self._rng),
            rack=self._config.optional_str("broker.rack"),
            listeners=broker.advertised,
            log_directory_ids=tuple(directory.directory_id for directory in storage.directories),
            previous_epoch=storage.previous_broker_epoch,
        )

    def _controller_registration(
        self, broker: Broker, acceptors: Mapping[str, Acceptor]
    ) -> ControllerRegistrationRequest:
        listeners = [_bound(each, acceptors[each.name]) for each in self._config.listeners.controller]
        return controller_registration(broker.node_id, random_uuid(self._rng), listeners)

    def _fork_rng(self) -> random.Random:
        return random.Random(self._rng.getrandbits(64))


def _bound(listener: ListenerConfig, acceptor: Acceptor) -> BoundListener:
    """As it is advertised: with the port that was bound, and this machine's name in place of all interfaces."""
    host = listener.host or socket.getfqdn()
    return BoundListener(listener.name, host, listener.port or acceptor.address.port, listener.security_protocol)
