from __future__ import annotations

import pytest

from tests.server.serving import Server


@pytest.fixture(params=["sockets", "simulated"])
def server(request: pytest.FixtureRequest) -> Server:
    return Server(request.param)


@pytest.fixture
def real_server() -> Server:
    return Server("sockets")


@pytest.fixture
def simulated_server() -> Server:
    return Server("simulated")
