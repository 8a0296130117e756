"""Why a group is as it is, with stock clients that bring each reason about."""

from __future__ import annotations

import json
from contextlib import ExitStack

from confluent_kafka.admin import AdminClient, NewPartitions

from pykbroker.client.cluster import Cluster
from pykbroker.control.why import requests
from pykbroker.protocol.messages.groups import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from pykbroker.server.node.node import Node
from pykbroker.testing import Broker
from pykbroker.testing import Cluster as Brokers

from .conftest import Clients, eventually, polled


def test_a_group_that_nobody_has_joined(broker: Broker, name: str) -> None:
    answer = broker.why.group(name)

    assert answer.reason in ("no-such-group", "no-coordinator")
    assert name in answer.verdict


def test_a_stable_group_has_its_members_their_partitions_and_the_lag(
    broker: Broker, clients: Clients, topic: str, name: str
) -> None:
    broker.topic(topic).produce(b"a", b"b", b"c", partition=0)
    consumer = clients.confluent(name, [topic])
    record = None
    while record is None:
        record = consumer.poll(0.1)
    consumer.commit(record, asynchronous=False)

    answer = eventually(lambda: broker.why.group(name), lambda it: it.reason == "stable")

    (member,) = answer.members
    assert (member.client_id, member.host, member.state) == ("app", "127.0.0.1", "has its assignment")
    assert (dict(member.assignment), member.subscription) == ({topic: (0, 1)}, (topic,))
    assert member.last_sign_ago_ms is not None
    assert (answer.rebalances[0].api, answer.rebalances[0].client_id) == ("JoinGroup", "app")
    assert answer.rebalances[0].why.startswith(f"{member.member_id} joined")
    lag = {(each.topic, each.partition): (each.committed, each.lag) for each in answer.partitions}
    assert lag == {(topic, 0): (1, 2), (topic, 1): (None, None)}
    assert (answer.lag, answer.type, answer.coordinator) == (2, "classic", 1)
    assert "is stable at generation 1 with 1 member; its last rebalance began" in answer.verdict
    json.dumps(answer.to_json())
    assert topic in str(answer)


def test_a_member_that_joins_and_one_that_leaves_are_why(
    broker: Broker, clients: Clients, topic: str, name: str
) -> None:
    first = clients.confluent(name, [topic], client_id="first")
    polled(first, lambda: len(first.assignment()) == 2)
    second = clients.confluent(name, [topic], client_id="second")
    polled(second, lambda: bool(first.poll(0.01) is None and second.assignment()))

    answer = eventually(lambda: (first.poll(0.01), broker.why.group(name))[1], lambda it: it.reason == "stable")
    newcomer = next(each for each in answer.members if each.client_id == "second")
    assert answer.rebalances[0].why.startswith(f"{newcomer.member_id} joined")
    assert answer.rebalances[0].client_id == "second"

    second.close()
    answer = eventually(
        lambda: (first.poll(0.01), broker.why.group(name))[1],
        lambda it: it.reason == "stable" and it.member_count == 1,
    )
    assert answer.rebalances[0].why.startswith(f"{newcomer.member_id} left")
    assert answer.rebalances[0].api == "LeaveGroup"


def test_the_client_s_own_reason_to_leave_is_kept(broker: Broker, clients: Clients, topic: str, name: str) -> None:
    consumer = clients.joined_python(topic, name)
    consumer.close()

    answer = eventually(lambda: broker.why.group(name), lambda it: it.reason == "no-members")

    assert "left (" in answer.verdict
    assert answer.history[0].api == "LeaveGroup"


def test_a_session_that_ran_out_is_why(broker: Broker, clients: Clients, topic: str, name: str) -> None:
    away = clients.confluent(name, [topic], group_instance_id="one", session_timeout_ms=1500)
    polled(away, lambda: bool(away.assignment()))
    (member,) = broker.why.group(name).members
    away.close()  # a static member does not leave

    answer = eventually(lambda: broker.why.group(name), lambda it: it.reason == "no-members")

    assert f"{member.member_id} was silent for its session timeout" in answer.verdict
    assert answer.history[0].api == ""  # time did it, and no request


def test_a_static_member_that_was_replaced_is_in_the_history(
    broker: Broker, clients: Clients, topic: str, name: str
) -> None:
    for _ in range(2):
        consumer = clients.confluent(name, [topic], group_instance_id="one")
        polled(consumer, lambda consumer=consumer: bool(consumer.assignment()))  # type: ignore[misc]
        consumer.close()

    answer = broker.why.group(name)

    assert any("took the place of" in cause for step in answer.history for cause in step.causes)
    assert len(answer.rebalances) == 1


def test_a_subscription_that_changed_is_why(broker: Broker, clients: Clients, topic: str, name: str) -> None:
    consumer = clients.confluent(name, [topic])
    polled(consumer, lambda: bool(consumer.assignment()))
    other = str(broker.create_topic(f"{name}-other"))
    consumer.subscribe([topic, other])
    polled(consumer, lambda: len(consumer.assignment()) == 3)

    answer = eventually(lambda: broker.why.group(name), lambda it: it.reason == "stable")

    assert "joined again with another subscription" in answer.rebalances[0].why
    assert set(answer.members[0].subscription) == {topic, other}


def test_a_topic_that_grew_is_why_the_leader_wants_a_new_assignment(
    broker: Broker, clients: Clients, topic: str, name: str
) -> None:
    consumer = clients.confluent(name, [topic], topic_metadata_refresh_interval_ms=200)
    polled(consumer, lambda: len(consumer.assignment()) == 2)
    grow(broker, topic)
    polled(consumer, lambda: len(consumer.assignment()) == 4)

    why = broker.why.group(name).rebalances[0].why

    assert "the leader, to have a new assignment made for the same subscription" in why


def test_a_group_that_waits_says_for_whom_and_since_when(
    broker: Broker, clients: Clients, topic: str, name: str
) -> None:
    lazy = clients.joined_python(topic, name, client_id="lazy")
    eager = clients.confluent(name, [topic], client_id="eager")

    answer = eventually(
        lambda: (eager.poll(0.02), broker.why.group(name))[1], lambda it: it.reason == "rebalancing" and it.awaited
    )

    (awaited,) = answer.awaited
    assert (awaited.client_id, awaited.what) == ("lazy", "JoinGroup")
    assert awaited.due_in_ms is not None
    assert awaited.due_in_ms > 0
    assert awaited.since_timestamp_ms == answer.rebalances[0].timestamp_ms
    assert f", because {answer.rebalances[0].why}, and waits for JoinGroup of {awaited.member_id}" in answer.verdict
    lazy.close()  # the other one's JoinGroup is answered


def test_a_coordinator_that_has_read_the_group_anew_does_not_know_what_was_before(name: str) -> None:
    with Broker() as own, ExitStack() as closing:
        own.create_topic("t")
        consumer = Clients(own, closing).confluent(name, ["t"])
        polled(consumer, lambda: bool(consumer.assignment()))
        before = own.why.group(name)
        own.restart()

        answer = eventually(lambda: own.why.group(name), lambda it: it.reason == "stable")

        assert "has not rebalanced since its coordinator has read it" in answer.verdict
        assert answer.rebalances == ()
        assert answer.coordinator_since_timestamp_ms > before.coordinator_since_timestamp_ms  # type: ignore[operator]
        assert [each.member_id for each in answer.members] == [each.member_id for each in before.members]


def test_consumer_groups_say_why_their_epochs_began(broker: Broker, clients: Clients, topic: str, name: str) -> None:
    first = clients.confluent(name, [topic], client_id="first", group_protocol="consumer")
    polled(first, lambda: len(first.assignment()) == 2)
    answer = eventually(lambda: (first.poll(0), broker.why.group(name))[1], lambda it: it.reason == "stable")
    (member,) = answer.members
    assert (answer.type, member.client_id, dict(member.assignment)) == ("consumer", "first", {topic: (0, 1)})
    assert answer.rebalances[0].why == f"{member.member_id} joined, and subscribes to {topic}"
    assert answer.rebalances[0].api == "ConsumerGroupHeartbeat"

    grow(broker, topic)
    polled(first, lambda: len(first.assignment()) == 4)
    assert (
        broker.why.group(name).rebalances[0].why == "a topic that it subscribes to was created, deleted, grown or moved"
    )

    first.close()
    answer = eventually(lambda: broker.why.group(name), lambda it: it.reason == "no-members")
    assert f"{member.member_id} removed: it left" in answer.verdict


def grow(broker: Broker, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(30)


def test_a_member_that_polls_too_rarely_leaves_by_itself(
    broker: Broker, clients: Clients, topic: str, name: str
) -> None:
    """Java's client gives its reason; kafka-python 3.0.12 and librdkafka give none."""
    clients.joined_python(topic, name, max_poll_interval_ms=1_500, session_timeout_ms=1_400, heartbeat_interval_ms=200)

    answer = eventually(lambda: broker.why.group(name), lambda it: it.reason == "no-members")

    assert (answer.history[0].api, answer.history[0].client_id) == ("LeaveGroup", "py")
    assert " left (" in answer.verdict


def test_the_reason_of_whoever_removes_a_member_is_kept(
    broker: Broker, clients: Clients, topic: str, name: str
) -> None:
    consumer = clients.confluent(name, [topic])
    polled(consumer, lambda: bool(consumer.assignment()))
    (member,) = broker.why.group(name).members
    leaving = MemberIdentity(member_id=member.member_id, reason="the old deployment goes")

    async def remove(cluster: Cluster) -> None:
        request = LeaveGroupRequest(group_id=name, members=[leaving])
        await cluster.group_request(name, request, LeaveGroupResponse, verify=lambda _: None)

    broker.call(remove)

    first_causes = [step.causes[0] for step in broker.why.group(name).history]
    assert f"{member.member_id} left (the old deployment goes)" in first_causes


def test_a_consumer_group_waits_for_the_member_that_has_to_give_up_partitions(
    broker: Broker, clients: Clients, topic: str, name: str
) -> None:
    broker.topic(topic).produce(b"a", partition=0)
    lazy = clients.confluent(name, [topic], client_id="lazy", group_protocol="consumer")
    polled(lazy, lambda: len(lazy.assignment()) == 2)  # and it does not poll any more
    eager = clients.confluent(name, [topic], client_id="eager", group_protocol="consumer")

    answer = eventually(
        lambda: (eager.poll(0.02), broker.why.group(name))[1],
        lambda it: it.reason == "rebalancing" and any("given up" in each.what for each in it.awaited),
    )

    (awaited,) = (each for each in answer.awaited if "given up" in each.what)
    assert awaited.client_id == "lazy"
    assert awaited.due_in_ms is not None
    assert f"a heartbeat that it has given up {topic}-" in awaited.what
    assert f"of {awaited.member_id}" in answer.verdict
    polled(lazy, lambda: len(lazy.assignment()) == 1)


def test_a_group_that_another_broker_coordinates(name: str) -> None:
    with Brokers(2) as cluster:
        cluster.create_topic(name)
        cluster.group(name).commit({(name, 0): 0})

        async def ask(node: Node | None) -> dict[str, object]:
            return await requests.ask(requests.brokers_of([node]), "group", {"group": name})

        answers = [cluster.running_loop().call(ask, each.node) for each in cluster.nodes]
    assert {str(each["reason"]) for each in answers} == {"no-members", "coordinated-elsewhere"}
    assert any("coordinates it, and was not asked" in str(each["verdict"]) for each in answers)
