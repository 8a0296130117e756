"""A plain socket to a broker, and frames whose every byte a test chooses."""

import itertools
import socket
import struct
from types import TracebackType
from typing import Self

from pykbroker.protocol import compile
from pykbroker.protocol.api_keys import response_type
from pykbroker.protocol.framing import decode_response_header, encode_request
from pykbroker.protocol.schema import Message

ANSWER_DEADLINE_S = 60.0
SILENCE_S = 1.5
"""How long a broker that owes an answer may say nothing until that counts as its answer."""

CLIENT_ID = "hostile"


class Closed(Exception):
    """The broker closed the connection instead of answering."""


class Silent(Exception):
    """The broker neither answered nor closed the connection."""


class Wire:
    """One connection; a context manager."""

    def __init__(self, address: tuple[str, int], deadline_s: float = ANSWER_DEADLINE_S) -> None:
        self._socket = socket.create_connection(address, timeout=deadline_s)
        self._correlation_ids = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def send_raw(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except (ConnectionResetError, BrokenPipeError):
            raise Closed from None

    def send_raw_for(self, data: bytes, deadline_s: float) -> None:
        """Send as much as the broker takes in that time. Raises TimeoutError or Closed."""
        self._socket.settimeout(deadline_s)
        self.send_raw(data)

    def send_frame(self, frame: bytes) -> None:
        self.send_raw(struct.pack(">i", len(frame)) + frame)

    def receive(self, deadline_s: float = ANSWER_DEADLINE_S) -> bytes:
        """The next frame without its size. Raises Closed or Silent."""
        self._socket.settimeout(deadline_s)
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def call(
        self,
        request: Message,
        version: int,
        *,
        client_id: str | None = CLIENT_ID,
        deadline_s: float = ANSWER_DEADLINE_S,
    ) -> Message:
        """A well-formed frame of a perhaps ill-meant request, and its decoded answer. Raises Closed or Silent."""
        api_key = request.__schema__.api_key
        assert api_key is not None
        self.send_raw(encode_request(request, version, next(self._correlation_ids), client_id))
        return decode_answer(self.receive(deadline_s), api_key, version)

    def send(self, request: Message, version: int, *, client_id: str = CLIENT_ID) -> None:
        self.send_raw(encode_request(request, version, next(self._correlation_ids), client_id))

    def _exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            try:
                piece = self._socket.recv(size - len(received))
            except TimeoutError:
                raise Silent from None
            except ConnectionResetError:
                raise Closed from None
            if not piece:
                raise Closed
            received += piece
        return bytes(received)


def decode_answer(frame: bytes, api_key: int, version: int) -> Message:
    _, body = decode_response_header(frame, api_key, version)
    answer, _ = compile.decode(response_type(api_key), version, frame, body, objects_limit=10_000_000)
    return answer


def header(api_key: int, version: int, *, client_id: bytes | None = b"hostile", tags: bytes | None = None) -> bytes:
    """A request header with correlation id 7. `tags` makes it one of header version 2."""
    length = -1 if client_id is None else len(client_id)
    return struct.pack(">hhih", api_key, version, 7, length) + (client_id or b"") + (tags or b"")


def uvarint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
