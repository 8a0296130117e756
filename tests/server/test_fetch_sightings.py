"""Sightings of fetches: what a client's newest Fetch is about, in sessions too, and within bounds."""

from __future__ import annotations

from typing import Any

import pytest

from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from pykbroker.server.network.handlers import ConnectionState
from pykbroker.server.replicas import fetch_sightings
from pykbroker.server.replicas.fetch_sightings import FetchingClient, FetchSightings

VERSION = 12  # the last one that names topics


def fetch(*offsets: tuple[int, int], epoch: int = 1, forgotten: list[int] | None = None) -> FetchRequest:
    """A Fetch of partitions of t. epoch: of the session; 0 begins one, -1 is none."""
    partitions = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1) for index, offset in offsets
    ]
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic="t", partitions=partitions)])
    request.session_epoch = epoch
    if forgotten:
        request.forgotten_topics_data = [ForgottenTopic(topic="t", partitions=forgotten)]
    return request


class Node:
    def __init__(self) -> None:
        self.sightings = FetchSightings()
        self.now_ms = 0

    def fetches(self, connection: ConnectionState, request: FetchRequest) -> FetchingClient:
        self.now_ms += 1
        return self.sightings.begin(connection, request, VERSION, lambda _: None, self.now_ms)


def connected(**options: Any) -> ConnectionState:
    return ConnectionState("PLAINTEXT", "127.0.0.1", **options)


def test_a_session_names_what_has_changed() -> None:
    node, connection = Node(), connected()
    client = node.fetches(connection, fetch((0, 5), (1, 7), epoch=0))
    node.fetches(connection, fetch((1, 8)))
    assert {place: each.offset for place, each in client.current.items()} == {("t", 0): 5, ("t", 1): 8}
    assert client.waiting == 2
    client.end()
    client.end()
    node.fetches(connection, fetch(forgotten=[0]))
    assert list(client.current) == [("t", 1)]
    fetched, last_ms = client.fetched(("t", 0)) or (None, 0)
    assert fetched is not None
    assert (fetched.offset, last_ms) == (5, 2)
    node.fetches(connection, fetch((2, 1), epoch=-1))
    assert list(client.current) == [("t", 2)]
    assert client.fetched(("t", 1)) is not None
    assert client.fetched(("t", 9)) is None


def test_each_connection_is_a_client_and_the_newest_comes_first() -> None:
    node, one, other = Node(), connected(), connected()
    first = node.fetches(one, fetch((0, 0)))
    second = node.fetches(other, fetch((0, 0)))
    assert list(node.sightings) == [second, first]
    assert node.fetches(one, fetch((0, 1))) is first
    assert list(node.sightings) == [first, second]


@pytest.mark.parametrize(
    ("bound", "most"), [("MOST_CLIENTS", 3), ("MOST_PARTITIONS", 6), ("_MOST_OF_ONE", 1)], ids=["clients", "all", "one"]
)
def test_what_is_beyond_a_bound_is_forgotten(monkeypatch: pytest.MonkeyPatch, bound: str, most: int) -> None:
    monkeypatch.setattr(fetch_sightings, bound, most)
    node = Node()
    connections = [connected() for _ in range(10)]
    node.fetches(connections[0], fetch((0, 0)))
    assert not node.sightings.has_forgotten
    for _ in range(2):
        for connection in connections:
            node.fetches(connection, fetch((0, 0), (1, 0)))
    kept = list(node.sightings)
    assert len(kept) == (10 if bound == "_MOST_OF_ONE" else 3)
    assert {each.size for each in kept} == {1 if bound == "_MOST_OF_ONE" else 2}
    assert node.sightings.has_forgotten
