"""`pykbroker start` as a child of another program: what `docs/testing.md` promises of its output and its end."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.waiting import until
from pykbroker.cli.command import CommandFailed
from pykbroker.cli.port_file import PortFile, port_file_text
from pykbroker.server.node.bound_listeners import BoundListener

from .child_brokers import READY, START, TIMEOUT_S, Place, hang_up_counts, place

__all__ = ["hang_up_counts", "place"]


def ready(process: subprocess.Popen[str]) -> re.Match[str]:
    assert process.stdout is not None
    line = process.stdout.readline()
    found = READY.fullmatch(line)
    assert found, line
    return found


def served_at(place: Place) -> str:
    """Where a broker serves that writes the port file."""
    until(place.port_file.exists, "no port file appears")
    return place.port_file.read_text().splitlines()[0]


def refuses_connections(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=TIMEOUT_S).close()
    except ConnectionRefusedError:
        return True
    return False


# Signals


@pytest.mark.parametrize(
    ("number", "delay_s"),
    [
        *((signal.SIGTERM, each) for each in (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.9)),
        *((signal.SIGINT, each) for each in (0.1, 0.3, 0.6)),
        *((signal.SIGHUP, each) for each in (0.2, 0.5)),
    ],
)
def test_a_signal_at_any_moment_of_the_start_leaves_nothing_behind(place: Place, number: int, delay_s: float) -> None:
    process = place.start("--port-file", str(place.port_file))
    try:
        process.wait(delay_s)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    process.communicate(timeout=TIMEOUT_S)
    assert place.left() == []
    if process.returncode:  # the signal came before the command began, and ended Python
        assert process.returncode in (-number, 128 + number, 1)
        assert "INFO" not in place.log.read_text()
    else:
        assert "Traceback" not in place.log.read_text()


def test_a_signal_from_the_first_moment_of_the_command_on_is_a_clean_end(place: Place) -> None:
    """It comes before anything that takes time is imported."""
    program = f"""
import os, signal, sys
import pykbroker.cli.start
assert "trio" not in sys.modules and "pykbroker.config" not in sys.modules
from pykbroker.cli.stop_requests import StopRequests
listen = StopRequests.listen
def listen_and_be_stopped(self):
    listen(self)
    os.kill(os.getpid(), signal.SIGTERM)
StopRequests.listen = listen_and_be_stopped
from pykbroker.cli.main import main
main({START[3:]!r})
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=place.environment, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "Traceback" not in done.stderr
    assert place.left() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_a_clean_end_of_one_that_serves(place: Place, number: int) -> None:
    process = place.start("--port-file", str(place.port_file))
    ready(process)
    assert len(place.left()) == 3
    process.send_signal(number)
    out, _ = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out) == (0, "")
    assert place.left() == []


def test_many_signals_leave_nothing_behind_either(place: Place) -> None:
    for delay_s in (0.2, 0.5, 1.0):
        process = place.start()
        time.sleep(delay_s)  # any moment will do
        for _ in range(20):
            process.terminate()
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_S)
        assert place.left() == []


def test_a_hangup_that_is_ignored_stays_ignored(place: Place) -> None:
    """`nohup pykbroker start`."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh", *START],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=place.environment,
        text=True,
    )
    address = ready(process)[1].split()[0].partition("://")[2]
    process.send_signal(signal.SIGHUP)
    assert not refuses_connections(address)
    process.terminate()
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0


def test_a_start_that_fails_leaves_nothing_behind(place: Place) -> None:
    process = place.start("--override", "num.partitions=0")
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    assert place.left() == []


# The port file


def test_the_port_file_is_there_before_the_ready_line_and_goes_with_the_node(place: Place) -> None:
    process = place.start("--port-file", str(place.port_file))
    line = ready(process)
    address = line[1].split()[0].removeprefix("PLAINTEXT://")
    assert place.port_file.read_text() == f"{address}\nPLAINTEXT={address}\n"
    assert place.port_file.stat().st_mode & 0o777 == 0o644
    assert not refuses_connections(address)
    process.terminate()
    process.communicate(timeout=TIMEOUT_S)
    assert not place.port_file.exists()


def test_the_port_file_has_all_listeners_in_their_order(place: Place) -> None:
    listeners = "listeners=INSIDE://127.0.0.1:0,OUTSIDE://localhost:0"
    protocols = "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT"
    inside = "inter.broker.listener.name=INSIDE"
    flags = [flag for each in (listeners, protocols, inside) for flag in ("--override", each)]
    process = place.start("--port-file", str(place.port_file), *flags)
    ready(process)
    first, *named = place.port_file.read_text().splitlines()
    addresses = dict(each.split("=") for each in named)
    assert list(addresses) == ["INSIDE", "OUTSIDE"]
    assert first == addresses["INSIDE"]
    assert re.fullmatch(r"127\.0\.0\.1:\d+", first)
    assert re.fullmatch(r"localhost:\d+", addresses["OUTSIDE"])
    process.terminate()
    process.communicate(timeout=TIMEOUT_S)


def test_a_stale_port_file_is_gone_before_the_start(place: Place) -> None:
    """The start that removes it fails: the file of a killed node names a port that may be anybody's by now."""
    place.port_file.write_text("127.0.0.1:1\nPLAINTEXT=127.0.0.1:1\n")
    process = place.start("--port-file", str(place.port_file), "--override", "num.partitions=0")
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    assert not place.port_file.exists()


def test_an_empty_file_is_a_name_that_somebody_reserved(place: Place) -> None:
    place.port_file.write_text("")
    process = place.start("--port-file", str(place.port_file))
    ready(process)
    assert place.port_file.read_text() != ""
    process.terminate()
    process.communicate(timeout=TIMEOUT_S)


def test_a_later_file_is_never_taken_for_an_earlier_one(tmp_path: Path) -> None:
    """A volume gives the number of a file that is gone to the next one."""
    listeners = [BoundListener("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT")]
    for _ in range(20):
        first, second = PortFile(tmp_path / "port"), PortFile(tmp_path / "port")
        for each in (first, second):
            each.prepare()
            each.write(listeners)
        first.remove()
        assert (tmp_path / "port").read_text().startswith("127.0.0.1:9092\n")
        second.remove()
        assert not list(tmp_path.iterdir())


def test_the_port_file_of_a_later_node_stays(place: Place) -> None:
    first, second = place.start("--port-file", str(place.port_file)), None
    ready(first)
    second = place.start("--port-file", str(place.port_file))
    address = ready(second)[1].split()[0].removeprefix("PLAINTEXT://")
    first.terminate()
    first.communicate(timeout=TIMEOUT_S)
    assert place.port_file.read_text().startswith(address)
    second.terminate()
    second.communicate(timeout=TIMEOUT_S)
    assert place.left() == []


def _no_directory(directory: Path) -> Path:
    return directory / "missing" / "port"


def _a_directory(directory: Path) -> Path:
    (directory / "port").mkdir()
    return directory / "port"


def _another_file(directory: Path) -> Path:
    (directory / "port").write_text("a letter\n")
    return directory / "port"


def _a_pipe(directory: Path) -> Path:
    os.mkfifo(directory / "port")
    return directory / "port"


def _a_device(directory: Path) -> Path:
    return Path("/dev/null")


def _not_writable(directory: Path) -> Path:
    (directory / "locked").mkdir(mode=0o500)
    return directory / "locked" / "port"


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (_no_directory, "No such file or directory"),
        (_a_directory, "Is a directory"),
        (_another_file, "something else"),
        (_a_pipe, "something else"),
        (_a_device, "something else"),
        pytest.param(
            _not_writable,
            "Permission denied",
            marks=pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere"),
        ),
    ],
)
def test_a_port_file_that_cannot_be_written_is_one_line_before_anything_starts(
    place: Place, make: object, expected: str
) -> None:
    assert callable(make)
    path = make(place.directory)
    before = sorted(place.directory.rglob("*"))
    process = place.start("--port-file", str(path))
    out, _ = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out) == (1, "")
    (line,) = place.log.read_text().splitlines()
    assert str(path) in line
    assert expected in line
    assert sorted(each for each in place.directory.rglob("*") if each != place.log) == before


def test_a_port_file_that_cannot_be_written_any_more_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    file = PortFile(tmp_path / "below" / "port")
    file.prepare()
    (tmp_path / "below").rmdir()
    with pytest.raises(CommandFailed, match="below/port cannot be written: No such file"):
        file.write([BoundListener("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT")])
    file.remove()


def test_an_address_of_ipv6_is_written_as_clients_have_it() -> None:
    listener = BoundListener("PLAINTEXT", "::1", 9092, "PLAINTEXT")
    assert port_file_text([listener]) == "[::1]:9092\nPLAINTEXT=[::1]:9092\n"


# Ports and the ready line


def test_a_port_that_is_given_is_served(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = place.start("--port", str(port))
    assert ready(process)[1] == f"PLAINTEXT://127.0.0.1:{port} "
    process.terminate()
    process.communicate(timeout=TIMEOUT_S)


def test_the_ready_line_comes_through_a_pipe_at_once_and_is_all_of_the_output(place: Place) -> None:
    process = place.start()
    assert ready(process)[2] == "1"  # … while the process runs
    process.terminate()
    assert process.communicate(timeout=TIMEOUT_S)[0] == ""


def test_a_node_whose_output_nobody_reads_serves_all_the_same(place: Place) -> None:
    process = place.start("--port-file", str(place.port_file))
    assert process.stdout is not None
    process.stdout.close()
    assert not refuses_connections(served_at(place))
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0
    assert "Traceback" not in place.log.read_text()
    assert place.left() == []


# The end of the parent

EARLY_S = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.25, 0.4, 0.7)


@pytest.mark.parametrize(("delay_s", "how"), [(each, ("null", "pipe")[at % 2]) for at, each in enumerate(EARLY_S)])
def test_nothing_is_left_of_a_broker_whose_parent_is_killed_while_it_starts(
    place: Place, delay_s: float, how: str
) -> None:
    parent = place.start_parent(how, "--die-with-parent", "--port-file", str(place.port_file))
    until(place.broker_runs, "no broker starts")
    time.sleep(delay_s)  # any moment will do
    parent.kill()
    parent.wait(TIMEOUT_S)
    place.wait_until_nothing_is_left()


@pytest.mark.parametrize("how", ["null", "pipe"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_broker_whose_parent_is_gone_while_it_serves(
    place: Place, how: str, number: signal.Signals
) -> None:
    parent = place.start_parent(how, "--die-with-parent", "--port-file", str(place.port_file))
    address = served_at(place)
    parent.send_signal(number)
    parent.wait(TIMEOUT_S)
    place.wait_until_nothing_is_left()
    assert refuses_connections(address)
    assert "Traceback" not in place.log.read_text()


def test_the_process_that_is_meant_need_not_be_the_parent(place: Place) -> None:
    """A script between the two goes on, as wrappers do that wait for their child."""
    meant = subprocess.Popen([sys.executable, "-S", "-E", "-c", "input()"], stdin=subprocess.PIPE)
    parent = place.start_parent("null", "--parent-pid", str(meant.pid), "--port-file", str(place.port_file))
    served_at(place)
    meant.kill()
    meant.communicate(timeout=TIMEOUT_S)
    until(lambda: len(place.processes()) == 1, "the broker goes on")
    assert parent.poll() is None
    parent.kill()
    parent.wait(TIMEOUT_S)
    place.wait_until_nothing_is_left()


def test_a_broker_goes_on_without_its_parent_where_nobody_asked(place: Place) -> None:
    parent = place.start_parent("pipe", "--port-file", str(place.port_file))
    address = served_at(place)
    parent.kill()
    parent.wait(TIMEOUT_S)
    (broker,) = place.processes()
    until(lambda: broker.ppid() != parent.pid, "the broker has its parent")
    time.sleep(1)  # longer than a look at the parent takes
    assert not refuses_connections(address)
    broker.terminate()
    place.wait_until_nothing_is_left()


def test_the_end_of_standard_input_is_a_clean_end(place: Place) -> None:
    process = place.start("--die-with-parent", stdin=subprocess.PIPE)
    ready(process)
    out, _ = process.communicate(timeout=TIMEOUT_S)  # closes standard input
    assert (process.returncode, out) == (0, "")
    assert "standard input has ended" in place.log.read_text()
    assert place.left() == []


def test_nothing_is_left_while_clients_produce_and_segments_are_compacted(place: Place) -> None:
    settings = {
        "log.cleaner.backoff.ms": "0",
        "log.initial.task.delay.ms": "0",
        "log.cleaner.io.max.bytes.per.second": "200000",
    }
    flags = [flag for key, value in settings.items() for flag in ("--override", f"{key}={value}")]
    parent = place.start_parent("null", "--die-with-parent", "--port-file", str(place.port_file), *flags)
    address = served_at(place)
    topic = NewTopic(
        "compacted",
        1,
        1,
        config={"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"},
    )
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([topic])["compacted"].result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "log_level": 0})

    def produce() -> None:
        for number in range(500):
            producer.produce("compacted", os.urandom(1000), key=str(number % 100))
            producer.poll(0)
        producer.flush(5)

    def is_compacting() -> bool:
        produce()
        return any("cleaning_worker" in " ".join(_command_line(each)) for each in place.processes())

    until(is_compacting, "nothing is compacted")
    parent.kill()
    produce()
    parent.wait(TIMEOUT_S)
    place.wait_until_nothing_is_left()
    assert refuses_connections(address)
    producer.purge()


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


# The sweep


def left_by_a_kill(place: Place) -> Path:
    killed = place.start()
    left = Path(ready(killed)[4])
    killed.kill()
    killed.communicate(timeout=TIMEOUT_S)
    return left


def test_what_a_kill_left_is_swept_by_the_next_start_and_what_lives_is_not(place: Place) -> None:
    left = left_by_a_kill(place)
    assert left.exists()
    living = place.start()
    stays = Path(ready(living)[4])
    until(lambda: not left.exists(), "the directory is not swept")
    left = left_by_a_kill(place)
    later = place.start()
    ready(later)
    until(lambda: not left.exists(), "the second directory is not swept")
    assert stays.exists()
    for process in (living, later):
        process.terminate()
        process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0
    assert place.left() == []
