"""A lane serves connections at rest whose requests are answered at once, beside the tasks of these connections.

To wake up a task, to run it, and to have it wait again costs several times what it takes to send an answer that is
there already. So a connection whose last requests were all answered at once (`Connection`) rests in the lane of its
listener: one task waits for all sockets there, and calls `serve` of whichever can be read. As soon as that returns
False, the connection leaves the lane, and its own task goes on with what came. Answers that come later, when something
is committed, are sent by a second task (`call_soon`), so that whoever commits does not send hundreds of answers.

Each connection has one request in a round, and so many connections have a round before others have the loop. Not
handled here: what can be answered at once (`remembered_answers`), and who rests (`Connection`). Where a system has no
epoll, or a transport has no socket of its own, nobody rests here.
"""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, runtime_checkable

import trio

from ..runtime.signal import Signal

Serve: TypeAlias = Callable[[], bool]
"""Is called when the connection can be read. False: its task has to see to it."""

_SERVED_IN_A_ROUND: Final = 50
"""Connections, each of which has one request: a millisecond or three."""


@runtime_checkable
class WithSocket(Protocol):
    """A transport whose bytes come out of a socket as they are."""

    when_closing: Callable[[], None] | None
    """Is called before the socket is closed."""

    @property
    def descriptor(self) -> int:
        """The socket's; negative where it is closed."""
        ...

    async def wait_readable(self) -> None: ...


@dataclass(slots=True, eq=False)
class _Resting:
    """A connection at rest. error: what is raised where it rests, once its task is woken up."""

    task: trio.lowlevel.Task
    transport: WithSocket
    serve: Serve
    error: Exception | None = None


class Lane:
    """A lane of one listener. `run` has to run meanwhile: before and after it nobody rests here (`is_open`)."""

    def __init__(self) -> None:
        self._epoll: select.epoll | None = None
        self._resting: dict[int, _Resting] = {}
        self._calls: deque[Callable[[], None]] = deque()
        """One for each connection at most."""
        self._has_calls = Signal()
        self.is_open = False

    @property
    def resting(self) -> int:
        """Return how many connections rest here."""
        return len(self._resting)

    async def rest(self, transport: WithSocket, serve: Serve) -> None:
        """Return when `serve` has returned False, or the lane is closed. What `serve` raises is raised here.

        Raises `trio.ClosedResourceError` where the transport is closed, now or meanwhile.
        """
        assert self.is_open
        descriptor = transport.descriptor
        if descriptor < 0:
            raise trio.ClosedResourceError
        assert self._epoll is not None
        try:
            self._epoll.register(descriptor, select.EPOLLIN)
        except OSError:  # the system takes no more of them
            await transport.wait_readable()
            return
        here = self._resting[descriptor] = _Resting(trio.lowlevel.current_task(), transport, serve)
        transport.when_closing = lambda: self._wake(descriptor, trio.ClosedResourceError())

        def leave(_: object) -> trio.lowlevel.Abort:
            self._leave(descriptor)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(leave)
        if here.error is not None:
            raise here.error

    def wake(self, transport: WithSocket) -> None:
        """Have `rest` return, where the connection of the transport is at rest."""
        if transport.descriptor in self._resting:
            self._wake(transport.descriptor)

    def call_soon(self, call: Callable[[], None]) -> None:
        """Call a function that answers a connection, in its turn; where the lane is closed before, it is not called."""
        calls = self._calls
        if not calls:
            self._has_calls.set()
        calls.append(call)

    async def run(self) -> None:
        """Serve until the surrounding scope is cancelled. Where the system has no epoll to give, nobody rests here."""
        try:
            self._epoll = epoll = select.epoll()
        except (OSError, AttributeError):
            return
        self.is_open = True
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._make_calls)
                while True:
                    await trio.lowlevel.wait_readable(epoll.fileno())
                    self._serve_round(epoll)
        finally:
            self.is_open = False
            for descriptor in list(self._resting):
                self._wake(descriptor)
            epoll.close()

    async def _make_calls(self) -> None:
        while True:
            await self._has_calls.wait()
            for _ in range(min(len(self._calls), _SERVED_IN_A_ROUND)):
                self._calls.popleft()()
            if self._calls:  # others have their turn first
                self._has_calls.set()

    def _serve_round(self, epoll: select.epoll) -> None:
        resting = self._resting
        for descriptor, _ in epoll.poll(0, _SERVED_IN_A_ROUND):
            found = resting.get(descriptor)
            if found is None:
                continue  # it has left meanwhile, since another one was served
            error = None
            try:
                if found.serve():
                    continue
            except Exception as raised:  # it is of the connection, whose task has it
                error = raised
            if resting.get(descriptor) is found:
                self._wake(descriptor, error)

    def _wake(self, descriptor: int, error: Exception | None = None) -> None:
        woken = self._resting[descriptor]
        woken.error = error
        self._leave(descriptor)
        trio.lowlevel.reschedule(woken.task)

    def _leave(self, descriptor: int) -> None:
        self._resting.pop(descriptor).transport.when_closing = None
        assert self._epoll is not None
        self._epoll.unregister(descriptor)
