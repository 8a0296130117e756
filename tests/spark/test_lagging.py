"""Checkpoints of Spark's queries, as they lie on a disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pykbroker.spark.errors import BadOptions, CheckpointDamaged
from pykbroker.spark.lagging import CheckpointState, LagOptions, LocalDirectory, read_checkpoint
from pykbroker.spark.source import Source

RATE = "17"
FILES = '{"logOffset":4}'


def checkpoint(path: Path, offsets: dict[int, list[str]], commits: list[int]) -> Path:
    """offsets: by batch, a line for each source."""
    (path / "offsets").mkdir(parents=True)
    (path / "commits").mkdir()
    (path / "metadata").write_text('{"id":"aa-bb"}')
    for batch, lines in offsets.items():
        header = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1000 + batch, "conf": {}})
        (path / "offsets" / str(batch)).write_text("\n".join(["v1", header, *lines]))
    for batch in commits:
        (path / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return path


def state_of(path: Path) -> CheckpointState:
    return read_checkpoint(str(path), LocalDirectory(str(path)))


def test_what_the_last_batch_that_is_done_has_read(tmp_path: Path) -> None:
    path = checkpoint(
        tmp_path / "query",
        {8: ['{"a":{"0":1}}'], 9: ['{"a":{"0":5,"1":7},"b":{"11":2}}'], 10: ['{"a":{"0":9}}']},
        [8, 9],
    )
    (path / "offsets" / ".10.crc").write_bytes(b"\0")
    (path / "offsets" / ".11.0d3.tmp").write_bytes(b"")
    assert state_of(path) == CheckpointState("aa-bb", 9, 1009, 10, {("a", 0): 5, ("a", 1): 7, ("b", 11): 2})


def test_a_query_that_has_done_no_batch(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "query", {0: ['{"a":{"0":1}}']}, [])
    assert state_of(path) == CheckpointState("aa-bb", None, None, 0, {})


def test_several_sources(tmp_path: Path) -> None:
    """Of two that read the same partition the one counts that is further behind; those that are not Kafka's do not."""
    lines = [RATE, '{"a":{"0":9}}', "-", FILES, '{"a":{"0":5},"b":{"0":1}}']
    assert state_of(checkpoint(tmp_path / "query", {0: lines}, [0])).offsets == {("a", 0): 5, ("b", 0): 1}


@pytest.mark.parametrize(
    ("lines", "error", "words"),
    [
        ([RATE, FILES], BadOptions, "is of a query that reads no topic"),
        ([], BadOptions, "is of a query that reads no topic"),
        (['{"a":{"0":"x"}}'], BadOptions, "reads no topic"),
        (['{"a":{"²":5}}'], BadOptions, "reads no topic"),
        (['{"a":{"' + "9" * 5000 + '":5}}'], BadOptions, "reads no topic"),
    ],
)
def test_queries_without_topics(tmp_path: Path, lines: list[str], error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        state_of(checkpoint(tmp_path / "query", {0: lines}, [0]))


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(BadOptions, match="is no checkpoint of a query"):
        state_of(tmp_path / "nowhere")
    path = checkpoint(tmp_path / "query", {0: ['{"a":{"0":1}}']}, [0, 1])
    with pytest.raises(CheckpointDamaged, match="offsets/1 cannot be read"):
        state_of(path)
    (path / "offsets/1").write_text("v7\n{}")
    with pytest.raises(CheckpointDamaged, match="is of version 'v7', not v1"):
        state_of(path)
    (path / "offsets/1").write_text("v1\nnothing")
    with pytest.raises(CheckpointDamaged, match="is not what Spark writes"):
        state_of(path)
    (path / "metadata").write_bytes(b"\xff\xfe")
    with pytest.raises(CheckpointDamaged, match="metadata cannot be read"):
        state_of(path)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"checkpoints": []}, "No checkpoint"),
        ({"checkpoints": ["a"], "isolation_level": "x"}, "isolation_level is"),
        ({"checkpoints": ["a", "b"], "commit_to": "group"}, "name one of them"),
    ],
)
def test_options_that_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadOptions, match=words):
        LagOptions(Source("127.0.0.1:1"), **given).check()
