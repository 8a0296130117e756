"""Why a consumer gets what it gets, or nothing: each reason is brought about by a stock client."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import TopicPartition as PythonPartition

from pykbroker.client.acls import create_acls
from pykbroker.client.quotas import alter_quotas
from pykbroker.control.why.answers import PartitionAnswer
from pykbroker.control.why.consumer import BadQuestion
from pykbroker.security.acls.entry import AccessControlEntry
from pykbroker.security.acls.operations import Operation, Permission
from pykbroker.security.acls.resources import PatternType, ResourceType
from pykbroker.server.replicas import fetch_sightings
from pykbroker.testing import Broker, Cluster

from .conftest import Clients, eventually, polled


def of_partition(answer: object, index: int) -> PartitionAnswer:
    return next(each for each in answer.partitions if each.partition == index)  # type: ignore[attr-defined]


def test_a_topic_that_does_not_exist(broker: Broker, clients: Clients, name: str) -> None:
    clients.confluent(name, ["nowhere"], allow_auto_create_topics=False).poll(0.2)

    answer = eventually(lambda: broker.why.consumer(name, topic="nowhere"), lambda it: it.reason != "no-such-group")

    assert (answer.reason, answer.verdict) == ("topic-does-not-exist", "Topic nowhere does not exist.")
    assert "auto.create.topics.enable is false." in answer.facts


def test_a_partition_that_does_not_exist(broker: Broker, topic: str, name: str) -> None:
    answer = broker.why.consumer(name, topic=topic, partition=7)

    assert answer.reason == "partition-does-not-exist"
    assert "which has 0 to 1" in answer.verdict


def test_a_group_that_nobody_has_joined_and_one_that_all_have_left(
    broker: Broker, clients: Clients, topic: str, name: str
) -> None:
    assert broker.why.consumer(f"{name}-other", topic=topic).reason in ("no-such-group", "no-coordinator")
    consumer = clients.confluent(name, [topic])
    polled(consumer, lambda: bool(consumer.assignment()))
    consumer.close()

    answer = eventually(lambda: broker.why.consumer(name, topic=topic), lambda it: it.reason == "no-members")

    assert "has no members since" in answer.verdict


def test_the_end_of_the_log(broker: Broker, clients: Clients, topic: str, name: str) -> None:
    broker.topic(topic).produce(b"a", partition=0)
    consumer = clients.confluent(name, [topic])
    polled(consumer, lambda: bool(consumer.assignment()))

    answer = eventually(
        lambda: (consumer.poll(0.01), broker.why.consumer(name, topic=topic, partition=0))[1],
        lambda it: it.reason == "end-of-log",
    )

    (partition,) = answer.partitions
    assert (partition.position, partition.log_end_offset, partition.client_id) == (1, 1, "app")
    assert "to its end at 1, and waits for more" in answer.verdict
    assert any("has no committed offset" in fact and "earliest: 0, latest: 1" in fact for fact in answer.facts)


def test_a_group_that_begins_behind_the_records(broker: Broker, clients: Clients, topic: str, name: str) -> None:
    broker.topic(topic).produce(b"a", b"b", partition=1)
    consumer = clients.confluent(name, [topic], auto_offset_reset="latest")
    polled(consumer, lambda: bool(consumer.assignment()))

    answer = eventually(
        lambda: (consumer.poll(0.01), broker.why.consumer(name, topic=topic, partition=1))[1],
        lambda it: it.reason == "offset-reset",
    )

    assert "began at 2, behind the 2 offsets that the log has before" in answer.verdict
    assert "client's auto.offset.reset" in answer.verdict


def test_a_new_connection_goes_on_where_the_one_before_was(
    broker: Broker, clients: Clients, topic: str, name: str
) -> None:
    broker.topic(topic).produce(b"a", b"b", partition=0)
    consumer = clients.confluent(name, [topic], client_id=name, reconnect_backoff_ms=10)
    polled(consumer, lambda: consumer.position([TopicPartition(topic, 0)])[0].offset == 2)
    with broker.faults.add(api="Fetch", client_id=name, nth=1, drop="before") as dropped:
        dropped.wait_taken()
    fetches = len(broker.requests("Fetch", client_id=name))

    answer = eventually(
        lambda: (consumer.poll(0.01), broker.why.consumer(name, topic=topic, partition=0))[1],
        lambda it: it.reason == "end-of-log" and len(broker.requests("Fetch", client_id=name)) > fetches + 1,
    )
    assert answer.partitions[0].committed is None


def test_nobody_subscribes_to_the_topic(broker: Broker, clients: Clients, topic: str, name: str) -> None:
    other = str(broker.create_topic(f"{name}-other"))
    consumer = clients.confluent(name, [other])
    polled(consumer, lambda: bool(consumer.assignment()))

    answer = eventually(lambda: broker.why.consumer(name, topic=topic), lambda it: it.reason == "not-subscribed")

    assert answer.verdict == f"No member of group {name} subscribes to {topic}."
    assert f"Its members subscribe to {other}." in answer.facts


def test_the_partition_is_another_member_s(broker: Broker, clients: Clients, topic: str, name: str) -> None:
    first = clients.confluent(name, [topic], client_id="first")
    polled(first, lambda: len(first.assignment()) == 2)
    second = clients.confluent(name, [topic], client_id="second")
    polled(second, lambda: bool(first.poll(0.01) is None and len(second.assignment()) == 1))
    index = second.assignment()[0].partition

    answer = eventually(
        lambda: (first.poll(0), broker.why.consumer(name, client_id="first", topic=topic, partition=index))[1],
        lambda it: it.reason != "group-rebalances",
    )

    assert answer.reason == "not-assigned"
    assert "(client second at 127.0.0.1), not to client first" in answer.verdict


def test_a_group_that_rebalances(broker: Broker, clients: Clients, topic: str, name: str) -> None:
    lazy = clients.joined_python(topic, name, client_id="lazy")
    eager = clients.confluent(name, [topic], client_id="eager")

    answer = eventually(
        lambda: (eager.poll(0.02), broker.why.consumer(name, topic=topic))[1],
        lambda it: it.reason == "group-rebalances",
    )

    assert "waits for JoinGroup of lazy-" in answer.verdict
    lazy.close()


@pytest.mark.parametrize("kind", ["confluent", "python"])
def test_a_partition_that_is_paused(broker: Broker, clients: Clients, topic: str, name: str, kind: str) -> None:
    consumer: object
    if kind == "confluent":
        broker.topic(topic).produce(b"a", partition=0)
        one = clients.confluent(name, [topic])
        polled(one, lambda: len(one.assignment()) == 2)
        eventually(lambda: one.poll(0.05), lambda record: record is not None)
        one.pause([TopicPartition(topic, 0)])
        consumer = one
    else:
        other = clients.joined_python(topic, name)
        eventually(lambda: (other.poll(50), broker.why.consumer(name))[1], lambda it: it.reason == "end-of-log")
        (paused,) = (each for each in other.assignment() if each.partition == 0)
        other.pause(paused)
        consumer = other

    answer = eventually(
        lambda: (consumer.poll(0.05 if kind == "confluent" else 50), broker.why.consumer(name, topic=topic))[1],  # type: ignore[attr-defined]
        lambda it: of_partition(it, 0).reason == "no-fetch",
    )

    assert "The broker cannot tell paused from busy" in of_partition(answer, 0).verdict
    assert "Meanwhile it fetches 1 other partition." in of_partition(answer, 0).facts
    assert of_partition(answer, 1).reason == "end-of-log"
    assert answer.reason == "no-fetch"


def test_a_consumer_that_is_busy(broker: Broker, clients: Clients, topic: str, name: str) -> None:
    clients.joined_python(topic, name)  # and it does not poll any more: its caller works

    answer = eventually(lambda: broker.why.consumer(name, topic=topic, partition=0), lambda it: it.reason == "no-fetch")

    assert "has sent no Fetch for" in answer.verdict
    (partition,) = answer.partitions
    assert partition.last_fetch_ago_ms is not None
    assert partition.last_fetch_ago_ms > 1_000


def test_what_an_open_transaction_hides(broker: Broker, clients: Clients, topic: str, name: str) -> None:
    producer = clients.producer(transactional_id=name, client_id="payments")
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"a", partition=0)
    producer.flush(30)
    consumer = clients.confluent(name, [topic])
    polled(consumer, lambda: len(consumer.assignment()) == 2)

    answer = eventually(
        lambda: (consumer.poll(0.01), broker.why.consumer(name, topic=topic, partition=0))[1],
        lambda it: it.reason == "behind-last-stable-offset",
    )

    assert "waits at the last stable offset 0" in answer.verdict
    assert any(
        f"a transaction of {name}" in fact and "by client payments at 127.0.0.1" in fact for fact in answer.facts
    )
    producer.abort_transaction(30)
    eventually(
        lambda: (consumer.poll(0.01), broker.why.consumer(name, topic=topic, partition=0))[1],
        lambda it: it.reason == "end-of-log",
    )


def test_an_offset_that_is_out_of_range(broker: Broker, clients: Clients, topic: str, name: str) -> None:
    broker.topic(topic).produce(b"a", partition=0)
    consumer = clients.confluent(name, [], auto_offset_reset="error")
    consumer.assign([TopicPartition(topic, 0, 1000)])

    answer = eventually(
        lambda: (consumer.poll(0.01), broker.why.consumer(client_id="app", topic=topic, partition=0))[1],
        lambda it: it.reason == "offset-out-of-range",
    )

    assert "asked for offset 1000" in answer.verdict
    assert "the log has 0 to 1" in answer.verdict


def test_a_consumer_without_a_group_is_found_by_its_client_id(
    broker: Broker, clients: Clients, topic: str, name: str
) -> None:
    broker.topic(topic).produce(b"a", b"b", partition=0)
    consumer = clients.python(client_id=name)
    assert "has fetched nothing since this broker started" in broker.why.consumer(client_id=name).verdict
    consumer.assign([PythonPartition(topic, 0)])
    consumer.seek_to_beginning()

    answer = eventually(
        lambda: (consumer.poll(50), broker.why.consumer(client_id=name))[1], lambda it: it.reason == "end-of-log"
    )

    (partition,) = answer.partitions
    assert (partition.topic, partition.position, partition.committed) == (topic, 2, None)


def test_a_quota_that_holds_back_fetches(broker: Broker, clients: Clients, topic: str, name: str) -> None:
    broker.topic(topic).produce(*[b"x" * 50_000] * 20, partition=0)
    broker.call(alter_quotas, frozenset({("client-id", name)}), {"consumer_byte_rate": 20_000.0}, [])
    consumer = clients.confluent(name, [topic], client_id=name)

    answer = eventually(
        lambda: (consumer.poll(0.01), broker.why.consumer(name, topic=topic, partition=0))[1],
        lambda it: it.reason == "throttled",
    )

    assert f"is throttled by consumer_byte_rate of client-id {name}" in answer.verdict


def test_a_client_that_may_not_read(name: str) -> None:
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": True,
    }
    with Broker(config) as own, ExitStack() as closing:
        clients = Clients(own, closing)
        own.create_topic("secret")
        own.create_topic("open")
        for kind, resource in ((ResourceType.TOPIC, "secret"), (ResourceType.GROUP, "closed")):
            everything = AccessControlEntry(
                kind, resource, PatternType.LITERAL, "User:*", "*", Operation.ALL, Permission.ALLOW
            )
            not_read = AccessControlEntry(
                kind, resource[:3], PatternType.PREFIXED, "User:ANONYMOUS", "*", Operation.READ, Permission.DENY
            )
            own.call(create_acls, [everything, not_read])
        consumer = clients.confluent(name, ["secret"])

        answer = eventually(
            lambda: (consumer.poll(0.01), own.why.consumer(name, topic="secret"))[1],
            lambda it: it.reason == "not-authorized",
        )
        assert "User:ANONYMOUS (client app at 127.0.0.1) was denied READ on TOPIC secret" in answer.verdict
        assert "an ACL denies it: DENY READ to User:ANONYMOUS from * on TOPIC PREFIXED sec" in answer.verdict

        outside = clients.confluent("closed", ["open"])
        answer = eventually(
            lambda: (outside.poll(0.01), own.why.consumer("closed"))[1], lambda it: it.reason == "not-authorized"
        )
        assert "was denied READ on GROUP closed" in answer.verdict
        assert "on GROUP PREFIXED clo" in own.why.group("closed").facts[0]


def test_records_that_not_every_replica_has(name: str) -> None:
    with Cluster(2) as cluster, ExitStack() as closing:
        clients = Clients(cluster, closing)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        # Broker 1 is the only controller: without it nobody shrinks the in-sync replicas.
        admin.create_topics([NewTopic(name, num_partitions=1, replica_assignment=[[2, 1]])])[name].result(30)
        cluster.topic(name).produce(b"a")
        consumer = clients.python(client_id=name)
        consumer.assign([PythonPartition(name, 0)])
        consumer.seek_to_beginning()
        eventually(
            lambda: (consumer.poll(50), cluster.why.consumer(client_id=name))[1], lambda it: it.reason == "end-of-log"
        )
        producer = clients.producer(acks=1)
        producer.list_topics(name, 30)
        cluster.broker(1).kill()
        producer.produce(name, b"b")
        assert producer.flush(30) == 0

        answer = eventually(
            lambda: (consumer.poll(50), cluster.why.consumer(client_id=name))[1],
            lambda it: it.reason == "behind-high-watermark",
        )

        assert "not every in-sync replica has the 1 offset up to the log's end 2" in answer.verdict
        assert "In sync are 2, 1 of 2, 1; broker 1 has up to 1." in answer.facts
        (partition,) = answer.partitions
        assert (partition.position, partition.high_watermark, partition.log_end_offset) == (1, 1, 2)


def test_clients_that_look_alike_and_fare_differently(broker: Broker, clients: Clients, topic: str, name: str) -> None:
    broker.topic(topic).produce(b"a", partition=0)
    paused, reading = clients.confluent(f"{name}-1", [topic]), clients.confluent(f"{name}-2", [topic])
    for each in (paused, reading):
        polled(each, lambda each=each: bool(each.assignment()))  # type: ignore[misc]
        eventually(
            lambda each=each: (each.poll(0.01), broker.why.consumer(f"{name}-1", topic=topic, partition=0))[1],  # type: ignore[misc]
            lambda it: it.reason == "end-of-log",
        )
    paused.pause(paused.assignment())

    answer = eventually(
        lambda: (reading.poll(0.01), broker.why.consumer(f"{name}-1", topic=topic, partition=0))[1],
        lambda it: it.reason == "not-told" and any("has sent no Fetch" in fact for fact in it.facts),
    )
    assert answer.verdict.startswith("2 connections of client app at 127.0.0.1 have fetched ")

    reading.close()
    answer = broker.why.consumer(f"{name}-1", topic=topic, partition=0)
    assert answer.reason == "no-fetch", answer


def test_a_consumer_that_more_others_have_followed_than_are_kept_in_mind(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_sightings, "MOST_CLIENTS", 1)
    with Broker() as own, ExitStack() as closing:
        clients = Clients(own, closing)
        topic = own.create_topic(name)
        clients.joined_python(topic, name)
        other = clients.python(client_id="other")
        other.assign([PythonPartition(topic, 0)])
        assert other.poll(30_000)

        answer = own.why.consumer(name)

        assert (answer.reason, "is not known any more" in answer.verdict) == ("not-told", True), answer


def test_a_client_that_has_gone_without_a_word(broker: Broker, topic: str, name: str) -> None:
    broker.topic(topic).produce(b"a", partition=0)
    with ExitStack() as closing:
        consumer = Clients(broker, closing).python(client_id=name)
        consumer.assign([PythonPartition(topic, 0)])
        assert consumer.poll(30_000)
    answer = eventually(lambda: broker.why.consumer(client_id=name), lambda it: it.reason == "no-fetch")
    assert answer.verdict.endswith("and has closed its connection.")


def test_a_question_without_a_group_or_a_client_is_refused(broker: Broker) -> None:
    with pytest.raises(BadQuestion, match="name a group"):
        broker.why.consumer()
    with pytest.raises(BadQuestion, match="goes with its topic"):
        broker.why.consumer("g", partition=1)
