"""A cluster inside the test process: nodes that a test stops, kills and starts, and records that stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykbroker.testing import Cluster, ConfigurationError


def test_records_outlive_any_one_broker() -> None:
    with Cluster() as cluster:
        topic = cluster.create_topic("t", partitions=6)
        written = 0
        for broker in cluster.brokers:
            broker.kill()
            for _ in range(10):
                topic.produce(str(written))
                written += 1
            broker.start()
            assert broker.is_running
        assert sorted(topic.values(), key=lambda value: int(value or b"")) == [b"%d" % n for n in range(written)]


def test_data_in_a_directory_of_ones_own_stays(tmp_path: Path) -> None:
    for expected in ([b"0"], [b"0", b"1"]):
        with Cluster(brokers=2, data_dir=tmp_path) as cluster:
            topic = cluster.topic("t")
            if "t" not in cluster.topics():
                cluster.create_topic("t")
            topic.produce(str(len(expected) - 1))
            assert topic.values() == expected


def test_brokers_are_found_by_their_ids() -> None:
    with Cluster(brokers=2) as cluster:
        assert [broker.node_id for broker in cluster.brokers] == [1, 2]
        assert cluster.bootstrap_servers == ",".join(broker.bootstrap_servers for broker in cluster.brokers)
        with pytest.raises(LookupError, match="there is no broker 3"):
            cluster.broker(3)


def test_what_each_broker_has_of_its_own_cannot_be_configured() -> None:
    with pytest.raises(ConfigurationError, match="listeners"):
        Cluster(config={"listeners": "PLAINTEXT://:9092"}).open()
    with pytest.raises(ValueError, match="1 to 100 brokers, not 0"):
        Cluster(brokers=0).open()
