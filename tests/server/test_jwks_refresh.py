"""Keys of tokens are fetched before a node serves, in time, and when one is missing; a failure keeps the old ones."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
import trio.testing

from pykbroker.client.https import FetchFailed
from pykbroker.security.sasl.oauthbearer.validator_settings import JwksAddress
from pykbroker.security.tls.settings import TlsSettings
from pykbroker.server.network.jwks_refresh import MISSING_INTERVAL_S, JwksRefresh, read_document
from pykbroker.server.runtime.startup_error import StartupError
from pykbroker.server.runtime.threads import OnTheLoop
from tests.security.sasl.tokens import NOW_MS, jwk, jwks, other_rsa_key, rsa_key

NAME = "sasl.oauthbearer.jwks.endpoint.url"
FIRST, SECOND = jwks(jwk(rsa_key(), "first")), jwks(jwk(other_rsa_key(), "second"))


def address(url: str = "https://issuer/keys", refresh_ms: int = 60_000, backoff_max_ms: int = 0) -> JwksAddress:
    return JwksAddress(NAME, url, refresh_ms, 100, backoff_max_ms, TlsSettings.of({}))


class Issuer:
    """What is fetched; each answer may be a failure."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self.answers = list(answers)
        self.fetches: list[float] = []

    def __call__(self, _: JwksAddress) -> bytes:
        self.fetches.append(trio.current_time())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def has(refresh: JwksRefresh, kid: str) -> bool:
    return refresh.keys.find({"alg": "RS256", "kid": kid}, NOW_MS) is not None


def in_virtual_time(work: Callable[[trio.Nursery], Awaitable[None]]) -> None:
    async def run() -> None:
        async with trio.open_nursery() as nursery:
            await work(nursery)
            nursery.cancel_scope.cancel()

    trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))


def test_keys_are_there_before_the_node_serves_and_are_fetched_again() -> None:
    issuer = Issuer(FIRST, SECOND)
    refresh = JwksRefresh(address(), OnTheLoop(), issuer)

    async def work(nursery: trio.Nursery) -> None:
        await nursery.start(refresh.run)
        assert has(refresh, "first")
        started = trio.current_time()
        await trio.sleep(61)
        assert has(refresh, "second")
        await trio.sleep(60)
        assert [round(each - started) for each in issuer.fetches[1:]] == [60, 120]

    in_virtual_time(work)


def test_a_key_that_is_missing_is_sought_soon() -> None:
    issuer = Issuer(FIRST, SECOND)
    refresh = JwksRefresh(address(), OnTheLoop(), issuer)

    async def work(nursery: trio.Nursery) -> None:
        await nursery.start(refresh.run)
        await trio.sleep(20)
        assert not has(refresh, "second")
        await trio.testing.wait_all_tasks_blocked()
        assert has(refresh, "second")

    in_virtual_time(work)


def test_names_that_somebody_invents_cost_few_requests() -> None:
    issuer = Issuer(FIRST)
    refresh = JwksRefresh(address(refresh_ms=3_600_000), OnTheLoop(), issuer)

    async def work(nursery: trio.Nursery) -> None:
        await nursery.start(refresh.run)
        for number in range(1_000):
            assert not has(refresh, f"invented-{number}")
            await trio.sleep(0.1)
        assert len(issuer.fetches) <= 100 / MISSING_INTERVAL_S + 1

    in_virtual_time(work)


@pytest.mark.parametrize(
    "failure", [FetchFailed("it cannot be reached: Connection refused"), b"no JWKS", b'{"keys": []}']
)
def test_a_failure_keeps_the_keys_of_before_and_is_one_line(
    failure: bytes | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    refresh = JwksRefresh(address(), OnTheLoop(), Issuer(FIRST, failure, SECOND))

    async def work(nursery: trio.Nursery) -> None:
        await nursery.start(refresh.run)
        with caplog.at_level(logging.WARNING):
            await trio.sleep(61)
        assert has(refresh, "first")
        assert len(caplog.records) == 1
        assert "those of before stay: https://issuer/keys: " in caplog.text
        await trio.sleep(60)
        assert has(refresh, "second")

    in_virtual_time(work)


def test_a_request_is_tried_again_for_a_while() -> None:
    down = FetchFailed("it answers with status 503")
    issuer = Issuer(down, down, down, FIRST)
    refresh = JwksRefresh(address(backoff_max_ms=1_000), OnTheLoop(), issuer)

    async def work(nursery: trio.Nursery) -> None:
        started = trio.current_time()
        await nursery.start(refresh.run)
        assert has(refresh, "first")
        assert [round(each - started, 3) for each in issuer.fetches] == [0, 0.1, 0.3, 0.7]

    in_virtual_time(work)


def refused_start(refresh: JwksRefresh) -> str:
    found: list[str] = []

    async def work(nursery: trio.Nursery) -> None:
        with pytest.raises(StartupError) as refused:
            await nursery.start(refresh.run)
        found.append(str(refused.value))

    in_virtual_time(work)
    return found[0]


def test_without_keys_the_node_does_not_start() -> None:
    issuer = Issuer(FetchFailed("it answers with status 404", is_final=True))
    line = refused_start(JwksRefresh(address(backoff_max_ms=1_000), OnTheLoop(), issuer))
    reason = "https://issuer/keys: it answers with status 404"
    assert line == f"{NAME}: there are no keys to verify tokens with: {reason}"
    assert len(issuer.fetches) == 1


def test_a_file_is_read_again_like_an_address(tmp_path: Path) -> None:
    path = tmp_path / "keys of mine.json"
    given = address(f"file://{tmp_path}/keys%20of%20mine.json", refresh_ms=1_000)
    refresh = JwksRefresh(given, OnTheLoop())
    assert "cannot be read: No such file" in refused_start(JwksRefresh(given, OnTheLoop()))
    path.write_bytes(FIRST)
    assert read_document(given) == FIRST

    async def work(nursery: trio.Nursery) -> None:
        await nursery.start(refresh.run)
        assert has(refresh, "first")
        path.write_bytes(SECOND)
        await trio.sleep(1.1)
        assert has(refresh, "second")

    in_virtual_time(work)
    path.write_bytes(b"x" * (1 << 21))
    assert "is larger than" in refused_start(JwksRefresh(given, OnTheLoop()))
    path.unlink()
    path.mkdir()
    assert "is not a file" in refused_start(JwksRefresh(given, OnTheLoop()))
