"""The same requests to both brokers, and then a look into the files: what Apache Kafka would have written is there."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.brokers import Broker, BrokerProcess
from compat_tests.conftest import make_broker
from compat_tests.topics import wait_for_leaders
from compat_tests.waiting import until
from pykbroker.protocol.records.compression import Compression

from . import data_files
from .history import CODECS, History, batches

EAGER = {
    "log.retention.check.interval.ms": "100",
    "log.initial.task.delay.ms": "0",
    "log.cleaner.backoff.ms": "100",
    "log.flush.start.offset.checkpoint.interval.ms": "100",
    "offsets.topic.num.partitions": "1",
    "log.segment.delete.delay.ms": "600000",  # what is on its way out is still there when the first look is taken
}
SMALL = {"segment_ms": "1000", "index_interval_bytes": "300"}
RETENTION_BYTES = 8_000

RECOMPRESSED = {f"to-{codec}": codec for codec in ("uncompressed", "gzip", "snappy", "lz4", "zstd")}
SAME_BYTES = ["codecs", "producers", "cut", "sized", "compacted", "to-uncompressed"]
SAME_RECORDS = [*RECOMPRESSED, "compacted-codecs"]


@dataclass
class Traces:
    """What one broker left on the disk, copied at every stop, and what stood there while it ran."""

    directory: Path
    stages: dict[str, Path] = field(default_factory=dict)
    running: dict[str, Any] = field(default_factory=dict)

    def keep(self, stage: str, data: Path) -> None:
        self.stages[stage] = self.directory / stage
        shutil.copytree(data, self.stages[stage])

    def of_each_stage(self, look: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        """What is seen of each file, or by each name, after each stop."""
        seen = {stage: look(path) for stage, path in self.stages.items()}
        return {f"{stage}: {name}": content for stage, found in seen.items() for name, content in found.items()}


@pytest.fixture(scope="module")
def traces(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Traces:
    found = Traces(tmp_path_factory.mktemp(f"files-of-{kind}"))
    broker = make_broker(kind, found.directory / "broker", EAGER)
    if not isinstance(broker, BrokerProcess):
        pytest.skip("needs a broker that is a process of this machine")
    try:
        live(broker, found)
    finally:
        broker.kill()
    return found


def live(broker: BrokerProcess, traces: Traces) -> None:
    """A life with a restart, and one after kill -9."""
    data = broker.data_directory
    broker.start()
    begin(History(broker), data)
    traces.running = data_files.all_names(data)
    broker.stop()
    traces.keep("stopped", data)
    for number, stage in enumerate(("restarted", "recovered")):
        broker.start()
        go_on(History(broker), data, 200 + 100 * number)
        if stage == "recovered":
            broker.kill()
            broker.start()
            wait_until_it_rests(broker, data)
        broker.stop()
        traces.keep(stage, data)


def begin(history: History, data: Path) -> None:
    history.topic("codecs", **SMALL)
    history.append("codecs", batches(100))
    history.topic("producers", **SMALL)
    history.append("producers", batches(60, producer_ids=(5, 6, 7)))
    history.append("producers", batches(5, first=60, producer_ids=(6,), producer_epoch=3))
    history.topic("stamped", message_timestamp_type="LogAppendTime", index_interval_bytes="300")
    history.append("stamped", batches(40, producer_ids=(9,)))
    for topic, codec in RECOMPRESSED.items():
        history.topic(topic, compression_type=codec, **SMALL)
        history.append(topic, batches(40, producer_ids=(9,)))
    history.topic("gone")
    history.append("gone", batches(3))
    history.delete_topic("gone")
    history.topic("cut", **SMALL)
    history.append("cut", batches(60, producer_ids=(5, 6, 7)))
    history.delete_records("cut", 90)
    history.topic("sized", retention_bytes=str(RETENTION_BYTES), **SMALL)
    history.append("sized", batches(60))
    compact(history, "compacted", data, [Compression.NONE])
    compact(history, "compacted-codecs", data, list(Compression))
    wait_until_it_rests(history.broker, data)


def compact(history: History, topic: str, data: Path, codecs: list[Compression]) -> None:
    """Once, since how often a cleaner comes is a matter of chance."""
    history.topic(topic, retention_ms="-1", **SMALL)
    history.append(topic, batches(60, keys=20, producer_ids=(5, 6, 7, 8), codecs=codecs))
    history.alter(topic, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    until(lambda: f"{topic} 0 " in (data / "cleaner-offset-checkpoint").read_text(), f"{topic} is clean")
    history.alter(topic, cleanup_policy="delete")


def go_on(history: History, data: Path, first: int) -> None:
    for topic in (*SAME_BYTES, *SAME_RECORDS, "stamped"):
        wait_for_leaders(history.broker, topic, 1)
    for topic in dict.fromkeys((*SAME_BYTES, *SAME_RECORDS, "stamped")):
        history.append(topic, batches(5, first=first, keys=20))
    wait_until_it_rests(history.broker, data)


def wait_until_it_rests(broker: Broker, data: Path) -> None:
    """Retention has nothing left to do."""
    wait_for_leaders(broker, "sized", 1)

    def is_done() -> bool:
        sizes = [path.stat().st_size for path in sorted((data / "sized-0").glob("*.log"))]
        begins_late = not (data / "cut-0" / "00000000000000000000.log").exists()
        return sum(sizes[1:]) < RETENTION_BYTES and begins_late

    until(is_done, "old segments are gone")


def test_compressed_batches_are_those_that_apache_kafka_was_sent(kind: str, answers: TestAnswers) -> None:
    """Where this fails alone, only this machine's cramjam is another: what it compresses has other sizes everywhere."""
    del kind
    sent = b"".join(batches(len(CODECS) * 4))
    rows = [data_files.in_one_line(batch) for batch in data_files.batches(sent)]
    answers.same("batches", rows)


@pytest.mark.parametrize("topic", SAME_BYTES)
def test_files_of_a_log_are_equal_in_every_byte(traces: Traces, answers: TestAnswers, topic: str) -> None:
    answers.all_same(traces.of_each_stage(lambda path: files_in_use(path / f"{topic}-0")))


def files_in_use(directory: Path) -> dict[str, Any]:
    """Without what waits for its removal. And where a log begins, pykbroker keeps what it knew of producers: after a
    kill -9 it still tells a batch that is gone from one that never came. Kafka removes that snapshot when it starts.
    """
    begins_at = min(path.stem for path in directory.glob("*.log"))
    files = data_files.log_files(directory)
    return {name: files[name] for name in files if not name.endswith(".deleted") and name != f"{begins_at}.snapshot"}


REWRITTEN = {"position", "batch_length", "crc", "records"}


@pytest.mark.parametrize("topic", SAME_RECORDS)
def test_compressed_anew_batches_differ_in_nothing_else(traces: Traces, answers: TestAnswers, topic: str) -> None:
    """Compressors of two languages need not agree in every byte."""

    def look(path: Path) -> dict[str, Any]:
        files = files_in_use(path / f"{topic}-0")
        for log in (path / f"{topic}-0").glob("*.log"):
            data = log.read_bytes()
            files[log.name] = [data_files.in_one_line(each, REWRITTEN) for each in data_files.batches(data)]
            files[f"records of {log.name}"] = data_files.decoded_records(data)
        return {name: content for name, content in files.items() if "index" not in name}

    answers.all_same(traces.of_each_stage(look))


def test_batches_with_the_brokers_time_differ_in_that(traces: Traces, answers: TestAnswers) -> None:
    def look(path: Path) -> dict[str, Any]:
        files = files_in_use(path / "stamped-0")
        for log in (path / "stamped-0").glob("*.log"):
            rows = data_files.batches(log.read_bytes())
            files[log.name] = [data_files.in_one_line(each, {"crc", "max_timestamp"}) for each in rows]
            del files[f"{log.stem}.timeindex"]  # it has no entry where the clock has not moved on
        for name in files:
            if name.endswith(".snapshot"):
                files[name]["producers"] = [row[:5] + row[6:] for row in files[name]["producers"]]
        return files

    answers.all_same(traces.of_each_stage(look))


def test_files_of_the_directory_are_equal(traces: Traces, answers: TestAnswers) -> None:
    def look(path: Path) -> dict[str, Any]:
        metadata = path / "__cluster_metadata-0"
        return {
            "checkpoints": {each.name: data_files.checkpoint(each) for each in path.glob("*-checkpoint")},
            "owner": data_files.without_ids_in(data_files.properties(path / "meta.properties")),
            "mark of a clean shutdown": set(json.loads((path / ".kafka_cleanshutdown").read_text())),
            "quorum-state": json.loads((metadata / "quorum-state").read_text()),
            "partition.metadata": data_files.log_file(metadata / "partition.metadata"),
            "names": kept_names(path),
        }

    answers.all_same(traces.of_each_stage(look))


def kept_names(path: Path) -> list[str]:
    """pykbroker notes the machine's start in a file of its own. It leaves its lock file, as Kafka does after kill -9;
    and what is on its way out when it starts goes at once, where Kafka waits for `file.delete.delay.ms` again.
    """
    return [
        name for name in data_files.names(path) if name not in (".lock", ".boot-id") and not name.endswith("-delete")
    ]


def test_names_of_what_is_on_its_way_out(traces: Traces, answers: TestAnswers) -> None:
    for directory in traces.running.values():
        # Kafka writes it when an epoch begins, pykbroker when it flushes, which may be just now.
        directory.pop("leader-epoch-checkpoint", None)
    traces.running["data"].pop(".boot-id", None)
    answers.all_same(traces.running)
    assert "gone-0.ID-delete" in traces.running
    assert "00000000000000000000.snapshot.deleted" not in traces.running["cut-0"]
    for topic in ("cut", "sized"):
        gone = [name for name in traces.running[f"{topic}-0"] if name.endswith(".deleted")]
        assert {name.split(".")[1] for name in gone} == {"log", "index", "timeindex", "snapshot"}
