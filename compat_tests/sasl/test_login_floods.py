"""Log-ins that fail, thousands of them: each is refused after its delay, and whoever is honest is served beside them.

Forty clients try without a pause; where a refusal takes the 100 ms of `connection.failed.authentication.delay.ms`, that
is up to 24,000 a minute.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from compat_tests.brokers import Pykbroker
from compat_tests.conftest import assert_all_went_well
from compat_tests.latency_probe import LatencyProbe
from compat_tests.topics import create_topic
from compat_tests.wire import Closed, Wire
from pykbroker.security.sasl.plain import PlainClient
from pykbroker.security.sasl.scram_client import ScramPassword
from pykbroker.security.sasl.scram_credential import MECHANISMS

from .raw_log_ins import log_in, scram_exchange, send_token, shake_hands
from .secured import PASSWORDS, Secured, add_scram_users, secure

CLIENTS = 40
ATTEMPTS = 2500
"""Of each kind."""
MOST_BYTES = 32 << 20
"""Of memory that a flood may leave behind: four kinds of it, and what the first of everything takes."""
SCRAM = MECHANISMS["SCRAM-SHA-256"]
INVALID = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
WRONG_PASSWORD = ScramPassword("alice", "wrong")

Attempt = Callable[[Secured], str]


def with_plain(secured: Secured) -> str:
    return outcome(secured, "PLAIN", PlainClient("alice", secrets.token_hex(4)).step(b""))


def with_an_unknown_scram_user(secured: Secured) -> str:
    unknown = ScramPassword(f"user-{secrets.token_hex(4)}", "password")
    return outcome(secured, SCRAM.name, scram_exchange(SCRAM, unknown).step(b""))


def with_a_wrong_scram_password(secured: Secured) -> str:
    exchange = scram_exchange(SCRAM, WRONG_PASSWORD)
    with Wire(secured.sasl) as wire:
        shake_hands(wire, SCRAM.name)
        first = send_token(wire, exchange.step(b""))
        return refusal(wire, exchange.step(first.auth_bytes))


def with_garbage(secured: Secured) -> str:
    return outcome(secured, SCRAM.name, secrets.token_bytes(200))


ATTEMPTED: dict[str, tuple[Attempt, str]] = {
    "PLAIN, wrong passwords": (with_plain, "Authentication failed: Invalid username or password"),
    "SCRAM, unknown users": (with_an_unknown_scram_user, INVALID),
    "SCRAM, a wrong password": (with_a_wrong_scram_password, INVALID),
    "SCRAM, garbage": (with_garbage, INVALID),
}


def outcome(secured: Secured, mechanism: str, token: bytes) -> str:
    """The refusal of the first message."""
    with Wire(secured.sasl) as wire:
        shake_hands(wire, mechanism)
        return refusal(wire, token)


def refusal(wire: Wire, token: bytes) -> str:
    """The text of the refusal, behind which the connection has to be closed."""
    answer = send_token(wire, token)
    with pytest.raises(Closed):
        shake_hands(wire, SCRAM.name)
    return answer.error_message or ""


def test_a_flood_of_failed_log_ins_ends_nobody_else(tmp_path: Path) -> None:
    broker = Pykbroker(tmp_path / "broker")
    secured = secure(broker)
    broker.start()
    try:
        add_scram_users(broker)
        create_topic(broker, "honest", 1)
        memory = psutil.Process(broker.pid)
        with LatencyProbe(broker, "honest") as probe, ThreadPoolExecutor(CLIENTS) as clients:
            begun = time.monotonic()
            for attempt, _ in ATTEMPTED.values():  # what is made at the first use is no part of what a flood leaves
                attempt(secured)
            before = memory.memory_info().rss
            for name, (attempt, expected) in ATTEMPTED.items():
                told = Counter(clients.map(attempt, [secured] * ATTEMPTS))
                assert told == {expected: ATTEMPTS}, name
            ended = time.monotonic()
            assert probe.errors(begun, ended) == []
            assert probe.latencies_ms(begun, ended), "the honest producer was served all the time"
        assert memory.memory_info().rss - before < MOST_BYTES
        log_in(secured.sasl, SCRAM.name, scram_exchange(SCRAM, ScramPassword("alice", PASSWORDS["alice"])))
    finally:
        broker.close()
    assert_all_went_well(broker)
    assert not any(password in broker.log_text() for password in PASSWORDS.values())
