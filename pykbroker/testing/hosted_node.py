"""One node in a loop of this process: it starts, stops, is killed, and starts again on the same port and data."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import trio

from pykbroker.api import HANDLERS
from pykbroker.config import BrokerConfig
from pykbroker.control.control import Control
from pykbroker.control.nodes.gated_network import Peers
from pykbroker.error_groups import first_of
from pykbroker.protocol.uuids import random_uuid, uuid_to_text
from pykbroker.server.logs.cleaning_process import ThisThread
from pykbroker.server.network.socket_transport import SocketAcceptor, SocketNetwork, SocketOptions, SocketTransport
from pykbroker.server.node.environment import Environment
from pykbroker.server.node.node import NeverServed, Node, NodeReady, socket_options
from pykbroker.server.quorum.formatting import directory_paths, format_unformatted, formatted_cluster_id
from pykbroker.server.runtime.clock import SystemClock
from pykbroker.server.runtime.threads import OnTheLoop, WorkerThreads
from pykbroker.storage.files.disk import Disk
from pykbroker.storage.files.unsynced_disk import UnsyncedDisk

from .errors import BrokerFailed, BrokerNotRunning
from .reserved_port import ReservedPort

STOP_DEADLINE_S = 10.0


class _HostedNetwork(SocketNetwork):
    """The sockets of one node, which a killed process would not keep: its own end closes them."""

    def __init__(self, options: SocketOptions, threads: WorkerThreads) -> None:
        super().__init__(options, threads)
        self._acceptors: list[SocketAcceptor] = []
        self._connected: list[SocketTransport] = []

    async def listen(self, host: str, port: int) -> SocketAcceptor:
        acceptor = await super().listen(host, port)
        self._acceptors.append(acceptor)
        return acceptor

    async def connect(self, host: str, port: int) -> SocketTransport:
        transport = await super().connect(host, port)
        self._connected = [each for each in self._connected if not each.is_closed]
        self._connected.append(transport)
        return transport

    def close_connected(self) -> None:
        for transport in self._connected:
            transport.close()

    def close_of_child(self) -> None:
        for acceptor in self._acceptors:
            acceptor.close_of_child()


class HostedNode:
    """A node with its configuration. Its methods run in the loop that it lives in.

    properties: all of them, with the ports that are reserved.
    """

    def __init__(self, properties: Mapping[str, str], disk: Disk, ports: Sequence[ReservedPort]) -> None:
        self.config = BrokerConfig(dict(properties))
        self.control: Control | None = None
        self.disk = disk
        self.ports = ports
        self._node: Node | None = None
        self._sockets: _HostedNetwork | None = None
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        self.ready: NodeReady | None = None
        self._address: str | None = None
        self.failure: BaseException | None = None
        """What the node ended with by itself, behind its start."""

    def put_under(self, control: Control) -> None:
        """Put the node under control, before its first start."""
        self.control = control
        control.mishaps.end = self.kill

    @property
    def address(self) -> str:
        """`HOST:PORT` of the first listener for clients."""
        if self._address is None:
            raise BrokerNotRunning("the broker has not been started")
        return self._address

    @property
    def node(self) -> Node | None:
        """The node from its start to its end."""
        return self._node

    @property
    def is_running(self) -> bool:
        return self.ready is not None

    async def start(self, nursery: trio.Nursery) -> NodeReady:
        """Start the node, and return when it serves. Raises BrokerFailed."""
        if self.ready is not None:
            return self.ready
        for port in self.ports:
            port.lend()
        threads = WorkerThreads()
        environment = Environment(
            disk=self.disk,
            network=self._network(threads),
            clock=SystemClock(),
            threads=threads,
            rng=random.Random(),  # noqa: S311 - nothing secret is drawn
            new_workplace=ThisThread,
            notes_fetches=True,
            flush_threads=OnTheLoop() if isinstance(self.disk, UnsyncedDisk) else None,
        )
        if self.control is not None:
            environment = self.control.equip(environment)
        self._node = Node(self.config, HANDLERS, environment)
        if self.control is not None:
            self.control.node = self._node
        self._scope, self._ended, self.failure = trio.CancelScope(), trio.Event(), None
        ready: NodeReady | None = await nursery.start(self._run, self._node)
        if ready is None:
            raise BrokerFailed(_one_line(self.failure)) from self.failure
        self._address = ready.listeners[0].address
        return ready

    def _network(self, threads: WorkerThreads) -> SocketNetwork:
        self._sockets = _HostedNetwork(socket_options(self.config), threads)
        return self._sockets

    def close_listeners_of_child(self) -> None:
        """Close the listening sockets of this process, a child that was forked; the parent's stay as they are."""
        if self._sockets is not None:
            self._sockets.close_of_child()

    async def stop(self) -> None:
        """Shut down cleanly; after ten seconds as a crash would. Nothing happens where the node does not run."""
        if self._node is None:
            return
        if self.control is not None:
            self.control.mishaps.check_stop()
        self._node.stop()
        with trio.move_on_after(STOP_DEADLINE_S):
            await self._ended.wait()
        await self.kill()

    async def kill(self) -> None:
        """End as a process does that is killed: nobody is told, no checkpoint is written, the next start recovers."""
        if self._node is None:
            return
        if self.control is not None:
            self.control.mishaps.before_end()
        self._scope.cancel()
        with trio.CancelScope(shield=True):
            await self._ended.wait()

    async def _run(self, node: Node, *, task_status: trio.TaskStatus[NodeReady | None]) -> None:
        """Run the node to its end; what it fails with is kept, and does not end the loop."""
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    self.ready = await nursery.start(node.run)
                    if self.control is not None:
                        self.control.ready = self.ready
                    task_status.started(self.ready)
        except* NeverServed:
            pass
        except* Exception as group:
            self.failure = first_of(group)
        finally:
            served, self.ready, self._node = self.ready is not None, None, None
            if self.control is not None:
                self.control.node_ended()
            if self._sockets is not None:
                self._sockets.close_connected()
            self._ended.set()
            if not served:
                task_status.started(None)


def format_together(nodes: Sequence[HostedNode]) -> None:
    """Format the directories of one cluster's nodes, those that are new, with one id. Raises StorageError."""
    rng = random.SystemRandom()
    known = [formatted_cluster_id(node.disk, directory_paths(node.config)) for node in nodes]
    cluster_id = next(filter(None, known), None) or uuid_to_text(random_uuid(rng))
    for node in nodes:
        format_unformatted(node.disk, node.config, cluster_id, rng=rng, now_ms=SystemClock().now_ms())


def introduce(nodes: Sequence[HostedNode]) -> None:
    """Let the controls of one cluster's nodes know each other's connections."""
    peers = Peers()
    for node in nodes:
        if node.control is not None:
            node.control.mishaps.peers = peers


def _one_line(error: BaseException | None) -> str:
    return "the broker was stopped while it started" if error is None else " ".join(str(error).split())
