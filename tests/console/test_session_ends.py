"""What ends with a session of the console, and what ends the session."""

from __future__ import annotations

import json

import trio
import trio.testing

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import AuthenticationRefused
from pykbroker.console.application import ConsoleApplication
from pykbroker.console.endpoint import Arguments, Asking, Endpoint
from pykbroker.console.settings import ConsoleSettings
from pykbroker.server.runtime.threads import OnTheLoop

from .test_event_stream import Browser

SETTINGS = ConsoleSettings("SASL_PLAINTEXT", ("127.0.0.1", 1), ("127.0.0.1", 1), {})


async def slow(asking: Asking, given: Arguments) -> None:
    await trio.sleep_forever()


async def refused(asking: Asking, given: Arguments) -> None:
    raise AuthenticationRefused("another password")


ENDPOINTS = (Endpoint("GET", "/slow", f"{__name__}:slow"), Endpoint("GET", "/refused", f"{__name__}:refused"))


async def with_session(path: str, *, ends_meanwhile: bool) -> tuple[int, str, int]:
    """Ask for a path with a session; returns the status, the error, and how many sessions are left."""
    application = ConsoleApplication(SETTINGS, OnTheLoop(), ENDPOINTS)
    token = await application.sessions.open("alice", _cluster(), _cluster)
    browser = Browser(application, path, cookie=f"pykbroker-console-9480={token}")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(browser.run)
        if ends_meanwhile:
            await trio.testing.wait_all_tasks_blocked()
            await application.sessions.end(token)
        await browser.done.wait()
    return browser.status, json.loads(browser.body)["error"]["name"], len(application.sessions)


def _cluster() -> Cluster:
    return Cluster([("127.0.0.1", 1)])


def test_a_request_in_hand_ends_with_its_session() -> None:
    clock = trio.testing.MockClock(rate=0)
    found = trio.run(lambda: with_session("/api/slow", ends_meanwhile=True), clock=clock)
    assert found == (401, "SASL_AUTHENTICATION_FAILED", 0)


def test_a_user_that_the_broker_refuses_has_no_session_any_more() -> None:
    found = trio.run(lambda: with_session("/api/refused", ends_meanwhile=False))
    assert found == (401, "SASL_AUTHENTICATION_FAILED", 0)
