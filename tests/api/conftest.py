from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.api_node import ApiNode


@pytest.fixture
def node(tmp_path: Path) -> ApiNode:
    return ApiNode(tmp_path)
