"""Live records of a cluster whose leaders go, and readers that leave."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
import trio

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
Event = tuple[str, Any]


class RunningConsole:
    """A console of the first broker, in a thread of its own."""

    def __init__(self, cluster: Cluster) -> None:
        host, port = cluster.bootstrap_servers.split(",")[0].rsplit(":", 1)
        settings = ConsoleSettings("PLAINTEXT", (host, int(port)), (host, int(port)), {})
        self._loop = LoopThread("console")
        self._loop.start()
        self._made: list[tuple[ConsoleApplication, WebServer]] = []

        async def start() -> None:
            application = ConsoleApplication(settings, WorkerThreads(2))
            self._loop.nursery.start_soon(application.run)
            server = WebServer(listen(WebAddress("127.0.0.1", 0)), lambda nursery: application.asgi)
            await self._loop.nursery.start(server.run)
            self._made.append((application, server))

        self._loop.call(start)

    @contextmanager
    def events(self, path: str) -> Iterator[Iterator[Event]]:
        """The events of a stream; the reader leaves at the end."""
        address = str(self._made[0][1].address)
        with closing(http.client.HTTPConnection(address, timeout=PATIENCE_S)) as connection:
            connection.request("GET", f"/api/topics/{path}")
            answer = connection.getresponse()
            assert answer.status == 200
            yield _events(answer)
            answer.close()

    def until_no_stream_is_open(self) -> None:
        async def wait() -> None:
            with trio.fail_after(PATIENCE_S):
                while self._made[0][0].open_streams:  # noqa: ASYNC110 - of another thread's console
                    await trio.sleep(0.01)

        self._loop.call(wait)

    def stop(self) -> None:
        self._loop.stop()


def _events(answer: http.client.HTTPResponse) -> Iterator[Event]:
    event = ""
    for line in answer:
        text = line.decode().rstrip("\n")
        if text.startswith("event: "):
            event = text.removeprefix("event: ")
        elif text.startswith("data: "):
            yield event, json.loads(text.removeprefix("data: "))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(NODES) as cluster:
        yield cluster


@pytest.fixture
def console(cluster: Cluster) -> Iterator[RunningConsole]:
    console = RunningConsole(cluster)
    yield console
    console.stop()


def next_values(events: Iterator[Event]) -> list[str]:
    return [row["value"]["text"] for row in next(body for event, body in events if event == "records")["rows"]]


def test_a_tail_goes_on_where_its_leaders_move(cluster: Cluster, console: RunningConsole) -> None:
    topic = cluster.create_topic("moving", partitions=NODES)
    for partition in range(NODES):
        topic.produce(b"first", partition=partition)  # every leader has taken up its partition
    with console.events("moving/records/tail") as events:
        assert next(events) == ("begin", {"partitions": NODES, "followed": NODES})
        topic.produce(b"before", partition=0)
        assert next_values(events) == ["before"]
        cluster.brokers[2].crash()
        try:
            for partition in range(NODES):
                topic.produce(b"in %d" % partition, partition=partition)
            found: list[str] = []
            while len(found) < NODES:
                found += next_values(events)
        finally:
            cluster.brokers[2].restart()
    assert sorted(found) == ["in 0", "in 1", "in 2"]


def test_a_reader_that_leaves_ends_the_tail(cluster: Cluster, console: RunningConsole) -> None:
    cluster.create_topic("abandoned", partitions=1)
    with console.events("abandoned/records/tail") as events:
        assert next(events)[0] == "begin"
    console.until_no_stream_is_open()


def test_a_reader_that_leaves_ends_the_search(cluster: Cluster, console: RunningConsole) -> None:
    topic = cluster.create_topic("abandoned.search", partitions=1)
    topic.produce_all((b"k", b"x" * 900) for _ in range(5000))
    with console.events("abandoned.search/records/search?key=none") as events:
        assert next(events)[0] == "progress"
    console.until_no_stream_is_open()
