"""A client of a broker's control over HTTP, for `pykbroker ctl`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import BinaryIO, Final
from urllib.parse import quote, urlencode

from .operation import Json, Operation

MOST_ANSWER_BYTES: Final = 256 * 1024 * 1024
_TIMEOUT_S: Final = 120.0
_PART_BYTES: Final = 64 * 1024


class ControlFailed(Exception):
    """Control cannot be asked, or has refused; the message is one line for people."""


class ControlClient:
    """A client. address: `HOST:PORT`. token: None where there is none."""

    def __init__(self, address: str, token: str | None = None) -> None:
        self._address = address
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

    def save(self, operation: Operation, arguments: Mapping[str, Json], file: BinaryIO) -> None:
        """Write a stream to a file. Raises ControlFailed, OSError of the file."""
        with self._answer(operation, arguments) as answer:
            while part := self._read(answer, _PART_BYTES):
                file.write(part)

    @contextmanager
    def _answer(self, operation: Operation, arguments: Mapping[str, Json]) -> Iterator[HTTPResponse]:
        rest = dict(arguments)
        path = "/".join(
            quote(str(rest.pop(part[1:-1])), safe="") if part.startswith("{") else part
            for part in operation.path.split("/")
        )
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        body = None
        if operation.method == "POST":
            body = json.dumps(rest)
            headers["Content-Type"] = "application/json"
        elif rest:
            path += f"?{urlencode({name: _text(value) for name, value in rest.items()})}"
        try:
            connection = HTTPConnection(self._address, timeout=_TIMEOUT_S)
        except HTTPException:
            raise ControlFailed(f"'{self._address}' is no HOST:PORT") from None
        try:
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
            raise self._silent(error) from None

    def _silent(self, error: Exception) -> ControlFailed:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return ControlFailed(f"no control answers at {self._address}: {reason} (a broker has one with --ctl-port)")


def _text(value: Json) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _refusal(text: bytes, answer: HTTPResponse) -> str:
    try:
        return str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        return f"control answers {answer.status} {answer.reason}"
