"""An audit of real clients: what they do right is no finding, and what they do wrong is one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import CommitFailedError
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as KafkaPythonPartition

from pykbroker.control.audit.findings import Kind, UnknownKind
from pykbroker.testing import AuditFailed, Broker, BrokerAudit, Cluster, Topic

RECORDS = 30


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"group.min.session.timeout.ms": 1000}) as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> Topic:
    return broker.create_topic(request.node.name.replace("[", "-").rstrip("]"))


def kinds(audit: BrokerAudit) -> set[Kind]:
    return {each.kind for each in audit.findings}


@contextmanager
def expected(broker: Broker, match: str) -> Iterator[BrokerAudit]:
    """An audit that finds this."""
    audit = broker.audit()
    with pytest.raises(AuditFailed, match=match), audit:
        yield audit


def fill(broker: Broker | Cluster, topic: str, records: int = RECORDS) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True})
    for number in range(records):
        producer.produce(topic, str(number))
    assert producer.flush(30) == 0


def consumer(broker: Broker | Cluster, topic: str, client_id: str = "app", **options: Any) -> Consumer:
    config = {
        "bootstrap.servers": broker.bootstrap_servers,
        "client.id": client_id,
        "group.id": f"group-of-{topic}",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    made = Consumer(config | {name.replace("_", "."): value for name, value in options.items()})
    made.subscribe([topic])
    return made


def kafka_python(broker: Broker, topic: str, client_id: str, **options: Any) -> KafkaConsumer:
    """A member of the group that is named after the topic, with its first records."""
    app = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers,
        group_id=topic,
        client_id=client_id,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **options,
    )
    app.subscribe([topic])
    while not app.poll(1000):
        pass
    return app


def read(consumer: Consumer, count: int) -> list[Message]:
    found: list[Message] = []
    while len(found) < count:
        found += consumer.consume(count - len(found), timeout=1)
    return found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_consumers_that_share_a_group_and_commit_what_they_read_are_good(
    broker: Broker, topic: Topic, protocol: str
) -> None:
    with broker.audit() as audit:
        fill(broker, topic)
        first = consumer(broker, topic, "one", group_protocol=protocol)
        read(first, 10)
        first.commit(asynchronous=False)
        read(first, 10)  # nobody commits them, and they are read again
        first.close()
        second = consumer(broker, topic, "two", group_protocol=protocol)
        read(second, RECORDS - 10)
        second.commit(asynchronous=False)
        second.close()
    assert audit.findings == []


def test_what_kafka_python_has_fetched_counts_as_read(broker: Broker, topic: Topic) -> None:
    with broker.audit() as audit:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        for number in range(RECORDS):
            producer.send(topic, str(number).encode())
        producer.close()
        app = kafka_python(broker, topic, "app", max_poll_records=10)
        app.commit()
        app.commit({KafkaPythonPartition(topic, 0): OffsetAndMetadata(RECORDS, "", -1)})
        app.close()
    assert audit.findings == []


def test_a_seek_over_records_is_a_jump(broker: Broker, topic: Topic) -> None:
    with expected(broker, r"never sent the offsets 5 to 19") as audit:
        fill(broker, topic, 5)
        app = consumer(broker, topic)
        app.unsubscribe()
        app.assign([TopicPartition(topic, 0, 0)])
        read(app, 5)
        app.commit(asynchronous=False)
        app.unassign()
        fill(broker, topic, 25)
        app.assign([TopicPartition(topic, 0, 20)])
        read(app, 10)
        app.commit(asynchronous=False)
        app.close()
    assert kinds(audit) == {Kind.JUMP}


def test_a_commit_backwards_is_a_rewind(broker: Broker, topic: Topic) -> None:
    fill(broker, topic)
    with expected(broker, "commit-rewind: client app of ") as audit:
        app = consumer(broker, topic)
        read(app, 20)
        app.commit(asynchronous=False)
        app.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
        app.close()
    assert kinds(audit) == {Kind.REWIND}
    (finding,) = audit.findings
    assert finding.facts == {
        "group": f"group-of-{topic}",
        "host": "127.0.0.1",
        "client_id": "app",
        "topic": str(topic),
        "partition": 0,
        "committed": 20,
        "offset": 5,
    }


def test_records_sent_again_after_a_drop_are_duplicates_without_idempotence_alone(broker: Broker, topic: Topic) -> None:
    with expected(broker, "duplicate-send: client careless of ") as audit:
        for client_id, is_idempotent in (("careful", True), ("careless", False)):
            with broker.faults.add(api="Produce", client_id=client_id, nth=1, drop="after"):
                producer = Producer(
                    {
                        "bootstrap.servers": broker.bootstrap_servers,
                        "client.id": client_id,
                        "enable.idempotence": is_idempotent,
                    }
                )
                producer.produce(topic, client_id)
                assert producer.flush(30) == 0
    assert [each.facts["client_id"] for each in audit.findings] == ["careless"]
    assert topic.values() == [b"careful", b"careless", b"careless"]


def test_offsets_outside_of_the_transaction_are_found(broker: Broker, topic: Topic) -> None:
    fill(broker, topic)
    copy = broker.create_topic(f"{topic}-copy")
    with expected(broker, "offsets-outside: ") as audit:
        app = consumer(broker, topic, "copier")
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "client.id": "copier", "transactional.id": f"{topic}-id"}
        )
        producer.init_transactions(30)
        for is_right in (True, False):
            producer.begin_transaction()
            for message in read(app, 10):
                producer.produce(copy, message.value())
            producer.flush(30)
            if is_right:
                positions = app.position(app.assignment())
                producer.send_offsets_to_transaction(positions, app.consumer_group_metadata(), 30)
            else:
                app.commit(asynchronous=False)
            producer.commit_transaction(30)
            if is_right:
                assert audit.findings == []
        app.close()
    assert kinds(audit) == {Kind.OUTSIDE}


def test_a_member_that_was_given_up_and_commits_is_a_zombie(broker: Broker, topic: Topic) -> None:
    with expected(broker, r"zombie-commit: client zombie of .* was refused \(UNKNOWN_MEMBER_ID\)") as audit:
        fill(broker, topic)
        zombie = kafka_python(broker, topic, "zombie", session_timeout_ms=1000, heartbeat_interval_ms=100)
        with broker.faults.add(api="Heartbeat", client_id="zombie", delay="60s"):
            broker.wait_for(group=topic, members=0)
            with pytest.raises(CommitFailedError):
                zombie.commit()
        zombie.close(autocommit=False)
    assert kinds(audit) == {Kind.ZOMBIE}


def test_a_cluster_has_one_audit_for_all_nodes() -> None:
    with Cluster(2) as cluster:
        topic = cluster.create_topic("t", partitions=6)
        with cluster.audit() as audit:
            fill(cluster, topic, 60)
            app = consumer(cluster, topic)
            read(app, 60)
            app.commit(asynchronous=False)
            app.close()
        assert audit.findings == []


def test_bad_use_is_said(broker: Broker) -> None:
    with pytest.raises(UnknownKind, match="an audit has no findings 'commit-rewnd'; did you mean 'commit-rewind'"):
        broker.audit(allow=["commit-rewnd"])
    with broker.audit(), pytest.raises(RuntimeError, match="there is an audit of this broker already"), broker.audit():
        pass


SUITE = """
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

def commit(broker, topic, *offsets):
    app = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": topic, "client.id": "app",
                    "auto.offset.reset": "earliest", "enable.auto.commit": False})
    app.subscribe([topic])
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for _ in range(10):
        producer.produce(topic, b"x")
    assert producer.flush(30) == 0
    assert len(app.consume(10, timeout=30)) == 10
    for offset in offsets:
        app.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    return app

def test_good(kafka_broker, kafka_topic):
    commit(kafka_broker, kafka_topic, 5, 10).close()

def test_bad(kafka_broker, kafka_topic):
    commit(kafka_broker, kafka_topic, 10, 5).close()

@pytest.mark.kafka_audit(allow=["commit-rewind"])
def test_allowed(kafka_broker, kafka_topic):
    commit(kafka_broker, kafka_topic, 10, 5).close()

@pytest.mark.kafka_audit(allow=["rewind"])
def test_misspelled(kafka_broker, kafka_topic):
    pass

@pytest.fixture
def app(kafka_broker, kafka_topic):
    app = commit(kafka_broker, kafka_topic, 10)
    yield app
    app.commit(offsets=[TopicPartition(kafka_topic, 0, 5)], asynchronous=False)
    app.close()

def test_bad_at_the_end(app):
    pass

def test_good_again(kafka_broker, kafka_topic):
    commit(kafka_broker, kafka_topic, 10).close()
"""


def test_an_option_of_pytest_fails_the_tests_in_which_something_is_found(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", "--kafka-audit"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    outcomes: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        outcome, _, name = line.partition(" test_suite.py::")
        if name:
            outcomes.setdefault(name.split()[0], []).append(outcome)
    assert outcomes == {
        "test_good": ["PASSED"],
        "test_bad": ["FAILED"],
        "test_allowed": ["PASSED"],
        "test_misspelled": ["ERROR"],
        "test_bad_at_the_end": ["PASSED", "ERROR"],
        "test_good_again": ["PASSED"],
    }, done.stdout
    assert "commit-rewind: client app of 127.0.0.1 has committed 5 for test-bad-" in done.stdout
