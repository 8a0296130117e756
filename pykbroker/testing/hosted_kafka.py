"""Nodes of one cluster in one thread of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pykbroker.error_groups import first_of

from .broker_log import begin_capture, end_capture
from .errors import BrokerFailed, BrokerNotRunning
from .lazy_module import LazyModule
from .reserved_port import ReservedPort
from .threaded_kafka import ThreadedKafka, in_thread

if TYPE_CHECKING:
    import trio

    from pykbroker.server.runtime import ephemeral_directories

    from .hosted_node import HostedNode
    from .loop_thread import LoopThread
else:
    trio = LazyModule("trio")
    ephemeral_directories = LazyModule("pykbroker.server.runtime.ephemeral_directories")

HOST: Final = "127.0.0.1"


class HostedKafka(ThreadedKafka):
    """A cluster whose nodes run in a thread of this process.

    data_dir: where its data is, and stays; None for a directory that goes with it, on which nothing is synced.
    """

    def __init__(self, name: str, data_dir: Path | None, client_properties: Mapping[str, str] | None = None) -> None:
        super().__init__(name, client_properties)
        self.nodes: Sequence[HostedNode] = ()
        """Those of an open cluster."""
        self._data_dir = data_dir

    def _make_nodes(self, directory: Path, reserve: Callable[[int], ReservedPort]) -> Sequence[HostedNode]:
        """Return the nodes. Raises ConfigurationError, BrokerFailed.

        reserve: a port, or any free one for 0, until the cluster is closed.
        """
        raise NotImplementedError

    def _ephemeral_directory(self) -> AbstractContextManager[Path]:
        """Make the directory of data that goes with the cluster."""
        return ephemeral_directories.ephemeral_directory()

    def _fill_directories(self, nodes: Sequence[HostedNode]) -> None:
        """Fill the log directories before the nodes start, where the cluster does not begin with nothing."""

    def _acquire(self, resources: ExitStack) -> None:
        directory = self._data_dir
        if directory is None:
            _sweep_once()
            directory = resources.enter_context(self._ephemeral_directory())

        def reserve(port: int) -> ReservedPort:
            reserved = ReservedPort(HOST, port)
            resources.callback(reserved.close)
            return reserved

        self.nodes = self._make_nodes(directory, reserve)
        self._fill_directories(self.nodes)
        begin_capture()
        resources.callback(end_capture)

    def _begin(self, loop: LoopThread, resources: ExitStack) -> None:
        loop.call(_start_all, self.nodes, loop)
        resources.callback(loop.call, _kill_all if self._data_dir is None else _stop_all, self.nodes)

    def _check_running(self) -> None:
        if any(node.is_running for node in self.nodes):
            return
        failures = [str(node.failure) for node in self.nodes if node.failure is not None]
        raise BrokerNotRunning(f"{self._name} has failed: {failures[0]}" if failures else f"{self._name} is stopped")

    def _abandon(self) -> None:
        """Close the listeners, which would keep the ports."""
        for node in self.nodes:
            node.close_listeners_of_child()


class NodeControl:
    """The handle by which a test stops and starts one node. Its port and its data stay, whatever becomes of it."""

    def __init__(self, kafka: HostedKafka, index: int) -> None:
        self._kafka = kafka
        self._index = index

    @property
    def _node(self) -> HostedNode:
        self._kafka.running_loop()
        return self._kafka.nodes[self._index]

    @property
    def is_running(self) -> bool:
        return self._kafka.is_open and self._node.is_running

    @property
    def node_id(self) -> int:
        return self._node.config.node_id

    def start(self) -> None:
        """Start the node again, and return when it serves. Raises BrokerFailed."""
        loop = self._kafka.running_loop()
        loop.call(self._node.start, loop.nursery)

    def stop(self) -> None:
        """Shut the node down cleanly."""
        self._kafka.running_loop().call(self._node.stop)

    def kill(self) -> None:
        """End the node as a killed process ends: nobody is told, and the next start recovers."""
        self._kafka.running_loop().call(self._node.kill)

    def restart(self) -> None:
        """Shut the node down cleanly, and start it again."""
        self.stop()
        self.start()


class AsyncNodeControl:
    """`NodeControl` for coroutines."""

    def __init__(self, control: NodeControl) -> None:
        self._control = control

    @property
    def is_running(self) -> bool:
        return self._control.is_running

    @property
    def node_id(self) -> int:
        return self._control.node_id

    async def start(self) -> None:
        await in_thread(self._control.start)

    async def stop(self) -> None:
        await in_thread(self._control.stop)

    async def kill(self) -> None:
        await in_thread(self._control.kill)

    async def restart(self) -> None:
        await in_thread(self._control.restart)


@cache
def _sweep_once() -> None:
    """Remove what killed processes have left, beside the first broker of this one."""
    ephemeral_directories.sweep_in_background()


async def _start_all(nodes: Sequence[HostedNode], loop: LoopThread) -> None:
    """Raises BrokerFailed for the first node that does not start."""
    failure: BrokerFailed | None = None
    try:
        async with trio.open_nursery() as nursery:
            for node in nodes:
                nursery.start_soon(node.start, loop.nursery)
    except* BrokerFailed as group:
        failure = first_of(group)
    if failure is not None:
        raise failure


async def _stop_all(nodes: Sequence[HostedNode]) -> None:
    async with trio.open_nursery() as nursery:
        for node in nodes:
            nursery.start_soon(node.stop)


async def _kill_all(nodes: Sequence[HostedNode]) -> None:
    """End nodes whose data goes with them: there is nothing to hand over, and nothing to write down."""
    async with trio.open_nursery() as nursery:
        for node in nodes:
            nursery.start_soon(node.kill)
