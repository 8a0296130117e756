"""One broker with tokens of a kind, for all scenarios of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.brokers import BrokerProcess
from compat_tests.conftest import assert_all_went_well, make_broker, watch_log

from .token_broker import SECRET, TokenBroker, with_tokens

FreshTokens = Callable[..., TokenBroker]


@pytest.fixture(scope="session")
def shared_tokens(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenBroker]:
    directory = tmp_path_factory.mktemp(kind)
    found = with_tokens(_process(kind, directory / "broker"), directory / "stores")
    found.start()
    yield found
    found.broker.close()
    assert_all_went_well(found.broker)


@pytest.fixture
def tokens(shared_tokens: TokenBroker, request: pytest.FixtureRequest) -> TokenBroker:
    watch_log(request.node, shared_tokens.broker)
    return shared_tokens


@pytest.fixture
def fresh_tokens(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[FreshTokens]:
    """Starts brokers of the test's own: `fresh_tokens({"log.retention.ms": "1000"}, secret=None)`."""
    started: list[TokenBroker] = []

    def start(properties: dict[str, str], secret: str | None = SECRET) -> TokenBroker:
        number = len(started)
        broker, stores = _process(kind, tmp_path / f"broker-{number}"), tmp_path / f"stores-{number}"
        own = with_tokens(broker, stores, properties, secret=secret)
        started.append(own)
        watch_log(request.node, own.broker)
        own.start()
        return own

    yield start
    for own in started:
        own.broker.close()
        assert_all_went_well(own.broker)


def _process(kind: str, directory: Path) -> BrokerProcess:
    if kind == "external":
        pytest.skip("needs a broker that the test starts itself")
    broker = make_broker(kind, directory, {})
    if not isinstance(broker, BrokerProcess):
        pytest.skip("needs a broker that is a process of this machine")
    return broker
