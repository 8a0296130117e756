"""Operations: each function is one, from what a request says to what it is answered, on the node's loop.

The parts of control have requests of their own, in values of JSON; this is where they meet `Control`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

import trio

from pykbroker.control.audit import requests as audit_requests
from pykbroker.control.clocks import requests as clock_requests
from pykbroker.control.control import Control
from pykbroker.control.nodes import requests as node_requests
from pykbroker.control.why import requests as why_requests

from .operation import Farewell, Json, Stream

Arguments = Mapping[str, Any]


async def journal_status(control: Control, arguments: Arguments) -> Json:
    return control.journal_requests.status()


async def journal_clear(control: Control, arguments: Arguments) -> Json:
    return control.journal_requests.clear()


async def journal_requests(control: Control, arguments: Arguments) -> Json:
    return await control.journal_requests.requests(arguments)


async def journal_events(control: Control, arguments: Arguments) -> Json:
    return await control.journal_requests.events(arguments)


async def journal_lines(control: Control, arguments: Arguments) -> Stream:
    return await _stream("application/x-ndjson", control.journal_requests.json_lines(arguments))


async def journal_capture(control: Control, arguments: Arguments) -> Stream:
    return await _stream("application/vnd.tcpdump.pcap", control.journal_requests.pcap(arguments))


async def audit_begin(control: Control, arguments: Arguments) -> Json:
    return audit_requests.begin(control.audit)


async def audit_look(control: Control, arguments: Arguments) -> Json:
    return audit_requests.look(control.audit)


async def audit_end(control: Control, arguments: Arguments) -> Json:
    return audit_requests.end(control.audit)


async def clock_advance(control: Control, arguments: Arguments) -> Json:
    return await clock_requests.advance(control, arguments)


async def clock_advanced(control: Control, arguments: Arguments) -> Json:
    return clock_requests.advanced(control, arguments)


async def node_state(control: Control, arguments: Arguments) -> Json:
    return node_requests.state(control, arguments)


async def node_pause(control: Control, arguments: Arguments) -> Json:
    return node_requests.pause(control, arguments)


async def node_resume(control: Control, arguments: Arguments) -> Json:
    return node_requests.resume(control, arguments)


async def node_cut_off(control: Control, arguments: Arguments) -> Json:
    return node_requests.cut_off(control, arguments)


async def node_restore(control: Control, arguments: Arguments) -> Json:
    return node_requests.restore(control, arguments)


async def node_crash(control: Control, arguments: Arguments) -> Farewell:
    """The process is killed behind the answer, which has what was lost, also where the client leaves meanwhile."""
    answer: Json = None
    with trio.CancelScope(shield=True):
        answer = await node_requests.crash(control, arguments)
    return Farewell(answer, control.mishaps.kill_process)


async def savepoint_save(control: Control, arguments: Arguments) -> Stream:
    at = arguments.get("at")
    rewinding = None if at is None else partial(control.rewind_to, at)

    async def parts() -> AsyncIterator[bytes]:
        async with control.savepoints.download(rewinding, control.advances_at(at)) as savepoint:
            async for part in savepoint.portions():
                yield part

    return await _stream("application/x-tar", parts())


async def why_group(control: Control, arguments: Arguments) -> Json:
    return await _why(control, "group", arguments)


async def why_consumer(control: Control, arguments: Arguments) -> Json:
    return await _why(control, "consumer", arguments)


async def why_lso(control: Control, arguments: Arguments) -> Json:
    return await _why(control, "lso", arguments)


async def why_throttle(control: Control, arguments: Arguments) -> Json:
    return await _why(control, "throttle", arguments)


async def _why(control: Control, question: str, arguments: Arguments) -> Json:
    return await why_requests.ask(why_requests.brokers_of([control.node]), question, arguments)


async def _stream(content_type: str, parts: AsyncIterator[bytes]) -> Stream:
    """Return a stream whose first part is there: what is wrong with the request is said before it begins."""
    try:
        first = await anext(parts)
    except StopAsyncIteration:
        first = b""

    async def all_parts() -> AsyncIterator[bytes]:
        async with aclosing(parts):  # type: ignore[type-var]  # each is a generator
            yield first
            async for part in parts:
                yield part

    return Stream(content_type, all_parts())
