"""The health check: a node that answers, and what else there may be at its address."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pykbroker.container import health
from pykbroker.testing import Broker


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[tuple[str, int]]:
    """An address where one connection is answered by `answer`."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[:2]
        thread.join()


def test_a_node_that_serves_is_healthy() -> None:
    with Broker() as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        assert health.problem(host, int(port), "PLAINTEXT") is None


def test_nobody_at_the_address_is_a_problem() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()[:2]
    assert health.problem(host, port, "PLAINTEXT") == f"{host}:{port}: Connection refused"


def test_a_node_that_hangs_is_a_problem() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()[:2]
        for protocol in ("PLAINTEXT", "SSL"):
            assert health.problem(host, port, protocol, 0.05) == f"{host}:{port} has not answered within 0.05 s"


def test_one_who_closes_is_a_problem() -> None:
    with listening(lambda connection: None) as (host, port):
        said = health.problem(host, port, "PLAINTEXT")
        assert said in (f"{host}:{port} has closed the connection", f"{host}:{port}: Connection reset by peer")


@pytest.mark.parametrize("answer", [struct.pack(">iih", 6, 2, 0), struct.pack(">iih", 6, 1, 35), b"HTTP/1.1 200 OK"])
def test_an_answer_to_something_else_is_a_problem(answer: bytes) -> None:
    def say(connection: socket.socket) -> None:
        connection.recv(100)
        connection.sendall(answer)

    with listening(say) as (host, port):
        assert health.problem(host, port, "PLAINTEXT") == f"{host}:{port} has answered what was not asked"


def test_a_listener_that_needs_no_handshake_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert health.read_target() == ("127.0.0.1", 9092, "PLAINTEXT")
    assert health.write_target([("0.0.0.0", 9, "SSL"), ("", 7, "SASL_PLAINTEXT"), ("::", 8, "SASL_SSL")])
    assert health.read_target() == ("127.0.0.1", 7, "SASL_PLAINTEXT")
    assert health.write_target([("::", 8, "SASL_SSL")])
    assert health.read_target() == ("::1", 8, "SASL_SSL")
    monkeypatch.setenv("TMPDIR", "/none")
    assert not health.write_target([("", 7, "PLAINTEXT")])


def test_the_program_needs_neither_site_packages_nor_much_of_the_library(tmp_path: Path) -> None:
    (tmp_path / "pykbroker-health").write_text("127.0.0.1 1 PLAINTEXT\n")
    environment = {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-I", "-S", "-X", "importtime", health.__file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "127.0.0.1:1: Connection refused\n")
    assert len(done.stderr.splitlines()) < 100, "the program imports too much"
    (tmp_path / "pykbroker-health").write_text("garbage\n")
    done = subprocess.run(command[:3] + command[5:], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1
