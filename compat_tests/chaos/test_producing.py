"""What becomes of a producer of a run that cannot be made."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
from kafka.errors import KafkaTimeoutError

from compat_tests.waiting import until
from tests.history.recorder import Recorder

from . import producing
from .producing import produce_with_kafka_python
from .stage import Client, Stage


def find_no_node(**config: object) -> NoReturn:
    """As KafkaProducer does when the node that it has chosen says nothing for `bootstrap_timeout_ms`."""
    raise KafkaTimeoutError(f"Unable to bootstrap from {config['bootstrap_servers']}")


def test_a_producer_that_finds_no_node_that_answers_is_counted_and_another_one_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producing, "KafkaProducer", find_no_node)
    stage = Stage(tmp_path, "127.0.0.1:9", Recorder(), 1)
    client = Client(stage, "writer", produce_with_kafka_python)
    client.start()
    try:
        until(lambda: stage.progress.given_up()["writer", "KafkaTimeoutError"] > 1, "another one is made")
    finally:
        stage.writing.clear()
        client.finish(10.0)
