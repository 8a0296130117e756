"""A cluster: who is asked, and what is tried again."""

import pytest
import trio
import trio.testing

from pykbroker.client.cluster import MOST_COORDINATORS, Cluster, parse_bootstrap_servers
from pykbroker.client.errors import BadInput, KafkaError, NoBrokerReachable, UnknownTopic, check
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.groups import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
)
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pykbroker.protocol.topic_partition import TopicPartition
from tests.client.fake_broker import HOST, PORT, FakeBroker, metadata_of, with_broker


def test_bootstrap_servers_are_read_with_and_without_ports() -> None:
    assert parse_bootstrap_servers("a:1, b:2 ,c") == [("a", 1), ("b", 2), ("c", 9092)]
    assert parse_bootstrap_servers("[::1]:9,[fe80::2]") == [("::1", 9), ("fe80::2", 9092)]


@pytest.mark.parametrize("text", ["", ",", "a:", ":9092", "a:x", "a:0", "a:65536", "a:-1", "a:९"])
def test_a_bootstrap_server_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_bootstrap_servers(text)


def test_the_next_bootstrap_server_is_asked_when_one_refuses() -> None:
    async def scenario(broker: FakeBroker) -> None:
        broker.serve_topics(t=1)
        broker.refuses.add(("gone", 1))
        async with Cluster([("gone", 1), (HOST, PORT)], open_stream=broker.open) as cluster:
            assert list((await cluster.topic("t")).partitions) == [0]

    with_broker(scenario)


def test_the_next_bootstrap_server_is_asked_when_one_accepts_and_does_not_answer() -> None:
    async def scenario(broker: FakeBroker) -> None:
        broker.serve_topics(t=1)

        async def open_stream(host: str, port: int) -> trio.abc.Stream:
            return trio.testing.memory_stream_pair()[0] if host == "hangs" else await broker.open(host, port)

        async with Cluster([("hangs", 1), (HOST, PORT)], open_stream=open_stream, api_timeout_ms=35_000) as cluster:
            assert list((await cluster.topic("t")).partitions) == [0]

    with_broker(scenario)


def test_a_name_that_no_host_has_is_an_address_that_is_not_reached() -> None:
    """Names come from brokers, too."""

    async def ask() -> None:
        async with Cluster([("a" * 300, 9092)]) as cluster:
            await cluster.any_connection()

    with pytest.raises(NoBrokerReachable, match="no host may have such a name"):
        trio.run(ask)


def test_without_any_broker_the_failure_is_immediate_and_names_the_servers() -> None:
    async def scenario(broker: FakeBroker) -> None:
        broker.refuses |= {("one", 1), ("two", 2)}
        async with Cluster([("one", 1), ("two", 2)], open_stream=broker.open) as cluster:
            with pytest.raises(NoBrokerReachable, match="one:1: Connection refused; two:2: Connection refused"):
                await cluster.refresh()

    with_broker(scenario)


def test_a_topic_without_leaders_yet_is_asked_for_again() -> None:
    async def scenario(broker: FakeBroker) -> None:
        answers = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NONE]

        def answer(request: MetadataRequest, version: int) -> MetadataResponse:
            response = metadata_of({"t": 2}, request)
            response.topics[0].error_code = answers.pop(0)
            return response

        broker.serve(MetadataRequest, answer)
        async with broker.cluster() as cluster:
            topic = await cluster.topic("t", allow_auto_topic_creation=True)
            assert sorted(topic.partitions) == [0, 1]
            assert [request.allow_auto_topic_creation for request in broker.of_type(MetadataRequest)] == [True] * 3

    with_broker(scenario)


def test_a_topic_that_stays_unknown_does_not_exist() -> None:
    async def scenario(broker: FakeBroker) -> None:
        broker.serve_topics(t=1)
        async with broker.cluster() as cluster:
            with pytest.raises(UnknownTopic, match="Topic 'nope' does not exist"):
                await cluster.topic("nope")
            with pytest.raises(UnknownTopic, match="Topic 't' has no partition 7"):
                await cluster.leader(TopicPartition("t", 7))

    with_broker(scenario)


def test_a_group_request_follows_its_coordinator() -> None:
    async def scenario(broker: FakeBroker) -> None:
        broker.serve_topics()
        ports = [PORT, PORT + 1]
        codes = [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE]

        def coordinator(request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
            row = Coordinator(key="g", node_id=1, host=HOST, port=ports.pop(0))
            return FindCoordinatorResponse(coordinators=[row])

        broker.serve(FindCoordinatorRequest, coordinator)
        broker.serve(HeartbeatRequest, lambda request, version: HeartbeatResponse(error_code=codes.pop(0)))
        async with broker.cluster() as cluster:
            request = HeartbeatRequest(group_id="g", member_id="m")
            await cluster.group_request("g", request, HeartbeatResponse, verify=lambda answer: check(answer.error_code))
        assert ports == []
        assert codes == []
        assert broker.connections == 2

    with_broker(scenario)


def test_what_no_retry_can_help_is_raised_at_once() -> None:
    async def scenario(broker: FakeBroker) -> None:
        def refuse(request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
            code = ErrorCode.GROUP_AUTHORIZATION_FAILED
            return FindCoordinatorResponse(coordinators=[Coordinator(key="g", error_code=code, error_message="no")])

        broker.serve(FindCoordinatorRequest, refuse)
        async with broker.cluster() as cluster:
            with pytest.raises(KafkaError, match=r"^no$") as caught:
                await cluster.group_request("g", HeartbeatRequest(), HeartbeatResponse)
            assert caught.value.error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert len(broker.of_type(FindCoordinatorRequest)) == 1

    with_broker(scenario)


def test_an_error_code_of_a_newer_broker_is_an_error_too() -> None:
    with pytest.raises(KafkaError, match="something new") as caught:
        check(4711, "something new")
    assert caught.value.error_code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_coordinators_are_remembered_up_to_a_bound_and_all_are_told() -> None:
    async def scenario(broker: FakeBroker) -> None:
        def answer(request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
            return FindCoordinatorResponse(
                coordinators=[Coordinator(key=key, node_id=1, host=HOST, port=PORT) for key in request.coordinator_keys]
            )

        broker.serve(FindCoordinatorRequest, answer, (4, 6))
        keys = [f"g{number}" for number in range(2 * MOST_COORDINATORS)]
        async with Cluster([(HOST, PORT)], open_stream=broker.open) as cluster:
            found = await cluster.coordinators(keys)
            assert [name for of_node in found.values() for name in of_node] == keys
            await cluster.coordinator("one more")
            assert len(cluster._coordinators) == MOST_COORDINATORS

    with_broker(scenario)
