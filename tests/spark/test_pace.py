"""The pace of a replay: never ahead, and what is late is made up for."""

from __future__ import annotations

import pytest

from pykbroker.spark.writing.pace import Pace


@pytest.mark.parametrize("rate", [0.5, 7.0, 1000.0, 250_000.0])
def test_records_are_due_evenly(rate: float) -> None:
    now = 100.0
    pace = Pace(rate, lambda: now)
    sent = []
    for _ in range(1000):
        pause_s = pace.pause_s()
        assert pause_s >= 0
        now += pause_s
        sent.append(now - 100.0)
    for number, at in enumerate(sent, start=1):
        assert number / rate - 0.01 <= at + 1e-9
        assert at <= number / rate + 1e-9 or at == sent[number - 2]


def test_a_record_that_was_late_delays_no_other() -> None:
    now = 0.0
    pace = Pace(10.0, lambda: now)
    assert pace.pause_s() == pytest.approx(0.1)
    now = 5.0
    assert [pace.pause_s() for _ in range(48)] == [0.0] * 48
    assert [round(pace.pause_s(), 6), round(pace.pause_s(), 6)] == [0.0, 0.1]
