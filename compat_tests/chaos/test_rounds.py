"""What a run says of a client that is stuck: where it is, and whether another one of its kind gets on."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.history.recorder import Recorder

from . import rounds
from .rounds import _wait_until_going_again
from .stage import Client, Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(rounds, "GOING_AGAIN_S", 0.2)
    monkeypatch.setattr(rounds, "ANOTHER_GOES_S", 0.2)
    return Stage(tmp_path, "", Recorder(), 1)


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Whoever is stuck waits for this."""
    event = threading.Event()
    yield event
    event.set()


def test_a_client_that_is_stuck_is_told_with_its_calls_and_those_of_the_thread_that_sends_for_it(
    stage: Stage, released: threading.Event
) -> None:
    def stuck_in_its_sender(stage: Stage, _: random.Random) -> None:
        sender = threading.Thread(target=released.wait, name=f"{threading.current_thread().name}-network-thread")
        sender.start()
        sender.join()

    client = Client(stage, "writer", stuck_in_its_sender)
    client.start()
    with pytest.raises(AssertionError) as told:
        _wait_until_going_again(stage, [client])
    assert "writer is in:" in str(told.value)
    assert "in stuck_in_its_sender" in str(told.value)
    assert "writer-network-thread is in:" in str(told.value)
    assert "another writer gets nothing done within 0.2 s either" in str(told.value)


def test_another_client_that_gets_on_shows_that_the_stuck_one_is_stuck_of_its_own_accord(
    stage: Stage, released: threading.Event
) -> None:
    def stuck_at_first(stage: Stage, _: random.Random) -> None:
        if threading.current_thread().name == "writer":
            released.wait()
        stage.progress.note()

    client = Client(stage, "writer", stuck_at_first)
    client.start()
    with pytest.raises(AssertionError, match=r"another writer got something done after \d"):
        _wait_until_going_again(stage, [client])


def test_clients_that_get_on_are_waited_for_and_no_longer(stage: Stage) -> None:
    def work(stage: Stage, _: random.Random) -> None:
        while stage.writing.is_set():
            stage.progress.note()

    client = Client(stage, "writer", work)
    client.start()
    _wait_until_going_again(stage, [client])
    stage.writing.clear()
    client.finish(10.0)
