"""A Fetch beyond its client's quota is answered without records, and does not count; followers have no quota."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from pykbroker.api.describe_client_quotas import describe_client_quotas
from pykbroker.api.fetch import fetch
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchResponse
from pykbroker.protocol.messages.metadata_records import ClientQuotaRecord, EntityData
from pykbroker.protocol.messages.quotas import ComponentData, DescribeClientQuotasRequest, DescribeClientQuotasResponse
from pykbroker.server.network.handlers import ConnectionState
from pykbroker.server.network.request_meter import RequestMeter
from tests.api.api_node import ApiNode, in_virtual_time
from tests.api.test_fetch import BY_NAME, read, request

RECORD = b"x" * 1_000


def set_quota(node: ApiNode, value: float, key: str = "consumer_byte_rate") -> None:
    entity = [EntityData(entity_type="user", entity_name="ANONYMOUS")]
    node.replay(ClientQuotaRecord(entity=entity, key=key, value=value))


@pytest.fixture
def node(tmp_path: Path) -> ApiNode:
    node = ApiNode(tmp_path)
    node.create_topic("t", 2)
    for _ in range(10):
        node.append("t", RECORD)
    return node


class Consumer:
    """Fetches with a meter, as the dispatcher gives one to each request."""

    def __init__(self, node: ApiNode) -> None:
        self._node = node
        self.connection = ConnectionState("PLAINTEXT", "127.0.0.1")

    def fetch(self, **values: Any) -> tuple[FetchResponse, int]:
        """The response, and for how many milliseconds it is throttled."""
        return in_virtual_time(lambda: self.ask(**values))

    async def ask(self, **values: Any) -> tuple[FetchResponse, int]:
        connection, message = self.connection, request(("t", 0, 0), **values)
        meter = connection.meter = RequestMeter(self._node.client_quotas, self._node.clock, lambda: 0, connection)
        meter.begin(100)
        connection.throttle_ms = 0
        response: FetchResponse = await self._node.call(fetch, message, BY_NAME, connection=connection)
        meter.settle(1, message, response)
        assert response.throttle_time_ms == connection.throttle_ms
        return response, connection.throttle_ms


def test_what_a_consumer_has_had_is_counted_until_it_is_too_much(node: ApiNode) -> None:
    set_quota(node, 1_100.0)
    consumer = Consumer(node)
    first, throttle_ms = consumer.fetch()
    assert (len(read(first)["t", 0]), throttle_ms) == (10, 0)
    for _ in range(2):
        empty, throttle_ms = consumer.fetch()
        assert not empty.responses
        assert 8_000 < throttle_ms < 11_000, "what was not sent does not count"
    small, throttle_ms = consumer.fetch(partition_max_bytes=1)
    assert throttle_ms > 0
    assert not small.responses


def test_no_more_is_read_than_a_quota_lets_through_in_all_its_windows(node: ApiNode) -> None:
    """More would be throttled for ever. With what is around the records it is a little more, and has to wait once."""
    set_quota(node, 300.0)
    consumer = Consumer(node)

    async def wait_for_records() -> tuple[int, float]:
        began_s = trio.current_time()
        while True:
            response, throttle_ms = await consumer.ask()
            if not throttle_ms:
                return len(read(response)["t", 0]), trio.current_time() - began_s
            await trio.sleep(throttle_ms / 1000)

    count, waited_s = in_virtual_time(wait_for_records)
    assert count == 2
    assert 0 < waited_s < 11


def test_a_throttled_fetch_neither_opens_a_session_nor_moves_one(node: ApiNode) -> None:
    consumer = Consumer(node)
    opened, _ = consumer.fetch(session_epoch=0, partition_max_bytes=1)
    assert opened.session_id
    set_quota(node, 1.0)
    node.append("t", RECORD)
    throttled, throttle_ms = consumer.fetch(session_id=opened.session_id, session_epoch=1)
    assert throttle_ms > 0
    assert (throttled.session_id, throttled.error_code, throttled.responses) == (opened.session_id, ErrorCode.NONE, [])
    refused, _ = consumer.fetch(session_epoch=0)
    assert (refused.session_id, refused.responses) == (0, [])
    set_quota(node, 1e9)
    again, throttle_ms = consumer.fetch(session_id=opened.session_id, session_epoch=2)
    assert throttle_ms == 0
    assert len(read(again)["t", 0]) == 11, "the records that were kept back come now"


def test_followers_have_no_quota(node: ApiNode) -> None:
    set_quota(node, 1.0)
    set_quota(node, 0.000_001, "request_percentage")
    node.create_topic("r", replicas=[1, 2])
    consumer = Consumer(node)
    for _ in range(3):
        response, throttle_ms = consumer.fetch(replica_id=2)
        assert throttle_ms == 0
        assert response.responses


def test_quotas_are_described_by_a_broker(node: ApiNode) -> None:
    set_quota(node, 5.0)

    async def ask(kind: str) -> DescribeClientQuotasResponse:
        wanted = DescribeClientQuotasRequest(components=[ComponentData(entity_type=kind, match_type=2, match=None)])
        response: DescribeClientQuotasResponse = await node.call(describe_client_quotas, wanted, 1)
        return response

    found = in_virtual_time(lambda: ask("user"))
    assert [(each.key, each.value) for entry in found.entries or () for each in entry.values] == [
        ("consumer_byte_rate", 5.0)
    ]
    refused = in_virtual_time(lambda: ask("zone"))
    assert (refused.error_code, refused.entries) == (ErrorCode.UNSUPPORTED_VERSION, None)
