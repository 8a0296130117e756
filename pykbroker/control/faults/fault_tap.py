"""The tap in which faults come about, behind the journal's: what it does, the journal has.

A request is decoded only where a rule asks for its topics, or answers it with an error. Rules count requests in the
order in which their connections bring them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import compress
from typing import Final

from pykbroker.protocol.api_keys import request_type
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.framing import RequestHeader, decode_request_header
from pykbroker.server.network.handlers import CloseConnection, ConnectionState
from pykbroker.server.network.tap import Answer, Handle
from pykbroker.server.network.transport import FileRegion, Part
from pykbroker.server.node.node import Node
from pykbroker.server.runtime.causes import note_interference
from pykbroker.server.runtime.threads import Threads

from .condition import Happened, Happening
from .plan import Concerned, FaultPlan, note
from .reading import ReadRequest, RequestReader
from .rule import Held, Rule, When
from .waits import End, Waits

_CUT_BYTES: Final = 64 * 1024
"""Of an answer that is cut, at most."""
_LEAST_CUT_BYTES: Final = 5
"""The size of the frame, and a byte of what it announces."""


class FaultTap:
    """The tap of one start of a node. node: while it runs."""

    def __init__(self, plan: FaultPlan, waits: Waits, node: Callable[[], Node | None], threads: Threads) -> None:
        self._plan = plan
        self._waits = waits
        self._node = node
        self._threads = threads

    async def exchange(self, frame: memoryview, connection: ConnectionState, handle: Handle) -> Answer:
        if self._plan.is_empty:
            return await handle()
        try:
            header, body = decode_request_header(frame)
        except MalformedMessage:
            return await handle()  # which says so, and closes the connection
        concerned = self._plan.concerned(header)
        if not (concerned.rules or concerned.conditions) or not _is_known(header):
            return await handle()
        return await self._exchange(frame, header, body, connection, handle, concerned)

    async def _exchange(
        self,
        frame: memoryview,
        header: RequestHeader,
        body: int,
        connection: ConnectionState,
        handle: Handle,
        concerned: Concerned,
    ) -> Answer:
        reader = RequestReader(self._node(), self._threads)
        rules, conditions = concerned
        interference = None
        if concerned.asks_for_topics or any(rule.action.error is not None for rule in rules):
            request = await _read(reader, frame, header, body)
            if request is None:
                return await handle()  # which says so, and closes the connection
            rules, conditions = await _meant(reader, concerned, request)
            note(conditions, Happening.SEEN)
            if chosen := self._plan.choose(rules, header):
                interference = _Interference(chosen, len(frame), await _error_answer(reader, chosen, request))
            del request  # its slices would keep the receive buffer from being used again
        else:
            note(conditions, Happening.SEEN)
            if chosen := self._plan.choose(rules, header):
                interference = _Interference(chosen, len(frame))
        if interference is None:
            answer = await handle()
        else:
            answer = await self._interfere(interference, connection, handle)
        note(conditions, Happening.ANSWERED)
        return answer

    async def _interfere(self, what: _Interference, connection: ConnectionState, handle: Handle) -> Answer:
        """Raises what closes the connection."""
        await self._hold_request(what, connection)
        decisive = what.decisive
        action = None if decisive is None else decisive.action
        if action is not None and action.drop is When.BEFORE:
            raise _closing(decisive, "dropped before it was carried out")
        if action is not None and action.error is not None and action.when is When.BEFORE:
            answer = what.instead
        else:
            answer = await _handled_now(connection, handle)
        if action is not None and action.error is not None:
            note_interference(f"{_name(decisive)}: answered with {action.error.name} {action.when} it was carried out")
            if what.instead is None:  # as Kafka ends the connection of a producer without acknowledgements
                raise _closing(decisive, f"{action.error.name}, and the client wants no answer")
            answer = what.instead
        await self._hold_answer(what, connection, answer)
        if action is not None and action.drop is When.AFTER:
            raise _closing(decisive, "dropped after it was carried out")
        if action is not None and action.cuts:
            raise _closing(decisive, "the answer was cut", None if answer is None else beginning_of(answer))
        return answer

    async def _hold_request(self, what: _Interference, connection: ConnectionState) -> None:
        """Raises CloseConnection where the node stops meanwhile."""
        for rule in what.rules:
            action, size = rule.action, what.size
            if action.delay_ms:
                end = await self._waits.wait(rule, connection, Held.REQUEST, size, action.delay_ms, None)
                self._note_wait(rule, end, f"delayed by {action.delay_ms:g} ms")
            if action.until is not None and action.held is Held.REQUEST:
                end = await self._waits.wait(rule, connection, Held.REQUEST, size, action.timeout_ms, action.until)
                self._note_wait(rule, end, f"held until {action.until}", is_barrier=True)
                if end is End.STOPPED:
                    raise _closing(rule, "the node stops")

    async def _hold_answer(self, what: _Interference, connection: ConnectionState, answer: Answer) -> None:
        size = sum(len(part) for part in answer or () if isinstance(part, (bytes, bytearray, memoryview)))
        for rule in what.rules:
            action = rule.action
            if action.hold_ms:
                end = await self._waits.wait(rule, connection, Held.ANSWER, size, action.hold_ms, None)
                self._note_wait(rule, end, f"answer held for {action.hold_ms:g} ms")
            if action.until is not None and action.held is Held.ANSWER:
                end = await self._waits.wait(rule, connection, Held.ANSWER, size, action.timeout_ms, action.until)
                self._note_wait(rule, end, f"answer held until {action.until}", is_barrier=True)

    def _note_wait(self, rule: Rule, end: End, what: str, *, is_barrier: bool = False) -> None:
        match end:
            case End.TIME if is_barrier:
                rule.timed_out += 1
                what += ", which did not happen in time"
            case End.NO_ROOM:
                rule.timed_out += 1
                what = f"not {what}: too much is held already"
            case End.REMOVED:
                what += ", and let go since the fault was removed"
            case End.LET_GO:
                rule.timed_out += 1
                what += ", and let go before: memory is short, or the client has left"
            case End.STOPPED:
                what += ", and let go since the node stops"
            case _:
                pass
        note_interference(f"{rule.name}: {what}")


class _Interference:
    """The interference of chosen rules with a request. size: of the request. instead: an answer that says an error."""

    def __init__(self, rules: list[Rule], size: int, instead: list[Part] | None = None) -> None:
        self.rules = rules
        self.size = size
        self.instead = instead
        self.decisive = _decisive(rules)


async def _handled_now(connection: ConnectionState, handle: Handle) -> Answer:
    """Have a request handled that may have been held. For the broker it comes now: what a client that it knows to have
    left has sent is not checked for long.
    """
    had_left, connection.has_left = connection.has_left, False
    try:
        return await handle()
    finally:
        connection.has_left |= had_left


def _decisive(rules: list[Rule]) -> Rule | None:
    return next((rule for rule in rules if rule.action.decides), None)


async def _read(reader: RequestReader, frame: memoryview, header: RequestHeader, body: int) -> ReadRequest | None:
    """Return the request; None for what cannot be read."""
    try:
        return await reader.read(frame, header, body)
    except MalformedMessage:
        return None


async def _error_answer(reader: RequestReader, rules: list[Rule], request: ReadRequest) -> list[Part] | None:
    """The answer that says an error, made while the request is there; None where there is none."""
    rule = _decisive(rules)
    if rule is None or rule.action.error is None:
        return None
    found = await reader.error_answer(request, rule.action.error, f"by the fault '{rule.name}'")
    return None if found is None else [*found]


def beginning_of(answer: list[Part]) -> list[Part]:
    """Return the first half of an answer's frame, or 64 KiB of it where that is less."""
    whole = sum(len(part) if isinstance(part, (bytes, bytearray, memoryview)) else part.size for part in answer)
    missing = max(_LEAST_CUT_BYTES, min(whole // 2, _CUT_BYTES))
    found: list[Part] = []
    for part in answer:
        if isinstance(part, (bytes, bytearray, memoryview)):
            piece = bytes(part[:missing])
        else:
            piece = _beginning_of_region(part, missing)
        found.append(piece)
        missing -= len(piece)
        if missing <= 0:
            break
    return found


def _beginning_of_region(region: FileRegion, size: int) -> bytes:
    descriptor = region.file.fileno()
    if descriptor is None:
        return region.read()[:size]
    try:
        return os.pread(descriptor, min(region.size, size), region.position)
    except OSError:
        return b""  # it is cut all the same


async def _meant(
    reader: RequestReader, concerned: Concerned, request: ReadRequest
) -> tuple[list[Rule], list[Happened]]:
    """Return the rules and conditions that mean a request with its topics."""
    fits = await reader.fitting(concerned.matches, request.topics)
    count = len(concerned.rules)
    return list(compress(concerned.rules, fits)), list(compress(concerned.conditions, fits[count:]))


def _is_known(header: RequestHeader) -> bool:
    """Tell whether the version is one that can be decoded; others are refused, or answered in another version."""
    return request_type(header.api_key).__schema__.versions.includes(header.api_version)


def _closing(rule: Rule | None, what: str, answer: list[Part] | None = None) -> CloseConnection:
    note_interference(f"{_name(rule)}: {what}")
    return CloseConnection(f"control ends the connection: {_name(rule)}: {what}", answer)


def _name(rule: Rule | None) -> str:
    return "a fault" if rule is None else rule.name
