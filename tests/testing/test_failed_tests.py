from __future__ import annotations

from pathlib import Path

import pytest

from pykbroker.testing import failed_tests
from pykbroker.testing.broker_log import BrokerLog


def test_a_log_does_not_take_the_mark_of_one_that_is_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    logs = [BrokerLog("first")]
    monkeypatch.setattr(failed_tests, "recent_logs", lambda: logs)
    for _ in range(5):
        logs[0].add("of the test before")
    marks = failed_tests.marks()
    assert list(failed_tests.sections("t", marks, tmp_path)) == []
    place = id(logs.pop())
    others = [BrokerLog("second") for _ in range(1_000)]
    logs += [each for each in others if id(each) == place]
    assert logs, "CPython gives its place to the next one"
    logs[0].add("of this test")
    assert list(failed_tests.sections("t", marks, tmp_path)) == [("log of second", "of this test")]
