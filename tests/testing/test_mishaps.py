"""Brokers of a test are paused, cut off, and lose their power; and the order in which they may be."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka import KafkaProducer

from pykbroker.metadata.partition_state import PartitionState
from pykbroker.replication.partition import Partition
from pykbroker.server.node.composition.parts import NodeParts
from pykbroker.testing import Broker, Cluster
from pykbroker.testing.cluster import ClusterBroker
from pykbroker.testing.hosted_node import HostedNode

QUIET_S = 0.3
"""How long is enough to see that nobody answers, who would within a millisecond."""


def within(seconds: float, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)


def parts_of(node: HostedNode) -> NodeParts:
    assert node.control is not None
    assert node.control.node is not None
    assert node.control.node.parts is not None
    return node.control.node.parts


def partition_on(node: HostedNode, index: int = 0) -> PartitionState:
    topic = parts_of(node).node.image.topic("t")
    assert topic is not None
    return topic.partitions[index]


def leader_of(cluster: Cluster) -> ClusterBroker:
    return cluster.broker(partition_on(cluster.nodes[0]).leader)


def has_other_leader(cluster: Cluster, gone: ClusterBroker) -> bool:
    others = [node for node in cluster.nodes if node.config.node_id != gone.node_id]
    return {partition_on(node).leader for node in others} <= {node.config.node_id for node in others}


def are_all_in_sync(cluster: Cluster, partitions: int = 1) -> bool:
    """Whether every broker knows that all have everything."""
    states = [partition_on(node, index) for node in cluster.nodes for index in range(partitions)]
    are_same = all(
        len({(each.leader, each.leader_epoch) for each in states[i::partitions]}) == 1 for i in range(partitions)
    )
    return are_same and all(set(each.isr) == {1, 2, 3} for each in states)


def addresses_without(cluster: Cluster, gone: ClusterBroker) -> str:
    return ",".join(each.bootstrap_servers for each in cluster.brokers if each.node_id != gone.node_id)


ASK_FOR_VERSIONS = b"\0\0\0\x0f\0\x12\0\0\0\0\0\x01\0\x05curio"


# Paused


def test_a_paused_broker_answers_nobody_and_then_everybody() -> None:
    with Broker() as broker:
        topic = broker.create_topic("t")
        old = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        old.send("t", b"1").get(30)
        broker.pause()
        assert broker.is_running
        assert broker.is_paused
        sent = old.send("t", b"2")
        # The system takes a new connection in place of a process that stands still.
        host, port = broker.bootstrap_servers.split(":")
        with socket.create_connection((host, int(port)), timeout=5) as new:
            new.settimeout(QUIET_S)
            new.sendall(ASK_FOR_VERSIONS)
            with pytest.raises(TimeoutError):
                new.recv(1)
            assert not sent.is_done
            broker.resume()
            new.settimeout(10)
            assert new.recv(4), "who came meanwhile is served"
        sent.get(30)
        assert topic.values() == [b"1", b"2"]
        old.close()


def test_a_paused_leader_is_replaced_and_follows_when_it_goes_on() -> None:
    with Cluster(brokers=3) as cluster:
        topic = cluster.create_topic("t")
        topic.produce("1")
        leader = leader_of(cluster)
        leader.pause()
        within(20, lambda: has_other_leader(cluster, leader))
        producer = Producer({"bootstrap.servers": addresses_without(cluster, leader)})
        producer.produce("t", b"2")
        assert producer.flush(30) == 0
        leader.resume()
        within(20, lambda: are_all_in_sync(cluster))
        assert topic.values() == [b"1", b"2"]


# Cut off


def test_a_broker_that_is_cut_off_from_the_others_still_answers_clients() -> None:
    with Cluster(brokers=3) as cluster:
        cluster.create_topic("t").produce("1")
        leader = leader_of(cluster)
        leader.cut_off("nodes")
        # Its clients are told of the topic, and their records have nobody who takes them over.
        alone = Producer(
            {
                "bootstrap.servers": leader.bootstrap_servers,
                "message.timeout.ms": 1000,
                "allow.auto.create.topics": False,
            }
        )
        errors: list[object] = []
        assert alone.list_topics("t", timeout=10).topics["t"].partitions[0].leader == leader.node_id
        alone.produce("t", b"nobody has it", on_delivery=lambda error, _: errors.append(error))
        alone.flush(10)
        assert errors
        assert errors[0] is not None
        within(20, lambda: has_other_leader(cluster, leader))
        leader.restore()
        within(20, lambda: are_all_in_sync(cluster))
        assert cluster.topic("t").values() == [b"1"]


def test_a_broker_that_is_cut_off_from_clients_stays_in_the_cluster() -> None:
    with Cluster(brokers=3) as cluster:
        topic = cluster.create_topic("t")
        follower = next(each for each in cluster.brokers if each.node_id != leader_of(cluster).node_id)
        follower.cut_off("clients")
        producer = Producer({"bootstrap.servers": addresses_without(cluster, follower), "acks": "all"})
        for number in range(20):
            producer.produce("t", b"%d" % number)
            assert producer.flush(10) == 0
        assert are_all_in_sync(cluster)
        host, port = follower.bootstrap_servers.split(":")
        with socket.create_connection((host, int(port)), timeout=5) as client:
            client.settimeout(QUIET_S)
            client.sendall(ASK_FOR_VERSIONS)
            with pytest.raises(TimeoutError):
                client.recv(1)
            follower.restore()
            client.settimeout(10)
            assert client.recv(4)
        assert len(topic.values()) == 20


def test_who_is_cut_off_and_killed_is_not_heard_of() -> None:
    with Broker() as broker:
        broker.create_topic("t")
        host, port = broker.bootstrap_servers.split(":")
        with socket.create_connection((host, int(port)), timeout=5) as client:
            client.sendall(ASK_FOR_VERSIONS)
            client.settimeout(10)
            while len(client.recv(65536)) == 65536:
                pass
            broker.cut_off()
            broker.kill()
            client.settimeout(QUIET_S)
            with pytest.raises(TimeoutError):
                client.recv(1)
            broker.restore()
            client.settimeout(10)
            try:
                assert client.recv(1) == b""
            except ConnectionResetError:
                pass
        broker.start()
        assert broker.topics() == ["t"]


def test_a_paused_process_that_is_killed_lets_go_of_its_connections() -> None:
    with Broker() as broker:
        host, port = broker.bootstrap_servers.split(":")
        with socket.create_connection((host, int(port)), timeout=5) as client:
            within(10, lambda: bool(broker.topics() == []))
            broker.pause()
            broker.kill()
            client.settimeout(10)
            try:
                assert client.recv(1) == b""
            except ConnectionResetError:
                pass
        assert not broker.is_paused
        broker.start()
        broker.create_topic("t")


# Power


def test_a_power_cut_takes_what_was_not_flushed() -> None:
    with Broker() as broker:
        careless = broker.create_topic("t")
        careful = broker.create_topic("careful", configs={"flush.messages": 1})
        careless.produce("1")
        role = parts_of(broker.nodes[0]).broker_role
        assert role is not None
        partition = role.broker.partitions.get_partition("t", 0)
        assert isinstance(partition, Partition)
        within(10, lambda: partition.log.unflushed_messages == 0)  # the first flush comes at once
        for topic in (careless, careful):
            topic.produce("2")
            topic.produce("3")
        broker.crash(lose_unflushed=True)
        assert not broker.is_running
        broker.start()
        assert careless.values() == [b"1"]
        assert careful.values() == [b"2", b"3"]
        careless.produce("again")
        broker.stop()
        broker.start()
        assert careless.values() == [b"1", b"again"], "a clean stop flushes"


def test_a_killed_process_loses_nothing() -> None:
    with Broker() as broker:
        topic = broker.create_topic("t")
        for number in range(3):
            topic.produce(str(number))
        broker.crash(lose_unflushed=False)
        broker.start()
        assert topic.values() == [b"0", b"1", b"2"]


def test_replicas_make_good_for_a_power_cut(tmp_path: Path) -> None:
    with Cluster(brokers=3, data_dir=tmp_path) as cluster:
        topic = cluster.create_topic("t", partitions=3)
        for round_ in range(3):
            for number in range(30):
                topic.produce(f"{round_} {number}", partition=number % 3)
            broker = cluster.broker(round_ + 1)
            broker.crash()
            topic.produce(f"{round_} meanwhile", partition=round_)
            broker.start()
            within(20, lambda: are_all_in_sync(cluster, 3))
        expected = {b"%d %d" % (a, b) for a in range(3) for b in range(30)} | {b"%d meanwhile" % a for a in range(3)}
        values = topic.values()
        assert set(values) == expected
        assert len(values) == len(expected)


# The order of things


def test_what_makes_no_sense_is_refused() -> None:
    with Broker() as broker:
        with pytest.raises(ValueError, match="the node is not paused, so it cannot be resumed"):
            broker.resume()
        with pytest.raises(ValueError, match="the node is not cut off, so there is nothing to restore"):
            broker.restore()
        with pytest.raises(ValueError, match=r"not cut off from clietns; did you mean clients\?"):
            broker.cut_off("clietns")
        with pytest.raises(ValueError, match="there are nodes, clients and all"):
            broker.cut_off("x" * 1000)
        broker.pause()
        with pytest.raises(ValueError, match="the node is paused already"):
            broker.pause()
        with pytest.raises(ValueError, match="paused, and does not hear that it is to stop"):
            broker.stop()
        broker.resume()
        broker.cut_off("clients")
        with pytest.raises(ValueError, match="cut off from clients already"):
            broker.cut_off("clients")
        broker.cut_off("nodes")
        with pytest.raises(ValueError, match="cut off from clients and nodes already"):
            broker.cut_off()
        broker.restore()
        assert not broker.is_cut_off
        broker.stop()
        for ask in (broker.pause, broker.crash):
            with pytest.raises(ValueError, match="the node does not run"):
                ask()


def test_who_asks_a_broker_that_answers_nobody_is_told_why() -> None:
    quick = {"request.timeout.ms": "100", "default.api.timeout.ms": "200"}
    with Broker(client_properties=quick) as broker:
        for befall, end, why in (
            (broker.pause, broker.resume, "node 1 is paused"),
            (lambda: broker.cut_off("clients"), broker.restore, "node 1 is cut off from clients"),
        ):
            befall()
            with pytest.raises(Exception, match="did not answer") as raised:
                broker.topics()
            assert raised.value.__notes__ == [why]
            end()
        assert broker.topics() == []


def test_a_node_that_needs_others_does_not_start_without_them() -> None:
    with Cluster(brokers=2) as cluster:
        broker = cluster.broker(2)
        broker.stop()
        broker.cut_off("nodes")
        with pytest.raises(ValueError, match="restore it first"):
            broker.start()
        broker.restore()
        broker.start()


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_cluster_closes_at_once_whatever_befell_it(tmp_path: Path, is_kept: bool) -> None:
    with Cluster(brokers=3, data_dir=tmp_path if is_kept else None) as cluster:
        cluster.create_topic("t").produce("1")
        cluster.broker(1).pause()
        cluster.broker(2).cut_off("nodes")
        cluster.broker(3).cut_off()
        began = time.monotonic()
    assert time.monotonic() - began < 5


def test_coroutines_see_the_same() -> None:
    async def run() -> None:
        async with Broker() as broker:
            await broker.create_topic("t")
            await broker.pause()
            assert broker.is_paused
            await broker.resume()
            await broker.cut_off("clients")
            assert broker.is_cut_off
            await broker.restore()
            await broker.crash(lose_unflushed=True)
            await broker.start()
            assert await broker.topics() == ["t"]

    asyncio.run(run())
