"""The program of the image's health check: one ApiVersions request to a listener of the node, and its answer.

Only small modules of the standard library are imported, and the image runs the file by `python3 -I -S`: a check costs
some 20 ms of CPU, and not the start of a command. `pykbroker container` writes down which listener to ask. The answer
comes from the node's event loop, so a node that hangs is not healthy; whether partitions have leaders is not asked.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Sequence
from typing import Final

TIMEOUT_S: Final = 4.0
_FILE: Final = "pykbroker-health"
_REQUEST: Final = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""ApiVersions, version 0, of a client without a name."""
_RESPONSE: Final = struct.Struct(">iih")
_PREFERENCE: Final = ("PLAINTEXT", "SASL_PLAINTEXT", "SSL", "SASL_SSL")
_LOOPBACKS: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where it is bound, not by us


def target_file() -> str:
    """The file that says whom to ask."""
    return os.path.join(os.environ.get("TMPDIR") or "/tmp", _FILE)  # noqa: S108 - of one container


def write_target(listeners: Sequence[tuple[str, int, str]]) -> bool:
    """Write down the listener to ask. listeners: host, port and security protocol. False where that is not possible."""
    host, port, protocol = min(listeners, key=lambda each: _PREFERENCE.index(each[2]))
    name = target_file()
    beside = f"{name}.{os.getpid()}"
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        with open(descriptor, "w") as file:
            file.write(f"{_LOOPBACKS.get(host, host)} {port} {protocol}\n")
        os.replace(beside, name)
    except OSError:
        return False
    return True


def read_target() -> tuple[str, int, str]:
    """The listener to ask; the usual one where nothing is written down. Raises ValueError, OSError."""
    try:
        with open(target_file()) as file:
            host, port, protocol = file.read(400).split()
    except FileNotFoundError:
        return "127.0.0.1", 9092, "PLAINTEXT"
    return host, int(port), protocol


def problem(host: str, port: int, protocol: str, timeout_s: float = TIMEOUT_S) -> str | None:
    """Ask; None where the node has answered, else what is wrong in one line."""
    place = f"{host}:{port}"
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            if protocol.endswith("SSL"):
                return _problem_with_tls(connection, place)
            return _problem_of(_ask(connection), place)
    except TimeoutError:
        return f"{place} has not answered within {timeout_s:g} s"
    except OSError as error:
        return f"{place}: {error.strerror or error}"


def _problem_with_tls(connection: socket.socket, place: str) -> str | None:
    """The certificate is not looked at, and one that says no to ours has answered."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with context.wrap_socket(connection) as stream:
            return _problem_of(_ask(stream), place)
    except ssl.SSLError as error:
        return None if "ALERT" in (error.reason or "") else f"{place}: {error.reason or error}"


def _ask(connection: socket.socket) -> bytes:
    connection.sendall(_REQUEST)
    answer = b""
    while len(answer) < _RESPONSE.size and (more := connection.recv(_RESPONSE.size - len(answer))):
        answer += more
    return answer


def _problem_of(answer: bytes, place: str) -> str | None:
    if len(answer) < _RESPONSE.size:
        return f"{place} has closed the connection"
    _, correlation_id, error_code = _RESPONSE.unpack(answer)
    return None if (correlation_id, error_code) == (1, 0) else f"{place} has answered what was not asked"


def main(arguments: Sequence[str]) -> int:
    """Print one line; the exit code is 1 where the node is not healthy. arguments: HOST PORT PROTOCOL, or none."""
    try:
        if arguments:
            host, port, protocol = arguments
            wrong = problem(host, int(port), protocol)
        else:
            wrong = problem(*read_target())
    except (OSError, ValueError, OverflowError) as error:
        wrong = f"{' '.join(arguments) or target_file()}: {error}"
    sys.stdout.write(f"{wrong or 'healthy'}\n")
    return 0 if wrong is None else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
