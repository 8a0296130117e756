"""Nodes of one cluster in one thread of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pykbroker.error_groups import first_of

from .broker_log import begin_capture, end_capture
from .clock import Clock
from .errors import BrokerFailed, BrokerNotRunning
from .lazy_module import LazyModule
from .reserved_port import ReservedPort
from .threaded_kafka import ThreadedKafka, in_thread

if TYPE_CHECKING:
    import trio

    from pykbroker.control.control import Control
    from pykbroker.control.nodes.mishaps import Mishaps
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

    @property
    def clock(self) -> Clock:
        """The clocks of all nodes together."""
        return Clock(self)

    @property
    def controls(self) -> Sequence[Control]:
        """The control of each node, for code that runs in the loop."""
        return [node.control for node in self.nodes if node.control is not None]

    def _make_nodes(self, directory: Path, reserve: Callable[[int], ReservedPort]) -> Sequence[HostedNode]:
        """Return the nodes. Raises ConfigurationError, BrokerFailed.

        reserve: a port, or any free one for 0, until the cluster is closed.
        """
        raise NotImplementedError

    def _acquire(self, resources: ExitStack) -> None:
        directory = self._data_dir
        if directory is None:
            _sweep_once()
            directory = resources.enter_context(ephemeral_directories.ephemeral_directory())

        def reserve(port: int) -> ReservedPort:
            reserved = ReservedPort(HOST, port)
            resources.callback(reserved.close)
            return reserved

        self.nodes = self._make_nodes(directory, reserve)
        begin_capture()
        resources.callback(end_capture)

    def _begin(self, loop: LoopThread, resources: ExitStack) -> None:
        loop.call(_start_all, self.nodes, loop)
        resources.callback(loop.call, _kill_all if self._data_dir is None else _stop_all, self.nodes)
        resources.callback(loop.call, self._end_mishaps)

    async def _end_mishaps(self) -> None:
        for control in self.controls:
            control.mishaps.end_all()

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
        """Start the node again, and return when it serves. Raises BrokerFailed, and BadOrder where it is cut off from
        those without whom it cannot serve.
        """
        loop = self._kafka.running_loop()
        self._mishaps.check_start(is_alone=len(self._kafka.nodes) == 1)
        loop.call(self._node.start, loop.nursery)

    def stop(self) -> None:
        """Shut the node down cleanly. Raises BadOrder where it is paused, and does not hear of it."""
        self._kafka.running_loop().call(self._node.stop)

    def kill(self) -> None:
        """End the node as a killed process ends: nobody is told, and the next start recovers."""
        self._kafka.running_loop().call(self._node.kill)

    def restart(self) -> None:
        """Shut the node down cleanly, and start it again."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Stop the node where it stands, as SIGSTOP does: its connections stay, and nobody is answered until `resume`.
        Raises BadOrder, a ValueError.
        """
        self._mishap(lambda mishaps: mishaps.pause())

    def resume(self) -> None:
        """Let a paused node go on. Raises BadOrder."""
        self._mishap(lambda mishaps: mishaps.resume())

    def cut_off(self, from_: str = "all") -> None:
        """Cut the node off from the other `nodes`, from `clients` or from `all`, until `restore`: connections stay, and
        what is sent waits, as where packets are dropped. Raises BadOrder and UnknownSide, which are ValueErrors.
        """
        self._mishap(lambda mishaps: mishaps.cut_off(from_))

    def restore(self) -> None:
        """Restore the network of a node that is cut off. Raises BadOrder."""
        self._mishap(lambda mishaps: mishaps.restore())

    def crash(self, *, lose_unflushed: bool = True) -> None:
        """End the node as by a power cut, and lose what was written and not flushed; or without that loss, as `kill`.
        Raises BadOrder.
        """
        loop, mishaps = self._kafka.running_loop(), self._mishaps
        loop.call(lambda: mishaps.crash(lose_unflushed=lose_unflushed))

    @property
    def is_paused(self) -> bool:
        return self._mishaps.is_paused

    @property
    def is_cut_off(self) -> bool:
        return self._mishaps.is_cut_off

    @property
    def _mishaps(self) -> Mishaps:
        control = self._node.control
        assert control is not None, "each node of a test has a control"
        return control.mishaps

    def _mishap(self, happen: Callable[[Mishaps], None]) -> None:
        mishaps = self._mishaps

        async def in_loop() -> None:
            happen(mishaps)

        self._kafka.running_loop().call(in_loop)


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

    async def pause(self) -> None:
        await in_thread(self._control.pause)

    async def resume(self) -> None:
        await in_thread(self._control.resume)

    async def cut_off(self, from_: str = "all") -> None:
        await in_thread(partial(self._control.cut_off, from_))

    async def restore(self) -> None:
        await in_thread(self._control.restore)

    async def crash(self, *, lose_unflushed: bool = True) -> None:
        await in_thread(partial(self._control.crash, lose_unflushed=lose_unflushed))

    @property
    def is_paused(self) -> bool:
        return self._control.is_paused

    @property
    def is_cut_off(self) -> bool:
        return self._control.is_cut_off


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
