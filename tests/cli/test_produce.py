"""`pykbroker produce` beyond Kafka's flags: keys, headers, files, envelopes, rates, signals, and what is wrong."""

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pykbroker.cli.records.pace import Pace
from tests.cli.child_brokers import READY, Place, hang_up_counts, place  # noqa: F401 - fixtures
from tests.cli.conftest import PYKBROKER, ROOT, TIMEOUT_S, Outcome

Call = Callable[..., Outcome]
Given = Callable[..., None]
Start = Callable[..., subprocess.Popen[bytes]]
Read = Callable[..., list[confluent_kafka.Message]]


@pytest.fixture
def read(bootstrap: str) -> Read:
    """`read(topic, count)`: so many records of all partitions as another client sees them."""

    def poll(topic: str, count: int) -> list[confluent_kafka.Message]:
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
        )
        partitions = consumer.list_topics(topic, TIMEOUT_S).topics[topic].partitions
        consumer.assign([confluent_kafka.TopicPartition(topic, each, 0) for each in partitions])
        found: list[confluent_kafka.Message] = []
        while len(found) < count:
            found += consumer.consume(count - len(found), TIMEOUT_S)
        consumer.close()
        return found

    return poll


def test_keys_and_headers_come_from_flags(call: Call, run: Call, read: Read, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    assert run(f"produce --topic {topic} --key k -H a=1 -H a=2 --header none", stdin=b"v\n").code == 0
    assert run(f"produce --topic {topic} --key-separator : -H a==", stdin=b"k:v:w\n").code == 0
    assert run(f"produce --topic {topic} --parse-key", stdin=b"k\tv\n").code == 0
    first, second, third = read(topic, 3)
    assert (first.key(), first.value()) == (b"k", b"v")
    assert first.headers() == [("a", b"1"), ("a", b"2"), ("none", None)]
    assert (second.key(), second.value(), second.headers()) == (b"k", b"v:w", [("a", b"=")])
    assert (third.key(), third.value()) == (b"k", b"v")


def test_formats_make_bytes_of_text(call: Call, run: Call, read: Read, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    run(f"produce --topic {topic} --parse-key --key-format long --value-format hex", stdin=b"7\tcafe\n")
    run(f"produce --topic {topic} --key 9 --key-format int --value-format base64", stdin=b"AA==\n")
    first, second = read(topic, 2)
    assert (first.key(), first.value()) == (b"\0" * 7 + b"\7", b"\xca\xfe")
    assert (second.key(), second.value()) == (b"\0\0\0\x09", b"\0")
    bad = run(f"produce --topic {topic} --value-format json", stdin=b"{}\n{\n")
    assert (bad.code, bad.out) == (1, "")
    assert re.fullmatch(
        r"Error: Line 2: value: not JSON: .*; that and what follows is not sent \(1 record acknowledged\)\n", bad.err
    )


def test_a_file_is_one_value_or_its_lines(call: Call, run: Call, read: Read, topic: str, tmp_path: Path) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    file = tmp_path / "file"
    file.write_bytes(b"a\r\nb\n\n\xff")
    assert run(f"produce --topic {topic} --key k --file {file}").err == "1 record acknowledged\n"
    assert run(f"produce --topic {topic} --lines --file {file}").err == "4 records acknowledged\n"
    found = [(each.key(), each.value()) for each in read(topic, 5)]
    assert found == [(b"k", b"a\r\nb\n\n\xff"), *((None, value) for value in (b"a", b"b", b"", b"\xff"))]
    assert run(f"produce --topic {topic} --file {tmp_path}/none").err == (
        f"Error: {tmp_path}/none: No such file or directory (0 records acknowledged)\n"
    )
    assert run(f"produce --topic {topic} --file {tmp_path}").err == (
        f"Error: {tmp_path}: Is a directory (0 records acknowledged)\n"
    )


def test_tombstones(call: Call, run: Call, read: Read, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    assert run(f"produce --topic {topic} --tombstone --key gone", stdin=b"not read\n").err == "1 record acknowledged\n"
    assert run(f"produce --topic {topic} --tombstone -H h=1", stdin=b"a\n\n").err == "2 records acknowledged\n"
    found = [(each.key(), each.value(), each.headers()) for each in read(topic, 3)]
    assert found == [(b"gone", None, None), (b"a", None, [("h", b"1")]), (b"", None, [("h", b"1")])]


def test_a_partition_may_be_chosen(call: Call, run: Call, read: Read, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 3")
    run(f"produce --topic {topic} --partition 2 --key any", stdin=b"a\nb\n")
    assert [each.partition() for each in read(topic, 2)] == [2, 2]
    assert run(f"produce --topic {topic} --partition 3", stdin=b"a\n").err == (
        f"Error: Topic '{topic}' has no partition 3 (0 records acknowledged)\n"
    )


DATA = st.none() | st.binary(max_size=20) | st.text(max_size=20).map(str.encode)
HEADERS = st.lists(st.tuples(st.text(max_size=8), DATA), max_size=3)
WRITTEN = st.tuples(DATA, DATA, HEADERS, st.integers(1, 2**41), st.integers(0, 2))


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(records=st.lists(WRITTEN, min_size=1, max_size=20))
def test_a_copy_by_envelopes_is_exact(
    call: Call,
    run: Call,
    read: Read,
    bootstrap: str,
    name: Callable[[str], str],
    records: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int, int]],
) -> None:
    topic, copy = name("topic"), name("copy")
    for each in (topic, copy):
        keeps = f"--config retention.ms=-1 --config message.timestamp.after.max.ms={2**63 - 1}"
        call(f"topics --create --topic {each} --partitions 3 {keeps}")
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for key, value, headers, timestamp, partition in records:
        producer.produce(topic, value, key, partition, timestamp=timestamp, headers=headers)
    assert producer.flush(TIMEOUT_S) == 0
    lines = run(f"consume --topic {topic} -e --json").out
    sent = run(f"produce --topic {copy} --json --keep-partition", stdin=lines.encode())
    assert (sent.code, sent.err.split()[0]) == (0, str(len(records)))

    def seen(of: str) -> list[object]:
        return sorted(
            (each.partition(), each.offset(), each.timestamp(), repr((each.key(), each.value(), each.headers())))
            for each in read(of, len(records))
        )

    assert seen(copy) == seen(topic)


def test_an_envelope_that_is_broken_is_named_and_what_stands_before_it_is_sent(
    call: Call, run: Call, read: Read, topic: str
) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    for bad in (b'{"value"', b'{"value":"\xff"}', b"[]", b'{"value":"a","partition":0,"offset":1,"typo":1}'):
        ended = run(f"produce --topic {topic} --json", stdin=b'{"value":"good"}\n' + bad + b'\n{"value":"never"}\n')
        assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
        assert re.fullmatch(
            r"Error: Line 2: .*; that and what follows is not sent \(1 record acknowledged\)\n", ended.err
        )
    assert [each.value() for each in read(topic, 4)] == [b"good"] * 4
    missing = run(f"produce --topic {topic} --json --keep-partition", stdin=b'{"value":"a"}\n')
    assert missing.err.startswith("Error: Line 1: no partition, which --keep-partition needs; ")


def test_a_line_without_end_is_refused_before_memory_is_full(
    call: Call, run: Call, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    monkeypatch.setattr("pykbroker.cli.records.input_lines.MOST_BYTES", 1_000_000)
    ended = run(f"produce --topic {topic}", stdin=b"ok\n" + b"x" * 2_000_000 + b"\nnever\n")
    assert (ended.code, ended.err) == (
        1,
        "Error: Line 2 is longer than 1000000 bytes; that and what follows is not sent (1 record acknowledged)\n",
    )


def test_a_record_that_the_log_refuses_is_counted_as_not_acknowledged(call: Call, run: Call, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1 --config max.message.bytes=1000")
    ended = run(f"produce --topic {topic} --sync", stdin=b"a\nb\n" + b"x" * 5_000 + b"\nc\n")
    assert ended.code == 1
    assert ended.err.startswith("Error: ")
    assert ended.err.endswith("(2 records acknowledged, 1 record not)\n")
    assert run(f"consume --topic {topic} -e").lines == ["a", "b"]


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ("--rate 0", "--rate is records a second"),
        ("--rate nan", "--rate is records a second, from 0.000001 to 1000000000, not no number"),
        ("--rate -1", "--rate is records a second"),
        ("--rate inf", "--rate is records a second"),
        ("--rate 1e300", "--rate is records a second"),
        ("--rate many", "Invalid value for '--rate'"),
        ("--keep-partition", "--keep-partition needs --json"),
        ("--json --keep-partition --partition 1", "--keep-partition and --partition exclude each other"),
        ("--partition -1", "Invalid value for '--partition'"),
        ("--lines", "--lines needs --file"),
        ("--json --key k", "--key cannot be given with --json"),
        ("--json --tombstone", "--tombstone cannot be given with --json"),
        ("--key k --parse-key", "--parse-key cannot be given with --key"),
        ("--file f --parse-key", "--parse-key needs --lines"),
        ("--tombstone --value-format json", "--value-format cannot be given with --tombstone"),
        ("--tombstone --file f", "--file cannot be given with --tombstone"),
        ("--key x --key-format long", "'x' is not a number"),
        ("--value-schema-id 5", "--value-schema-id needs --value-schema"),
        ("--value-schema-id 4294967296", "Invalid value for '--value-schema-id'"),
        ("--reader-property parse.key=yes", "parse.key must be true or false"),
    ],
)
def test_flags_that_cannot_be_are_one_line(call: Call, flags: str, complaint: str) -> None:
    ended = call(f"produce --topic t {flags}")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"Error: {complaint}")
    assert ended.err.count("\n") == 1


def _paced(records_per_s: float, *delays_s: float) -> list[float]:
    """When records are due, each of which takes so long."""

    async def work() -> list[float]:
        pace = Pace(records_per_s)
        began = trio.current_time()
        due = []
        for delay_s in delays_s:
            await pace.wait()
            due.append(round(trio.current_time() - began, 6))
            await trio.sleep(delay_s)
        return due

    return trio.run(work, clock=trio.testing.MockClock(autojump_threshold=0))


def test_the_pace_is_kept_whatever_a_record_takes() -> None:
    assert _paced(10, 0, 0.05, 0.25, 0, 0, 0, 0) == [0, 0.1, 0.2, 0.45, 0.45, 0.5, 0.6]


def test_a_second_that_is_late_is_made_up_for_and_no_more() -> None:
    assert _paced(2, 10, 0, 0, 0, 0) == [0, 10, 10, 10, 10.5]


def test_a_rate_lasts(call: Call, run: Call, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    run(f"produce --topic {topic} --rate 50", stdin=b"a\n" * 26)
    times = [json.loads(line)["timestamp"] for line in run(f"consume --topic {topic} -e --json").lines]
    assert times[-1] - times[0] >= 400  # of 500 ms: the first record may have waited for the topic


# ---- signals: the command ends at once, whatever it waits for


@pytest.fixture
def paused(place: Place) -> Iterator[tuple[str, Callable[[], None]]]:  # noqa: F811 - a fixture
    """A broker's address, and what makes it say nothing any more."""
    broker = place.start()
    assert broker.stdout is not None
    ready = READY.fullmatch(broker.stdout.readline())
    assert ready is not None
    yield ready[1].split("://")[1].strip(), lambda: broker.send_signal(signal.SIGSTOP)
    place.kill_all()
    broker.wait(TIMEOUT_S)
    broker.stdout.close()


def _producer(address: str, *flags: str, **streams: int) -> subprocess.Popen[bytes]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.Popen(
        [*PYKBROKER, "produce", "--bootstrap-server", address, "--topic", "t", *flags], cwd=ROOT, **pipes
    )


def _wait_until_it_has_connected(listener: socket.socket) -> socket.socket:
    listener.settimeout(TIMEOUT_S)
    return listener.accept()[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_producer_whose_broker_says_nothing_and_tells_what_is_acknowledged(
    paused: tuple[str, Callable[[], None]], number: signal.Signals
) -> None:
    address, pause = paused
    _producer(address).communicate(b"zero\n", TIMEOUT_S)
    producer = _producer(address, "--sync")
    reader = subprocess.Popen(
        [*PYKBROKER, "consume", "--bootstrap-server", address, "--topic", "t", "--to", "3"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
    )
    assert producer.stdin is not None
    producer.stdin.write(b"one\ntwo\n")
    producer.stdin.flush()
    # The second is sent when the first is acknowledged; its own acknowledgement may be on the way still.
    assert reader.communicate(timeout=TIMEOUT_S)[0] == b"zero\none\ntwo\n"
    pause()
    producer.stdin.write(b"three\nfour\n")
    producer.stdin.flush()
    producer.send_signal(number)
    _, err = producer.communicate(timeout=TIMEOUT_S)
    assert producer.returncode == 128 + number
    assert re.fullmatch(rb"Interrupted: [12] records? acknowledged(, [12] records? not)?\n", err)


@pytest.mark.parametrize("flags", [[], ["--acks", "0"]])
def test_a_signal_ends_a_producer_that_no_broker_answers(flags: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        producer = _producer(f"127.0.0.1:{listener.getsockname()[1]}", *flags)
        with _wait_until_it_has_connected(listener):
            producer.send_signal(signal.SIGTERM)
            _, err = producer.communicate(timeout=TIMEOUT_S)
    assert producer.returncode == 143
    assert err.startswith(b"Interrupted: 0 records ")


def test_a_signal_ends_a_producer_whose_input_says_nothing_and_whose_errors_nobody_reads(
    call: Call, bootstrap: str
) -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    try:
        while True:
            os.write(theirs, b"x" * 65_536)
    except BlockingIOError:
        os.set_blocking(theirs, True)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        producer = _producer(f"127.0.0.1:{listener.getsockname()[1]}", stderr=theirs)
        with _wait_until_it_has_connected(listener):
            producer.send_signal(signal.SIGTERM)
            producer.communicate(timeout=TIMEOUT_S)
    os.close(ours)
    os.close(theirs)
    assert producer.returncode == 143


def test_no_broker_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    producer = _producer(address)
    _, err = producer.communicate(timeout=TIMEOUT_S)
    assert (producer.returncode, err) == (
        1,
        f"Error: No broker can be reached ({address}: Connection refused)\n".encode(),
    )
