"""A thread that computes gives the interpreter up soon."""

from __future__ import annotations

import sys

import pytest

from pykbroker.server.runtime.thread_switches import quick_switches


def test_threads_switch_fifty_times_as_often_as_by_default_and_only_there() -> None:
    before_s = sys.getswitchinterval()
    with quick_switches():
        assert sys.getswitchinterval() == pytest.approx(before_s / 50)
    assert sys.getswitchinterval() == before_s
