"""`pykbroker why`, by Kafka's own protocol; and how any answer is printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import trio
from click.testing import CliRunner, Result
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from compat_tests.brokers import ExternalBroker
from compat_tests.transacting import leave_hanging
from pykbroker.cli.command import CommandFailed
from pykbroker.cli.main import main
from pykbroker.cli.why import print_answer
from pykbroker.client.quotas import alter_quotas
from pykbroker.testing import Broker

from .conftest import Clients, polled

Why = Callable[..., Result]


@pytest.fixture
def why(broker: Broker) -> Why:
    def run(*words: str) -> Result:
        return CliRunner().invoke(main, ["why", "--bootstrap-server", broker.bootstrap_servers, *words])

    return run


def test_a_group_and_its_consumer(why: Why, broker: Broker, clients: Clients, topic: str, name: str) -> None:
    assert why("group", name).output == f"There is no group {name}.\n"
    broker.topic(topic).produce(b"a", b"b", partition=0)
    consumer = clients.confluent(name, [topic])
    record: Any = None
    while record is None:
        record = consumer.poll(0.1)
    consumer.commit(record, asynchronous=False)

    answer = json.loads(why("--json", "group", name).output)
    assert (answer["reason"], answer["lag"], answer["member_count"]) == ("stable", 1, 1)
    assert answer["members"][0]["assignment"] == {topic: [0, 1]}
    assert "Kafka's protocol does not tell why it last rebalanced." in why("group", name).output

    answer = json.loads(why("--json", "consumer", name, "--topic", topic, "--partition", "0").output)
    assert (answer["reason"], answer["partitions"][0]["committed"]) == ("not-told", 1)
    assert "has no committed offset" in why("consumer", name, "--topic", topic, "--partition", "1").output
    assert "does not exist" in why("consumer", name, "--topic", "nowhere").output
    consumer.close()
    assert json.loads(why("--json", "consumer", name).output)["reason"] == "no-members"


def test_the_gravest_partition_is_the_consumer_s(
    why: Why, broker: Broker, clients: Clients, topic: str, name: str
) -> None:
    broker.topic(topic).produce(b"a", b"b", partition=1)
    consumer = clients.confluent(name, [topic])
    polled(consumer, lambda: bool(consumer.assignment()))
    consumer.commit(offsets=[TopicPartition(topic, 0, 0), TopicPartition(topic, 1, 1)], asynchronous=False)

    answer = json.loads(why("--json", "consumer", name).output)

    assert [each["reason"] for each in answer["partitions"]] == ["not-told", "end-of-log"]
    assert f"has committed {topic}-1 to 1, 1 offset before its end" in answer["verdict"]


def test_a_topic_that_was_deleted_under_its_consumer(
    why: Why, broker: Broker, clients: Clients, topic: str, name: str
) -> None:
    clients.joined_python(topic, name)  # which does not poll any more, and keeps its assignment
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_topics([topic])[topic].result(30)

    answer = json.loads(why("--json", "group", name).output)
    assert [(each["topic"], each["end_offset"]) for each in answer["partitions"]] == [(topic, None)] * 2
    answer = json.loads(why("--json", "consumer", name).output)
    assert (answer["reason"], answer["partition_count"]) == ("topic-does-not-exist", 2)


def test_an_open_transaction(why: Why, clients: Clients, topic: str, name: str) -> None:
    assert "no transaction is open" in why("lso", topic, "1").output
    producer = clients.producer(transactional_id=name)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"a", partition=0)
    producer.flush(30)

    answer = json.loads(why("--json", "lso", topic, "0").output)

    assert answer["reason"] == "open-transaction"
    assert answer["transactions"][0]["transactional_id"] == name
    producer.abort_transaction(30)


def test_a_hanging_transaction() -> None:
    with Broker({"transaction.partition.verification.enable": False}) as own:
        own.create_topic("t")
        leave_hanging(ExternalBroker(own.bootstrap_servers), "gone", "t")

        shown = CliRunner().invoke(main, ["why", "--bootstrap-server", own.bootstrap_servers, "lso", "t", "0"]).output

    assert "hangs, no coordinator will end it" in shown
    assert "transactions --bootstrap-server HOST:PORT abort --topic t --partition 0" in shown


def test_a_quota(why: Why, broker: Broker, name: str) -> None:
    assert "No quota applies" in why("throttle", name).output
    broker.call(alter_quotas, frozenset({("client-id", name)}), {"producer_byte_rate": 1000.0}, [])

    shown = why("throttle", name).output

    assert f"producer_byte_rate 1000 of client-id {name}" in shown
    assert "Kafka's protocol does not tell what the client's rate is" in shown


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["consumer"], "name a group"),
        (["consumer", "--client-id", "c"], "does not tell"),
        (["consumer", "g", "--partition", "1"], "goes with its topic"),
        (["lso", "t", "x"], "Invalid value"),
        (["group"], "Missing argument"),
        (["grup"], "No such command"),
        (["--ctl", "127.0.0.1:1", "group", "g"], "--ctl and --bootstrap-server exclude each other"),
    ],
)
def test_mistakes_are_one_line(why: Why, words: list[str], complaint: str) -> None:
    refused = why(*words)
    assert refused.exit_code == 1
    assert complaint in refused.output
    assert len(refused.output.splitlines()) == 1


def test_a_broker_that_is_named_wins_over_the_environment(why: Why, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYKBROKER_CTL", "127.0.0.1:1")
    assert why("group", name).output == f"There is no group {name}.\n"


def test_whoever_answers_is_printed_alike(broker: Broker, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = broker.why.throttle(name).to_json()

    async def ask(question: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if question != "throttle":
            raise ValueError(f"nobody can ask why {question}")
        return {**answer, "asked": dict(arguments)}

    async def main() -> None:
        await print_answer(ask, "throttle", {"client_id": name, "user": None}, is_json=False)
        with pytest.raises(CommandFailed, match="nobody can ask why x"):
            await print_answer(ask, "x", {}, is_json=True)

    trio.run(main)
    assert capsys.readouterr().out.startswith(answer["verdict"])


def test_an_answer_as_lines_has_its_tables(broker: Broker, clients: Clients, topic: str, name: str) -> None:
    consumer = clients.confluent(name, [topic])
    polled(consumer, lambda: bool(consumer.assignment()))

    lines = str(broker.why.group(name)).splitlines()

    assert lines[0] == broker.why.group(name).verdict or "is stable" in lines[0]
    for title in ("Members (1):", "Last rebalances:", "Partitions (2):"):
        assert title in lines
