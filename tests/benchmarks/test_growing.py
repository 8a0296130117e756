"""Points of growth curves, and the CPU time of the seconds that a load generator measured."""

import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from benchmarks.curves import parse_curve_point
from benchmarks.growing import curve, points
from benchmarks.measured_load import CpuSamples

WORKER = """
import sys, time
sys.stdin.readline()
while time.process_time() < 0.6:
    pass
print(flush=True)
sys.stdin.read()
"""
SIZES = (1, 10, 100, 1_000, 10_000)


@pytest.mark.parametrize(
    ("scale", "expected"), [(1.0, list(SIZES)), (2.0, list(SIZES)), (0.1, [1, 10, 100, 1_000]), (0.0001, [1, 10])]
)
def test_a_smaller_run_has_the_smaller_points_and_two_of_them_at_least(scale: float, expected: list[int]) -> None:
    assert points(SIZES, scale) == expected


def test_a_curve_tells_each_point_and_how_much_dearer_than_the_first_the_dearest_is() -> None:
    figures = curve("CPU µs/batch", {1: 50.0, 10: 125.0, 100: 100.0})
    drawn = {point: cost for name, cost in figures.items() if (point := parse_curve_point(name)) is not None}
    assert drawn == {("CPU µs/batch", 1): 50.0, ("CPU µs/batch", 10): 125.0, ("CPU µs/batch", 100): 100.0}
    assert figures["CPU µs/batch, most / first"] == 2.5


def test_a_curve_that_falls_counts_as_flat() -> None:
    assert curve("ms", {1: 50.0, 10: 5.0})["ms, most / first"] == 1.0


def test_the_processor_time_between_two_moments_is_that_of_the_process() -> None:
    """It works from the first moment on and sleeps from the second one on."""
    with subprocess.Popen([sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with CpuSamples(SimpleNamespace(pid=process.pid)) as samples:  # type: ignore[arg-type]
            from_s = time.time()
            process.stdin.write(b"\n")
            process.stdin.flush()
            process.stdout.readline()
            until_s = time.time()
        process.stdin.close()
    assert 0.3 < samples.between(from_s, until_s) <= 0.7
    with pytest.raises(AssertionError):
        samples.between(from_s, until_s + 3_600)
