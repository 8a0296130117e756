"""A client of a broker's control over HTTP, for `pykbroker ctl`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Final
from urllib.parse import quote, urlencode

from .loopback import BadAddress, checked
from .operation import Json, Operation

MOST_ANSWER_BYTES: Final = 256 * 1024 * 1024
_TIMEOUT_S: Final = 120.0
_PART_BYTES: Final = 64 * 1024
_ODD_BYTES: Final = "surrogateescape"
"""Bytes of a command line that are no text are sent as they are."""


class ControlFailed(Exception):
    """Control cannot be asked, or has refused; the message is one line for people."""


class ControlClient:
    """A client. address: `HOST:PORT`. token: None where there is none. Raises ControlFailed where no control can be."""

    def __init__(self, address: str, token: str | None = None) -> None:
        try:
            self._address = checked(address)
        except BadAddress as error:
            raise ControlFailed(str(error)) from None
        self._token = token

    def ask(self, operation: Operation, arguments: Mapping[str, Json]) -> Json:
        """Return the answer's JSON. Raises ControlFailed."""
        with self._answer(operation, arguments) as answer:
            text = self._read(answer, MOST_ANSWER_BYTES + 1)
        if len(text) > MOST_ANSWER_BYTES:
            raise ControlFailed(f"the answer has more than {MOST_ANSWER_BYTES} bytes")
        try:
            return json.loads(text)
        except ValueError:
            raise ControlFailed(f"{self._address} answers no JSON: it is no control of a broker") from None

    def parts(self, operation: Operation, arguments: Mapping[str, Json]) -> Iterator[bytes]:
        """Give a stream's parts. Raises ControlFailed, before the first one where the operation is refused."""
        with self._answer(operation, arguments) as answer:
            yield b""
            while part := self._read(answer, _PART_BYTES):
                yield part

    @contextmanager
    def _answer(self, operation: Operation, arguments: Mapping[str, Json]) -> Iterator[HTTPResponse]:
        rest = dict(arguments)
        path = "/".join(
            quote(str(rest.pop(part[1:-1])), safe="", errors=_ODD_BYTES) if part.startswith("{") else part
            for part in operation.path.split("/")
        )
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        body = None
        if operation.method == "POST":
            body = json.dumps(rest)
            headers["Content-Type"] = "application/json"
        elif rest:
            query = urlencode({name: _text(value) for name, value in rest.items()}, errors=_ODD_BYTES)
            path += f"?{query}"
        connection = HTTPConnection(self._address, timeout=_TIMEOUT_S)
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # what is too long is refused before its end
                connection.request(operation.method, path, body, headers)
            answer = connection.getresponse()
        except (OSError, HTTPException) as error:
            connection.close()
            raise self._silent(error) from None
        with closing(connection):
            if answer.status != HTTPStatus.OK:
                raise ControlFailed(_refusal(self._read(answer, _PART_BYTES), answer))
            yield answer

    def _read(self, answer: HTTPResponse, size: int) -> bytes:
        try:
            return answer.read(size)
        except (OSError, HTTPException) as error:
            raise ControlFailed(f"the answer of {self._address} was cut off: {_reason(error)}") from None

    def _silent(self, error: Exception) -> ControlFailed:
        where = f"no control answers at {self._address}"
        return ControlFailed(f"{where}: {_reason(error)} (a broker has one with --ctl-port)")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _text(value: Json) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _refusal(text: bytes, answer: HTTPResponse) -> str:
    try:
        return str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        return f"control answers {answer.status} {answer.reason}".rstrip()
