"""Nodes of one cluster in one thread of this process."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, TypeVarTuple, Unpack

from pykbroker.error_groups import first_of

from .broker_log import begin_capture, end_capture
from .clock import AsyncClock, Clock
from .errors import BrokerFailed, BrokerNotRunning
from .journal import BrokerJournal
from .kafka import AsyncKafkaUnderTest
from .lazy_module import LazyModule
from .reserved_port import ReservedPort
from .threaded_kafka import ThreadedKafka
from .why import AsyncWhy, Why

if TYPE_CHECKING:
    import trio

    from pykbroker.client.cluster import Cluster as Client
    from pykbroker.control import control
    from pykbroker.control.audit import audit
    from pykbroker.control.audit.audit import Audit
    from pykbroker.control.control import Control
    from pykbroker.server.node.node import Node
    from pykbroker.server.runtime import ephemeral_directories

    from . import broker_audit, faults
    from .broker_audit import BrokerAudit
    from .hosted_node import HostedNode
    from .loop_thread import LoopThread
else:
    audit = LazyModule("pykbroker.control.audit.audit")
    broker_audit = LazyModule("pykbroker.testing.broker_audit")
    faults = LazyModule("pykbroker.testing.faults")
    trio = LazyModule("trio")
    control = LazyModule("pykbroker.control.control")
    ephemeral_directories = LazyModule("pykbroker.server.runtime.ephemeral_directories")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

HOST: Final = "127.0.0.1"


class HostedKafka(ThreadedKafka):
    """A cluster whose nodes run in a thread of this process.

    data_dir: where its data is, and stays; None for a directory that goes with it, on which nothing is synced. journal:
    the bound of each node's journal in bytes.
    """

    def __init__(
        self,
        name: str,
        data_dir: Path | None,
        client_properties: Mapping[str, str] | None = None,
        journal: int | bool = True,
    ) -> None:
        super().__init__(name, client_properties)
        self._journal = BrokerJournal(name, journal, self._in_loop)
        self._audit: Audit | None = None
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
        self._journal.begin()
        resources.callback(self._journal.end)
        self._audit = audit.Audit(self._running_nodes, _now_ms)
        for node in self.nodes:
            node.put_under(control.Control(self._journal.of_node(node.config.node_id), self._audit))
        broker_audit.opened(self._audit)
        self._fill_directories(self.nodes)
        begin_capture()
        resources.callback(end_capture)

    def _begin(self, loop: LoopThread, resources: ExitStack) -> None:
        loop.call(_start_all, self.nodes, loop)
        resources.callback(loop.call, _kill_all if self._data_dir is None else _stop_all, self.nodes)
        resources.callback(loop.call, self._end_mishaps)

    async def _end_mishaps(self) -> None:
        for control in self.controls:
            control.mishaps.end_all()

    @property
    def journal(self) -> BrokerJournal:
        """The record of what clients have asked, what they were answered, and what came of it."""
        return self._journal

    def audit(self, *, allow: Iterable[str] = ()) -> BrokerAudit:
        """Audit the clients from now on, for a `with` block, at whose end findings are an error (`broker_audit`).

        allow: the kinds of findings that are none. Raises BrokerNotRunning, UnknownKind.
        """
        self.running_loop()
        assert self._audit is not None
        return broker_audit.BrokerAudit(self._audit, allow)

    def _running_nodes(self) -> list[Node]:
        controls = [node.control for node in self.nodes]
        return [each.node for each in controls if each is not None and each.node is not None]

    def _in_loop(self, fn: Callable[[], None]) -> None:
        """Call a function in the thread; a cluster that is closed has none."""

        async def call() -> None:
            fn()

        if self.is_open:
            self.running_loop().call(call)
        else:
            fn()

    @property
    def why(self) -> Why:
        """Questions why: a rebalance, a consumer that gets nothing, a last stable offset that stands, a throttle."""
        return Why(self)

    async def _with_client(self, fn: Callable[[Client, Unpack[Ts]], Awaitable[T]], args: tuple[*Ts]) -> T:
        try:
            return await super()._with_client(fn, args)
        except Exception as error:
            for node in self.nodes:
                if node.control is not None and (silence := node.control.mishaps.silence):
                    error.add_note(f"node {node.config.node_id} {silence}")
            raise

    def check_running(self) -> None:
        """Raises BrokerNotRunning where no node runs."""
        self._check_running()

    def _check_running(self) -> None:
        if any(node.is_running for node in self.nodes):
            return
        failures = [str(node.failure) for node in self.nodes if node.failure is not None]
        raise BrokerNotRunning(f"{self._name} has failed: {failures[0]}" if failures else f"{self._name} is stopped")

    def _abandon(self) -> None:
        """Close the listeners, which would keep the ports."""
        for node in self.nodes:
            node.close_listeners_of_child()


class AsyncHostedKafka(AsyncKafkaUnderTest):
    """`HostedKafka` for coroutines."""

    def __init__(self, kafka: HostedKafka) -> None:
        super().__init__(kafka)
        self._hosted = kafka
        self.why: Final = AsyncWhy(kafka)

    @property
    def clock(self) -> AsyncClock:
        """The clocks of all nodes together."""
        return AsyncClock(self._hosted.clock)

    def audit(self, *, allow: Iterable[str] = ()) -> BrokerAudit:
        """Audit the clients; what is returned is for `with`, and never waits. Raises BrokerNotRunning, UnknownKind."""
        return self._hosted.audit(allow=allow)


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


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
