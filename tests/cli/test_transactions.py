"""`pykbroker transactions` against a broker."""

import json
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner

from compat_tests.brokers import ExternalBroker
from compat_tests.transacting import RawProducer, leave_hanging, raw_producer
from pykbroker.cli.main import main
from tests.cli.conftest import Outcome
from tests.cli.terminals import at_terminal

Call = Callable[..., Outcome]


@pytest.fixture
def existing_topic(call: Call, topic: str) -> str:
    assert call(f"topics --create --topic {topic} --partitions 1").code == 0
    return topic


@pytest.fixture
def broker(bootstrap: str) -> ExternalBroker:
    return ExternalBroker(bootstrap)


@pytest.fixture
def producer(broker: ExternalBroker, existing_topic: str, name: Callable[[str], str]) -> Iterator[RawProducer]:
    with raw_producer(broker, name("transactional-id"), existing_topic) as producer:
        producer.init()
        assert producer.send(0, b"a", version=12) == "NONE"
        yield producer


def test_transactions_are_listed(call: Call, producer: RawProducer) -> None:
    row = [producer.transactional_id, "1", str(producer.producer_id), "Ongoing"]
    listed = call("transactions list")
    assert listed.lines[0].split() == ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]
    assert row in listed.cells
    assert call(f"transactions list --transactional-id-pattern {producer.transactional_id}").cells == [row]
    assert row not in call("transactions list --duration-filter 3600000").cells
    producer.end(commit=True, version=5)
    assert [*row[:3], "CompleteCommit"] in call("transactions list").cells


def test_a_transaction_is_described(call: Call, producer: RawProducer) -> None:
    described = call(f"transactions describe --transactional-id {producer.transactional_id}")
    titles, row = (line.split() for line in described.lines)
    told = dict(zip(titles, row, strict=True))
    assert told["TransactionState"] == "Ongoing"
    assert told["TopicPartitions"] == f"{producer.topic}-0"
    assert told["TransactionTimeoutMs"] == "60000"
    unknown = call("transactions describe --transactional-id nobody")
    assert (unknown.code, unknown.out) == (1, "")


def test_the_producers_of_a_partition_are_described(call: Call, producer: RawProducer) -> None:
    [row] = call(f"transactions producers --topic {producer.topic} --partition 0").cells
    assert row[:4] == [str(producer.producer_id), "0", "-1", "0"]
    assert row[5] == "0", "where the transaction begins"
    assert call(f"transactions describe-producers --topic {producer.topic} --partition 0").cells == [row]
    producer.end(commit=False, version=5)
    [row] = call(f"transactions producers --topic {producer.topic} --partition 0").cells
    assert (row[1], row[5]) == ("1", "None")
    missing = call(f"transactions producers --topic {producer.topic} --partition 9")
    assert missing.code == 1


def test_what_hangs_is_found_and_aborted(
    call: Call, broker: ExternalBroker, existing_topic: str, name: Callable[[str], str], producer: RawProducer
) -> None:
    hanging = leave_hanging(broker, name("transactional-id"), existing_topic)
    find = f"transactions find-hanging --topic {existing_topic} --max-transaction-timeout 0"
    [row] = call(find).cells
    assert row[:3] == [existing_topic, "0", str(hanging.producer_id)], "and not the one that the coordinator knows"
    where = f"--topic {existing_topic} --partition 0"
    aborted = call(f"transactions abort {where} --start-offset {row[5]} --json")
    assert (aborted.code, aborted.err) == (0, "")
    [told] = json.loads(aborted.out)
    assert [str(told[each]) for each in ("topic", "partition", "producer_id", "producer_epoch")] == row[:4]
    assert call(find).cells == []
    again = call(f"transactions abort {where} --start-offset {row[5]}")
    assert (again.code, again.out) == (1, "")


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ("find-hanging", "requires either --topic or --broker-id"),
        ("abort --topic t --partition 0", "named by --start-offset, or by --producer-id"),
        ("abort --topic t --partition 0 --start-offset 1 --producer-id 2", "goes without"),
        ("describe", "Missing option '--transactional-id'"),
        ("list --what", "No such option"),
        ("what", "No such command"),
    ],
)
def test_mistakes_are_one_line(call: Call, flags: str, complaint: str) -> None:
    refused = call(f"transactions {flags}")
    assert (refused.code, refused.out) == (1, "")
    assert complaint in refused.err
    assert len(refused.err.splitlines()) == 1


# JSON, and questions


def test_json_has_numbers_and_nulls(call: Call, producer: RawProducer) -> None:
    [listed] = json.loads(call(f"transactions list --transactional-id-pattern {producer.transactional_id} --json").out)
    assert listed == {
        "transactional_id": producer.transactional_id,
        "coordinator": 1,
        "producer_id": producer.producer_id,
        "state": "Ongoing",
    }
    [described] = json.loads(call(f"transactions describe --transactional-id {producer.transactional_id} --json").out)
    assert described["partitions"] == [f"{producer.topic}-0"]
    assert described["duration_ms"] >= 0
    [known] = json.loads(call(f"transactions producers --topic {producer.topic} --partition 0 --json").out)
    assert (known["producer_id"], known["start_offset"]) == (producer.producer_id, 0)
    producer.end(commit=True, version=5)
    [known] = json.loads(call(f"transactions producers --topic {producer.topic} --partition 0 --json").out)
    assert known["start_offset"] is None


def test_the_cluster_may_be_named_behind_the_word_too(bootstrap: str, producer: RawProducer) -> None:
    line = ["transactions", "list", "--bootstrap-server", bootstrap, "--json"]
    listed = CliRunner().invoke(main, line)
    assert producer.transactional_id in listed.stdout


@pytest.mark.parametrize(("answer", "code"), [(b"n\n", 1), (b"y\n", 0)])
def test_an_abort_shows_the_transaction_and_asks_at_a_terminal(
    broker: ExternalBroker,
    call: Call,
    bootstrap: str,
    existing_topic: str,
    name: Callable[[str], str],
    answer: bytes,
    code: int,
) -> None:
    hanging = leave_hanging(broker, name("transactional-id"), existing_topic)
    flags = ["--topic", existing_topic, "--partition", "0"]
    line = ["transactions", "abort", *flags, "--start-offset", "0", "--bootstrap-server", bootstrap]
    ended, shown = at_terminal(line, answer=answer)
    assert ended == code
    assert f"{existing_topic}-0: producer {hanging.producer_id}, epoch 0" in shown
    assert "open from offset 0 on" in shown
    assert "Abort this transaction? [y/N]" in shown
    [known] = json.loads(call(f"transactions producers --topic {existing_topic} --partition 0 --json").out)
    assert (known["start_offset"] is None) == (code == 0)
