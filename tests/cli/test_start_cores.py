"""`pykbroker start --cores` as a process: one cluster, what is lost with a node or with the command, what not."""

from __future__ import annotations

import itertools
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.ports import take_consecutive_ports
from compat_tests.waiting import until
from pykbroker.cli.core_count import usable_cores

from .child_brokers import READY, TIMEOUT_S, Place, hang_up_counts, place  # noqa: F401 - fixtures

# ruff: noqa: F811 - fixtures

Start = Callable[..., subprocess.Popen[str]]
RECORDS = 600
START = [sys.executable, "-m", "pykbroker", "start"]


@pytest.fixture
def port() -> int:
    return take_consecutive_ports(4)


@pytest.fixture
def start(place: Place, port: int) -> Iterator[Start]:
    """`start --cores 2` on the port, with data in `d`; the flags win."""
    started: list[subprocess.Popen[str]] = []

    def start(*flags: str, cores: int = 2) -> subprocess.Popen[str]:
        with place.log.open("ab") as log:
            command = ["--cores", str(cores), "--data-dir", str(place.directory / "d"), "--port", str(port), *flags]
            started.append(
                subprocess.Popen(
                    [*START, *command],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=place.environment,
                    cwd=place.directory,
                    text=True,
                )
            )
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.wait(TIMEOUT_S)
        assert each.stdout is not None
        each.stdout.close()


def wait_until_ready(process: subprocess.Popen[str], place: Place) -> None:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert READY.fullmatch(line), f"{line!r}\n{place.log.read_text()}"


def end(process: subprocess.Popen[str], place: Place) -> None:
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0, place.log.read_text()


def nodes(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes of the nodes, the first one first."""
    return sorted(psutil.Process(process.pid).children(), key=lambda each: (each.create_time(), each.pid))


def create(port: int, topic: str, partitions: int = 6) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    admin.create_topics([NewTopic(topic, partitions)])[topic].result(TIMEOUT_S)
    return admin


def leaders(admin: AdminClient, topic: str) -> set[int]:
    return {each.leader for each in admin.list_topics(topic, TIMEOUT_S).topics[topic].partitions.values()}


def produce(port: int, topic: str, values: range, partitions: int = 6) -> None:
    errors: list[object] = []

    def note(error: object, _: object) -> None:
        if error is not None:
            errors.append(error)

    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}"})
    for value in values:
        producer.produce(topic, str(value), partition=value % partitions, on_delivery=note)
    assert producer.flush(TIMEOUT_S) == 0
    assert not errors


def consume(port: int, topic: str, count: int) -> list[int]:
    """Read by a group, and commit."""
    consumer = Consumer(
        {"bootstrap.servers": f"127.0.0.1:{port}", "group.id": f"of-{topic}", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found: list[int] = []

    def read_some() -> bool:
        for message in consumer.consume(1000, 0.2):
            if message.error() is None:
                found.append(int(message.value() or b""))
        return len(found) >= count

    until(read_some, "records are missing", TIMEOUT_S)
    consumer.commit(asynchronous=False)
    consumer.close()
    return sorted(found)


def test_records_of_a_topic_are_spread_over_nodes_and_a_client_needs_one_address(
    start: Start, place: Place, port: int
) -> None:
    process = start()
    wait_until_ready(process, place)
    admin = create(port, "t")
    assert leaders(admin, "t") == {1, 2}
    produce(port, "t", range(RECORDS))
    assert consume(port, "t", RECORDS) == list(range(RECORDS))
    assert leaders(admin, "__consumer_offsets") == {1, 2}
    end(process, place)
    assert re.search(r"^node-2 \| .*node 2 shuts down", place.log.read_text(), re.MULTILINE)
    assert "Traceback" not in place.log.read_text()
    place.wait_until_nothing_is_left()


def test_a_transaction_over_both_nodes_is_seen_as_a_whole(start: Start, place: Place, port: int) -> None:
    process = start()
    wait_until_ready(process, place)
    admin = create(port, "t")
    for number, commits in enumerate([False, True]):
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "transactional.id": f"x{number}"})
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
        for value in range(number * 12, number * 12 + 12):
            producer.produce("t", str(value), partition=value % 6)
        assert producer.flush(TIMEOUT_S) == 0
        if commits:
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.abort_transaction(TIMEOUT_S)
    assert leaders(admin, "__transaction_state") == {1, 2}
    assert consume(port, "t", 12) == list(range(12, 24))
    end(process, place)


def test_a_node_that_is_killed_comes_back_with_its_records(start: Start, place: Place, port: int) -> None:
    process = start()
    wait_until_ready(process, place)
    create(port, "t")
    produce(port, "t", range(RECORDS))
    for number, begin in zip((1, 0), itertools.count(RECORDS, RECORDS), strict=False):
        before = nodes(process)
        before[number].send_signal(signal.SIGKILL)
        produce(port, "t", range(begin, begin + RECORDS))
        until(lambda: len(nodes(process)) == 2, "the node is not started again", TIMEOUT_S)
    assert consume(port, "t", 3 * RECORDS) == list(range(3 * RECORDS))
    log = place.log.read_text()
    assert "pykbroker start: node-2 was ended by SIGKILL; it is started again in 0.25 s" in log
    end(process, place)


def test_when_the_command_is_killed_nothing_holds_the_ports(start: Start, place: Place, port: int) -> None:
    process = start("--port-file", str(place.port_file))
    wait_until_ready(process, place)
    assert place.port_file.read_text().startswith(f"127.0.0.1:{port}\n")
    process.kill()
    process.wait(TIMEOUT_S)
    until(lambda: not place.processes(), "a node is left", TIMEOUT_S)
    again = start("--port-file", str(place.port_file))
    wait_until_ready(again, place)
    end(again, place)


def test_the_flag_may_come_later_and_does_not_go_while_others_have_records(
    start: Start, place: Place, port: int
) -> None:
    alone = start(cores=1)
    wait_until_ready(alone, place)
    create(port, "old")
    produce(port, "old", range(RECORDS))
    end(alone, place)

    several = start()
    wait_until_ready(several, place)
    admin = create(port, "new")
    assert (leaders(admin, "old"), leaders(admin, "new")) == ({1}, {1, 2})
    produce(port, "new", range(RECORDS))
    assert consume(port, "old", RECORDS) == list(range(RECORDS))
    end(several, place)

    refused = start(cores=1)
    assert refused.wait(TIMEOUT_S) == 1
    told = place.log.read_text().splitlines()[-1]
    assert re.match(
        r"Error: node 2 has .*new-\d.*, which nobody would serve: start with --cores 2, and move them", told
    )
    assert re.search(r"pykbroker reassign start .*new.* --brokers 1 --wait", told)

    several = start()
    wait_until_ready(several, place)
    place_of_others = place.directory / "d" / "nodes" / "2"
    topics = sorted({each.name.rpartition("-")[0] for each in place_of_others.iterdir() if "-" in each.name})
    moved = [each for each in topics if each in ("new", "__consumer_offsets", "old")]
    subprocess.run(
        [
            *(*START[:-1], "reassign", "start", *moved, "--brokers", "1", "--wait", "--yes"),
            *("--bootstrap-server", f"127.0.0.1:{port}"),
        ],
        check=True,
        capture_output=True,
        env=place.environment,
        timeout=TIMEOUT_S,
    )
    until(
        lambda: not any(re.fullmatch(r"(new|__consumer_offsets)-\d+", each.name) for each in place_of_others.iterdir()),
        "directories of moved partitions are left",
        TIMEOUT_S,
    )
    end(several, place)

    alone = start(cores=1)
    wait_until_ready(alone, place)
    assert consume(port, "new", RECORDS) == list(range(RECORDS))
    end(alone, place)


def test_temporary_directories_are_gone_at_the_end(start: Start, place: Place, port: int) -> None:
    with place.log.open("ab") as log:
        process = subprocess.Popen(
            [*START, "--cores", "2", "--ephemeral", "--dev", "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=log,
            env=place.environment,
            text=True,
        )
    with process:
        wait_until_ready(process, place)
        assert list(place.temporary.iterdir())
        end(process, place)
    place.wait_until_nothing_is_left()


def test_a_port_in_use_ends_all(start: Start, place: Place, port: int) -> None:
    with socket.create_server(("127.0.0.1", port + 1)):
        process = start()
        assert process.wait(TIMEOUT_S) == 1
    log = place.log.read_text()
    assert "node-2 did not start, it ended with exit code 1: Error: " in log
    assert f"127.0.0.1:{port + 1}" in log
    until(lambda: not place.processes(), "a node is left", TIMEOUT_S)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--cores", "0"], "neither auto nor a number from 1 to 64"),
        (["--cores", "many"], "neither auto nor a number"),
        (["--ctl-port", "0"], "--cores and --ctl-port exclude each other"),
        (["--secure", "s"], "--cores and --secure exclude each other"),
        (["--savepoint", "s"], "--cores and --savepoint exclude each other"),
        (["--override", "num.partitions=0"], "num.partitions"),
        (["--override", "process.roles=controller"], "process.roles"),
        (["--check-config", "--port", "65535"], "no ports below 65536"),
    ],
)
def test_what_makes_no_sense_is_one_line(start: Start, place: Place, flags: list[str], expected: str) -> None:
    process = start(*flags)
    assert process.wait(TIMEOUT_S) == 1
    (line,) = place.log.read_text().splitlines()
    assert line.startswith("Error: ")
    assert expected in line
    assert not (place.directory / "d").exists()


def test_check_config_tells_what_each_node_has(start: Start, place: Place, port: int) -> None:
    process = start("--check-config")
    assert process.stdout is not None
    text = process.stdout.read()
    assert process.wait(TIMEOUT_S) == 0
    first, _, second = text.partition("node 2, where it differs:")
    assert f"PLAINTEXT://127.0.0.1:{port}" in first
    assert f"PLAINTEXT://127.0.0.1:{port + 1}" in second
    assert "nodes/2" in second
    assert "offsets.topic.replication.factor" not in second
    assert not (place.directory / "d").exists()


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", None), ("100000 100000", 1), ("150000 100000", 1), ("10000 100000", 1), ("", None)],
)
def test_auto_is_what_this_process_may_use(tmp_path: Path, quota: str, cores: int | None) -> None:
    file = tmp_path / "cpu.max"
    file.write_text(quota)
    assert usable_cores(file) == (cores or len(os.sched_getaffinity(0)))
