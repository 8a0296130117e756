"""Live events of the console: a browser that leaves ends their work at once, and their number is bounded."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import trio
import trio.testing

from pykbroker.client.errors import KafkaError
from pykbroker.console.application import MOST_STREAMS, ConsoleApplication
from pykbroker.console.endpoint import Arguments, Asking, Endpoint, Events
from pykbroker.console.settings import ConsoleSettings
from pykbroker.protocol.errors import ErrorCode
from pykbroker.server.runtime.threads import OnTheLoop

SETTINGS = ConsoleSettings("PLAINTEXT", ("127.0.0.1", 1), ("127.0.0.1", 1), {})

ended: list[str] = []


async def forever(asking: Asking, given: Arguments, events: Events) -> None:
    try:
        await events.send("records", [given.text("name")])
        await trio.sleep_forever()
    finally:
        ended.append(given.text("name"))


async def failing(asking: Asking, given: Arguments, events: Events) -> None:
    raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)


async def slow(asking: Asking, given: Arguments) -> None:
    try:
        await trio.sleep_forever()
    finally:
        ended.append("slow")


ENDPOINTS = tuple(
    Endpoint("GET", path, f"{__name__}:{work.__name__}", is_stream=is_stream)
    for path, work, is_stream in (("/forever", forever, True), ("/failing", failing, True), ("/slow", slow, False))
)


class Browser:
    """One request for a path; it stays until `leave`."""

    def __init__(self, application: ConsoleApplication, path: str, query: str = "", cookie: str = "") -> None:
        self._application = application
        self._scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(b"host", b"127.0.0.1:9480"), (b"cookie", cookie.encode())],
            "server": ("127.0.0.1", 9480),
            "client": ("127.0.0.1", 5),
        }
        self._left = trio.Event()
        self._has_body = True
        self.status = 0
        self.body = b""
        self.done = trio.Event()

    def leave(self) -> None:
        self._left.set()

    async def run(self) -> None:
        await self._application.asgi(self._scope, self._receive, self._send)
        self.done.set()

    async def _receive(self) -> dict[str, Any]:
        if self._has_body:
            self._has_body = False
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        await trio.lowlevel.checkpoint()
        self.status = message.get("status", self.status)
        self.body += message.get("body", b"")

    def events(self) -> list[tuple[str, Any]]:
        found = []
        for part in self.body.decode().split("\n\n"):
            lines = dict(line.split(": ", 1) for line in part.splitlines() if not line.startswith(":"))
            if lines:
                found.append((lines["event"], json.loads(lines["data"])))
        return found


def with_console(work: Callable[[ConsoleApplication, trio.Nursery], Awaitable[None]]) -> None:
    async def run() -> None:
        ended.clear()
        application = ConsoleApplication(SETTINGS, OnTheLoop(), ENDPOINTS)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(application.run)
            await work(application, nursery)
            nursery.cancel_scope.cancel()

    trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))


def test_a_browser_that_leaves_ends_its_stream_at_once() -> None:
    async def work(application: ConsoleApplication, nursery: trio.Nursery) -> None:
        browser = Browser(application, "/api/forever", "name=a")
        nursery.start_soon(browser.run)
        await trio.testing.wait_all_tasks_blocked()
        assert browser.events() == [("records", ["a"])]
        assert application.open_streams == 1
        before = trio.current_time()
        browser.leave()
        await browser.done.wait()
        assert trio.current_time() == before
        assert (ended, application.open_streams) == (["a"], 0)

    with_console(work)


def test_a_quiet_stream_shows_that_it_lives() -> None:
    async def work(application: ConsoleApplication, nursery: trio.Nursery) -> None:
        browser = Browser(application, "/api/forever", "name=a")
        nursery.start_soon(browser.run)
        await trio.sleep(60)
        assert browser.body.count(b": \n\n") > 2

    with_console(work)


def test_a_stream_tells_what_the_broker_refuses_and_ends() -> None:
    async def work(application: ConsoleApplication, nursery: trio.Nursery) -> None:
        browser = Browser(application, "/api/failing")
        nursery.start_soon(browser.run)
        await browser.done.wait()
        ((event, value),) = browser.events()
        assert event == "failure"
        assert value["error"]["name"] == "OFFSET_OUT_OF_RANGE"
        assert application.open_streams == 0

    with_console(work)


def test_the_number_of_streams_is_bounded() -> None:
    async def work(application: ConsoleApplication, nursery: trio.Nursery) -> None:
        browsers = [Browser(application, "/api/forever", f"name={number}") for number in range(MOST_STREAMS)]
        for each in browsers:
            nursery.start_soon(each.run)
        await trio.testing.wait_all_tasks_blocked()
        late = Browser(application, "/api/forever", "name=late")
        nursery.start_soon(late.run)
        await late.done.wait()
        assert late.status == 429
        browsers[0].leave()
        await browsers[0].done.wait()
        later = Browser(application, "/api/forever", "name=later")
        nursery.start_soon(later.run)
        await trio.testing.wait_all_tasks_blocked()
        assert later.events() == [("records", ["later"])]

    with_console(work)


def test_work_that_takes_too_long_is_given_up_and_told() -> None:
    async def work(application: ConsoleApplication, nursery: trio.Nursery) -> None:
        browser = Browser(application, "/api/slow")
        nursery.start_soon(browser.run)
        await browser.done.wait()
        assert browser.status == 504
        assert json.loads(browser.body)["error"]["name"] == "REQUEST_TIMED_OUT"
        assert ended == ["slow"]

    with_console(work)


def test_work_ends_when_its_browser_leaves() -> None:
    async def work(application: ConsoleApplication, nursery: trio.Nursery) -> None:
        browser = Browser(application, "/api/slow")
        nursery.start_soon(browser.run)
        await trio.testing.wait_all_tasks_blocked()
        before = trio.current_time()
        browser.leave()
        await browser.done.wait()
        assert trio.current_time() == before
        assert ended == ["slow"]

    with_console(work)
