"""Old clients are served by pykbroker as by Apache Kafka 4.3: records, groups, transactions, administration."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.brokers import Broker
from compat_tests.clients import READERS, WRITERS, Message
from compat_tests.topics import create_topic

from .java_client import OldJavaClient
from .python_clients import old_kafka_python, old_librdkafka

pytestmark = pytest.mark.old_clients

T0 = 1_700_000_000_000
KEPT = {"retention.ms": "-1"}
"""Their timestamps are old."""


class OldClient(Protocol):
    def do(self, task: str, **arguments: Any) -> Any: ...

    def close(self) -> None: ...


CLIENTS: dict[str, Callable[[], OldClient]] = {
    "kafka-python-2.0": old_kafka_python,
    "librdkafka-1.9": old_librdkafka,
    "java-2.1": OldJavaClient,
}
WITH_TRANSACTIONS = ("librdkafka-1.9", "java-2.1")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module", params=sorted(CLIENTS))
def client_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def client(client_name: str) -> Iterator[OldClient]:
    made = CLIENTS[client_name]()
    yield made
    made.close()


def rows(count: int = 20) -> list[dict[str, Any]]:
    made = [
        {"value": f"value {number} " * 20, "key": f"{number}", "headers": [["h", "1"]], "timestamp": T0 + number}
        for number in range(count)
    ]
    made[1] |= {"value": None}
    made[2] |= {"key": None, "headers": []}
    made[3] |= {"value": "", "key": "", "headers": [["a", "\xff\0"], ["a", ""]]}
    return made


def message(row: dict[str, Any]) -> Message:
    value, key = (None if row[part] is None else row[part].encode("latin-1") for part in ("value", "key"))
    headers = tuple((name, text.encode("latin-1")) for name, text in row["headers"])
    return Message(value, key, headers, row["timestamp"])


@pytest.mark.parametrize("codec", CODECS)
def test_records_go_both_ways(
    broker: Broker, client: OldClient, topic: str, unique: Callable[[str], str], codec: str, answers: TestAnswers
) -> None:
    """What the old client writes is read by it and by a client of today; and what that one writes, by the old one."""
    create_topic(broker, topic, configs=KEPT)
    written = client.do("write", bootstrap=broker.bootstrap, topic=topic, rows=rows(), codec=codec)
    assert written == list(range(20))
    found = client.do("read", bootstrap=broker.bootstrap, topic=topic, count=20, read_committed=False)
    assert found["rows"] == rows()
    answers.same("offsets", {name: value for name, value in found.items() if name != "rows"})
    of_today = READERS["confluent-kafka"](broker.bootstrap, topic, 1, 20)
    assert [each.message for each in of_today] == [message(row) for row in rows()]
    other = unique("topic")
    create_topic(broker, other, configs=KEPT)
    WRITERS["confluent-kafka"](broker.bootstrap, other, [message(row) for row in rows()], codec=codec)
    again = client.do("read", bootstrap=broker.bootstrap, topic=other, count=20, read_committed=False)
    assert again["rows"] == rows()


def test_a_group_goes_on_where_it_committed(
    broker: Broker, client: OldClient, topic: str, unique: Callable[[str], str]
) -> None:
    create_topic(broker, topic, configs=KEPT)
    client.do("write", bootstrap=broker.bootstrap, topic=topic, rows=rows(), codec="none")
    found = client.do("resume", bootstrap=broker.bootstrap, topic=topic, group=unique("group"), count=20)
    assert found == {"committed": True, "values": [row["value"] for row in rows()]}


def test_two_members_share_the_partitions(
    broker: Broker, client: OldClient, client_name: str, topic: str, unique: Callable[[str], str]
) -> None:
    create_topic(broker, topic, 2, KEPT)
    shares = client.do("share", bootstrap=broker.bootstrap, topic=topic, group=unique("group"))
    assert shares == ([[0, 1], [0, 1]] if client_name == "librdkafka-1.9" else [0, 1])


def test_transactions(
    broker: Broker,
    client: OldClient,
    client_name: str,
    topic: str,
    unique: Callable[[str], str],
    answers: TestAnswers,
) -> None:
    if client_name not in WITH_TRANSACTIONS:
        return
    source = unique("source")
    for each in (topic, source):
        create_topic(broker, each, configs=KEPT)
    plain = [{"value": f"{number}", "key": None, "headers": [], "timestamp": T0 + number} for number in range(3)]
    client.do("write", bootstrap=broker.bootstrap, topic=source, rows=plain, codec="none")
    names = {"group": unique("group"), "transactional_id": unique("transactional-id"), "source": source}
    answers.all_same(client.do("transact", bootstrap=broker.bootstrap, topic=topic, **names))
    expected = ["copy of 0", "copy of 1", "copy of 2", "last"]
    found = client.do("read", bootstrap=broker.bootstrap, topic=topic, count=len(expected), read_committed=True)
    assert [row["value"] for row in found["rows"]] == expected


def test_administration(
    broker: Broker, client: OldClient, topic: str, unique: Callable[[str], str], answers: TestAnswers
) -> None:
    source, group = unique("source"), unique("group")
    create_topic(broker, source, configs=KEPT)
    client.do("write", bootstrap=broker.bootstrap, topic=source, rows=rows(), codec="none")
    client.do("resume", bootstrap=broker.bootstrap, topic=source, group=group, count=20)
    told = client.do("administer", bootstrap=broker.bootstrap, topic=topic, group=group)
    answers.all_same(json.loads(json.dumps(told).replace(group, "the group").replace(topic, "the topic")))
