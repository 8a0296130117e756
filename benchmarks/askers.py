"""Clients that ask one request again and again, each waiting for its answer before it asks the next time."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

WARM_UP_S = 2.0
SECONDS = 10.0
STEP_TIMEOUT_S = 30.0
_RECEIVED_AT_ONCE = 1 << 20
_SIZE = 4


@dataclass(slots=True)
class Asker:
    """check: is given each answer whose bytes are others than those of the one before, and asserts what it says."""

    connection: socket.socket
    request: bytes
    check: Callable[[bytes], None]
    accepted: bytes = b""
    received: bytearray = field(default_factory=bytearray)

    def ask(self) -> None:
        sent = self.connection.send(self.request)
        assert sent == len(self.request), "a small request fits into the socket's buffer"

    def receive(self) -> bool:
        """Whether the answer is complete."""
        piece = self.connection.recv(_RECEIVED_AT_ONCE)
        assert piece, "the broker closed the connection"
        self.received += piece
        received = len(self.received)
        if received < _SIZE or received < _SIZE + int.from_bytes(self.received[:_SIZE], "big"):
            return False
        answer = bytes(self.received)
        self.received.clear()
        if answer != self.accepted:
            self.check(answer)
            self.accepted = answer
        return True


@contextmanager
def asking(
    address: tuple[str, int], requests: Sequence[bytes], check: Callable[[bytes], None]
) -> Iterator[selectors.BaseSelector]:
    """A connection for each request; all have asked once and had their answer when this begins."""
    askers = [Asker(socket.create_connection(address), request, check) for request in requests]
    try:
        with selectors.DefaultSelector() as selector:
            for asker in askers:
                asker.connection.setblocking(False)
                selector.register(asker.connection, selectors.EVENT_READ, asker)
                asker.ask()
            ask_for(selector, WARM_UP_S)
            yield selector
    finally:
        for asker in askers:
            asker.connection.close()


def ask_for(selector: selectors.BaseSelector, seconds: float) -> float:
    """Answers per second."""
    answered, started = 0, time.perf_counter()
    while (now := time.perf_counter()) - started < seconds:
        ready = selector.select(STEP_TIMEOUT_S)
        assert ready, f"no answer within {STEP_TIMEOUT_S} s"
        for key, _ in ready:
            if key.data.receive():
                answered += 1
                key.data.ask()
    return answered / (now - started)


def finish(selector: selectors.BaseSelector) -> None:
    """Receives the last answer of each: the broker has nothing of them in hand any more."""
    for key in selector.get_map().values():
        key.data.connection.settimeout(STEP_TIMEOUT_S)
        while not key.data.receive():
            pass
