"""Fixtures of simulations, for `pytest.mark.usefixtures`."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def seldom_collected() -> Iterator[None]:
    """A node that died leaves many cycles behind; to look for them all the time takes a fifth of a run."""
    thresholds = gc.get_threshold()
    gc.set_threshold(200_000, *thresholds[1:])
    yield
    gc.set_threshold(*thresholds)


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Accidents give much to warn of."""
    caplog.set_level(logging.CRITICAL, "pykbroker")
