"""Fixtures of simulations, for `pytest.mark.usefixtures`; and a watch over the event loop of every test."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator

import pytest

from tests.api.api_node import release_directories
from tests.examples import load_profile
from tests.loops import no_holds

load_profile()


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


@pytest.fixture(autouse=True)
def loop_is_never_held(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What serves one client must not stop the others."""
    with no_holds(monkeypatch):
        yield


@pytest.fixture(autouse=True)
def no_descriptor_stays() -> Iterator[None]:
    yield
    release_directories()
