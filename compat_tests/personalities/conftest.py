"""Brokers of other releases: the real ones, and ours with their personalities."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.brokers import BrokerProcess
from compat_tests.conftest import assert_all_went_well, watch_log

from .releases import PykbrokerAs, Release

RELEASES = ("2.1", "2.8", "3.9")


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def shared_release(kind: str, release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """The broker of a release, of either kind, for the tests of a module."""
    if kind == "external":
        pytest.skip("needs brokers that the test starts itself")
    directory = tmp_path_factory.mktemp(f"{kind}-{release}") / "broker"
    # Consumer groups form at once.
    properties = {"group.initial.rebalance.delay.ms": "0"}
    broker = (Release if kind == "apache-kafka" else PykbrokerAs)(directory, release, properties)
    broker.start()
    yield broker
    broker.close()
    assert_all_went_well(broker)


@pytest.fixture
def of_release(shared_release: BrokerProcess, request: pytest.FixtureRequest) -> BrokerProcess:
    watch_log(request.node, shared_release)
    return shared_release
