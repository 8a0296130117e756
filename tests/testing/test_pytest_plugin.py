"""The plugin as a user's test suite has it: pytest in a process of its own, on files in a directory of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from compat_tests.installed import PYTHONPATH
from pykbroker.testing import Broker, read_journal

RunPytest = Callable[..., subprocess.CompletedProcess[str]]

SERVICE = """
    from confluent_kafka import Consumer, Producer

    def send(bootstrap, topic, value):
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce(topic, value)
        assert producer.flush(30) == 0

    def receive(bootstrap, topic, group):
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        value = consumer.poll(30).value()
        consumer.commit(asynchronous=False)
        consumer.close()
        return value
"""


@pytest.fixture
def run_pytest(tmp_path: Path) -> RunPytest:
    """`run_pytest(test_text, *arguments)` runs one file; further files come as `files={name: text}`."""

    def run(text: str, *arguments: str, files: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        for name, content in {"pytest.ini": "[pytest]\n", **(files or {}), "test_it.py": text}.items():
            (tmp_path / name).write_text(dedent(content))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environment["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{PYTHONPATH}"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-ra",
            *plugin_unless_installed(),
            *arguments,
        ]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    return run


def plugin_unless_installed() -> list[str]:
    from importlib.metadata import entry_points

    installed = any(point.value == "pykbroker.testing.pytest_plugin" for point in entry_points(group="pytest11"))
    return [] if installed else ["-p", "pykbroker.testing.pytest_plugin"]


def outcomes(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    counts = re.findall(r"(\d+) (passed|failed|errors?|skipped)", done.stdout.splitlines()[-1])
    return {name.rstrip("s") if name.startswith("error") else name: int(number) for number, name in counts}


def test_a_service_is_tested_on_a_broker_and_a_fresh_topic(run_pytest: RunPytest) -> None:
    done = run_pytest(
        """
        import pytest
        from service import receive, send

        names = set()

        @pytest.mark.parametrize("value", [b"a", b"b", b"c/d:e"])
        def test_it(kafka_broker, kafka_topic, value):
            assert kafka_topic not in names
            names.add(str(kafka_topic))
            send(kafka_broker.bootstrap_servers, kafka_topic, value)
            kafka_broker.wait_for(topic=kafka_topic, records=1)
            assert receive(kafka_broker.bootstrap_servers, kafka_topic, "g") == value
            assert kafka_topic.values() == [value]

        @pytest.mark.kafka_topic(partitions=4, configs={"cleanup.policy": "compact"})
        def test_a_topic_of_ones_own(kafka_topic):
            assert kafka_topic.partition_count() == 4
            assert kafka_topic.configs()["cleanup.policy"] == "compact"

        def test_topics_are_gone(kafka_broker):
            assert not names & set(kafka_broker.topics())

        def test_admin(kafka_admin, kafka_broker):
            assert len(kafka_admin.list_topics(timeout=30).brokers) == 1

        def test_configuration(kafka_broker):
            assert kafka_broker.create_topic("three").partition_count() == 3
        """,
        files={"service.py": SERVICE, "pytest.ini": "[pytest]\nkafka_broker_config =\n    num.partitions = 3\n"},
    )
    assert outcomes(done) == {"passed": 7}, done.stdout


def test_nobody_waits_for_a_broker_that_a_test_has_paused(run_pytest: RunPytest) -> None:
    """An answer would be waited for a minute."""
    done = run_pytest(
        """
        import time
        import pytest

        @pytest.fixture(autouse=True)
        def is_quick():
            began = time.monotonic()
            yield
            assert time.monotonic() - began < 20

        def test_pause(is_quick, kafka_broker, kafka_topic):
            kafka_broker.pause()

        def test_resume(kafka_broker):
            kafka_broker.resume()
            assert kafka_broker.topics()
        """
    )
    assert outcomes(done) == {"passed": 2}, done.stdout


def test_workers_of_xdist_have_brokers_of_their_own(run_pytest: RunPytest) -> None:
    done = run_pytest(
        """
        import pytest
        from service import receive, send

        @pytest.mark.parametrize("number", range(12))
        def test_it(kafka_broker, kafka_topic, number):
            send(kafka_broker.bootstrap_servers, "shared-name", b"x")
            send(kafka_broker.bootstrap_servers, kafka_topic, str(number))
            assert receive(kafka_broker.bootstrap_servers, kafka_topic, "g") == str(number).encode()
        """,
        "-n",
        "2",
        files={"service.py": SERVICE},
    )
    assert outcomes(done) == {"passed": 12}, done.stdout


SEEDED = """
import pytest

@pytest.fixture(scope="session")
def kafka_seed(kafka_seed_broker):
    topic = kafka_seed_broker.create_topic("orders")
    topic.produce("seeded")
    kafka_seed_broker.group("billing").commit({("orders", 0): 1})

@pytest.mark.parametrize("number", range(6))
def test_it(kafka_fork, number):
    assert kafka_fork.topics() == ["orders"]
    assert kafka_fork.topic("orders").values() == [b"seeded"]
    assert kafka_fork.group("billing").lag() == 0
    kafka_fork.topic("orders").produce(str(number))
    kafka_fork.create_topic(f"of-{number}")
    assert kafka_fork.group("billing").lag() == 1

def test_other_brokers_have_nothing_of_it(kafka_broker):
    assert "orders" not in kafka_broker.topics()
"""


@pytest.mark.parametrize("flags", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_each_test_begins_with_what_was_seeded_once(run_pytest: RunPytest, flags: tuple[str, ...]) -> None:
    done = run_pytest(SEEDED, *flags)
    assert outcomes(done) == {"passed": 7}, done.stdout


def test_a_fork_is_empty_without_a_seed_and_skipped_on_other_brokers(run_pytest: RunPytest) -> None:
    text = "def test_it(kafka_fork):\n    assert kafka_fork.topics() == []\n"
    done = run_pytest(text)
    assert outcomes(done) == {"passed": 1}, done.stdout
    done = run_pytest(text, "--kafka-bootstrap-servers", "127.0.0.1:1")
    assert outcomes(done) == {"skipped": 1}, done.stdout


def test_a_cluster_is_there_for_a_test_that_stops_nodes(run_pytest: RunPytest) -> None:
    done = run_pytest(
        """
        import pytest

        def test_three(kafka_cluster):
            topic = kafka_cluster.create_topic("t")
            kafka_cluster.broker(2).kill()
            topic.produce("x")
            assert topic.values() == [b"x"]

        @pytest.mark.kafka_cluster(brokers=2, config={"num.partitions": 5})
        def test_two(kafka_cluster):
            assert len(kafka_cluster.brokers) == 2
            assert kafka_cluster.create_topic("t").partition_count() == 5
        """
    )
    assert outcomes(done) == {"passed": 2}, done.stdout


def test_a_failed_test_shows_what_the_broker_logged_meanwhile(run_pytest: RunPytest) -> None:
    done = run_pytest(
        """
        from pykbroker.testing import Broker

        def test_before(kafka_broker):
            kafka_broker.create_topic("earlier")

        def test_it(kafka_broker):
            kafka_broker.create_topic("later")
            assert False

        def test_of_its_own():
            with Broker() as broker:
                broker.create_topic("owned")
            assert False
        """
    )
    assert outcomes(done) == {"failed": 2, "passed": 1}, done.stdout
    first, second = done.stdout.split("test_of_its_own", 1)
    assert "log of pykbroker" in first
    assert "CreateTopics later" in first
    assert "CreateTopics earlier" not in done.stdout
    assert "CreateTopics owned" in second


FAILING = """
    import pytest
    from confluent_kafka import Producer
    from pykbroker.testing import Broker

    @pytest.mark.parametrize("number", range(4))
    def test_it(kafka_broker, kafka_topic, number):
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers, "client.id": f"shop-{number}"})
        producer.produce(kafka_topic, b"one book")
        assert producer.flush(30) == 0
        assert number < 2

    def test_of_its_own():
        with Broker() as broker:
            broker.create_topic("owned")
        assert False
    """


@pytest.mark.parametrize("arguments", [[], ["-n", "2"]])
def test_a_failed_test_keeps_the_journal(run_pytest: RunPytest, tmp_path: Path, arguments: list[str]) -> None:
    done = run_pytest(FAILING, *arguments, "--basetemp", str(tmp_path / "base"))
    assert outcomes(done) == {"failed": 3, "passed": 2}, done.stdout
    kept = [Path(path) for path in re.findall("^all of them: (.*)$", done.stdout, re.MULTILINE)]
    captures = [Path(path) for path in re.findall("^for Wireshark: (.*)$", done.stdout, re.MULTILINE)]
    assert len(set(kept)) == len(set(captures)) == 3
    assert set(tmp_path.rglob("*.jsonl")) == set(kept)
    assert all(path.is_relative_to(tmp_path / "base") for path in kept + captures)
    assert all(path.read_bytes()[:4] == b"\x4d\x3c\xb2\xa1" for path in captures)
    clients = [{each.client_id for each in read_journal(path).requests("Produce")} for path in kept]
    assert sorted(map(sorted, clients)) == [[], ["shop-2"], ["shop-3"]], "only what the test itself did"
    assert re.search(
        r"^#\d+ \S+ Produce v\d+ of shop-2 on test-it-2-\S+ answered in \S+ ms$", done.stdout, re.MULTILINE
    )
    assert "of shop-1" not in done.stdout


def test_the_journals_go_into_a_directory(run_pytest: RunPytest, tmp_path: Path) -> None:
    for _ in range(2):
        done = run_pytest(FAILING, "--kafka-journal", "journals/of-today")
        assert outcomes(done) == {"failed": 3, "passed": 2}, done.stdout
    names = sorted(path.name for path in (tmp_path / "journals" / "of-today").iterdir())
    assert len(names) == 6, "another run takes the place of the first"
    assert names[0].startswith("test_it.py-test_it-2-")


def test_journals_that_cannot_be_written_are_told(run_pytest: RunPytest) -> None:
    done = run_pytest(FAILING, "--kafka-journal", "test_it.py")
    assert outcomes(done) == {"failed": 3, "passed": 2}, done.stdout
    assert done.stdout.count("the journal could not be kept: ") == 3


def test_a_broker_without_a_journal_leaves_none(run_pytest: RunPytest, tmp_path: Path) -> None:
    done = run_pytest(
        """
        from pykbroker.testing import Broker

        def test_it():
            with Broker(journal=False) as broker:
                broker.create_topic("t")
            assert False
        """,
        "--kafka-journal",
        "journals",
    )
    assert outcomes(done) == {"failed": 1}, done.stdout
    assert "log of pykbroker" in done.stdout
    assert not (tmp_path / "journals").exists()


def test_another_broker_takes_the_place(run_pytest: RunPytest) -> None:
    text = """
        def test_it(kafka_broker, kafka_topic, kafka_admin):
            kafka_topic.produce("x")
            assert kafka_topic.values() == [b"x"]

        def test_nodes(kafka_cluster):
            pass
        """
    with Broker() as broker:
        done = run_pytest(text, "--kafka-bootstrap-servers", broker.bootstrap_servers)
        assert outcomes(done) == {"passed": 1, "skipped": 1}, done.stdout
        assert "nodes of pykbroker alone" in done.stdout
        assert broker.topics() == []


@pytest.mark.parametrize(
    ("arguments", "files", "message"),
    [
        (["--kafka-home", "/nowhere"], {}, "/nowhere is no distribution of Apache Kafka"),
        (["--kafka-home", "a", "--kafka-bootstrap-servers", "b:1"], {}, "exclude each other"),
        ([], {"pytest.ini": "[pytest]\nkafka_broker_config =\n    num.partitions\n"}, "expects lines of KEY=VALUE"),
        ([], {"pytest.ini": "[pytest]\nkafka_broker_config =\n    num.partition=1\n"}, "did you mean num.partitions"),
    ],
)
def test_bad_use_is_one_clear_error(
    run_pytest: RunPytest, arguments: list[str], files: dict[str, str], message: str
) -> None:
    done = run_pytest("def test_it(kafka_broker):\n    pass\n", *arguments, files=files)
    assert done.returncode != 0
    assert message in done.stdout + done.stderr


def test_an_audit_that_does_not_reach_the_broker_says_so(run_pytest: RunPytest) -> None:
    asked = run_pytest("", "--kafka-audit", "--kafka-bootstrap-servers", "127.0.0.1:1", "-v")
    assert "--kafka-audit: pykbroker's brokers are audited, and the one of the command line is not" in asked.stdout
    assert "--kafka-audit: " not in run_pytest("", "--kafka-audit", "-v").stdout


def test_a_marker_without_names_is_an_error(run_pytest: RunPytest) -> None:
    text = "import pytest\n\n@pytest.mark.kafka_topic(3)\ndef test_it(kafka_topic):\n    pass\n"
    assert "takes named options alone" in run_pytest(text).stdout


def test_without_a_client_library_kafka_admin_says_what_to_install(run_pytest: RunPytest) -> None:
    blocked = "import sys\nsys.modules['confluent_kafka'] = sys.modules['kafka'] = None\n"
    done = run_pytest("def test_it(kafka_admin):\n    pass\n", files={"conftest.py": blocked})
    assert outcomes(done) == {"error": 1}, done.stdout
    assert "pip install 'pykbroker[kafka-admin]'" in done.stdout


def test_a_run_that_needs_no_broker_imports_none(run_pytest: RunPytest) -> None:
    text = """
        import sys

        def test_it():
            assert "pykbroker.testing.pytest_plugin" in sys.modules
            loaded = {name for name in sys.modules if name.startswith("pykbroker.")}
            assert loaded == {"pykbroker.testing", "pykbroker.testing.pytest_plugin"}

        def test_a_broker_is_imported_as_everywhere(kafka_broker):
            import pykbroker.server.node.node as node
            assert type(node.__loader__).__name__ == "SourceFileLoader", "pytest would rewrite hundreds of modules"
        """
    done = run_pytest(text)
    assert outcomes(done) == {"passed": 2}, done.stdout
