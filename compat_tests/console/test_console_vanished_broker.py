"""The console's cluster and groups when a broker of three is gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.clusters.cluster import Cluster
from compat_tests.clusters.layout import PYKBROKER

from .commits import commit
from .console_broker import ask, console_address

PATIENCE_S = 60
GROUPS = [f"group.{number}" for number in range(9)]
PROPERTIES = {
    "console.listener": "127.0.0.1:0",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1000",
    "offsets.topic.num.partitions": "9",
}


def until(look: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not (found := look()):
        assert time.monotonic() < deadline, f"no {what}"
        time.sleep(0.2)
    return found


def test_what_the_other_brokers_know_is_shown(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster", [PYKBROKER] * 3, properties=PROPERTIES) as cluster:
        cluster.start()
        api = f"{console_address(cluster.log_text(1))}/api"
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("orders", 3, 3)])["orders"].result(timeout=60)
        for group in GROUPS:
            commit(cluster.bootstrap, group, "orders", {0: 0})
        until(lambda: len(ask(f"{api}/groups").json["groups"]["rows"]) == len(GROUPS), "groups of all coordinators")
        cluster.kill(3)
        answer = ask(f"{api}/groups")
        assert answer.status == 200, answer.body
        assert answer.json["groups"]["total"] + 9 * len(answer.json["errors"]) >= len(GROUPS)
        states = until(lambda: _fenced(api), "fenced broker")
        assert states == {1: False, 2: False, 3: True}
        troubled = ask(f"{api}/cluster/partitions").json
        assert troubled["under_replicated"] >= 3
        assert {tuple(row["replicas"]) != tuple(row["isr"]) for row in troubled["partitions"]["rows"]} == {True}
        quorum = ask(f"{api}/cluster").json["quorum"]
        assert {row["id"]: row["role"] for row in quorum["nodes"]}.keys() == {1, 2, 3}
        until(lambda: ask(f"{api}/groups").json["groups"]["total"] == len(GROUPS), "groups at their new coordinators")


def _fenced(api: str) -> dict[int, bool] | None:
    states = {row["id"]: row["is_fenced"] for row in ask(f"{api}/cluster").json["brokers"]}
    return states if states.get(3) else None
