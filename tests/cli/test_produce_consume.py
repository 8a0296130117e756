"""`pykbroker produce` and `pykbroker consume` as processes with pipes, against a broker."""

import os
import re
import select
import signal
import subprocess
from collections.abc import Callable

import pytest

from tests.cli.conftest import PYKBROKER, ROOT, TIMEOUT_S, Outcome

Call = Callable[..., Outcome]
Given = Callable[..., None]
Start = Callable[..., subprocess.Popen[bytes]]


def test_lines_come_back_as_they_went_in_with_every_codec(call: Call, run: Call, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    lines = "".join(f"line {number}\n" for number in range(2_000)) + "ä\t\n\nno line end"
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        assert run(f"produce --topic {topic} --compression-codec {codec}", stdin=lines.encode()) == Outcome(
            0, "", "2003 records acknowledged\n"
        )
    back = run(f"consume --topic {topic} --from-beginning --max-messages 10015")
    assert back.out == (lines + "\n") * 5
    assert back.err == "Processed a total of 10015 messages\n"


def test_keys_headers_and_nulls_are_parsed_and_printed(call: Call, run: Call, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    parse = "--property parse.key=true --property parse.headers=true --reader-property null.marker=NULL"
    run(f"produce --topic {topic} {parse}", stdin=b"h1:x,h2:NULL\tk\tv\r\nNULL\tNULL\tNULL\n")
    shown = [f"--property=print.{what}=true" for what in ("timestamp", "partition", "offset", "headers", "key")]
    first, second = run(f"consume --topic {topic} --from-beginning --max-messages 2", *shown).lines
    assert re.fullmatch(r"CreateTime:\d{13}\tPartition:0\tOffset:0\th1:x,h2:null\tk\tv", first)
    assert re.fullmatch(r"CreateTime:\d{13}\tPartition:0\tOffset:1\tNO_HEADERS\tnull\tnull", second)


def test_a_topic_that_is_missing_is_made_for_a_producer_and_an_error_for_a_consumer(run: Call, topic: str) -> None:
    missing = run(f"consume --topic {topic} --from-beginning")
    assert (missing.code, missing.out) == (1, "")
    assert missing.err.startswith(f"Error: Topic '{topic}' does not exist")
    assert run(f"produce --topic {topic}", stdin=b"a\n") == Outcome(0, "", "1 record acknowledged\n")
    assert run(f"consume --topic {topic} --from-beginning --max-messages 1").out == "a\n"


def test_a_topic_may_be_named_without_its_flag(call: Call, run: Call, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    assert run(f"produce {topic}", stdin=b"a\n").code == 0
    assert run(f"consume {topic} -e").out == "a\n"
    both = run(f"consume {topic} --topic other")
    assert both == Outcome(1, "", f"Error: Two topics: '{topic}' and --topic 'other'; give one\n")


@pytest.mark.parametrize(
    "command",
    ["consume {} -e", "groups reset-offsets g --topic {} --to-earliest --yes", "configs alter topic {} --set a=b"],
)
def test_a_topic_that_is_misspelled_is_answered_with_those_spelled_alike(
    call: Call, run: Call, topic: str, command: str
) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    outcome = run(command.format(topic.replace("topic", "tpoic")))
    assert outcome.code == 1
    assert f"does not exist. Did you mean '{topic}'" in outcome.err


def test_every_kind_of_acks_delivers(call: Call, run: Call, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    said = {"all": "acknowledged", "1": "acknowledged", "0": "sent, which acks=0 leaves without acknowledgement"}
    for acks, what in said.items():
        outcome = run(f"produce --topic {topic} --acks {acks}", stdin=acks.encode() + b"\n")
        assert outcome == Outcome(0, "", f"1 record {what}\n")
    assert run(f"consume --topic {topic} --from-beginning --max-messages 3").lines == ["all", "1", "0"]


def test_what_stands_before_a_bad_line_is_sent(call: Call, run: Call, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    outcome = run(f"produce --topic {topic} --property parse.key=true", stdin=b"k\tgood\nbad\nk\tnever\n")
    assert outcome == Outcome(
        1,
        "",
        "Error: No key separator found on line number 2: 'bad'; that and what follows is not sent "
        "(1 record acknowledged)\n",
    )
    assert run(f"consume --topic {topic} --from-beginning --timeout-ms 200").out == "good\n"


def test_a_record_that_is_too_large_is_one_line(call: Call, run: Call, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1 --config max.message.bytes=1000")
    outcome = run(f"produce --topic {topic}", stdin=b"x" * 5_000 + b"\n")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("Error: ")
    assert outcome.err.count("\n") == 1


def test_a_place_to_start_may_be_named(call: Call, run: Call, given: Given, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    given(topic, *(b"%d" % number for number in range(10)))
    here = f"consume --topic {topic} --partition 0"
    assert run(f"{here} --offset 7 --max-messages 2").out == "7\n8\n"
    assert run(f"{here} --offset earliest --max-messages 1").out == "0\n"
    assert run(f"{here} --offset latest --timeout-ms 100").out == ""
    assert run(f"consume --topic {topic} --partition 9 --offset 0").err == (
        f"Error: Topic '{topic}' has no partition 9\n"
    )


def test_without_from_beginning_only_new_records_are_shown(call: Call, given: Given, start: Start, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    given(topic, b"old")
    consumer = start(f"consume --topic {topic}")
    producer = start(f"produce --topic {topic}")
    assert producer.stdin is not None
    assert consumer.stdout is not None
    seen = b""
    # The consumer is ready at some time: until then, new records are older than it.
    while not seen:
        producer.stdin.write(b"new\n")
        producer.stdin.flush()
        seen = _read_if_ready(consumer)
    assert set(seen.splitlines()) == {b"new"}


def _read_if_ready(process: subprocess.Popen[bytes]) -> bytes:
    """What a pipe has within a moment: each batch is there as soon as it was read."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], 0.1)
    return os.read(process.stdout.fileno(), 65536) if ready else b""


def test_several_topics_are_read_by_a_pattern(call: Call, run: Call, given: Given, topic: str) -> None:
    for suffix in ("-a", "-b"):
        call(f"topics --create --topic {topic}{suffix}")
        given(f"{topic}{suffix}", suffix.encode())
    assert sorted(run(f"consume --include {topic}-. --from-beginning --max-messages 2").lines) == ["-a", "-b"]
    assert run(f"consume --include {topic}-x.*").err == f"Error: No topic matches '{topic}-x.*'\n"


def test_a_closed_pipe_ends_a_consumer_quietly(call: Call, given: Given, start: Start, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    given(topic, b"x" * 100, *[b"y" * 1000] * 1_000)
    consumer = start(f"consume --topic {topic} --from-beginning")
    assert consumer.stdout is not None
    assert consumer.stderr is not None
    assert consumer.stdout.readline() == b"x" * 100 + b"\n"
    consumer.stdout.close()
    assert consumer.stderr.read() == b""
    assert consumer.wait(TIMEOUT_S) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_consumer_in_good_order(
    call: Call, given: Given, start: Start, topic: str, number: signal.Signals
) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    given(topic, b"a", b"b")
    consumer = start(f"consume --topic {topic} --from-beginning --group {topic}-group")
    assert consumer.stdout is not None
    assert consumer.stderr is not None
    assert [consumer.stdout.readline(), consumer.stdout.readline()] == [b"a\n", b"b\n"]
    consumer.send_signal(number)
    assert consumer.wait(TIMEOUT_S) == 128 + number
    assert consumer.stderr.read() == b"Processed a total of 2 messages\n"
    [row] = call(f"groups --describe --group {topic}-group").cells
    assert row[3:7] == ["2", "2", "0", "-"]


def test_ctrl_c_ends_a_producer_and_what_was_typed_is_sent(call: Call, run: Call, start: Start, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    producer = start(f"produce --topic {topic}")
    consumer = start(f"consume --topic {topic} --from-beginning --max-messages 1")
    assert producer.stdin is not None
    producer.stdin.write(b"typed\n")
    producer.stdin.flush()
    out, _ = consumer.communicate(timeout=TIMEOUT_S)
    assert out == b"typed\n"
    producer.send_signal(signal.SIGINT)
    _, err = producer.communicate(timeout=TIMEOUT_S)
    assert (producer.returncode, err) == (130, b"Interrupted: 1 record acknowledged\n")


def test_a_full_disk_is_one_line(call: Call, given: Given, bootstrap: str, topic: str) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    given(topic, b"x")
    for flags in (["consume", "--topic", topic, "--from-beginning"], ["topics", "--list"]):
        with open("/dev/full", "wb") as full:
            ended = subprocess.run(
                [*PYKBROKER, *flags, "--bootstrap-server", bootstrap],
                stdout=full,
                stderr=subprocess.PIPE,
                cwd=ROOT,
                timeout=TIMEOUT_S,
                check=False,
            )
        assert (ended.returncode, ended.stderr) == (1, b"Error: No space left on device\n")


def test_a_name_that_is_no_text_is_one_line(call: Call) -> None:
    for command in ("consume", "produce", "topics --describe"):
        ended = call(command, "--topic", "\udcff")
        assert (ended.code, ended.out) == (1, "")
        assert ended.err.startswith("Error: ")
        assert ended.err.count("\n") == 1
