"""Requests to stop, from signals and threads, before, in and after the event loop."""

from __future__ import annotations

import os
import signal
import threading
import time
import weakref
from collections.abc import Iterator

import pytest
import trio

from pykbroker.cli.stop_requests import StopRequests

from .child_brokers import hang_up_counts

__all__ = ["hang_up_counts"]


@pytest.fixture
def stop(hang_up_counts: None) -> Iterator[StopRequests]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = [signal.getsignal(number) for number in numbers]
    stop = StopRequests()
    stop.listen()
    yield stop
    for number, handler in zip(numbers, handlers, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_a_request_and_interrupts_nothing(stop: StopRequests, number: signal.Signals) -> None:
    assert not stop
    signal.raise_signal(number)
    assert stop
    assert stop.count == 1


def test_a_hangup_that_was_ignored_is_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    ends = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    StopRequests().listen()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    for number, handler in zip((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), (*ends, before), strict=True):
        signal.signal(number, handler)


def test_requests_from_before_the_loop_and_from_threads_wake_the_task_that_waits(stop: StopRequests) -> None:
    stop.ask("first")

    async def run() -> None:
        await stop.asked(1)
        thread = threading.Thread(target=stop.ask, args=["second"])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop.asked, 3)
            await trio.testing.wait_all_tasks_blocked()
            thread.start()
            await trio.to_thread.run_sync(thread.join)
            os.kill(os.getpid(), signal.SIGTERM)

    trio.run(run)
    assert stop.count == 3
    assert stop.reason == "first"
    stop.ask("after the loop")


def test_what_wants_to_be_interrupted_is(stop: StopRequests) -> None:
    reached: list[str] = []

    def body() -> None:
        with stop.interrupting():
            reached.append("the body")
            signal.raise_signal(signal.SIGTERM)
            reached.append("its end")

    for _ in range(2):  # the second time a stop was asked for before
        with pytest.raises(SystemExit) as ended:
            body()
        assert ended.value.code == 0
    assert reached == ["the body"]
    signal.raise_signal(signal.SIGTERM)
    assert stop.count == 2, "the next one is a request as ever"


def test_a_request_of_a_thread_interrupts_too_and_counts_once(stop: StopRequests) -> None:
    def body() -> None:
        with stop.interrupting():
            thread = threading.Thread(target=stop.ask, args=["the parent is gone"])
            thread.start()
            thread.join()
            for _ in range(1000):  # the main thread hears of it between two steps of Python
                pass
            raise AssertionError("is not reached")

    with pytest.raises(SystemExit):
        body()
    assert stop.count == 1


def test_what_wants_to_be_interrupted_is_also_where_python_drops_exceptions(
    stop: StopRequests, capfd: pytest.CaptureFixture[str]
) -> None:
    """As in the callbacks of the locks of imports."""
    reached: list[str] = []

    class Lock:
        pass

    def body() -> None:
        with stop.interrupting():
            lock = Lock()
            reference = weakref.ref(lock, lambda _: signal.raise_signal(signal.SIGTERM))
            del lock
            end_s = time.monotonic() + 30
            while time.monotonic() < end_s:
                pass
            reached.append(f"its end, with {reference}")

    with pytest.raises(SystemExit):
        body()
    assert (reached, stop.count) == ([], 1)
    assert "Exception ignored" not in capfd.readouterr().err
