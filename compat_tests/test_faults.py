"""Java's clients behind faults: whatever comes about on their way, they do as behind Apache Kafka's own errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat_tests.apache_kafka.tools import Tool, run_tool
from pykbroker.testing import Broker

RECORDS = 200
VALUES = [b"%d" % number for number in range(RECORDS)]

ON_THE_WAY_IN = """
seed = 4

[[fault]]
api = "Produce"
every = 4
error = "NOT_LEADER_OR_FOLLOWER"

[[fault]]
api = "Produce"
every = 7
error = "NOT_ENOUGH_REPLICAS"

[[fault]]
api = "Produce"
every = 5
error = "REQUEST_TIMED_OUT"
when = "after"

[[fault]]
api = "Produce"
every = 9
drop = "after"

[[fault]]
api = "Produce"
every = 11
cut = true

[[fault]]
api = "Produce"
chance = 0.2
delay = "20ms"

[[fault]]
api = "InitProducerId"
first = 2
error = "COORDINATOR_LOAD_IN_PROGRESS"

[[fault]]
api = "Metadata"
nth = 2
cut = true
"""

ON_THE_WAY_OUT = """
seed = 4

[[fault]]
api = "FindCoordinator"
first = 2
error = "COORDINATOR_NOT_AVAILABLE"

[[fault]]
api = "JoinGroup"
nth = 2
error = "NOT_COORDINATOR"

[[fault]]
api = "SyncGroup"
nth = 1
error = "REBALANCE_IN_PROGRESS"

[[fault]]
api = "OffsetFetch"
nth = 1
error = "COORDINATOR_LOAD_IN_PROGRESS"

[[fault]]
api = "OffsetCommit"
nth = 1
drop = "before"

[[fault]]
api = "ListOffsets"
nth = 1
error = "LEADER_NOT_AVAILABLE"

[[fault]]
api = "Fetch"
nth = 1
cut = true

[[fault]]
name = "in all partitions of the session"
api = "Fetch"
topic = "orders"
skip = 2
first = 8
every = 2
error = "NOT_LEADER_OR_FOLLOWER"

[[fault]]
api = "Fetch"
nth = 5
error = "FETCH_SESSION_ID_NOT_FOUND"
"""


@pytest.mark.java
def test_javas_producer_writes_each_record_once_and_in_order(tmp_path: Path) -> None:
    properties = tmp_path / "producer.properties"
    properties.write_text("retries=100000\nlinger.ms=0\nbatch.size=1\nretry.backoff.ms=5\nreconnect.backoff.ms=5\n")
    with Broker() as broker:
        topic = broker.create_topic("orders")
        broker.faults.load(ON_THE_WAY_IN)
        run_tool(
            Tool.VERIFIABLE_PRODUCER,
            *("--bootstrap-server", broker.bootstrap_servers, "--topic", topic, "--max-messages", str(RECORDS)),
            *("--command-config", str(properties)),
        )
        struck = {each.rule for each in broker.faults.taken}
        assert struck == {f"fault {number}" for number in range(1, 9)}
        assert topic.values() == VALUES


@pytest.mark.java
def test_javas_consumer_reads_each_record(tmp_path: Path) -> None:
    properties = tmp_path / "consumer.properties"
    properties.write_text("max.poll.records=10\nretry.backoff.ms=5\nreconnect.backoff.ms=5\nfetch.max.bytes=1000\n")
    with Broker() as broker:
        topic = broker.create_topic("orders")
        for value in VALUES:
            topic.produce(value)
        faults = broker.faults.load(ON_THE_WAY_OUT)
        output = run_tool(
            Tool.VERIFIABLE_CONSUMER,
            *("--bootstrap-server", broker.bootstrap_servers, "--topic", topic, "--group-id", "g"),
            *("--max-messages", str(RECORDS), "--reset-policy", "earliest", "--verbose"),
            *("--command-config", str(properties)),
        )
        told = [json.loads(line) for line in output.lines]
        read = [int(each["offset"]) for each in told if each["name"] == "record_data"]
        assert sorted(set(read)) == list(range(RECORDS))
        assert [fault.name for fault in faults if not fault.taken] == []
        assert broker.group("g").lag() == 0
