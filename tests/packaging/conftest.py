"""One build of the packages for all tests here, and an environment with the core alone."""

from __future__ import annotations

import pytest

from .builds import Packages, build
from .environment import CleanEnvironment


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    return build(tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="session")
def core(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> CleanEnvironment:
    """What `pip install pykbroker` brings: no extra."""
    return CleanEnvironment.of(tmp_path_factory.mktemp("core") / "environment", packages.wheel)
