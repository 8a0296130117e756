"""`pykbroker start` as a process: what it prints, what it refuses, how it ends."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.installed import PYTHONPATH
from compat_tests.ports import take_ports
from compat_tests.waiting import until
from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest

READY = re.compile(
    r"pykbroker ready: PLAINTEXT://127\.0\.0\.1:(\d+) node\.id=(\d+) cluster\.id=(\S{22}) log\.dirs=(\S+)\n"
)
TIMEOUT_S = 180


@dataclass
class Started:
    process: subprocess.Popen[str]
    ready: re.Match[str]

    @property
    def port(self) -> int:
        return int(self.ready[1])

    @property
    def cluster_id(self) -> str:
        return self.ready[3]

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, out, err


StartNode = Callable[..., Started]


def run_process(*arguments: str | Path, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pykbroker", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartNode]:
    """Start a node on a free port, in a directory of the test; what still runs at the end is killed."""
    processes: list[subprocess.Popen[str]] = []

    def start_node(*arguments: str | Path, port: int = 0) -> Started:
        listeners = f"listeners=PLAINTEXT://127.0.0.1:{port}"
        process = run_process("start", "--override", listeners, *arguments, cwd=tmp_path)
        processes.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        ready = READY.fullmatch(line)
        assert ready, f"{line!r} {process.communicate(timeout=TIMEOUT_S)}"
        return Started(process, ready)

    yield start_node
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def refused(*arguments: str | Path, cwd: Path) -> str:
    """Run a start that must fail; returns its one line."""
    process = run_process("start", *arguments, cwd=cwd)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1, err
    assert out == ""
    assert "Traceback" not in err
    (line,) = [each for each in err.splitlines() if "WARNING" not in each]
    return line


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_line_says_that_it_serves_and_a_signal_stops_it_cleanly(
    start: StartNode, tmp_path: Path, number: signal.Signals
) -> None:
    node = start()
    with socket.create_connection(("127.0.0.1", node.port)) as idle:
        code, out, err = node.end(number)
        assert idle.recv(1) == b""
    assert (code, out) == (0, "")
    assert "Traceback" not in err
    directory = tmp_path / "pykbroker-data"
    assert (directory / "meta.properties").exists()
    assert (directory / ".kafka_cleanshutdown").exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at another process's limits")
def test_a_node_takes_all_descriptors_that_it_may_have(start: StartNode) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = len(list(Path("/proc/self/fd").iterdir())) + 100  # this process, too, has to live with it
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, few), hard))
    try:
        node = start("--ephemeral")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert psutil.Process(node.process.pid).rlimit(psutil.RLIMIT_NOFILE) == (hard, hard)


def test_a_restart_finds_its_cluster_again(start: StartNode, tmp_path: Path) -> None:
    first = start("--data-dir", tmp_path / "d")
    assert first.end()[0] == 0
    second = start("--data-dir", tmp_path / "d")
    assert second.cluster_id == first.cluster_id


def test_a_restart_after_a_kill_finds_its_cluster_again(start: StartNode, tmp_path: Path) -> None:
    first = start("--data-dir", tmp_path / "d")
    first.end(signal.SIGKILL)
    second = start("--data-dir", tmp_path / "d", port=first.port)
    assert second.cluster_id == first.cluster_id
    assert second.end()[0] == 0


def test_properties_say_where_the_data_goes_and_flags_win(start: StartNode, tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("node.id=7\nlog.dirs=from-file\n")
    node = start(properties)
    assert (node.ready[2], node.ready[4]) == ("7", "from-file")
    assert node.end()[0] == 0
    node = start(properties, "--data-dir", "from-flag")
    assert node.ready[4] == "from-flag"
    assert node.end()[0] == 0
    assert (tmp_path / "from-file" / "meta.properties").exists()
    assert (tmp_path / "from-flag" / "meta.properties").exists()


def test_ephemeral_data_is_gone_at_the_end(start: StartNode, tmp_path: Path) -> None:
    node = start("--ephemeral")
    directory = Path(node.ready[4])
    assert (directory / "meta.properties").exists()
    assert node.end()[0] == 0
    assert not directory.exists()
    assert not (tmp_path / "pykbroker-data").exists()


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused("--override", f"listeners=PLAINTEXT://127.0.0.1:{port}", cwd=tmp_path)
    assert f"PLAINTEXT://127.0.0.1:{port}" in line
    assert "in use" in line
    assert not (tmp_path / "pykbroker-data").exists(), "nothing is written before it is sure to start"


def test_an_address_of_another_machine_is_one_line(tmp_path: Path) -> None:
    line = refused("--override", "listeners=PLAINTEXT://192.0.2.1:9092", cwd=tmp_path)
    assert "PLAINTEXT://192.0.2.1:9092" in line


def test_a_directory_in_use_is_one_line(start: StartNode, tmp_path: Path) -> None:
    node = start("--data-dir", "d")
    line = refused("--data-dir", "d", "--override", "listeners=PLAINTEXT://127.0.0.1:0", cwd=tmp_path)
    assert "in use" in line
    assert "d" in line
    assert node.end()[0] == 0


def test_a_directory_of_another_node_is_one_line(start: StartNode, tmp_path: Path) -> None:
    assert start("--data-dir", "d").end()[0] == 0
    line = refused(
        "--data-dir", "d", "--override", "node.id=2", "--override", "listeners=PLAINTEXT://127.0.0.1:0", cwd=tmp_path
    )
    assert "node" in line
    assert "1" in line
    assert "2" in line


def test_directories_of_two_clusters_are_one_line(start: StartNode, tmp_path: Path) -> None:
    first = start("--data-dir", "a")
    assert first.end()[0] == 0
    second = start("--data-dir", "b")
    assert second.end()[0] == 0
    line = refused("--override", "log.dirs=a,b", "--override", "listeners=PLAINTEXT://127.0.0.1:0", cwd=tmp_path)
    assert "cluster.id" in line
    assert first.cluster_id in line
    assert second.cluster_id in line


@pytest.mark.parametrize("directories", ["d,d", "d,./d", "d,link"])
def test_a_directory_that_is_named_twice_is_one_line(tmp_path: Path, directories: str) -> None:
    (tmp_path / "link").symlink_to("d")
    line = refused("--override", f"log.dirs={directories}", "--port", "0", cwd=tmp_path)
    assert line == f"Error: log.dirs has one directory twice: {directories.replace(',', ', ')}"
    assert not (tmp_path / "d").exists()


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    line = refused("--data-dir", "file/below", "--override", "listeners=PLAINTEXT://127.0.0.1:0", cwd=tmp_path)
    assert "file/below" in line


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, ["server.properties", "No such file"]),
        ("node.id=one\n", ["node.id", "one"]),
        ("num.partitions=0\n", ["num.partitions", "0"]),
        ("listeners=nonsense\n", ["listeners", "nonsense"]),
        ("process.roles=broker,controler\n", ["process.roles", "controler"]),
        ("key=\\u12g4\n", ["server.properties"]),
        ("listeners=SSL://127.0.0.1:0\n", ["ssl.keystore.location"]),
        ("super.users=User:a\nauthorizer.class.name=x\n", ["authorizer.class.name", "StandardAuthorizer"]),
    ],
)
def test_bad_properties_are_one_line(tmp_path: Path, content: str | None, expected: list[str]) -> None:
    properties = tmp_path / "server.properties"
    if content is not None:
        properties.write_text(content)
    line = refused(properties, cwd=tmp_path)
    assert all(each in line for each in expected), line


def test_properties_in_utf_16_are_one_line(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_bytes("node.id=1\r\n".encode("utf-16"))
    assert "is in UTF-16; save it as UTF-8" in refused(properties, cwd=tmp_path)


def test_the_mark_that_editors_put_in_front_of_utf_8_is_no_part_of_a_key(start: StartNode, tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_bytes(b"\xef\xbb\xbfnode.id=7\r\n")
    assert start(properties).ready[2] == "7"


@pytest.mark.parametrize(("flags", "code", "told"), [((), 0, "the node stops before"), (("--check-config",), 130, "")])
def test_a_pipe_of_properties_that_nobody_writes_is_left_by_a_signal(
    tmp_path: Path, flags: tuple[str, ...], code: int, told: str
) -> None:
    pipe = tmp_path / "server.properties"
    os.mkfifo(pipe)
    process = run_process("start", pipe, *flags, cwd=tmp_path)
    # Whoever opens the other end waits until the command reads: then it is where a signal must end it.
    descriptor = os.open(pipe, os.O_WRONLY)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=TIMEOUT_S)
    os.close(descriptor)
    assert process.returncode == code
    assert told in err
    assert "Traceback" not in err


@pytest.mark.parametrize(("stream", "to"), [("1", ">/dev/full"), ("2", ">/dev/full"), ("1", ">&-"), ("2", ">&-")])
def test_a_node_serves_where_its_output_goes_nowhere(tmp_path: Path, stream: str, to: str) -> None:
    port_file = tmp_path / "port"
    flags = f"start --ephemeral --port 0 --port-file {port_file}"
    process = subprocess.Popen(
        ["/bin/sh", "-c", f"exec {sys.executable} -m pykbroker {flags} {stream}{to}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": PYTHONPATH, "PYTHONUNBUFFERED": ""},  # as a user has it
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: port_file.exists() or process.poll() is not None, "the node neither serves nor ends")
    assert AdminClient({"bootstrap.servers": port_file.read_text().splitlines()[0]}).list_topics(timeout=60).brokers
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0


def test_an_override_without_a_value_is_one_line(tmp_path: Path) -> None:
    assert "KEY=VALUE" in refused("--override", "node.id", cwd=tmp_path)


def test_flags_that_make_no_sense_are_one_line(tmp_path: Path) -> None:
    assert "--ephemeral" in refused("--ephemeral", "--data-dir", "d", cwd=tmp_path)
    assert "--epehemral" in refused("--epehemral", cwd=tmp_path)


def test_a_setting_that_protects_is_refused_as_an_override_too(tmp_path: Path) -> None:
    setting = "sasl.server.callback.handler.class"
    assert setting in refused("--override", f"{setting}=org.example.Handler", cwd=tmp_path)


def test_keys_that_are_unknown_or_without_effect_are_one_warning_each(start: StartNode) -> None:
    given = ("no.such.key=1", "nor.such=2", "num.network.threads=9", "background.threads=5", "num.io.threads=8")
    node = start(*(part for each in given for part in ("--override", each)))
    code, _, err = node.end()
    assert code == 0
    warnings = [line.partition("WARNING")[2] for line in err.splitlines() if "WARNING" in line]
    assert [line.rpartition(": ")[2] for line in warnings if "settings" in line] == [
        "no.such.key (--override), nor.such (--override)",
        "num.network.threads (--override), background.threads (--override)",
    ]


def test_a_signal_during_the_start_ends_it(tmp_path: Path) -> None:
    for delay_s in (0.1, 0.2, 0.3, 0.4):
        process = run_process("start", "--override", "listeners=PLAINTEXT://127.0.0.1:0", cwd=tmp_path)
        try:
            process.wait(timeout=delay_s)
        except subprocess.TimeoutExpired:
            process.terminate()
        _, err = process.communicate(timeout=TIMEOUT_S)
        assert "Traceback" not in err
        assert process.returncode in (0, -signal.SIGTERM)


def test_partitions_are_spread_over_several_log_directories(start: StartNode, tmp_path: Path) -> None:
    for _ in range(2):
        node = start("--override", "log.dirs=a,b", "--override", "metadata.log.dir=c")
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{node.port}"})
        for future in admin.create_topics([NewTopic("spread", 4, 1)]).values():
            with contextlib.suppress(KafkaException):  # it is there the second time
                future.result()
        partitions = admin.list_topics(timeout=TIMEOUT_S).topics["spread"].partitions
        assert [each.leader for each in partitions.values()] == [1] * 4
        assert node.end()[0] == 0
    assert len(list((tmp_path / "a").glob("spread-*"))) == 2
    assert len(list((tmp_path / "b").glob("spread-*"))) == 2
    assert [each.name for each in (tmp_path / "c").glob("*-[0-9]")] == ["__cluster_metadata-0"]


def test_an_idle_connection_costs_little_memory(start: StartNode) -> None:
    node = start("--ephemeral", "--override", "console.listener=")  # nobody else connects, and imports
    process = psutil.Process(node.process.pid)
    request = encode_request(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3, 1, "c")
    before = process.memory_info().rss
    with contextlib.ExitStack() as stack:
        for _ in range(400):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", node.port)))
            connection.sendall(request)
            (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
            connection.recv(size, socket.MSG_WAITALL)
        each = (process.memory_info().rss - before) / 400
    assert each <= 15_000
    assert node.end()[0] == 0


def test_a_node_that_waits_for_its_quorum_is_stopped_cleanly(tmp_path: Path) -> None:
    """It is one of three voters, and nobody serves at the ports of the others."""
    ports = take_ports(4)
    overrides = {
        "node.id": "1",
        "controller.quorum.voters": ",".join(f"{node}@127.0.0.1:{port}" for node, port in enumerate(ports[:3], 1)),
        "listeners": f"PLAINTEXT://127.0.0.1:{ports[3]},CONTROLLER://127.0.0.1:{ports[0]}",
    }
    flags = [flag for key, value in overrides.items() for flag in ("--override", f"{key}={value}")]
    for _ in range(2):
        process = run_process("start", "--data-dir", tmp_path / "data", *flags, cwd=tmp_path)
        assert process.stderr is not None
        while "PROSPECTIVE" not in process.stderr.readline():
            assert process.poll() is None
        assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, out) == (0, "")
        assert "node 1 shuts down" in err
        assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
