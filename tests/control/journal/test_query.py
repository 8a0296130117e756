from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest

from pykbroker.control.journal import decoding
from pykbroker.control.journal.journal import Journal
from pykbroker.control.journal.query import (
    UnknownApi,
    UnknownError,
    Wanted,
    api_key_of,
    error_of,
    forgotten,
    select,
    short_line,
)
from pykbroker.protocol.api_keys import ApiKey, api_name
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from pykbroker.protocol.messages.produce import ProduceResponse
from pykbroker.protocol.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse
from pykbroker.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)

from .entries import PEER, batch, begin, heartbeat, new_journal, record
from .test_decoding import produce


def found(journal: Journal, *wanted: str | None, since: int = 0) -> list[int]:
    return [each.number for each in select([journal], Wanted.of(*wanted), since)]


@pytest.mark.parametrize("key", list(ApiKey), ids=lambda key: key.name)
def test_every_api_is_found_by_kafkas_name_and_by_the_constant(key: ApiKey) -> None:
    assert api_key_of(api_name(key)) == key
    assert api_key_of(api_name(key).lower()) == key
    assert api_key_of(key.name) == key


@pytest.mark.parametrize(
    ("name", "hint"),
    [("Produced", "did you mean Produce?"), ("joingrup", "did you mean JoinGroup?"), ("xyzzy", "such as Produce")],
)
def test_an_unknown_api(name: str, hint: str) -> None:
    with pytest.raises(UnknownApi, match=name) as raised:
        Wanted.of(name)
    assert hint in str(raised.value)


def test_an_unknown_error() -> None:
    assert error_of("not_coordinator") == "NOT_COORDINATOR"
    with pytest.raises(UnknownError, match=r"did you mean NOT_COORDINATOR\?"):
        Wanted.of(None, None, None, "NOT_CORDINATOR")


def test_by_client_and_api_and_position() -> None:
    journal = new_journal()
    for client_id in ("a", "b", None, "a"):
        heartbeat(journal, client_id=client_id)
    record(journal, MetadataRequest(), MetadataResponse(), 9, client_id="a")
    journal.note("__consumer_offsets-0", "group g rebalances", 0)
    assert found(journal) == [1, 2, 3, 4, 5]
    assert found(journal, None, "a") == [1, 4, 5]
    assert found(journal, "Heartbeat", "a") == [1, 4]
    assert found(journal, "Heartbeat", "a", since=1) == [4]
    assert found(journal, None, "[ab]*") == []
    assert found(journal, None, "?") == [1, 2, 4, 5]
    assert found(journal, None, "*") == [1, 2, 3, 4, 5]
    assert found(journal, None, "") == [3]
    assert found(journal, "Fetch") == []


def test_a_topic_is_found_where_it_is_one_and_nowhere_else() -> None:
    journal = new_journal()
    record(journal, produce(("orders", [batch(b"payments")])), None, 9)
    record(journal, produce(("payments", [batch(b"orders")])), None, 9)
    heartbeat(journal, "orders")
    heartbeat(journal, client_id="orders")
    record(journal, DeleteTopicsRequest(topic_names=["orders"]), DeleteTopicsResponse(), 3)
    record(journal, MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), MetadataResponse(), 9)
    of_topic, of_broker = (
        DescribeConfigsRequest(resources=[DescribeConfigsResource(resource_type=kind, resource_name="orders")])
        for kind in (2, 4)
    )
    record(journal, of_topic, DescribeConfigsResponse(), 4)
    record(journal, of_broker, DescribeConfigsResponse(), 4)
    added = AddPartitionsToTxnRequest(v3_and_below_topics=[AddPartitionsToTxnTopic(name="orders", partitions=[0])])
    record(journal, added, AddPartitionsToTxnResponse(), 3)
    assert found(journal, None, None, "orders") == [1, 5, 6, 7, 9]
    assert found(journal, None, None, "ord*") == [1, 5, 6, 7, 9]
    assert found(journal, "Produce", None, "payments") == [2]


def test_by_error() -> None:
    journal = new_journal()
    record(journal, HeartbeatRequest(group_id="g"), HeartbeatResponse(error_code=27), 4)
    heartbeat(journal)
    begin(journal, HeartbeatRequest(group_id="waits"), 4)
    assert found(journal, None, None, None, "REBALANCE_IN_PROGRESS") == [1]
    assert found(journal, None, None, None, "NONE") == [2]
    assert found(journal, None, None, None, "NOT_COORDINATOR") == []


def test_journals_of_a_cluster_are_one() -> None:
    numbers = count(1)
    journals = [new_journal(numbers=numbers, node_id=node) for node in (1, 2)]
    peers = [replace(PEER, node=node) for node in (1, 2)]
    for journal, peer in zip((*journals, *journals), (*peers, *peers), strict=True):
        heartbeat(journal, peer=peer)
    assert [(each.number, each.node) for each in select(journals, Wanted())] == [(1, 1), (2, 2), (3, 1), (4, 2)]


def test_what_is_forgotten_counts_where_it_may_be_meant() -> None:
    journal = new_journal(most_bytes=2_000)
    for _ in range(10):
        heartbeat(journal)
    assert forgotten([journal]) == journal.forgotten > 0
    assert forgotten([journal], since=journal.forgotten - 1) == journal.forgotten
    assert forgotten([journal], since=journal.forgotten) == 0


def test_a_request_in_one_line() -> None:
    journal = new_journal()
    exchange = record(journal, HeartbeatRequest(group_id="g"), HeartbeatResponse(error_code=27), 4)
    exchange.caused_by = 9
    (request,) = select([journal], Wanted())
    line = str(request)
    assert line.startswith("#1 ")
    assert line.endswith("Heartbeat v4 of app answered in 1.0 ms because of #9 REBALANCE_IN_PROGRESS")


def test_one_line_for_people_is_one_whatever_clients_are_called() -> None:
    journal = new_journal()
    heartbeat(journal, client_id="\x1b[31mred\nö")
    journal.note("__consumer_offsets-0", "group \x1b[2Jg rebalances:\r\n", 1)
    first, second = (short_line(each, journal.topic_names) for each in journal.entries())
    assert first.endswith(r"Heartbeat v4 of \x1b[31mred\nö answered in 1.0 ms")
    assert second.endswith(r"__consumer_offsets-0: group \x1b[2Jg rebalances:\r\n because of #1")


def test_no_record_is_read_to_find_a_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = new_journal()
    record(journal, produce(("orders", [batch(b"x")])), ProduceResponse(), 9)
    with monkeypatch.context() as patch:
        patch.setattr(decoding, "iter_records", None)
        (request,) = select([journal], Wanted.of("Produce", None, "orders", "NONE"))
        assert "on orders" in str(request)
    assert request.request["topic_data"][0]["partition_data"][0]["records"][0]["records"][0]["value"] == "x"
