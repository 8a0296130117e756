"""A cluster under test and the thread that has a client of it, from `open` to `close`.

Clusters that a program forgets to close are closed when it exits. A process that is forked has none.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar, TypeVarTuple, Unpack

from .broker_log import BrokerLog
from .errors import BrokerNotRunning
from .in_thread import in_thread
from .kafka import KafkaUnderTest
from .lazy_module import LazyModule

if TYPE_CHECKING:
    from pykbroker.client import from_properties
    from pykbroker.client.cluster import Cluster as Client

    from . import loop_thread
else:
    from_properties = LazyModule("pykbroker.client.from_properties")
    loop_thread = LazyModule("pykbroker.testing.loop_thread")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_LOGS_KEPT: Final = 8

_open: weakref.WeakSet[ThreadedKafka] = weakref.WeakSet()
_closed_logs: deque[BrokerLog] = deque(maxlen=_LOGS_KEPT)


def recent_logs() -> list[BrokerLog]:
    """Return the logs of the clusters that are open, and of the last few that were closed."""
    return [*_closed_logs, *(kafka.log for kafka in list(_open))]


class ThreadedKafka(KafkaUnderTest):
    """A cluster, and a client of it in a thread.

    name: of the cluster, and of the thread. client_properties: those of Java's clients, to log in.
    """

    def __init__(self, name: str, client_properties: Mapping[str, str] | None = None) -> None:
        self.log: Final = BrokerLog(name)
        """The last lines of its log."""
        self._name = name
        self._client_properties = dict(client_properties or {})
        self._caller = self
        self._resources = ExitStack()
        self._loop: loop_thread.LoopThread | None = None
        self._client: Client | None = None
        self._guard = threading.Lock()
        self._process_id = os.getpid()

    # ---- what a kind of cluster has of its own

    def _acquire(self, resources: ExitStack) -> None:
        """Acquire what the cluster needs before its thread runs; `resources` give it back behind the thread's end."""

    def _begin(self, loop: loop_thread.LoopThread, resources: ExitStack) -> None:
        """Begin what needs the thread; `resources` end it before the thread ends."""

    def _check_running(self) -> None:
        """Raises BrokerNotRunning where it is known that nobody will answer."""

    def _abandon(self) -> None:
        """Let go of what a forked child has inherited."""

    # ---- life

    @property
    def is_open(self) -> bool:
        """Tell whether it was opened and not closed."""
        return self._loop is not None

    def open(self) -> None:
        """Start it, and return when it serves. Raises ConfigurationError, BrokerFailed; then nothing is left behind."""
        with self._guard:
            if self._loop is not None:
                raise RuntimeError(f"{self._name} is open already")
            with ExitStack() as resources:
                self._acquire(resources)
                loop = loop_thread.LoopThread(self._name, self.log.take_this_context)
                loop.start()
                resources.callback(loop.stop)
                self._begin(loop, resources)
                resources.callback(loop.call, self._close_client)
                self._resources = resources.pop_all()
            self._loop, self._process_id = loop, os.getpid()
            _open.add(self)

    def close(self) -> None:
        """Stop it, and remove what is its own. The call may be repeated."""
        with self._guard:
            if self._loop is None or self._process_id != os.getpid():
                return
            _open.discard(self)
            _closed_logs.append(self.log)
            try:
                self._resources.close()
            finally:
                self._loop = None

    async def open_async(self) -> None:
        """Open from a coroutine of any kind. Where the caller is cancelled, it is closed again."""
        is_given_up = threading.Event()

        def open_unless_given_up() -> None:
            self.open()
            if is_given_up.is_set():
                self.close()

        try:
            await in_thread(open_unless_given_up)
        except BaseException:
            is_given_up.set()
            threading.Thread(target=self.close, name=f"{self._name} closes").start()  # waits for the one that opens
            raise

    async def close_async(self) -> None:
        """Close from a coroutine of any kind, also from one that is cancelled."""
        try:
            await in_thread(self.close)
        except BaseException:
            self.close()  # waits for the thread, which is quick
            raise

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- calls

    def call(self, fn: Callable[[Client, Unpack[Ts]], Awaitable[T]], *args: *Ts) -> T:
        """Run a coroutine with the client, in the thread. Raises BrokerNotRunning, and what it raises."""
        return self.running_loop().call(self._with_client, fn, args)

    async def call_async(self, fn: Callable[[Client, Unpack[Ts]], Awaitable[T]], *args: *Ts) -> T:
        return await self.running_loop().call_async(self._with_client, fn, args)

    def running_loop(self) -> loop_thread.LoopThread:
        """Return the thread of an open cluster. Raises BrokerNotRunning."""
        if self._loop is None or self._process_id != os.getpid():
            raise BrokerNotRunning(f"{self._name} is not open: use it in a `with` block")
        return self._loop

    async def _with_client(self, fn: Callable[[Client, Unpack[Ts]], Awaitable[T]], args: tuple[*Ts]) -> T:
        self._check_running()
        if self._client is None:
            self._client = self._new_client(self.bootstrap_servers)
        return await fn(self._client, *args)

    def _new_client(self, bootstrap_servers: str) -> Client:
        return from_properties.cluster_of(bootstrap_servers, self._client_properties, client_id="pykbroker-testing")

    async def _close_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.__aexit__(None, None, None)


@atexit.register
def _close_all() -> None:
    for kafka in list(_open):
        kafka.close()


def _abandon_all() -> None:
    for kafka in list(_open):
        kafka._process_id = -1
        kafka._abandon()
    _open.clear()


os.register_at_fork(after_in_child=_abandon_all)
