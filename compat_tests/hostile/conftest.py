"""A pykbroker of the test's own, for what Apache Kafka is not asked: memory and log lines."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.brokers import BrokerProcess, Pykbroker
from compat_tests.conftest import assert_all_went_well
from compat_tests.loop_holds import assert_loop_not_held

HOSTILE_LONGEST_MS = 100
"""Ten times what these cases take; a broker warns of no less."""


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    broker = Pykbroker(tmp_path / "broker")
    broker.start()
    yield broker
    broker.stop()
    assert_all_went_well(broker)
    assert_loop_not_held(broker.log_text(), bound_ms=HOSTILE_LONGEST_MS)
