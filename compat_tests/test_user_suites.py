"""Test suites as users have them, with pykbroker's fixtures: many tests at a time, and on Apache Kafka."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.apache_kafka.jars import kafka_libs

TESTS = 500
TIMEOUT_S = 600

SUITE = """
import pytest
from confluent_kafka import Consumer, Producer

@pytest.mark.parametrize("number", range({tests}))
def test_a_record_is_consumed(kafka_broker, kafka_topic, number):
    producer = Producer({{"bootstrap.servers": kafka_broker.bootstrap_servers}})
    producer.produce(kafka_topic, str(number))
    assert producer.flush(60) == 0
    consumer = Consumer({{
        "bootstrap.servers": kafka_broker.bootstrap_servers, "group.id": kafka_topic, "auto.offset.reset": "earliest",
    }})
    consumer.subscribe([kafka_topic])
    message = consumer.poll(60)
    assert message.value() == str(number).encode()
    consumer.commit(message, asynchronous=False)
    kafka_broker.wait_for(group=kafka_topic, lag=0)
    consumer.close()
    kafka_broker.wait_for(group=kafka_topic, state="empty")
    assert kafka_topic.values() == [str(number).encode()]
"""


def run_suite(directory: Path, tests: int, *arguments: str) -> None:
    (directory / "test_suite.py").write_text(SUITE.format(tests=tests))
    (directory / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert re.search(rf"^{tests} passed", done.stdout, re.MULTILINE), done.stdout[-5000:] + done.stderr


def test_five_hundred_tests_run_in_parallel(tmp_path: Path) -> None:
    run_suite(tmp_path, TESTS, "-n", "2")


@pytest.mark.java
def test_the_same_suite_runs_on_apache_kafka(tmp_path: Path) -> None:
    home = tmp_path / "kafka"
    home.mkdir()
    (home / "libs").symlink_to(kafka_libs(), target_is_directory=True)
    run_suite(tmp_path, 3, "--kafka-home", str(home))
