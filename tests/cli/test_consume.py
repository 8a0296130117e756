"""`pykbroker consume` beyond Kafka's flags: places, an end, filters, formats, and what is wrong with them."""

import json
import os
import pty
import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import confluent_kafka
import pytest
import trio
from confluent_kafka.admin import AdminClient, NewTopic

from pykbroker.client.cluster import Cluster, parse_bootstrap_servers
from pykbroker.client.producer import open_producer
from tests.cli.cluster_command import ClusterCommand
from tests.cli.conftest import PYKBROKER, ROOT, TIMEOUT_S, Outcome

Call = Callable[..., Outcome]
Given = Callable[..., None]
Start = Callable[..., subprocess.Popen[bytes]]
HOUR_MS = 3_600_000


@pytest.fixture
def send(bootstrap: str) -> Callable[..., None]:
    """`send(topic, [dict(value=…, key=…, partition=…, timestamp_ms=…), …])`."""

    def finish(topic: str, records: Sequence[dict[str, object]]) -> None:
        async def work() -> None:
            async with Cluster(parse_bootstrap_servers(bootstrap)) as cluster, open_producer(cluster) as producer:
                for record in records:
                    await producer.send(topic, **record)  # type: ignore[arg-type]

        trio.run(work)

    return finish


@pytest.fixture
def transaction(bootstrap: str, name: Callable[[str], str]) -> Callable[..., confluent_kafka.Producer]:
    """`transaction(topic, values)`: a transaction that is open, with its records in the log."""

    def begin(topic: str, *values: bytes) -> confluent_kafka.Producer:
        settings = {"bootstrap.servers": bootstrap, "transactional.id": name("transaction"), "log_level": 0}
        producer = confluent_kafka.Producer(settings)
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        producer.flush(TIMEOUT_S)
        return producer

    return begin


def test_the_end_is_told_to_programs_that_wait_for_it(call: Call, run: Call, send: Given, topic: str) -> None:
    """Kafka's console consumers print it for system tests."""
    call(f"topics --create --topic {topic} --partitions 1")
    send(topic, [{"value": b"one"}])
    assert run(f"consume --topic {topic} -e --enable-systest-events").lines == ["one", "shutdown_complete"]
    shared = run(f"consume --topic {topic} --share --group {topic} --timeout-ms 10 --enable-systest-events")
    assert shared.lines == ["shutdown_complete"]


def test_a_read_ends_behind_what_was_there(call: Call, run: Call, send: Given, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 4")
    numbers = count()
    send(topic, [{"value": b"%d" % next(numbers), "partition": partition} for partition in (0, 2, 2, 0, 2)])
    ended = run(f"consume --topic {topic} -e")
    assert sorted(ended.lines) == ["0", "1", "2", "3", "4"]
    assert (ended.code, ended.err) == (0, "Processed a total of 5 messages\n")
    assert run(f"consume --topic {topic} -e --partition 2").lines == ["1", "2", "4"]
    assert run(f"consume --topic {topic} -e --partition 3,1").lines == []
    assert sorted(run(f"consume --topic {topic} -e --partition 0,2,2").lines) == ["0", "1", "2", "3", "4"]
    assert run(f"consume --topic {topic} -e --partition 0,9").err == f"Error: Topic '{topic}' has no partition 9\n"


def test_places_by_offset(call: Call, run: Call, given: Given, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    given(topic, *(b"%d" % number for number in range(20)))
    here = f"consume --topic {topic} "
    assert run(f"{here} --from 18 -e").lines == ["18", "19"]
    assert run(f"{here} --from 5 --to 8").lines == ["5", "6", "7"]
    assert run(f"{here} --from end-3 -e").lines == ["17", "18", "19"]
    assert run(f"{here} --from start+18 -e").lines == ["18", "19"]
    assert run(f"{here} --to start+2").lines == ["0", "1"]
    assert run(f"{here} --from end-3 --to end-1").lines == ["17", "18"]
    assert run(f"{here} --from end --to end").lines == []
    assert run(f"{here} --from 8 --to 5").lines == []
    assert run(f"{here} --to 500 -e --from 19").lines == ["19"]
    assert run(f"{here} --from 3 --max-messages 2").lines == ["3", "4"]
    assert run(f"{here} --from end-1 --timeout-ms 100").lines == ["19"]
    beyond = run(f"{here} --from 500 -e")
    assert beyond.lines == []
    assert beyond.err.splitlines()[0] == f"WARN: {topic}-0 has no offset 500, its offsets are 0 to 20"


def test_records_that_were_deleted_are_told_of(call: Call, run: Call, given: Given, topic: str, tmp_path: Path) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    given(topic, *(b"%d" % number for number in range(10)))
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0, "offset": 7}], "version": 1}))
    call("delete-records", "--offset-json-file", str(file))
    ended = run(f"consume --topic {topic} --from 3 -e")
    assert ended.lines == ["7", "8", "9"]
    assert ended.err.splitlines()[0] == f"WARN: {topic}-0 has no offset 3, its offsets are 7 to 10"
    assert run(f"consume --topic {topic} -e").lines == ["7", "8", "9"]


def test_an_end_that_is_still_to_come_is_waited_for(call: Call, given: Given, start: Start, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    given(topic, b"0", b"1")
    consumer = start(f"consume --topic {topic} --to 4")
    assert consumer.stdout is not None
    assert [consumer.stdout.readline(), consumer.stdout.readline()] == [b"0\n", b"1\n"]
    given(topic, b"2", b"3", b"4")
    out, err = consumer.communicate(timeout=TIMEOUT_S)
    assert (consumer.returncode, out, err) == (0, b"2\n3\n", b"Processed a total of 4 messages\n")


def test_places_by_time(call: Call, run: Call, send: Given, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 2")
    now_ms = time.time_ns() // 1_000_000
    send(
        topic,
        [
            {"value": b"%d" % hours, "partition": hours % 2, "timestamp_ms": now_ms - hours * HOUR_MS}
            for hours in (9, 8, 7, 6, 2, 1)
        ],
    )
    here = f"consume --topic {topic}"
    assert sorted(run(f"{here} -e --from", "150m ago").lines) == ["1", "2"]
    assert sorted(run(f"{here} --from @{now_ms - 8 * HOUR_MS} --to @{now_ms - 6 * HOUR_MS}").lines) == ["7", "8"]
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime((now_ms - 6 * HOUR_MS) // 1000))
    assert sorted(run(f"{here} --from {moment} --to now").lines) == ["1", "2", "6"]
    assert run(f"{here} --from now -e").lines == []
    assert run(f"{here} --to", "10h ago").lines == []


def test_committed_transactions_end_too(
    call: Call, run: Call, topic: str, transaction: Callable[..., confluent_kafka.Producer]
) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    transaction(topic, b"kept").commit_transaction(TIMEOUT_S)
    transaction(topic, b"dropped").abort_transaction(TIMEOUT_S)
    assert run(f"consume --topic {topic} -e --isolation-level read_committed").lines == ["kept"]
    assert run(f"consume --topic {topic} -e").lines == ["kept", "dropped"]
    pending = transaction(topic, b"open")
    assert run(f"consume --topic {topic} -e --isolation-level read_committed").lines == ["kept"]
    assert run(f"consume --topic {topic} -e --from end-1").lines == ["open"]
    pending.abort_transaction(TIMEOUT_S)


def test_a_topic_that_compaction_has_emptied_ends(call: Call, run: Call, send: Given, topic: str) -> None:
    settings = "cleanup.policy=compact", "min.cleanable.dirty.ratio=0.01", "segment.ms=1", "max.compaction.lag.ms=1"
    configs = " ".join(f"--config {each}" for each in (*settings, "min.compaction.lag.ms=0"))
    call(f"topics --create --topic {topic} --partitions 1 {configs}")
    send(topic, [{"value": b"%d" % number, "key": b"k"} for number in range(50)])
    # Another segment, so that the one before is cleaned.
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        send(topic, [{"value": b"last", "key": b"k"}])
        ended = run(f"consume --topic {topic} -e")
        assert ended.lines[-1] == "last"
        if "0" not in ended.lines:
            return
        assert time.monotonic() < deadline


def test_filters_keep_what_fulfils_all_of_them(call: Call, run: Call, send: Given, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    documents = [b'{"a":{"b":1}}', b'{"a":{"b":3},"x":"yes"}', b"no json", None, b'{"a":"text"}', b"\xff\xfeyes"]
    send(
        topic,
        [
            {"value": value, "key": b"key-%d" % number, "headers": (("n", b"%d" % number), ("same", None))}
            for number, value in enumerate(documents)
        ],
    )
    here = f"consume --topic {topic} -e --property print.value=false --property print.key=true"

    def keys(*flags: str) -> list[str]:
        ended = run(here, *flags)
        assert ended.code == 0, ended.err
        return ended.lines

    assert keys("--key", "-[135]$") == ["key-1", "key-3", "key-5"]
    assert keys("--grep", "yes") == ["key-1", "key-5"]
    assert keys("--grep", "^yes") == []
    assert keys("-H", "n=2") == ["key-2"]
    assert len(keys("--header", "same")) == 6
    assert keys("--header", "same=") == []
    assert keys("--where", "a.b == `3`") == ["key-1"]
    assert keys("--where", ".a.b") == ["key-0", "key-1"]
    assert keys("--where", "abs(a.b) == `1`") == ["key-0"]
    assert keys("--grep", "a", "--where", "x == 'yes'", "-H", "n=1") == ["key-1"]
    assert keys("--grep", "a", "--max-messages", "1") == ["key-0"]
    assert keys("--key", "-[345]", "--max-messages", "2") == ["key-3", "key-4"]


def test_a_member_of_a_group_commits_no_record_that_it_did_not_come_to(
    call: Call, run: Call, given: Given, topic: str
) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    given(topic, *(b"%d" % number for number in range(10)))
    here = f"consume --topic {topic} --group {topic}-group --from-beginning --max-messages 2"
    assert run(here, "--grep", "[37]").lines == ["3", "7"]
    [row] = call(f"groups --describe --group {topic}-group").cells
    assert row[3:6] == ["8", "10", "2"]


def test_formats_show_keys_and_values(call: Call, run: Call, send: Given, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    send(topic, [{"key": (7).to_bytes(8, "big"), "value": b'{ "a" : 1.10 }'}, {"key": None, "value": None}])
    here = f"consume --topic {topic} -e --key-format long"
    assert run(f"{here} --value-format json").out == '7\t{"a":1.10}\nnull\tnull\n'
    assert run(f"{here} --value-format hex").lines[0] == "7\t7b20226122203a20312e3130207d"
    assert run(f"{here} --value-format base64 --property print.key=false").lines[0] == "eyAiYSIgOiAxLjEwIH0="
    first, second = map(json.loads, run(f"{here} --value-format json --json").lines)
    assert (first["key"], first["value"]) == (7, {"a": 1.1})
    assert (second["key"], second["value"]) == (None, None)


def test_a_value_without_the_format_is_told_of_and_shown_in_hexadecimal(
    call: Call, run: Call, given: Given, topic: str
) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    given(topic, b"{}", b"{broken\x1b", b"[1]")
    here = f"consume --topic {topic} -e --value-format json"
    for flags, code in (("", 0), ("--strict", 1)):
        ended = run(f"{here} {flags}")
        assert (ended.code, ended.lines) == (code, ["{}", "7b62726f6b656e1b", "[1]"])
        warning, total = ended.err.splitlines()
        assert re.fullmatch(rf"WARN: {topic}-0@1: value is not JSON: .*", warning)
        assert total == "Processed a total of 3 messages"
    assert json.loads(run(f"{here} --json").lines[1])["value_base64"] == "e2Jyb2tlbhs="


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ("--topic t --from soon", "--from expects an offset, start"),
        ("--topic t --to end+5", "--to: no record is at 'end+5'"),
        ("--topic t --from 5 --from-beginning", "--from-beginning cannot be given with --from"),
        ("--topic t --from 5 --group g", "--from cannot be given with a group"),
        ("--topic t -e --command-property group.id=g", "--exit-at-end cannot be given with a group"),
        ("--topic t --partition 0,x", "--partition expects numbers such as 0 or 0,2, not '0,x'"),
        ("--topic t --partition 4294967296", "--partition expects numbers"),
        ("--topic t --key (a", "--key: '(a' is no regular expression of RE2"),
        ("--topic t --grep (?=a)", "--grep: '(?=a)' is no regular expression of RE2"),
        ("--topic t --where a.b==3", "--where: "),
        ("--topic t --where " + "(" * 5_000, "--where: "),
        ("--topic t --value-format xml", "Invalid value for '--value-format'"),
        ("--topic t --value-format json --value-deserializer LongDeserializer", "--value-deserializer cannot be given"),
        ("--topic t --value-format json --property value.deserializer=LongDeserializer", "The property value.deseri"),
        ("--topic t --json --property print.key=true", "--formatter-property cannot be given with --json"),
        ("--topic t --value-message shop.Order", "--value-message needs --value-schema"),
        ("--topic t --key-schema /nowhere", "/nowhere cannot be read: No such file or directory"),
        ("--topic t --key-schema /tmp", "/tmp is not a file"),
        ("--topic t --max-messages -2", "Invalid value for '--max-messages'"),
    ],
)
def test_flags_that_cannot_be_are_one_line(call: Call, flags: str, complaint: str) -> None:
    ended = call(f"consume {flags}")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"Error: {complaint}")
    assert ended.err.count("\n") == 1
    assert len(ended.err) < 600


def test_a_reader_that_stops_reading_does_not_keep_a_signal_from_ending_it(
    call: Call, given: Given, start: Start, topic: str
) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    given(topic, *[b"x" * 1_000] * 1_000)
    consumer = start(f"consume --topic {topic} --from-beginning")
    assert consumer.stdout is not None
    assert consumer.stdout.read(1) == b"x"
    # The pipe is full now, and stays so.
    consumer.send_signal(signal.SIGTERM)
    assert consumer.wait(TIMEOUT_S) == 128 + signal.SIGTERM


def _on_a_terminal(arguments: list[str], stdout: int | None = None) -> tuple[int, str]:
    """Run a command with a terminal as its standard error, and as its output unless told otherwise."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*PYKBROKER, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs if stdout is None else stdout,
        stderr=theirs,
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(theirs)
    shown = b""
    try:
        while data := os.read(ours, 65_536):
            shown += data
    except OSError:
        pass  # Linux's end of a terminal that nobody has open any more
    os.close(ours)
    return process.wait(TIMEOUT_S), shown.decode()


def test_a_terminal_sees_documents_laid_out_and_no_control_characters(
    call: Call, given: Given, bootstrap: str, topic: str
) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    given(topic, b'{"a":[1]}')
    here = ["consume", "--bootstrap-server", bootstrap, "--topic", topic, "-e"]
    code, shown = _on_a_terminal([*here, "--value-format", "json"])
    assert (code, shown.split("Processed")[0]) == (0, '{\r\n  "a": [\r\n    1\r\n  ]\r\n}\r\n')
    given(topic, b"\x1b]0;title\x07\xc2\x9b31m\tend\xff")
    _, shown = _on_a_terminal([*here, "--from", "1"])
    assert shown.split("Processed")[0] == "\\x1b]0;title\\x07\\x9b31m\tend\\xff\r\n"


def test_json_on_a_terminal_stays_json_without_control_characters(
    call: Call, given: Given, bootstrap: str, topic: str
) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    value = "\x1b]0;title\x07\x9b31m\x7f\u2028end"
    given(topic, value.encode())
    _, shown = _on_a_terminal(["consume", "--bootstrap-server", bootstrap, "--topic", topic, "-e", "--json"])
    line = shown.split("Processed")[0].rstrip()
    assert line.isprintable()
    assert json.loads(line)["value"] == value


def test_progress_is_drawn_where_it_disturbs_no_record(call: Call, run: Call, bootstrap: str, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    run(f"produce --topic {topic} --batch-size 1000000", stdin=b'{"some":["document",1,2.5]}\n' * 200_000)
    here = ["consume", "--bootstrap-server", bootstrap, "--topic", topic, "--json", "--value-format", "json"]
    code, shown = _on_a_terminal([*here, "-e"], subprocess.DEVNULL)
    assert code == 0
    assert "/200000" in shown
    code, shown = _on_a_terminal([*here, "--from-beginning", "--max-messages", "200000"], subprocess.DEVNULL)
    assert (code, shown) == (0, "Processed a total of 200000 messages\r\n")


def test_a_read_goes_on_where_the_leader_moves(start_cluster: Callable[..., ClusterCommand]) -> None:
    cluster = start_cluster("--brokers", "3")
    bootstrap = cluster.wait_until_ready()
    settings = {"bootstrap.servers": bootstrap, "log_level": 0}
    admin = AdminClient(settings)
    admin.create_topics([NewTopic("t", 1, 3)])["t"].result(TIMEOUT_S)
    producer = confluent_kafka.Producer({**settings, "enable.idempotence": True})
    for number in range(20_000):
        producer.produce("t", b"%06d" % number + b"x" * 1_000)
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    consumer = subprocess.Popen(
        [*PYKBROKER, "consume", "--bootstrap-server", bootstrap, "--topic", "t", "-e"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        bufsize=0,
    )
    assert consumer.stdout is not None
    # The pipe is full behind the first line: most of the records are still to be fetched.
    first = consumer.stdout.readline()
    leader = admin.list_topics("t", TIMEOUT_S).topics["t"].partitions[0].leader
    cluster.nodes()[leader].kill()
    rest, err = consumer.communicate(timeout=TIMEOUT_S)
    assert (consumer.returncode, err) == (0, b"Processed a total of 20000 messages\n")
    assert [int(line[:6]) for line in (first + rest).splitlines()] == list(range(20_000))
