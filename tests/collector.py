"""CPython's garbage collector, as tests of it find it."""

from __future__ import annotations

import gc

import pytest

needs_full_passes = pytest.mark.skipif(
    gc.get_threshold()[2] == 0, reason="Python 3.14 has passes over a part of the old objects, and no full ones"
)
