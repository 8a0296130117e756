"""`pykbroker ctl` and `start --ctl-port`: control of a broker from other processes."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from compat_tests.ports import take_ports
from compat_tests.waiting import until
from pykbroker.cli.main import main
from pykbroker.testing import Broker, read_journal

from .child_brokers import TIMEOUT_S, Place, hang_up_counts, place

__all__ = ["hang_up_counts", "place"]

CTL = re.compile(r" cluster\.id=\S{22} ctl=(127\.0\.0\.1:\d+) log\.dirs=")
TOKEN = "a token of nobody".replace(" ", "-")
SECURED = ["--override", "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"]


def address_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    found = CTL.search(line)
    assert found, line
    return found[1]


def ctl(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["ctl", *arguments])


@pytest.fixture
def started(place: Place) -> Iterator[str]:
    """The address of the control of a broker."""
    with place.start("--ctl-port", "0", "--port-file", str(place.port_file)) as process:
        yield address_of(process)
        process.terminate()


def test_the_ready_line_and_the_port_file_say_where_control_is(place: Place, started: str) -> None:
    assert place.port_file.read_text().splitlines()[-1] == f"ctl={started}"


def test_an_operation_is_a_command(started: str, place: Place) -> None:
    done = ctl("--ctl", started, "node", "facts")
    assert done.exit_code == 0, done.output
    assert f'"address": "{place.port_file.read_text().splitlines()[0]}"' in done.output
    assert ctl("--ctl", started, "clients", "seeking").output == "[]\n"


def test_where_control_is_may_stand_in_the_environment(started: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYKBROKER_CTL", started)
    assert ctl("node", "facts").exit_code == 0


def test_control_ends_with_its_broker(place: Place) -> None:
    with place.start("--ctl-port", "0") as process:
        address = address_of(process)
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0
    done = ctl("--ctl", address, "node", "facts")
    assert done.exit_code == 1
    assert done.output.startswith(f"Error: no control answers at {address}: Connection refused")
    assert len(done.output.splitlines()) == 1


def test_a_port_that_is_taken_ends_the_start(started: str, place: Place) -> None:
    port = started.rpartition(":")[2]
    with place.start("--ctl-port", port) as process:
        assert process.wait(TIMEOUT_S) == 1
    assert place.log.read_text().splitlines()[-1] == f"Error: --ctl-port {port}: Address already in use"


def test_a_broker_with_users_asks_for_a_token(place: Place) -> None:
    with place.start("--ctl-port", "0", *SECURED) as process:
        assert process.wait(TIMEOUT_S) == 1
    assert place.log.read_text().splitlines()[-1] == (
        "Error: --ctl-port needs --ctl-token-file here, since authorizer.class.name gives users rights: "
        "control goes past both"
    )
    token = place.directory / "token"
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o600)
    with place.start("--ctl-port", "0", "--ctl-token-file", str(token), *SECURED) as process:
        address = address_of(process)
        refused = ctl("--ctl", address, "node", "facts")
        assert (refused.exit_code, "asks for the token" in refused.output) == (1, True), refused.output
        assert ctl("--ctl", address, "--token-file", str(token), "node", "facts").exit_code == 0
        process.terminate()


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        ("short", 0o600, "one token of 16 characters or more, without spaces, is its content"),
        ("two tokens in a file", 0o600, "one token of 16 characters or more, without spaces, is its content"),
        (TOKEN, 0o644, "others may read it; chmod 600 mends that"),
        ("x" * 5000, 0o600, "one token of 16 characters or more, without spaces, is its content"),
    ],
)
def test_a_bad_token_file_is_said_at_both_ends(tmp_path: Path, content: str, mode: int, message: str) -> None:
    token = tmp_path / "token"
    token.write_text(content)
    token.chmod(mode)
    expected = f"Error: --ctl-token-file {token}: {message}\n"
    assert ctl("--token-file", str(token), "node", "facts").output == expected
    command = ["start", "--ephemeral", "--port", "0", "--ctl-port", "0", "--ctl-token-file", str(token)]
    start = subprocess.run(
        [sys.executable, "-m", "pykbroker", *command], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert (start.returncode, start.stderr.splitlines()[-1] + "\n") == (1, expected)


def test_a_token_file_goes_with_a_port(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["start", "--ctl-token-file", str(tmp_path / "token")])
    assert (done.exit_code, done.output) == (1, "Error: --ctl-token-file goes with --ctl-port\n")


def test_a_start_without_the_extra_says_what_to_install() -> None:
    program = "import sys; sys.modules['hypercorn.config'] = None; from pykbroker.cli.main import main; main()"
    arguments = ["start", "--ephemeral", "--port", "0", "--ctl-port", "0"]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        1,
        "Error: --ctl-port needs hypercorn.config: pip install 'pykbroker[control]'",
    )


def run(started: str, *arguments: str) -> Any:
    done = ctl("--ctl", started, *arguments)
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_faults_come_by_command_and_by_script(started: str, place: Place) -> None:
    added = run(started, "faults", "add", "--api", "Metadata", "--nth", "1", "--delay", "10ms", "--name", "slow")
    assert added["does"] == "delayed by 10 ms"
    script = place.directory / "faults.toml"
    script.write_text('seed = 7\n[[fault]]\napi = "Fetch"\nuntil = {seen = {api = "Produce"}}\n')
    assert len(run(started, "faults", "load", str(script))["added"]) == 1
    held = run(started, "faults", "add", "--api", "Fetch", "--until", '{"answered": {"api": "Produce"}}')
    assert held["is_met"] is False
    broker = place.port_file.read_text().splitlines()[0]
    assert CliRunner().invoke(main, ["topics", "--bootstrap-server", broker, "--list"]).exit_code == 0
    assert run(started, "faults", "wait", "slow", "--times", "1")["taken"] == 1
    found = run(started, "faults", "list")
    assert (found["seed"], [each["taken"] for each in found["faults"]]) == (7, [1, 0, 0])
    assert run(started, "faults", "remove", "slow")["taken"] == 1
    assert len(run(started, "faults", "clear")["removed"]) == 2


def test_a_bad_fault_is_one_line(started: str) -> None:
    done = ctl("--ctl", started, "faults", "add", "--api", "Prodce", "--delay", "1s")
    assert (done.exit_code, done.output) == (1, "Error: there is no API 'Prodce' (did you mean Produce?)\n")
    done = ctl("--ctl", started, "faults", "add", "--until", "{")
    assert done.output.startswith("Error: { is no JSON: ")


def test_the_journal_is_asked_and_saved(started: str, place: Place) -> None:
    broker = place.port_file.read_text().splitlines()[0]
    assert CliRunner().invoke(main, ["topics", "--bootstrap-server", broker, "--create", "--topic", "t"]).exit_code == 0
    (created,) = run(started, "journal", "requests", "--api", "CreateTopics")["requests"]
    assert created["client_id"] == "topics"
    file = place.directory / "journal.jsonl"
    assert ctl("--ctl", started, "journal", "lines", "--output", str(file)).exit_code == 0
    assert any(each.request.get("topics") for each in read_journal(file).requests(api="CreateTopics"))
    assert run(started, "journal", "clear")["entries"] == 0


def test_a_paused_node_answers_its_control_alone(started: str, place: Place) -> None:
    broker = place.port_file.read_text().splitlines()[0]
    assert run(started, "node", "pause")["is_paused"]
    with closing(socket.create_connection(("127.0.0.1", int(broker.rpartition(":")[2])), timeout=1)) as client:
        client.sendall(bytes.fromhex("0000000c 0012 0000 00000001 0002 6d65".replace(" ", "")))
        with pytest.raises(TimeoutError):
            client.recv(1)
        assert not run(started, "node", "resume")["is_paused"]
        client.settimeout(TIMEOUT_S)
        assert len(client.recv(8)) > 0


def test_a_paused_node_hears_that_it_is_to_stop(place: Place) -> None:
    with place.start("--ctl-port", "0") as process:
        run(address_of(process), "node", "pause")
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0


def test_time_passes_by_command(started: str) -> None:
    assert run(started, "clock", "advance", "--duration", "7d", "--scope", "retention") == {
        "advanced_ms": {"retention": 7 * 24 * 3600 * 1000}
    }
    assert run(started, "clock", "advanced")["advanced_ms"]["tokens"] == 0


def test_why_asks_the_control(started: str) -> None:
    done = CliRunner().invoke(main, ["why", "--ctl", started, "group", "a/b c"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Nothing is known of group a/b c: ")
    done = CliRunner().invoke(main, ["why", "--ctl", "127.0.0.1:1", "group", "g"])
    assert (done.exit_code, "no control answers" in done.output) == (1, True)


def test_an_audit_is_begun_looked_at_and_ended(started: str) -> None:
    assert run(started, "audit", "begin")["goes_on"]
    assert run(started, "audit", "findings") == {"goes_on": True, "count": 0, "counts": {}, "findings": []}
    assert not run(started, "audit", "end")["goes_on"]


def test_a_crash_ends_the_process_and_loses_what_was_not_flushed(place: Place) -> None:
    data = ["--override", f"log.dirs={place.directory / 'data'}"]
    start = [sys.executable, "-m", "pykbroker", "start", "--port", "0", "--ctl-port", "0", *data]

    @contextmanager
    def started() -> Iterator[tuple[subprocess.Popen[str], str, str]]:
        with subprocess.Popen(
            start, stdout=subprocess.PIPE, text=True, env=place.environment, cwd=place.directory
        ) as process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                found = re.search(r"PLAINTEXT://(\S+) .* ctl=(\S+) ", line)
                assert found, line
                yield process, found[1], found[2]
            finally:
                process.kill()

    with started() as (process, broker, control):
        producer = Producer({"bootstrap.servers": broker})
        for value in (b"1", b"x" * 5000):
            producer.produce("t", value)
            assert producer.flush(TIMEOUT_S) == 0
            if value == b"1":  # what is first in a log is flushed at once
                until(lambda: run(control, "node", "state")["unflushed_bytes"] < len(b"1") + 61, "the first is flushed")
        crashed = run(control, "node", "crash", "--lose-unflushed")
        assert crashed["lost_bytes"] > 5000
        assert not crashed["is_running"]
        assert process.wait(TIMEOUT_S) == -signal.SIGKILL
    with started() as (process, broker, control):
        assert end_of("t", broker) == 1
        producer = Producer({"bootstrap.servers": broker})
        producer.produce("t", b"2")
        assert producer.flush(TIMEOUT_S) == 0
        assert run(control, "node", "crash", "--no-lose-unflushed")["lost_bytes"] == 0
        assert process.wait(TIMEOUT_S) == -signal.SIGKILL
    with started() as (_, broker, _):
        assert end_of("t", broker) == 2


def end_of(topic: str, broker: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "g"})
    until(lambda: topic in consumer.list_topics(timeout=TIMEOUT_S).topics, "the topic is there")
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S)
    consumer.close()
    return int(end)


def test_a_savepoint_is_saved_and_another_broker_begins_with_it(started: str, place: Place) -> None:
    producer = Producer({"bootstrap.servers": place.port_file.read_text().splitlines()[0]})
    producer.produce("orders", b"one book")
    assert producer.flush(TIMEOUT_S) == 0
    run(started, "clock", "advance", "--duration", "1d", "--scope", "offsets")
    late = run(started, "clock", "advanced")
    assert late["advanced_ms"]["offsets"] == 86_400_000
    file = place.directory / "seeded.savepoint"
    assert ctl("--ctl", started, "savepoint", "save", "--output", str(file)).exit_code == 0
    with Broker(savepoint=file) as broker:
        assert broker.topic("orders").values() == [b"one book"]
    with place.start("--ctl-port", "0", "--savepoint", str(file)) as process:
        assert run(address_of(process), "clock", "advanced") == late
        process.terminate()


def test_the_doctor_tells_of_clients_that_never_came(place: Place) -> None:
    """An address that leads nowhere is advertised, as from within a container, and a client believes it."""
    bootstrap = f"127.0.0.1:{take_ports(1)[0]}"
    listeners = [f"listeners=PLAINTEXT://{bootstrap}", "advertised.listeners=PLAINTEXT://127.0.0.1:1"]
    start = [sys.executable, "-m", "pykbroker", "start", "--ephemeral", "--ctl-port", "0"]
    for each in listeners:
        start += ["--override", each]
    with subprocess.Popen(start, stdout=subprocess.PIPE, text=True, env=place.environment) as process:
        try:
            control = address_of(process)

            def is_seen() -> object:
                """A client that asks for the broker as soon as it starts, and is started again and again."""
                with suppress(KafkaException):
                    AdminClient({"bootstrap.servers": bootstrap, "client.id": "lost"}).list_topics("t", timeout=1)
                return run(control, "clients", "seeking")

            until(is_seen, "the broker has seen it")
            done = CliRunner().invoke(main, ["doctor", bootstrap, "--ctl", control, "--watch", "0"])
            assert "WARNING client-never-came: client lost of 127.0.0.1: it has asked " in done.output
            assert "was told 127.0.0.1:1" in " ".join(done.output.split())
        finally:
            process.terminate()
    done = CliRunner().invoke(main, ["doctor", bootstrap, "--ctl", control])
    assert (done.exit_code, "no control answers" in done.output) == (1, True)


def test_a_savepoint_is_as_of_an_entry_of_the_journal(started: str, place: Place) -> None:
    producer = Producer({"bootstrap.servers": place.port_file.read_text().splitlines()[0]})
    for value in (b"one book", b"two books"):
        producer.produce("back", value)
        assert producer.flush(TIMEOUT_S) == 0
    produced = run(started, "journal", "requests", "--api", "Produce", "--topic", "back")["requests"]
    file = place.directory / "then.savepoint"
    flags = ("--ctl", started, "savepoint", "save", "--output", str(file), "--at")
    assert ctl(*flags, str(produced[0]["number"])).exit_code == 0
    with Broker(savepoint=file) as broker:
        assert broker.topic("back").values() == [b"one book"]
    refused = ctl(*flags, "1000000")
    assert refused.exit_code == 1
    assert "the journal has no #1000000" in refused.output


def test_a_text_may_look_like_json(started: str) -> None:
    assert run(started, "faults", "add", "--api", "Fetch", "--delay", "1s", "--name", "{slow}")["name"] == "{slow}"
    assert run(started, "faults", "remove", "{slow}")["name"] == "{slow}"
    assert run(started, "why", "group", "{g}")["group"] == "{g}"


def test_a_file_stays_as_it_is_where_nothing_is_saved(started: str, place: Place) -> None:
    file = place.directory / "seeded.savepoint"
    file.write_text("of before")
    assert ctl("--ctl", started, "savepoint", "save", "--output", str(file), "--at", "1000000").exit_code == 1
    assert file.read_text() == "of before"
    assert [each.name for each in place.directory.iterdir() if "savepoint" in each.name] == [file.name]


def test_what_is_saved_is_for_its_owner_alone(started: str, place: Place) -> None:
    file, pipe = place.directory / "seeded.savepoint", place.directory / "pipe"
    file.write_text("of before")
    file.chmod(0o644)
    assert ctl("--ctl", started, "savepoint", "save", "--output", str(file)).exit_code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as reader:
        lines = reader.submit(pipe.read_bytes)
        assert ctl("--ctl", started, "journal", "lines", "--output", str(pipe)).exit_code == 0
        assert lines.result(TIMEOUT_S)


def test_a_stream_that_is_cut_off_leaves_no_file(tmp_path: Path) -> None:
    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with closing(connection):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")

    with closing(socket.create_server(("127.0.0.1", 0))) as listener, ThreadPoolExecutor(1) as server:
        answered = server.submit(answer, listener)
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        done = ctl("--ctl", address, "savepoint", "save", "--output", str(tmp_path / "one"))
        answered.result(TIMEOUT_S)
    assert (done.exit_code, done.output.startswith(f"Error: the answer of {address} was cut off: ")) == (1, True)
    assert list(tmp_path.iterdir()) == []


def test_bad_arguments_are_one_line(started: str, place: Place) -> None:
    script = place.directory / "faults.toml"
    script.write_bytes(b"\xff")
    for arguments, message in [
        (("faults", "load", str(script)), f"{script} is no text in UTF-8"),
        (("why", "group", ""), "name a group"),
        (("faults", "remove", "\udcff"), "there is no fault '\ufffd'"),
        (("why", "throttle", "--client-id", "\udcff", "--user", ""), ""),
    ]:
        done = ctl("--ctl", started, *arguments)
        assert (done.exit_code, done.output) == (1, f"Error: {message}\n") or not message, done.output
        assert done.exit_code == (1 if message else 0), done.output
    done = CliRunner().invoke(main, ["why", "--ctl", started, "group", ""])
    assert (done.exit_code, done.output) == (1, "Error: name a group\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope",), "No such command 'nope'."),
        (("faults", "nope"), "No such command 'nope'."),
        (("--bad",), "No such option '--bad'."),
        (("--ctl",), "Option '--ctl' requires an argument."),
        (("faults", "add", "--nth", "x"), "Invalid value for '--nth': 'x' is not a valid integer."),
    ],
)
def test_bad_flags_and_commands_are_one_line(arguments: tuple[str, ...], message: str) -> None:
    done = ctl(*arguments)
    assert (done.exit_code, done.output.startswith(f"Error: {message}"), len(done.output.splitlines())) == (1, True, 1)


def test_a_crash_goes_on_when_its_client_has_left(place: Place) -> None:
    with place.start("--ctl-port", "0") as process:
        host, _, port = address_of(process).rpartition(":")
        with closing(socket.create_connection((host, int(port)), timeout=TIMEOUT_S)) as client:
            client.sendall(b"POST /node/crash HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        assert process.wait(TIMEOUT_S) == -signal.SIGKILL
