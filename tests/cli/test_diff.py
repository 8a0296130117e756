"""`pykbroker diff` with scripts of stock clients: what is the same, what is not, and what cannot be run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers import pykbroker_command
from tests.server.encrypted_network import client_values, server_values

from .conftest import TIMEOUT_S, Outcome

WHOLE = """
import os
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
where = {"bootstrap.servers": os.environ["BOOTSTRAP_SERVERS"]}
assert os.environ["KAFKA_BOOTSTRAP_SERVERS"] == where["bootstrap.servers"]
admin = AdminClient(where)
for future in admin.create_topics([NewTopic("orders", 2, 1)]).values():
    future.result(60)
producer = Producer({**where, "transactional.id": "orders"})
producer.init_transactions(60)
for end in (producer.commit_transaction, producer.abort_transaction):
    producer.begin_transaction()
    for number in range(6):
        producer.produce("orders", b"value %d" % number, b"key", partition=number % 2)
    producer.flush()
    end(60)
consumer = Consumer({**where, "group.id": "readers", "auto.offset.reset": "earliest", "enable.auto.commit": False})
consumer.subscribe(["orders"])
found = 0
while found < 6:
    message = consumer.poll(60)
    found += message is not None and message.error() is None
# Where an aborted transaction follows, the position may be behind it or not.
consumer.commit(offsets=[TopicPartition("orders", partition, 3) for partition in range(2)], asynchronous=False)
consumer.close()
"""
LARGE = """
import sys
from confluent_kafka import Producer
where = {"bootstrap.servers": sys.argv[1], "message.max.bytes": 10_000_000}
failed = []
producer = Producer(where)
producer.produce("large", b"small", b"key")
producer.produce("large", bytes(2000), b"key", on_delivery=lambda error, _: failed.append(error))
producer.flush()
sys.exit(7 if failed[0] else 0)
"""


@pytest.fixture
def diff(tmp_path: Path) -> Any:
    def call(script: str, *arguments: str, options: tuple[str, ...] = ("--left-start", "--right-start")) -> Outcome:
        file = tmp_path / "script.py"
        file.write_text(script)
        command = pykbroker_command("diff", *options, "--", sys.executable, str(file), *arguments)
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        return Outcome(done.returncode, done.stdout, done.stderr)

    return call


def test_two_brokers_of_one_kind_do_the_same(diff: Any) -> None:
    done = diff(WHOLE, options=("--left-start", "--right-start", "--override", "group.initial.rebalance.delay.ms=0"))
    assert (done.code, done.out) == (0, "no differences\n"), done.err


JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="of admin"'
SCRAM_LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
SECURED = {
    "listeners": "SASL_SSL://127.0.0.1:0",
    "inter.broker.listener.name": "SASL_SSL",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{JAAS} user_admin="of admin";',
    "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": f"{SCRAM_LOGIN_MODULE} required;",
}
LOGGED_IN = """
import os
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
def client(kind, mechanism, user, password):
    return kind({
        "bootstrap.servers": os.environ["BOOTSTRAP_SERVERS"], "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password,
    })
admin = client(AdminClient, "PLAIN", "admin", "of admin")
alice = UserScramCredentialUpsertion("alice", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b"of alice")
for future in admin.alter_user_scram_credentials([alice]).values():
    future.result(60)
producer = client(Producer, "SCRAM-SHA-256", "alice", "of alice")
producer.produce("orders", b"value", b"key")
assert producer.flush(60) == 0
"""


def secured() -> list[str]:
    """The options that give a broker that is started a listener with TLS and SASL."""
    properties = {**SECURED, **server_values()}
    return [part for key, value in properties.items() for part in ("--override", f"{key}={value}")]


@pytest.fixture
def access(tmp_path: Path) -> Path:
    """A file with client settings of one who may log in at a broker with SECURED."""
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f"{JAAS};",
        **client_values(),
    }
    path = tmp_path / "client.properties"
    path.write_text("\n".join(f"{key}={value}".replace("\n", "\\n") for key, value in settings.items()))
    return path


def test_brokers_with_tls_and_log_ins_are_compared(diff: Any, access: Path) -> None:
    options = (
        *("--left-start", "--left-command-config", str(access)),
        *("--right-start", "2.8", "--right-command-config", str(access)),
    )
    done = diff(LOGGED_IN, options=(*options, *secured()))
    assert done.code == 1, done.err
    assert "Produce of client rdkafka\n  version: 10 | 9\n" in done.out
    assert "SaslAuthenticate" not in done.out
    assert "topic orders: configs.message.timestamp.after.max.ms" in done.out
    assert "of alice" not in done.out + done.err


def test_who_may_not_log_in_ends_with_2(diff: Any, access: Path) -> None:
    options = ("--left-start", "--right-start", *secured())
    access.write_text(access.read_text().replace("of admin", "of nobody"))
    done = diff(LOGGED_IN, options=(*options, "--left-command-config", str(access)))
    assert (done.code, done.out) == (2, "")
    assert "left: " in done.err
    assert "Traceback" not in done.err
    access.write_text("security.protocol=TLS")
    done = diff(LOGGED_IN, options=(*options, "--left-command-config", str(access)))
    assert (done.code, done.out) == (2, "")
    assert "security.protocol TLS is unknown, allowed are PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL" in done.err
    done = diff(LOGGED_IN, options=(*options, "--left-command-config", "/no/such/file"))
    assert (done.code, done.out) == (2, "")
    assert "/no/such/file" in done.err


def test_another_release_is_told_field_by_field(diff: Any) -> None:
    done = diff(WHOLE, options=("--left-start", "--right-start", "2.8"))
    assert done.code == 1, done.err
    assert "Produce of client rdkafka\n  version: 10 | 9\n" in done.out
    assert "  api_keys[Fetch].max_version: 18 | 12\n" in done.out
    assert "topic orders: configs.message.timestamp.after.max.ms: 3600000 | 9223372036854775807\n" in done.out
    assert "records" not in done.out


def test_an_answer_and_the_log_that_differ_are_told(diff: Any, tmp_path: Path) -> None:
    small = tmp_path / "small.toml"
    small.write_text("\n".join(["format = 1", "[versions]", *EVERYTHING, "[limits]", '"message.max.bytes" = 1000', ""]))
    options = ("--left-start", "--right-start", str(small), "--json")
    done = diff(LARGE, "{bootstrap}", options=options)
    assert done.code == 1, done.err
    found = json.loads(done.out)
    assert {"path": "exit code of the script", "left": 0, "right": 7} in found["script"]
    codes = [each["path"] for each in found["answers"] if "MESSAGE_TOO_LARGE" in str(each["right"])]
    assert len(codes) == 1
    assert "partition_responses" in codes[0]
    assert "topic large: partitions.0.records.1" in {each["path"] for each in found["state"]}
    assert found["differences"] == len(found["script"]) + len(found["answers"]) + len(found["state"])


EVERYTHING = [
    'Produce = "0-13"',
    'Fetch = "4-18"',
    'ListOffsets = "1-11"',
    'Metadata = "0-13"',
    'ApiVersions = "0-4"',
    'FindCoordinator = "0-6"',
    'InitProducerId = "0-5"',
    'DescribeConfigs = "1-4"',
    'ListGroups = "0-5"',
]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--left-start",), "give either --right or --right-start"),
        (("--left-start", "--left", "127.0.0.1:1", "--right-start"), "give either --left or --left-start"),
        (("--left", "127.0.0.1:1", "--right-start"), "127.0.0.1:1"),
        (
            ("--left-start", "2.7", "--right-start"),
            "left: the broker did not start: Error: --as: there is no",
        ),
        (("--left-start", "--right-start", "--timeout", "1"), "did not end on both brokers within 1 s"),
        (("--left-start", "--no-such-flag"), "No such option"),
        (("--left-start", "--right-start", "--override", "nothing"), "--override expects key=value, not 'nothing'"),
    ],
)
def test_what_cannot_be_run_ends_with_2(diff: Any, options: tuple[str, ...], complaint: str) -> None:
    done = diff("import time; time.sleep(30)", options=options)
    assert (done.code, done.out) == (2, "")
    assert complaint in done.err
    assert "Traceback" not in done.err


def test_a_script_that_is_not_there_ends_with_2() -> None:
    command = pykbroker_command("diff", "--left-start", "--right-start", "--", "/no/such/script")
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "left: /no/such/script cannot be run: No such file or directory" in done.stderr


def test_a_script_that_fails_on_both_is_told(diff: Any) -> None:
    done = diff("raise SystemExit(3)")
    assert done.code == 0
    assert "the script ended with 3 on both brokers" in done.err


def test_a_script_that_asks_nothing_is_told(diff: Any) -> None:
    done = diff("")
    assert (done.code, done.out) == (0, "no differences\n")
    assert "left: the script asked nothing of the broker that it was given" in done.err
