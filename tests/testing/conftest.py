"""A broker in this process, shared by the tests that only ask it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pykbroker.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker
