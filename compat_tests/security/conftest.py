"""One secured broker of a kind, for all scenarios of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.brokers import BrokerProcess
from compat_tests.conftest import assert_all_went_well, make_broker, watch_log

from .secured import Secured, add_scram_users, secure


@pytest.fixture(scope="session")
def shared_secured(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    broker = make_broker(kind, tmp_path_factory.mktemp(kind) / "secured", {})
    if not isinstance(broker, BrokerProcess):
        pytest.skip("needs a broker that is a process of this machine")
    found = secure(broker)
    broker.start()
    add_scram_users(broker)
    yield found
    broker.close()
    assert_all_went_well(broker)


@pytest.fixture
def secured(shared_secured: Secured, request: pytest.FixtureRequest) -> Secured:
    watch_log(request.node, shared_secured.broker)
    return shared_secured
