"""One node of a cluster in a test: it is stopped, killed and started, paused, cut off, and loses its power."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from .hosted_kafka import HostedKafka
from .in_thread import in_thread
from .lazy_module import LazyModule

if TYPE_CHECKING:
    from pykbroker.control.faults.faults import Faults
    from pykbroker.control.nodes.mishaps import Mishaps

    from . import faults
    from .faults import AsyncBrokerFaults, BrokerFaults
    from .hosted_node import HostedNode
    from .loop_thread import LoopThread
else:
    faults = LazyModule("pykbroker.testing.faults")


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

    @property
    def faults(self) -> BrokerFaults:
        """The faults between the node, its clients and its disk."""
        return faults.BrokerFaults(self)

    def controlled_faults(self) -> tuple[LoopThread, Faults]:
        """Return the node's faults with the loop that they belong to. Raises BrokerNotRunning."""
        control = self._node.control
        assert control is not None, "each node of a test has control"
        return self._kafka.running_loop(), control.faults

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

    @property
    def faults(self) -> AsyncBrokerFaults:
        """The faults between the node, its clients and its disk."""
        return faults.AsyncBrokerFaults(self._control.faults)

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
