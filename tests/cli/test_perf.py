"""`pykbroker perf`: what it counts, in the words of Kafka's tools, and how it ends."""

from __future__ import annotations

import json
import math
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from random import Random

import pytest
import trio
import trio.testing
from click.testing import CliRunner

from pykbroker.cli.command import CommandFailed
from pykbroker.cli.main import main
from pykbroker.cli.perf_dates import DEFAULT_PATTERN, date_text
from pykbroker.cli.perf_histogram import ERROR, LatencyHistogram
from pykbroker.cli.perf_payloads import random_letters
from pykbroker.cli.records.pace import Pace
from pykbroker.client.cluster import Cluster, parse_bootstrap_servers
from pykbroker.client.consumer import Consumer
from pykbroker.client.fetched import ConsumedRecord
from pykbroker.client.offsets import EARLIEST_TIMESTAMP, READ_COMMITTED
from pykbroker.client.topics import create_topic, list_topics
from pykbroker.protocol.topic_partition import TopicPartition
from tests.cli.child_brokers import READY, Place, hang_up_counts, place  # noqa: F401 - fixtures
from tests.cli.conftest import PYKBROKER, ROOT, TIMEOUT_S, Outcome
from tests.cli.terminal import Terminal

Perf = Callable[..., Outcome]
Start = Callable[..., subprocess.Popen[str]]

SENT = re.compile(
    r"(\d+) records sent, (\d+\.\d{6}) records/sec \((\d+\.\d\d) MB/sec\), (\d+\.\d\d) ms avg latency, "
    r"(\d+\.\d\d) ms max latency, (\d+) ms 50th, (\d+) ms 95th, (\d+) ms 99th, (\d+) ms 99\.9th\."
)
"""What scripts look for, as they do in the output of kafka-producer-perf-test."""
ON_THE_WAY = re.compile(
    r"\d+ records sent, \d+\.\d records/sec \(\d+\.\d\d MB/sec\), \d+\.\d ms avg latency, \d+\.\d ms max latency\."
)
CONSUMED = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec"
)
AT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}"


@pytest.fixture
def perf(bootstrap: str) -> Perf:
    """`perf("produce --topic t …")` in this process."""

    def invoke(text: str, *more: str) -> Outcome:
        result = CliRunner().invoke(main, ["perf", *text.split(), *more, "--bootstrap-server", bootstrap])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return invoke


@pytest.fixture
def made(bootstrap: str, topic: str) -> str:
    """A topic of three partitions."""
    trio.run(_create, bootstrap, topic)
    return topic


@pytest.fixture
def start_perf(bootstrap: str) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """`start_perf("produce --topic t …")` as a process with pipes; killed at the end of the test if it still runs."""
    started: list[subprocess.Popen[str]] = []

    def spawn(text: str, server: str = bootstrap) -> subprocess.Popen[str]:
        arguments = [*PYKBROKER, "perf", *text.split(), "--bootstrap-server", server]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(arguments, stdout=pipe, stderr=pipe, cwd=ROOT, text=True))
        return started[-1]

    yield spawn
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def child(place: Place) -> Iterator[Callable[..., str]]:  # noqa: F811
    """`child("--as", "2.1")` starts a broker as a process, and returns its address."""
    started: list[subprocess.Popen[str]] = []

    def start(*flags: str) -> str:
        broker = place.start(*flags)
        started.append(broker)
        assert broker.stdout is not None
        ready = READY.fullmatch(broker.stdout.readline())
        assert ready
        return ready[1].split("//")[1].strip()

    yield start
    place.kill_all()
    for broker in started:
        broker.communicate()


def _wait_until_records_are_sent(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    line = "0 records"
    while line.startswith("0 records"):
        line = process.stdout.readline()
    assert ON_THE_WAY.fullmatch(line.strip())


async def _create(bootstrap: str, topic: str) -> None:
    async with Cluster(parse_bootstrap_servers(bootstrap)) as cluster:
        await create_topic(cluster, topic, partitions=3)


def _records(bootstrap: str, topic: str, count: int, isolation_level: int = 0) -> list[ConsumedRecord]:
    async def work() -> list[ConsumedRecord]:
        async with Cluster(parse_bootstrap_servers(bootstrap)) as cluster:
            consumer = Consumer(cluster, isolation_level=isolation_level)
            await consumer.assign_at({TopicPartition(topic, index): EARLIEST_TIMESTAMP for index in range(3)})
            found: list[ConsumedRecord] = []
            with trio.fail_after(TIMEOUT_S):
                while len(found) < count:
                    found += await consumer.poll()
            return found

    return trio.run(work)


def test_percentiles_are_those_of_all_latencies_within_the_stated_error() -> None:
    rng = Random(17)
    latencies = [int(rng.expovariate(1 / 20_000)) for _ in range(10_000)] + [9_000_000_000]
    histogram = LatencyHistogram()
    for first in range(0, len(latencies), 100):
        histogram.add(latencies[first : first + 100])
    latencies.sort()
    assert histogram.mean_ms == pytest.approx(sum(latencies) / len(latencies) / 1000)
    assert histogram.max_ms == 9_000_000
    for percentile in (0, 1, 50, 95, 99, 99.9, 100):
        exact_ms = latencies[max(0, -(-len(latencies) * int(percentile * 10) // 1000) - 1)] / 1000
        assert exact_ms <= histogram.percentile_ms(percentile) <= exact_ms * (1 + ERROR)


def test_latencies_beyond_all_sense_are_counted_and_break_nothing() -> None:
    histogram = LatencyHistogram()
    assert (histogram.percentile_ms(50), histogram.mean_ms) == (0.0, 0.0)
    histogram.add([-5, 0, 1 << 62])
    assert histogram.count == 3
    assert histogram.percentile_ms(50) == 0.0
    assert histogram.max_ms == ((1 << 40) - 1) / 1000


def test_a_steady_rate_is_due_by_number_and_catches_up_after_a_stall() -> None:
    async def work() -> list[float]:
        pace = Pace(1000, most_behind_s=math.inf)
        began = trio.current_time()
        at = []
        for stall_s in (0, 0, 10, 0):
            await trio.sleep(stall_s)
            await pace.wait()
            at.append(trio.current_time() - began)
        for _ in range(10_000):
            await pace.wait()
        return [*at, trio.current_time() - began]

    clock = trio.testing.MockClock(autojump_threshold=0)
    assert trio.run(work, clock=clock) == pytest.approx([0, 0.001, 10.001, 10.001, 10.003])


def test_payloads_have_the_size_that_was_asked_for() -> None:
    for size in (1, 100, (1 << 20) - 1, (2 << 20) + 3):
        payloads = random_letters(size, Random(1))
        first, second = next(payloads), next(payloads)
        assert {len(first), len(second)} == {size}
        assert first.isalpha()
        assert first.isupper()


def test_dates_are_written_in_javas_patterns() -> None:
    at = datetime(2026, 3, 4, 5, 6, 7, 89_000)
    assert date_text(at, DEFAULT_PATTERN) == "2026-03-04 05:06:07:089"
    assert date_text(at, "d.M.yy 'at' H''s") == "4.3.26 at 5'7"
    for pattern in ("EEE", "MMM", "'open", "yyyy" * 100):
        with pytest.raises(CommandFailed):
            date_text(at, pattern)


def test_the_last_line_of_a_producer_is_kafkas_and_the_records_are_there(perf: Perf, bootstrap: str, made: str) -> None:
    ended = perf(f"produce --topic {made} --num-records 2000 --record-size 100 --throughput -1")
    assert (ended.code, ended.err) == (0, "")
    found = SENT.fullmatch(ended.lines[-1])
    assert found, ended.out
    assert found[1] == "2000"
    records = _records(bootstrap, made, 2000)
    assert {len(record.value or b"") for record in records} == {100}


def test_json_tells_the_same_with_finer_latencies_and_nothing_else(perf: Perf, made: str) -> None:
    ended = perf(f"produce --topic {made} --num-records 500 --record-size 10 --warmup-records 100 --json")
    result = json.loads(ended.out)
    assert (result["records"], result["bytes"], result["failed"], result["error"]) == (500, 5000, 0, None)
    assert 0 < result["latency_ms"]["p50"] <= result["latency_ms"]["p99.9"] <= result["latency_ms"]["max"]
    assert result["records_per_s"] == pytest.approx(500 / result["elapsed_s"], rel=0.01)
    assert (result["steady_state"]["records"], result["steady_state"]["bytes"]) == (400, 4000)


def test_kafkas_lists_of_properties_are_taken_and_win_over_a_file(perf: Perf, made: str, tmp_path: Path) -> None:
    file = tmp_path / "producer.properties"
    file.write_text("acks=wrong\n")
    wanted = f"produce --topic {made} --num-records 10 --record-size 1 --throughput -1 --producer.config {file}"
    assert perf(wanted).err == "Error: acks must be one of all, -1, 0, 1, not 'wrong'\n"
    assert perf(f"{wanted} --producer-props acks=1 linger.ms=0 compression.type=zstd").code == 0
    assert perf(f"{wanted} --command-property acks=0 batch.size=1000 buffer.memory=5000").code == 0
    assert "compression codec" in perf(f"{wanted} --producer-props acks=1 compression.type=rar").err


def test_the_cluster_may_stand_among_the_properties_and_a_flag_wins(bootstrap: str, made: str) -> None:
    wanted = (
        f"perf produce --topic {made} --num-records 1 --record-size 1 --producer-props bootstrap.servers={bootstrap}"
    )
    assert CliRunner().invoke(main, wanted.split()).exit_code == 0
    refused = CliRunner().invoke(main, [*wanted.split(), "acks=all", "--bootstrap-server", "127.0.0.1:1"])
    assert refused.stderr == "Error: No broker can be reached (127.0.0.1:1: Connection refused)\n"


def test_payloads_come_from_a_file_or_are_numbers(perf: Perf, bootstrap: str, made: str, tmp_path: Path) -> None:
    file = tmp_path / "payloads"
    file.write_text("one|two|three\n")
    perf(f"produce --topic {made} --num-records 60 --payload-file {file} --payload-delimiter |")
    perf(f"produce --topic {made} --num-records 3 --payload-monotonic")
    values = {record.value for record in _records(bootstrap, made, 63)}
    assert values == {b"one", b"two", b"three\n", b"0", b"1", b"2"}


def test_interim_lines_come_at_each_interval(perf: Perf, made: str) -> None:
    ended = perf(f"produce --topic {made} --num-records 200 --record-size 1 --throughput 500 --reporting-interval 100")
    assert ended.code == 0
    *interim, last = ended.lines
    assert interim
    assert all(ON_THE_WAY.fullmatch(line) for line in interim), interim
    assert SENT.fullmatch(last)


def test_transactions_are_committed_one_after_the_other(perf: Perf, bootstrap: str, made: str) -> None:
    """Records for longer than a few milliseconds, however fast the machine is."""
    flags = "--transactional-id perf --transaction-duration-ms 1"
    ended = perf(f"produce --topic {made} --num-records 3000 --record-size 10 {flags}")
    assert ended.code == 0, ended.err
    records = _records(bootstrap, made, 3000, READ_COMMITTED)
    assert len(records) == 3000
    next_offsets = {record.partition: record.offset + 1 for record in records}
    assert sum(next_offsets.values()) > 3000, "markers stand between the records of several transactions"


def test_a_transaction_that_a_signal_interrupts_is_aborted(
    perf: Perf, start_perf: Start, bootstrap: str, made: str
) -> None:
    flags = "--throughput 100 --transactional-id interrupted --transaction-duration-ms 100000 --reporting-interval 100"
    process = start_perf(f"produce --topic {made} --num-records 100000 --record-size 10 {flags}")
    _wait_until_records_are_sent(process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(TIMEOUT_S) == 143
    perf(f"produce --topic {made} --num-records 1 --payload-monotonic")
    [record] = _records(bootstrap, made, 1, READ_COMMITTED)
    assert record.value == b"0"


@pytest.mark.parametrize("command", ["produce --record-size 1", "consume", "latency"])
def test_a_topic_that_is_missing_is_one_line_and_is_not_made(
    perf: Perf, bootstrap: str, topic: str, command: str
) -> None:
    ended = perf(f"{command} --topic {topic} --num-records 1")
    text = f"Topic '{topic}' does not exist; create it with: pykbroker topics --create --topic {topic}"
    assert ended == Outcome(1, "", f"Error: {text}\n")

    async def names() -> list[str]:
        async with Cluster(parse_bootstrap_servers(bootstrap)) as cluster:
            return [each.name for each in await list_topics(cluster)]

    assert topic not in trio.run(names)


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ("produce --num-records 1", "Exactly one of --record-size, --payload-file and --payload-monotonic"),
        ("produce --num-records 1 --record-size 1 --payload-monotonic", "Exactly one of"),
        ("produce --num-records 0 --record-size 1", "0 is not in the range"),
        ("produce --num-records 99999999999999999999 --record-size 1", "is not in the range"),
        ("produce --num-records 1 --record-size 1 --throughput nan", "'nan' is not a number from 0.001"),
        ("produce --num-records 1 --record-size 1 --throughput 0", "'0' is not a number from 0.001"),
        ("produce --num-records 1 --record-size 1 --warmup-records 1", "--warmup-records must be less"),
        ("produce --num-records 1 --payload-file /nonexistent", "/nonexistent: No such file or directory"),
        ("produce --num-records 1 --payload-file /dev/null", "The payload file /dev/null is empty"),
        ("produce --num-records 1 --payload-file /dev/zero", "/dev/zero is larger than 256 MB"),
        ("produce --num-records 1 --record-size 1 --producer-props acks", "expects key=value, not 'acks'"),
        ("consume --messages x", "'x' is not a valid integer"),
        ("consume --messages 1 --include t", "Exactly one of the following arguments is required"),
        ("consume --messages 1 --date-format Q", "--date-format has 'Q'"),
        ("latency --num-records 1 --acks 0", "'0' is not one of"),
        ("latency --num-records 1 --command-property acks=0", "Latency testing requires synchronous"),
    ],
)
def test_bad_input_is_one_line(perf: Perf, made: str, flags: str, reason: str) -> None:
    ended = perf(f"{flags} --topic {made}")
    assert (ended.code, ended.out) == (1, "")
    assert reason in ended.err
    assert ended.err.startswith("Error: ")
    assert ended.err.count("\n") == 1


def test_a_broker_out_of_reach_is_one_line(made: str) -> None:
    result = CliRunner().invoke(
        main, f"perf produce --topic {made} --num-records 1 --record-size 1 --bootstrap-server 127.0.0.1:1".split()
    )
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Error: No broker can be reached (127.0.0.1:1: Connection refused)\n"


def test_a_broker_of_an_older_release_is_measured_with_all_of_it(start_perf: Start, child: Callable[..., str]) -> None:
    server = child("--as", "2.1")
    trio.run(_create, server, "t")
    for flags in (
        "produce --num-records 300 --record-size 10 --transactional-id x --transaction-duration-ms 1",
        "consume --num-records 100 --group g",
        "consume --num-records 200 --group g",
        "latency --num-records 3",
    ):
        out, err = start_perf(f"{flags} --topic t --json", server).communicate(timeout=TIMEOUT_S)
        assert err == ""
        assert json.loads(out)["records"] == int(flags.split()[2])


def test_a_broker_that_vanishes_ends_the_run_with_the_results_so_far(
    start_perf: Start,
    child: Callable[..., str],
    place: Place,  # noqa: F811
) -> None:
    server = child()
    trio.run(_create, server, "t")
    process = start_perf(
        "produce --topic t --num-records 1000000 --record-size 10 --throughput 1000 --reporting-interval 100 "
        "--command-property delivery.timeout.ms=500",
        server,
    )
    _wait_until_records_are_sent(process)
    place.kill_all()
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    found = SENT.fullmatch(out.splitlines()[-1])
    assert found, out
    assert int(found[1]) > 0
    assert re.fullmatch(r"Error: t-\d: not delivered within 500 ms: .*\n", err), err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_measurement_with_the_results_so_far(
    start_perf: Start, made: str, number: signal.Signals
) -> None:
    flags = "--num-records 1000000 --record-size 10 --throughput 1000 --reporting-interval 100"
    process = start_perf(f"produce --topic {made} {flags}")
    _wait_until_records_are_sent(process)
    process.send_signal(number)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, err) == (128 + number, "")
    assert SENT.fullmatch(out.splitlines()[-1])


def test_a_closed_pipe_ends_a_measurement_quietly(start_perf: Start, made: str) -> None:
    flags = "--num-records 1000000 --record-size 10 --throughput 1000 --reporting-interval 100"
    process = start_perf(f"produce --topic {made} {flags}")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(TIMEOUT_S) == 0


def test_a_closed_standard_error_does_not_keep_a_measurement_from_its_results(bootstrap: str, made: str) -> None:
    flags = f"produce --topic {made} --num-records 5 --record-size 10 --throughput -1 --bootstrap-server {bootstrap}"
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", *PYKBROKER, "perf", *flags.split()],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0
    assert SENT.match(done.stdout)


def test_a_terminal_shows_a_bar_and_in_the_end_a_table(bootstrap: str, made: str) -> None:
    flags = "--num-records 1500 --record-size 10 --throughput 1000 --reporting-interval 500"
    with Terminal(
        ["perf", "produce", "--topic", made, *flags.split(), "--bootstrap-server", bootstrap], columns=180
    ) as terminal:
        terminal.wait_for(r" \d+ % +[\d,]+ records/s")
        terminal.wait_for(r"(?m)^\d+ records sent, [\d.]+ records/sec")
        assert terminal.wait() == 0
        assert re.search(r"(?m)^1500 records sent, ", terminal.text)
        assert re.search(r"RECORDS +RECORDS/S", terminal.text)
        assert not re.search(r"\d+ % ", terminal.text), "the bar is gone"


def test_the_lines_of_a_consumer_are_kafkas(perf: Perf, made: str) -> None:
    perf(f"produce --topic {made} --num-records 3000 --record-size 100")
    ended = perf(f"consume --topic {made} --messages 2500")
    assert (ended.code, ended.err) == (0, "")
    header, line = ended.lines
    assert header == f"start.time, end.time, {CONSUMED}, fetch.nMsg.sec"
    assert re.fullmatch(rf"{AT}, {AT}, 0\.2384, [\d.]+, 2500, [\d.]+, 0, \d+, [\d.]+, [\d.]+", line)
    bare = perf(f"consume --topic {made} --messages 10 --hide-header --date-format HH").lines
    assert re.fullmatch(r"\d\d, \d\d, 0\.0010, .*", bare[0])


def test_a_consumer_in_a_group_commits_and_goes_on_where_it_was(perf: Perf, made: str) -> None:
    perf(f"produce --topic {made} --num-records 3000 --record-size 1")
    wanted = f"consume --topic {made} --group {made} --json"
    first = json.loads(perf(f"{wanted} --messages 2000").out)
    assert (first["records"], first["complete"]) == (2000, True)
    assert 0 < first["rebalance_s"] < first["elapsed_s"]
    second = json.loads(perf(f"{wanted} --messages 2000 --timeout 0").out)
    assert (second["records"], second["complete"]) == (1000, False)


def test_a_consumer_that_gets_no_more_says_so_as_kafkas_does(perf: Perf, made: str) -> None:
    perf(f"produce --topic {made} --num-records 10 --record-size 1")
    ended = perf(f"consume --include {made} --messages 100 --timeout 100")
    assert ended.code == 0
    assert ended.lines[1].startswith(
        "WARNING: Exiting before consuming the expected number of records: timeout (100 ms)"
    )
    assert ended.lines[2].split(", ")[4] == "10"
    latest = perf(f"consume --topic {made} --messages 100 --timeout 100 --from-latest --hide-header")
    assert latest.lines[1].split(", ")[4] == "0"


def test_detailed_statistics_are_a_line_at_each_interval(perf: Perf, made: str) -> None:
    perf(f"produce --topic {made} --num-records 10 --record-size 1")
    flags = "--messages 100 --timeout 350 --show-detailed-stats --reporting-interval 100"
    header, *lines = perf(f"consume --topic {made} {flags}").lines
    assert header == f"time, threadId, {CONSUMED}, fetch.nMsg.sec"
    rows = [line for line in lines if not line.startswith("WARNING")]
    assert len(rows) > 1
    assert all(re.fullmatch(rf"{AT}, 0, 0\.0000, [\d.]+, 10, .*", row) for row in rows), rows


def test_latency_is_told_in_the_lines_of_kafkas_tool(perf: Perf, made: str) -> None:
    ended = perf(
        f"latency --topic {made} --num-records 1001 --record-key-size 5 --num-headers 2 --record-header-size -1"
    )
    assert (ended.code, ended.err) == (0, "")
    first, second, average, percentiles = ended.lines
    assert re.fullmatch(r"0\t\d+\.\d+", first)
    assert re.fullmatch(r"1000\t\d+\.\d+", second)
    assert re.fullmatch(r"Avg latency: \d+\.\d{4} ms", average)
    assert re.fullmatch(r"Percentiles: 50th = \d+, 99th = \d+, 99\.9th = \d+", percentiles)


def test_latency_takes_kafkas_older_arguments_and_passes_over_the_records_of_others(
    perf: Perf, start_perf: Start, bootstrap: str, made: str
) -> None:
    process = start_perf(f"produce --topic {made} --num-records 1000000 --record-size 10 --throughput 500")
    assert process.stdout is not None
    process.stdout.readline()
    ended = CliRunner().invoke(main, ["perf", "latency", bootstrap, made, "20", "1", "30"])
    assert ended.exit_code == 0, ended.stderr
    assert ended.stdout.startswith("0\t")
    result = json.loads(perf(f"latency --topic {made} --num-records 20 --size 0 --acks 1 --json").out)
    assert result["records"] == 20
    assert 0 < result["latency_ms"]["p50"] <= result["latency_ms"]["max"]


def test_every_help_has_examples() -> None:
    for command in ("produce", "consume", "latency"):
        shown = CliRunner().invoke(main, ["perf", command, "--help"])
        assert f"\n    pykbroker perf {command} " in shown.stdout
