"""Pages of a cluster whose brokers go, or hang: the others are shown, with the reason in the row, and nothing waits."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from compat_tests.waiting import until
from pykbroker.console.application import ConsoleApplication
from pykbroker.console.settings import ConsoleSettings
from pykbroker.server.runtime.threads import WorkerThreads
from pykbroker.testing import Cluster
from pykbroker.testing.loop_thread import LoopThread
from pykbroker.web.address import WebAddress
from pykbroker.web.server import WebServer
from pykbroker.web.sockets import listen

NODES = 3
PATIENCE_S = 60
Get = Callable[[str], Any]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(NODES) as cluster:
        yield cluster


@pytest.fixture
def get(cluster: Cluster) -> Iterator[Get]:
    """Asks the console of the first broker."""
    host, port = cluster.bootstrap_servers.split(",")[0].rsplit(":", 1)
    address = (host, int(port))
    loop = LoopThread("console")
    loop.start()
    made: list[WebServer] = []

    async def start() -> None:
        application = ConsoleApplication(ConsoleSettings("PLAINTEXT", address, address, {}), WorkerThreads(2))
        loop.nursery.start_soon(application.run)
        made.append(WebServer(listen(WebAddress("127.0.0.1", 0)), lambda nursery: application.asgi))
        await loop.nursery.start(made[0].run)

    def ask(path: str) -> Any:
        with closing(http.client.HTTPConnection(str(made[0].address), timeout=PATIENCE_S)) as connection:
            connection.request("GET", f"/api{path}")
            answer = connection.getresponse()
            body = json.loads(answer.read())
            assert answer.status == 200, body
            return body

    loop.call(start)
    yield ask
    loop.stop()


def test_a_broker_that_hangs_is_an_error_in_the_rows_that_it_leads(cluster: Cluster, get: Get) -> None:
    cluster.create_topic("spread", partitions=NODES, replication_factor=1)
    rows = get("/topics/spread")["partitions"]["rows"]
    assert {row["leader"] for row in rows} == {1, 2, 3}
    assert {row["error"] for row in rows} == {None}
    third = cluster.brokers[2]
    third.pause()
    try:
        rows = get("/topics/spread")["partitions"]["rows"]
        errors = {row["leader"]: row["error"] for row in rows}
        assert errors[1] is errors[2] is None
        assert errors.get(3, errors.get(None)) in ("REQUEST_TIMED_OUT", "LEADER_NOT_AVAILABLE")
        assert [row["end_offset"] for row in rows if row["leader"] in (1, 2)] == [0, 0]
    finally:
        third.resume()


def test_a_broker_that_is_gone_keeps_nothing_from_the_page(cluster: Cluster, get: Get) -> None:
    # A broker that hung may have been fenced, and no new partition is led by it until it is back.
    until(lambda: len(get("/overview")["brokers"]) == NODES, "all brokers to be there")
    cluster.create_topic("left", partitions=NODES, replication_factor=1)
    get("/topics/left")
    cluster.brokers[2].crash()
    try:
        rows = get("/topics/left")["partitions"]["rows"]
        assert sum(row["error"] is None for row in rows) == NODES - 1
        assert get("/overview")["partitions"] >= NODES
    finally:
        cluster.brokers[2].restart()
