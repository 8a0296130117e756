"""A secured cluster becomes one of the other program and back, node by node: whoever was let in is, and nobody else.

Nodes of both programs log in at each other over TLS meanwhile. Nobody is removed: with a user who came and went since
the last snapshot, Apache Kafka may lose all others (`test_users_taken_over`).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from compat_tests.quota_requests import set_quotas
from compat_tests.steady_producers import ConfluentProducer, assert_stored, finished
from compat_tests.tokens.asking import creation, expiry, renewal
from compat_tests.tokens.token_broker import HOUR_MS, Token
from compat_tests.waiting import until
from compat_tests.wire import Wire

from .cluster import Cluster
from .conftest import CLUSTER_PROPERTIES, assert_all_went_well, watch_logs
from .layout import KAFKA, PYKBROKER
from .secured import READ, WRITE, SecuredNodes, allow, set_user
from .topics import create_replicated_topic

pytestmark = [pytest.mark.java, pytest.mark.flaky(reruns=0)]

TOPIC, PARTITIONS = "guarded", 3
AT_EACH_STEP = 30


class Estate:
    """Who is let in, and by what; it grows under each program."""

    def __init__(self, cluster: Cluster, nodes: SecuredNodes) -> None:
        self._cluster, self._nodes = cluster, nodes
        self._may: set[str] = set()
        self._users: set[str] = set()
        self.tokens: list[Token] = []

    def add(self, user: str, *, may: bool) -> None:
        set_user(self._cluster, user)
        self._users.add(user)
        if may:
            allow(self._cluster, user, TOPIC, READ, WRITE)
            self._may.add(user)
        set_quotas(self._cluster.brokers()[0], {"user": user}, {"producer_byte_rate": 1e8, "request_percentage": 900})

    def add_token(self, user: str) -> None:
        with self._logged_in(user) as wire:
            created: Any = wire.call(creation(), 3)
        self.tokens.append(Token.of(created))

    def renew(self, token: Token, user: str) -> None:
        with self._logged_in(user) as wire:
            renewed: Any = wire.call(renewal(token.hmac, 2 * HOUR_MS), 2)
        assert not renewed.error_code, renewed

    def expire(self, token: Token, user: str) -> None:
        with self._logged_in(user) as wire:
            expired: Any = wire.call(expiry(token.hmac), 2)
        assert not expired.error_code, expired
        self.tokens.remove(token)

    def _logged_in(self, user: str) -> AbstractContextManager[Wire]:
        return self._nodes.logged_in(self._cluster.brokers()[0], user)

    def assert_guarded(self) -> None:
        """Every node lets the same users and tokens in, and tells the same of them."""
        for node in self._cluster.brokers():
            for user in self._users:
                may = user in self._may
                until(lambda: self._nodes.sees(node, user, TOPIC) == may, f"{node.node_id}: {user}: {may}")  # noqa: B023
                assert not self._nodes.sees(node, user, TOPIC, secret="wrong")
            for token in self.tokens:
                until(lambda: self._nodes.sees_by_token(node, token, TOPIC), f"{node.node_id}: the token opens")  # noqa: B023
        first, *others = self._cluster.brokers()
        for other in others:
            until(lambda: self._nodes.known(other) == self._nodes.known(first), f"{other.node_id} knows the same")  # noqa: B023


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kinds", [(KAFKA, PYKBROKER), (PYKBROKER, KAFKA)], ids=["kafka-first", "ours-first"])
def test_users_rights_quotas_and_tokens_stay_through_a_migration(
    tmp_path: Path, kinds: tuple[str, str], request: pytest.FixtureRequest
) -> None:
    nodes = SecuredNodes(tmp_path, 3)
    before, after = kinds
    with Cluster(tmp_path, nodes.specs(before), properties=CLUSTER_PROPERTIES, places=nodes.places) as cluster:
        watch_logs(request.node, cluster)
        cluster.start()
        change_to_and_fro(cluster, nodes, before, after)
    assert_all_went_well(cluster)


def change_to_and_fro(cluster: Cluster, nodes: SecuredNodes, before: str, after: str) -> None:
    create_replicated_topic(cluster, TOPIC, PARTITIONS)
    estate = Estate(cluster, nodes)
    estate.add("alice", may=True)
    estate.add("bob", may=False)
    estate.add("carol", may=True)
    estate.add_token("alice")
    estate.assert_guarded()
    producer = ConfluentProducer(nodes, TOPIC, PARTITIONS, pause_s=0.01, in_flight=1, settings=nodes.client("alice"))
    with finished(producer):
        change_all(cluster, after, producer, estate, nodes)
        estate.add("dora", may=True)
        estate.add_token("alice")
        estate.renew(estate.tokens[0], "alice")
        estate.assert_guarded()
        change_all(cluster, before, producer, estate, nodes)
        estate.expire(estate.tokens[0], "alice")
        estate.assert_guarded()
    assert_stored(cluster, TOPIC, PARTITIONS, producer.acknowledged, "alice's producer")


def change_all(cluster: Cluster, kind: str, producer: ConfluentProducer, estate: Estate, nodes: SecuredNodes) -> None:
    """Node by node, each when all replicas are in sync again and the producer has gone on."""
    before = nodes.known(cluster.brokers()[0])
    for node_id in cluster.nodes:
        cluster.stop(node_id)
        cluster.change_kind(node_id, kind)
        cluster.start(node_id)
        for partition in range(PARTITIONS):
            cluster.wait_until_in_sync(TOPIC, partition)
        enough = len(producer.acknowledged) + AT_EACH_STEP
        until(lambda: len(producer.acknowledged) >= enough, "the producer goes on")  # noqa: B023
        estate.assert_guarded()
    assert nodes.known(cluster.brokers()[0]) == before
