"""Who asks again and again where to go is told of once, unless he was seen to come."""

from __future__ import annotations

import pytest

from pykbroker.protocol.framing import RequestHeader
from pykbroker.server.network.handlers import ConnectionState
from pykbroker.server.network.seeking_clients import (
    ENOUGH_MS,
    ENOUGH_QUESTIONS,
    FORGOTTEN_MS,
    QUESTIONS,
    SeekingClients,
)
from pykbroker.server.network.transport import Address
from pykbroker.server.node.handlers import TELEMETRY_APIS

WHERE = Address("broker", 9092)
HOST = "10.0.0.9"


class HandClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.at_ms = 1_000_000

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic_ms(self) -> int:
        return self.at_ms

    async def sleep_ms(self, delay_ms: int) -> None:
        raise AssertionError("nobody waits")


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


def ask(seeking: SeekingClients, clock: HandClock, times: int, every_ms: int, client_id: str | None = "app") -> None:
    for _ in range(times):
        seeking.was_told(HOST, client_id, "PLAINTEXT", WHERE)
        clock.at_ms += every_ms


def test_a_client_that_asks_for_long_is_told_of_once(clock: HandClock, caplog: pytest.LogCaptureFixture) -> None:
    ask(SeekingClients(clock), clock, 100, 1000)
    [line] = caplog.records
    text = line.getMessage()
    assert "client app of 10.0.0.9 has asked 11 times in 10 s" in text
    assert "told broker:9092 (advertised.listeners, PLAINTEXT)" in text


def test_a_client_that_was_seen_to_come_is_not(clock: HandClock, caplog: pytest.LogCaptureFixture) -> None:
    seeking = SeekingClients(clock)
    ask(seeking, clock, 2, 1000)
    seeking.has_come(HOST, "app")
    ask(seeking, clock, 100, 1000)
    assert caplog.records == []
    ask(seeking, clock, 100, 1000, client_id=None)
    assert len(caplog.records) == 1


@pytest.mark.parametrize(("times", "every_ms"), [(100, FORGOTTEN_MS + 1), (100, 50), (ENOUGH_QUESTIONS - 1, ENOUGH_MS)])
def test_few_or_rare_questions_are_nothing(
    clock: HandClock, caplog: pytest.LogCaptureFixture, times: int, every_ms: int
) -> None:
    ask(SeekingClients(clock), clock, times, every_ms)
    assert caplog.records == []


def test_the_record_is_bounded(clock: HandClock) -> None:
    seeking = SeekingClients(clock, most=10)
    for number in range(100):
        seeking.was_told(HOST, f"{number}" * 10_000, "PLAINTEXT", WHERE)
        seeking.has_come(f"10.0.0.{number}", None)
    assert len(seeking) == 10


def test_the_first_work_of_a_connection_is_noted(clock: HandClock, caplog: pytest.LogCaptureFixture) -> None:
    seeking = SeekingClients(clock)
    state = ConnectionState("PLAINTEXT", HOST, seeking=seeking, request=RequestHeader(0, 9, 1, "app"))
    state.begin_work()
    assert state.has_worked
    ask(seeking, clock, 100, 1000)
    assert caplog.records == []


def test_what_a_client_measures_of_itself_is_no_sign_that_it_came() -> None:
    """Telemetry goes to any broker that the client knows, that of the bootstrap servers included."""
    assert TELEMETRY_APIS <= QUESTIONS
