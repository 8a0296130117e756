"""Brokers that take clients' metrics, one of each kind for a module, and pykbroker's page that shows them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.brokers import BrokerProcess, Pykbroker
from compat_tests.conftest import assert_all_went_well

from .kafka_with_receiver import KafkaWithReceiver
from .page import Page


def make_broker(kind: str, directory: Path) -> BrokerProcess:
    if kind == "pykbroker":
        return Pykbroker(directory, {"console.listener": "", "metrics.listener": "127.0.0.1:0"})
    assert kind == "apache-kafka", "needs brokers that the test starts itself"
    return KafkaWithReceiver(directory)


@pytest.fixture(scope="module")
def receiver(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    broker = make_broker(kind, tmp_path_factory.mktemp(kind) / "receiver")
    broker.start()
    yield broker
    broker.close()
    assert_all_went_well(broker)


@pytest.fixture(scope="module")
def page(receiver: BrokerProcess) -> Page:
    return Page(receiver)
