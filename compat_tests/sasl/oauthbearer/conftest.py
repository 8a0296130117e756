"""One broker of a kind that takes tokens, for all scenarios of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.authorization_server import AuthorizationServer, running
from compat_tests.brokers import BrokerProcess
from compat_tests.certificates import Authority
from compat_tests.conftest import assert_all_went_well, make_broker, watch_log

from .bearers import Bearers, good_document, set_up


@pytest.fixture(scope="session")
def shared_bearers(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bearers]:
    directory = tmp_path_factory.mktemp(f"bearers-{kind}")
    broker = make_broker(kind, directory / "broker", {})
    if not isinstance(broker, BrokerProcess):
        pytest.skip("needs a broker that is a process of this machine")
    authority = Authority.root()
    with running(AuthorizationServer(good_document()), authority, directory) as issuer:
        found = set_up(broker, issuer, authority, directory)
        broker.start()
        yield found
        broker.close()
    assert_all_went_well(broker)


@pytest.fixture
def bearers(shared_bearers: Bearers, request: pytest.FixtureRequest) -> Bearers:
    watch_log(request.node, shared_bearers.broker)
    return shared_bearers
