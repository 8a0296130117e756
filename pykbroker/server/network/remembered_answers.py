"""Answers that are the same for the same request are remembered, as bytes by the bytes of the request.

Hundreds of clients ask the same question, each of them again and again, and the answer changes when the node's state
does. What a handler's answers are made of says `Handler.made_of`: as long as that is equal, an answer that the handler
has marked (`RequestContext.repeat`) may be given again without the handler. The correlation id is in neither.

The frames are those of one listener: what clients of another one are told may differ. Handlers mark no answer that
depends on who asks. Memory has a bound, and what would go beyond it makes room of all that was remembered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Final, Generic, TypeVar

from pykbroker.protocol.framing import RequestHeader

from .handlers import ConnectionState

NodeT = TypeVar("NodeT")

LARGEST_QUESTION_BYTES: Final = 1024
LARGEST_ANSWER_BYTES: Final = 8192
_MOST_BYTES: Final = 1 << 20
_ENTRY_BYTES: Final = 512
"""What an entry takes beside its bytes."""
_HEADER_BYTES: Final = 8
"""API key, version and correlation id."""
_API_KEY: Final = Struct(">h")
_CORRELATION_ID: Final = Struct(">i")
_BEGINNING: Final = Struct(">ii")
"""The size of an answer and its correlation id."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    """A remembered answer. header: of the request that was answered first. answer: behind the correlation id.

    repeat: see the context.
    """

    header: RequestHeader
    answer: bytes
    beginning_size: int
    repeat: Callable[[ConnectionState], None]


class _Api(Generic[NodeT]):
    """The remembered answers of one API. state: of what they were made."""

    __slots__ = ("answers", "made_of", "state")

    def __init__(self, made_of: Callable[[NodeT], object | None]) -> None:
        self.made_of = made_of
        self.state: object | None = None
        self.answers: dict[bytes, _Remembered] = {}


class RememberedAnswers(Generic[NodeT]):
    """The remembered answers of one listener."""

    def __init__(self, node: NodeT, most_bytes: int = _MOST_BYTES) -> None:
        self._node = node
        self._most_bytes = most_bytes
        self._apis: dict[int, _Api[NodeT]] = {}
        self.held_bytes = 0
        """Of requests and answers, and around them."""

    def find(self, frame: memoryview, connection: ConnectionState) -> bytes | None:
        """Return the whole answer to a request, and note at its connection what the handler would; None where nothing
        is remembered. frame: without its size.
        """
        if len(frame) > LARGEST_QUESTION_BYTES or len(frame) < _HEADER_BYTES or connection.reached is not None:
            return None
        api = self._apis.get(_API_KEY.unpack_from(frame)[0])
        if api is None:
            return None
        known = api.answers.get(bytes(frame[:4]) + frame[8:])
        if known is None:
            return None
        if api.made_of(self._node) != api.state:
            self._forget(api)
            return None
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame, 4)
        header = known.header
        connection.request = RequestHeader(header.api_key, header.api_version, correlation_id, header.client_id)
        known.repeat(connection)
        return _BEGINNING.pack(known.beginning_size, correlation_id) + known.answer

    def keep(
        self,
        question: bytes,
        header: RequestHeader,
        answer: bytes,
        made_of: Callable[[NodeT], object | None],
        state: object,
        repeat: Callable[[ConnectionState], None],
    ) -> None:
        """Remember an answer. question, answer: whole frames, the one without its size. state: what `made_of` has said
        before the request was handled, and says still.
        """
        if len(question) > LARGEST_QUESTION_BYTES or len(answer) > LARGEST_ANSWER_BYTES:
            return
        api = self._apis.get(header.api_key)
        if api is None:
            api = self._apis[header.api_key] = _Api(made_of)
        if api.state != state:
            self._forget(api)
            api.state = state
        size = len(question) + len(answer) + _ENTRY_BYTES
        if self.held_bytes + size > self._most_bytes:
            for each in self._apis.values():
                self._forget(each)
        key = question[:4] + question[8:]
        if key not in api.answers:
            self.held_bytes += size
            api.answers[key] = _Remembered(header, answer[_BEGINNING.size :], len(answer) - 4, repeat)

    def _forget(self, api: _Api[NodeT]) -> None:
        for key, known in api.answers.items():
            self.held_bytes -= len(key) + 4 + len(known.answer) + _BEGINNING.size + _ENTRY_BYTES
        api.answers.clear()
