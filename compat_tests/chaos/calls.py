"""Calls of librdkafka that may never end, and are left alone then."""

from __future__ import annotations

import threading
from collections.abc import Callable

from confluent_kafka import Consumer, ShareConsumer

from .ends import Over
from .stage import CALL_TIMEOUT_S, Stage, call_thread_of

LOST_CALL_S = 3.0 * CALL_TIMEOUT_S
"""When a call that should have ended at its own timeout counts as one that never ends."""


def failure_of(call: Callable[[], object]) -> BaseException | None:
    """Raises Over where the call does not end."""
    failures: list[BaseException] = []

    def work() -> None:
        try:
            call()
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=work, name=call_thread_of(threading.current_thread().name), daemon=True)
    thread.start()
    thread.join(LOST_CALL_S)
    if thread.is_alive():
        raise Over("a call that does not end")
    return failures[0] if failures else None


def close(stage: Stage, consumer: Consumer | ShareConsumer) -> None:
    """A consumer whose main thread is blocked (`apart`) does not end; it is counted, and left alone."""
    try:
        failure = failure_of(consumer.close)
    except Over as lost:
        stage.progress.note_end(lost)
        return
    if failure is not None:
        raise failure
