"""Rates and token buckets against what Kafka 4.3.1's own classes said to the same values at the same times.

`kafka_4_3_rates.txt` was written by `Rate`, `TokenBucket` and `QuotaUtils.throttleTime`. A run opens with its kind, the
number of its windows, their milliseconds and the limit; each line is a time, the value recorded then, the throttle time
and the measured rate or the tokens that are left.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pykbroker.quotas.rate import QuotaWindows, Rate
from pykbroker.quotas.token_bucket import TokenBucket

_TRANSCRIPT = Path(__file__).with_name("kafka_4_3_rates.txt").read_text()
RUNS = [[line.split() for line in run.splitlines()] for run in re.split(r"^(?=[a-z])", _TRANSCRIPT, flags=re.M)[1:]]


@pytest.mark.parametrize("run", [run for run in RUNS if run[0][0] == "rate"], ids=lambda run: " ".join(run[0][1:]))
def test_a_rate_measures_and_throttles_as_kafkas_does(run: list[list[str]]) -> None:
    _, count, size_ms, limit = run[0]
    rate = Rate(QuotaWindows(int(count), int(size_ms)))
    for time, value, throttle_ms, measured in run[1:]:
        rate.record(float(value), int(time))
        assert rate.throttle_ms(float(limit), int(time)) == int(throttle_ms)
        assert rate.measure(int(time)) == pytest.approx(float(measured), abs=1e-9)


@pytest.mark.parametrize("run", [run for run in RUNS if run[0][0] == "bucket"], ids=lambda run: " ".join(run[0][1:]))
def test_a_token_bucket_empties_and_fills_as_kafkas_does(run: list[list[str]]) -> None:
    _, count, size_ms, limit = run[0]
    bucket = TokenBucket(QuotaWindows(int(count), int(size_ms)))
    for time, value, throttle_ms, _ in run[1:]:
        bucket.take(float(value), float(limit), int(time))
        assert bucket.throttle_ms(float(limit), int(time)) == int(throttle_ms)


def test_the_transcript_has_runs_of_both_kinds_that_throttle() -> None:
    throttled = [sum(line[2] != "0" for line in run[1:]) for run in RUNS]
    assert (len(RUNS), {run[0][0] for run in RUNS}) == (24, {"rate", "bucket"})
    assert sum(count > 3 for count in throttled) > 12
