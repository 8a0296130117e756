"""What a start says at a terminal beside the one line for programs."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from compat_tests.installed import PYTHONPATH
from pykbroker.cli.next_steps import next_steps
from pykbroker.cli.secure.directory import SecureDirectory
from pykbroker.cli.start_node import Start
from pykbroker.config import BrokerConfig
from pykbroker.security.sasl.process_options import NO_OPTIONS
from pykbroker.server.node.bound_listeners import BoundListener
from pykbroker.server.node.node import NodeReady

from .test_start import READY, TIMEOUT_S

CONFIG = BrokerConfig({})
START = Start(CONFIG, NO_OPTIONS, secure=None, port_file=None, is_ephemeral=False, offer=None, ctl=None)


def ready(*listeners: BoundListener, directory: str = "data") -> NodeReady:
    return NodeReady(1, "c", listeners, (directory,))


def plain(port: int) -> BoundListener:
    return BoundListener("PLAINTEXT", "127.0.0.1", port, "PLAINTEXT")


def told(start: Start, node: NodeReady, console: str = "") -> str:
    return "\n".join(f"{label}|{text}" for label, text in next_steps(start, node, console))


def test_a_node_at_the_default_address_needs_no_flags() -> None:
    assert told(START, ready(plain(9092))) == (
        "bootstrap|127.0.0.1:9092\n"
        "data|data\n"
        "to try it|pykbroker topics create orders\n"
        "|echo hello | pykbroker produce --topic orders\n"
        "|pykbroker consume --topic orders --from-beginning\n"
        "to stop|Ctrl-C"
    )


def test_another_port_and_a_console_are_told() -> None:
    text = told(replace(START, is_ephemeral=True), ready(plain(19092)), "http://127.0.0.1:9480/")
    assert "pykbroker topics create orders --bootstrap-server 127.0.0.1:19092\n" in text
    assert "console|http://127.0.0.1:9480/\n" in text
    assert "data|data (removed at the end)\n" in text


def test_a_secured_node_tells_with_which_file(tmp_path: Path) -> None:
    secure = SecureDirectory(tmp_path / "a b", {})
    listener = BoundListener("PLAINTEXT", "127.0.0.1", 1, "SASL_SSL")
    text = told(replace(START, secure=secure), ready(listener))
    assert f"--command-config '{tmp_path}/a b/clients/admin.properties'" in text


def test_a_node_with_log_ins_of_its_own_asks_for_a_file() -> None:
    listener = BoundListener("PLAINTEXT", "::1", 9092, "SASL_PLAINTEXT")
    assert "--bootstrap-server [::1]:9092 --command-config FILE" in told(START, ready(listener))


def test_a_controller_alone_has_nothing_to_try() -> None:
    listener = BoundListener("CONTROLLER", "127.0.0.1", 9093, "PLAINTEXT")
    assert told(START, ready(listener, directory="a\x1b[31m")) == "data|a?[31m\nto stop|Ctrl-C"


@pytest.mark.parametrize("terminals", [("stderr",), ("stdout", "stderr"), ()])
def test_only_a_terminal_is_told_and_the_line_for_programs_stays(tmp_path: Path, terminals: tuple[str, ...]) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "pykbroker", "start", "--ephemeral", "--port", "0"],
        env={**os.environ, "PYTHONPATH": PYTHONPATH, "TMPDIR": str(tmp_path)},
        stdout=theirs if "stdout" in terminals else subprocess.PIPE,
        stderr=theirs if "stderr" in terminals else subprocess.PIPE,
    )
    os.close(theirs)
    seen = b""
    if terminals:
        while b"to stop" not in seen:
            seen += os.read(ours, 4096)
    else:
        assert process.stdout is not None
        seen = process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=TIMEOUT_S)
    os.close(ours)
    assert process.returncode == 0
    if "stdout" not in terminals and terminals:
        assert READY.fullmatch(out.decode())
    if terminals:
        assert re.search(rb"bootstrap +127\.0\.0\.1:\d+\r\n", seen)
        assert seen.count(b"to stop") == 1
    else:
        assert READY.fullmatch(seen.decode())
        assert out == b""
        assert b"to stop" not in err
