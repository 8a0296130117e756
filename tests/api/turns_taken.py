"""How long a handler keeps the event loop: the processor time of each of its task's steps."""

from __future__ import annotations

import time
from typing import Any

import trio

from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.framing import RequestHeader
from pykbroker.protocol.schema import Message
from pykbroker.server.network.handlers import ConnectionState, HandlerTable, RequestContext
from pykbroker.server.node.broker import Broker
from pykbroker.server.runtime.garbage_collection import no_full_collections

from .api_node import Handler

LONGEST_TURN_S = 0.15
"""More than a turn takes on a busy machine, and far less than all of a huge request would take at once."""


class Turns(trio.abc.Instrument):
    """Of one task, from the next checkpoint on."""

    def __init__(self, task: trio.lowlevel.Task) -> None:
        self._task = task
        self._began_s: float | None = None
        self.durations_s: list[float] = []

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self._task:
            self._began_s = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self._task and self._began_s is not None:
            self.durations_s.append(time.thread_time() - self._began_s)

    @property
    def longest_s(self) -> float:
        return max(self.durations_s)


def context_of(broker: Broker, request: Message, version: int) -> RequestContext:
    api_key = request.__schema__.api_key
    assert api_key is not None
    header = RequestHeader(api_key, version, 1, "test")
    return RequestContext(broker, header, HandlerTable("broker"), ConnectionState("PLAINTEXT", "127.0.0.1"))


async def handle(broker: Broker, handler: Handler, request: Message, version: int) -> tuple[Any, Turns]:
    """The response as the handler gives it, and the turns that the handler took: neither codec is measured.

    As in a broker, no allocation of a request sets off a full pass of the garbage collector.
    """
    context = context_of(broker, request, version)
    received, _ = decode(type(request), version, encode(request, version))
    turns = Turns(trio.lowlevel.current_task())
    trio.lowlevel.add_instrument(turns)
    await trio.lowlevel.checkpoint()
    try:
        with no_full_collections():
            return await handler(context, received), turns
    finally:
        await trio.lowlevel.checkpoint()
        trio.lowlevel.remove_instrument(turns)
