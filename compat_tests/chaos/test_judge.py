"""The judge's process tells good histories from bad ones, and puts the good ones away."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.history.recorder import Recorder

from .judge import Judge


def write_history(path: Path, read: str) -> None:
    """A record is acknowledged at offset 7, and a reader finds `read` there."""
    with path.open("w", encoding="utf-8") as file:
        recorder = Recorder(file)
        sending = recorder.invoke(recorder.new_process(), "send")
        sending.sent(sending.sending("plain-0", "v1.1"), 7)
        sending.ok()
        reading = recorder.invoke(recorder.new_process(), "poll")
        reading.polled({"plain-0": [(7, read)]})
        reading.ok()


@pytest.mark.parametrize("keeps", [True, False])
def test_a_good_history_is_packed_where_somebody_keeps_it_and_a_bad_one_stays(tmp_path: Path, keeps: bool) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    write_history(good, "v1.1")
    write_history(bad, "v6.6")
    written = good.read_bytes()
    with Judge(keeps=keeps) as judge:
        judge.submit(good)
        judge.submit(bad)
        verdicts = list(judge.rest())
    assert [each.is_good for each in verdicts] == [True, False]
    assert [each.acknowledged for each in verdicts] == [1, 1]
    assert "inconsistent-offsets" in verdicts[1].text
    packed = tmp_path / "good.jsonl.gz"
    assert packed.exists() is keeps
    if keeps:
        assert gzip.decompress(packed.read_bytes()) == written
    assert not good.exists()
    assert bad.exists()
