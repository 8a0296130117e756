"""A limit of bytes per second."""

import math

import pytest

from pykbroker.server.runtime.throttle import Throttle


class Time:
    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def test_work_takes_as_long_as_the_limit_says() -> None:
    time = Time()
    throttle = Throttle(1000.0, monotonic=time.monotonic, sleep=time.sleep)
    for _ in range(10):
        throttle.wait(250, lambda: False)
    assert time.now_s == pytest.approx(102.5)


def test_what_was_not_used_is_not_made_up_for() -> None:
    time = Time()
    throttle = Throttle(1000.0, monotonic=time.monotonic, sleep=time.sleep)
    time.now_s += 50
    throttle.wait(1000, lambda: False)
    assert time.now_s == pytest.approx(151.0)


def test_whoever_gives_up_does_not_wait() -> None:
    time = Time()
    throttle = Throttle(1.0, monotonic=time.monotonic, sleep=time.sleep)
    throttle.wait(1000, lambda: time.now_s >= 101)
    assert time.now_s == pytest.approx(101.0, abs=0.2)


def test_no_limit_is_no_wait() -> None:
    time = Time()
    Throttle(1.7976931348623157e308, monotonic=time.monotonic, sleep=time.sleep).wait(1 << 40, lambda: False)
    assert time.now_s == pytest.approx(100.0)


def test_another_limit_counts_for_those_that_wait() -> None:
    time = Time()
    throttle = Throttle(1000.0, monotonic=time.monotonic, sleep=time.sleep)

    def faster_after_a_second() -> bool:
        if time.now_s >= 101 and not changed:
            changed.append(True)
            throttle.configure(9000.0)
        return False

    changed: list[bool] = []
    throttle.wait(10_000, faster_after_a_second)
    assert time.now_s == pytest.approx(102.0, abs=0.2)
    throttle.wait(9000, lambda: False)
    assert time.now_s == pytest.approx(103.0, abs=0.2)


@pytest.mark.parametrize("nothing", [0.0, -1.0])
def test_a_limit_of_nothing_lets_nothing_through_until_there_is_another(nothing: float) -> None:
    time = Time()
    throttle = Throttle(nothing, monotonic=time.monotonic, sleep=time.sleep)
    throttle.wait(1000, lambda: time.now_s >= 200)
    assert time.now_s == pytest.approx(200.0, abs=0.2)
    for limit in (1.7976931348623157e308, math.inf, 1000.0):
        throttle.configure(limit)
        throttle.wait(10, lambda: False)
    assert time.now_s == pytest.approx(200.0, abs=0.4)
