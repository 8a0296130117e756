"""`pykbroker container` and `pykbroker kafka`, as processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.installed import PYTHONPATH
from compat_tests.ports import take_ports

from .child_brokers import READY, TIMEOUT_S

PYKBROKER = [sys.executable, "-m", "pykbroker"]


def run(directory: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("KAFKA_")}
    environment |= {"PYTHONPATH": PYTHONPATH, **variables}
    return subprocess.run(
        [*PYKBROKER, *command], cwd=directory, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_node_starts_from_variables_and_ends_by_sigterm(tmp_path: Path) -> None:
    clients, controllers = take_ports(2)
    variables = [
        "KAFKA_NODE_ID=7",
        "KAFKA_PROCESS_ROLES=broker,controller",
        f"KAFKA_CONTROLLER_QUORUM_VOTERS=7@127.0.0.1:{controllers}",
        f"KAFKA_LISTENERS=PLAINTEXT://127.0.0.1:{clients},CONTROLLER://127.0.0.1:{controllers}",
        "KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER",
        "KAFKA_NUM_PARTITION=3",
        "CLUSTER_ID=abcdefghijklmnopqrstuv",
    ]
    command = [*PYKBROKER, "container", *variables, "--port-file", "port"]
    with subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": PYTHONPATH}, text=True, stdout=-1, stderr=-1
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            ready = READY.fullmatch(process.stdout.readline())
            assert ready is not None
            assert (ready[2], ready[3], ready[4]) == ("7", "abcdefghijklmnopqrstuv", "pykbroker-data")
            assert (tmp_path / "port").read_text().startswith(f"127.0.0.1:{clients}\n")
            listed = run(tmp_path, "kafka", "kafka-topics.sh", "--list", "--bootstrap-server", f"127.0.0.1:{clients}")
            assert (listed.returncode, listed.stdout, listed.stderr) == (0, "", "")
        finally:
            process.send_signal(signal.SIGTERM)
            log = process.stderr.read()
        assert process.wait(TIMEOUT_S) == 0
    assert "KAFKA_NUM_PARTITION is ignored" in log


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"KAFKA_NODE_ID": "x"}, "KAFKA_NODE_ID: Invalid value x for configuration node.id: "),
        ({"CLUSTER_ID": "a b"}, "CLUSTER_ID is no cluster id; "),
        ({"KAFKA_NODE_ID": "1", "KAFKA_CFG_NODE_ID": "2"}, "KAFKA_CFG_NODE_ID and KAFKA_NODE_ID set node.id to "),
        ({"KAFKA_LISTENERS": "A\nB"}, "KAFKA_LISTENERS has a line break in its value; "),
        ({"KAFKA_NODE_ID": "\x1b[31m"}, r"KAFKA_NODE_ID: Invalid value \x1b[31m for configuration node.id: "),
        ({"KAFKA_LOG_DIRS": "/proc/none"}, "KAFKA_LOG_DIRS: "),
        (
            {"KAFKA_LISTENERS": "PLAINTEXT://203.0.113.1:9092"},
            "cannot listen on PLAINTEXT://203.0.113.1:9092: ",
        ),
    ],
)
def test_a_wrong_variable_is_one_line(tmp_path: Path, variables: dict[str, str], complaint: str) -> None:
    done = run(tmp_path, "container", **variables)
    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if " INFO " not in line]
    assert len(errors) == 1, errors
    assert errors[0].startswith(f"Error: {complaint}"), errors


@pytest.mark.parametrize(
    ("flag", "complaint"),
    [
        ("--ephemeral", "--ephemeral: the data of `container` is where KAFKA_LOG_DIRS says"),
        ("--data-dir=x", "--data-dir: the data of `container` is where KAFKA_LOG_DIRS says"),
        ("server.properties", "server.properties: a file of `container` is mounted, or is one of `pykbroker start`"),
        ("--override=x", "--override expects KEY=VALUE, not 'x'"),
        ("--frobnicate", "No such option '--frobnicate'."),
    ],
)
def test_flags_that_do_not_go_with_variables_are_one_line(tmp_path: Path, flag: str, complaint: str) -> None:
    done = run(tmp_path, "container", flag)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"Error: {complaint}\n")
    assert list(tmp_path.iterdir()) == []


def test_tools_are_told_and_unknown_ones_are_one_line(tmp_path: Path) -> None:
    assert "kafka-topics" in run(tmp_path, "kafka").stdout.splitlines()
    done = run(tmp_path, "kafka", "kafka-mirror-maker.sh", "--help")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    done = run(tmp_path, "kafka", "kafka-topics.sh", "--frobnicate")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "kafka-topics" in run(tmp_path, "kafka", "kafka-topics.sh", "--help").stdout
    assert run(tmp_path, "kafka", "kafka-topics.sh", "--version").stdout.startswith("pykbroker ")
