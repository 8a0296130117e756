"""Sessions of the console and attempts to log in: what bounds their number and their life."""

from __future__ import annotations

from typing import cast

import trio
import trio.testing

from pykbroker.client.cluster import Cluster
from pykbroker.client.connection import Connection
from pykbroker.client.errors import AuthenticationRefused
from pykbroker.console.attempts import MOST_OF_ADDRESS, MOST_OF_ALL, MOST_OF_ONE, WINDOW_S, Attempts
from pykbroker.console.sessions import ASK_EVERY_S, IDLE_S, LONGEST_S, MOST_SESSIONS, Session, Sessions


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def new_cluster() -> Cluster:
    return Cluster([("127.0.0.1", 1)])


async def opened(sessions: Sessions, user: str) -> str:
    return await sessions.open(user, new_cluster(), new_cluster)


def user_of(sessions: Sessions, token: str) -> str | None:
    session = sessions.find(token)
    return None if session is None else session.user


def test_a_session_is_found_by_its_token_alone() -> None:
    async def run() -> None:
        sessions = Sessions(Clock())
        token = await opened(sessions, "alice")
        assert user_of(sessions, token) == "alice"
        assert sessions.find("") is None
        assert sessions.find(token[:-1]) is None
        await sessions.end(token)
        assert sessions.find(token) is None
        assert len(sessions) == 0

    trio.run(run)


def test_a_session_without_requests_expires() -> None:
    async def run() -> None:
        clock = Clock()
        sessions = Sessions(clock)
        token = await opened(sessions, "alice")
        clock.now_s += IDLE_S - 1
        assert user_of(sessions, token) == "alice"
        clock.now_s += IDLE_S - 1
        assert user_of(sessions, token) == "alice"
        clock.now_s += IDLE_S
        assert sessions.find(token) is None

    trio.run(run)


def test_a_session_in_use_ends_after_the_longest_time() -> None:
    async def run() -> None:
        clock = Clock()
        sessions = Sessions(clock)
        token = await opened(sessions, "alice")
        for _ in range(int(LONGEST_S / (IDLE_S / 2)) - 1):
            clock.now_s += IDLE_S / 2
            assert user_of(sessions, token) == "alice"
        clock.now_s += IDLE_S / 2
        assert sessions.find(token) is None

    trio.run(run)


def test_where_there_is_no_room_the_session_goes_that_is_unused_for_longest() -> None:
    async def run() -> None:
        clock = Clock()
        sessions = Sessions(clock)
        tokens = []
        for number in range(MOST_SESSIONS):
            clock.now_s += 1
            tokens.append(await opened(sessions, str(number)))
        assert user_of(sessions, tokens[0]) == "0"
        clock.now_s += 1
        await opened(sessions, "one more")
        assert len(sessions) == MOST_SESSIONS
        assert user_of(sessions, tokens[0]) == "0"
        assert sessions.find(tokens[1]) is None

    trio.run(run)


def test_what_is_live_hears_of_a_session_that_ends() -> None:
    async def run() -> None:
        sessions = Sessions()
        session: list[Session] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sessions.run)
            found = sessions.find(await opened(sessions, "alice"))
            assert found is not None
            session.append(found)
            await trio.testing.wait_all_tasks_blocked()
            assert not found.over.is_set()
            nursery.cancel_scope.cancel()
        assert session[0].over.is_set()

    trio.run(run)


def test_a_session_that_expires_is_closed_without_a_request() -> None:
    async def run() -> None:
        sessions = Sessions()
        found = sessions.find(await opened(sessions, "alice"))
        assert found is not None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sessions.run)
            await found.over.wait()
            assert len(sessions) == 0
            nursery.cancel_scope.cancel()

    trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))


def test_a_session_ends_when_the_broker_refuses_its_user_and_not_when_it_is_silent() -> None:
    class Refusing(Cluster):
        async def any_connection(self) -> Connection:
            raise AuthenticationRefused("another password")

    async def run() -> None:
        clock = Clock()
        sessions = Sessions(clock)
        silent = await opened(sessions, "bob")
        refused = await sessions.open("alice", new_cluster(), lambda: Refusing([("127.0.0.1", 1)]))
        await sessions.end_refused()
        assert user_of(sessions, refused) == "alice"
        clock.now_s += ASK_EVERY_S
        await sessions.end_refused()
        assert sessions.find(refused) is None
        assert user_of(sessions, silent) == "bob"

    trio.run(run)


def test_a_connection_that_is_opened_while_a_cluster_ends_does_no_harm() -> None:
    class Closing:
        async def aclose(self) -> None:
            cluster._connections["another", 1] = cast("Connection", self)

    cluster = new_cluster()
    cluster._connections["one", 1] = cast("Connection", Closing())
    trio.run(cluster.__aexit__, None, None, None)


def test_five_failures_close_a_name_for_a_minute_and_no_other_name() -> None:
    clock = Clock()
    attempts = Attempts(clock)
    for _ in range(MOST_OF_ONE):
        assert attempts.wait_s("alice", "here") == 0
        attempts.has_failed("alice", "here")
    assert attempts.wait_s("alice", "there") == WINDOW_S
    assert attempts.wait_s("bob", "here") == 0
    clock.now_s += WINDOW_S
    assert attempts.wait_s("alice", "here") == 0


def test_a_success_forgets_the_failures_before_it() -> None:
    attempts = Attempts(Clock())
    for _ in range(MOST_OF_ONE):
        attempts.has_failed("alice", "here")
    attempts.has_succeeded("alice")
    assert attempts.wait_s("alice", "here") == 0


def test_guesses_at_many_names_close_their_address_and_no_other_one() -> None:
    clock = Clock()
    attempts = Attempts(clock)
    for number in range(MOST_OF_ADDRESS):
        assert attempts.wait_s(f"user {number}", "here") == 0
        attempts.has_failed(f"user {number}", "here")
    assert attempts.wait_s("another", "here") == WINDOW_S
    assert attempts.wait_s("another", "there") == 0
    clock.now_s += WINDOW_S
    assert attempts.wait_s("another", "here") == 0


def test_guesses_from_many_addresses_are_bounded_too() -> None:
    clock = Clock()
    attempts = Attempts(clock)
    for number in range(MOST_OF_ALL):
        assert attempts.wait_s(f"user {number}", f"address {number}") == 0
        attempts.has_failed(f"user {number}", f"address {number}")
    assert attempts.wait_s("another", "there") == WINDOW_S
    clock.now_s += WINDOW_S
    assert attempts.wait_s("another", "there") == 0
