"""Transactional clients of a run, on a cluster that librdkafka plays itself."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest

from tests.history.recorder import Recorder

from .stage import Stage
from .transacting import TransactionalClient


class PlayedStage(Stage):
    def config(self, **more: Any) -> dict[str, Any]:
        return super().config(test_mock_num_brokers=1, **more)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return PlayedStage(tmp_path, "", Recorder(), 1)


def test_a_client_that_is_given_up_before_it_has_heard_of_its_records_is_gone(stage: Stage) -> None:
    client = TransactionalClient(stage, "orders")
    client.send(client.begin(), "orders", 0, "v1")
    gone = weakref.ref(client)
    del client
    gc.collect()
    assert gone() is None


def test_a_transaction_is_committed_with_the_offsets_of_its_records(stage: Stage) -> None:
    client = TransactionalClient(stage, "orders")
    recording = client.begin()
    assert client.end(recording, lambda: client.send(recording, "orders", 0, "v1"), is_commit=True)
    (operation,) = (each for each in stage.recorder.operations() if each.kind == "txn")
    assert operation.outcome == "ok"
    assert [(each.key, each.value, each.offset is not None) for each in operation.sends] == [("orders-0", "v1", True)]
