"""Word to the service manager: when the node serves, and only then."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.installed import PYTHONPATH
from pykbroker.cli.service_manager import tell_service_manager

from .child_brokers import START, TIMEOUT_S


def test_a_node_that_serves_tells_the_service_manager(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(TIMEOUT_S)
        environment = {"PYTHONPATH": PYTHONPATH, "NOTIFY_SOCKET": address}
        with subprocess.Popen([*START, "--port-file", "port"], cwd=tmp_path, env=environment, stderr=-3) as process:
            try:
                assert manager.recv(100) == b"READY=1"
                assert (tmp_path / "port").is_file()
            finally:
                process.send_signal(signal.SIGTERM)
        assert process.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="abstract names are Linux's")
def test_a_name_may_be_abstract(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{tmp_path}")
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{tmp_path}")
        tell_service_manager("READY=1")
        assert manager.recv(100, socket.MSG_DONTWAIT) == b"READY=1"


def test_a_manager_that_is_gone_is_no_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "none"))
    tell_service_manager("READY=1")
    assert "is not told READY=1: No such file or directory" in caplog.text
    monkeypatch.delenv("NOTIFY_SOCKET")
    tell_service_manager("READY=1")
