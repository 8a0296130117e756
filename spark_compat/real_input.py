"""`make spark`: real text goes through the whole pipeline, and comes back record by record.

Produce, archive, compare the archive with the topic, delete the topic, replay it into a new one, audit that beside the
archive, and compare its keys and values with what was sent. All by the command line, as a user would; the last step by
stock Spark alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import xxhash
from confluent_kafka import Producer

from compat_tests.brokers import Pykbroker
from compat_tests.topics import create_topic
from pykbroker.spark.session import SessionOptions, open_session
from spark_compat.mirrors import delete_topic
from spark_compat.pipelines import PYKBROKER
from spark_compat.real_text import Amount, records_of_text
from spark_compat.streams import read_batch

PARTITIONS = 12
FULL = Amount(5_000_000, 1_000_000_000)
_MODULUS = 1 << 64
_SEED = 42
_HEADER_EVERY = 10
_POLL_EVERY = 1000
_COMMAND_S = 900
_SHOWN = 2000

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Content:
    """What a topic holds: the number of records, and the sum of `xxhash64(key, value)` as Spark computes it."""

    records: int
    checksum: int


class CommandLine:
    """`pykbroker spark …` on a broker. jars: of the connector; None: it is fetched where it is not there."""

    def __init__(self, bootstrap: str, cores: int, jars: str | None = None) -> None:
        self._options = ["--bootstrap-server", bootstrap, "--master", f"local[{cores}]"]
        if jars is not None:
            self._options += ["--jars", jars.replace("file://", "")]

    def run(self, name: str, *options: str) -> Any:
        """Its summary. Fails where the exit code is not 0."""
        code, output, errors = self.call([name, *self._options, "--json", *options])
        assert code == 0, f"{name} ended with {code}: {output[-_SHOWN:]}\n{errors[-_SHOWN:]}"
        return json.loads(output)

    def call(self, arguments: Sequence[str]) -> tuple[int, str, str]:
        """The exit code, and what was printed, of a process of its own."""
        command = [*PYKBROKER, "spark", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_S, check=False)
        return done.returncode, done.stdout, done.stderr


def produce(bootstrap: str, topic: str, amount: Amount) -> Content:
    """Send real text, in each tenth record with headers; what was sent."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 256 << 10, "acks": "all"})
    failures: list[object] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    checksum = number = 0
    for number, (key, value) in enumerate(records_of_text(amount), 1):
        checksum += xxhash.xxh64_intdigest(value, seed=xxhash.xxh64_intdigest(key, seed=_SEED))
        headers = None if number % _HEADER_EVERY else [("number", b"%d" % number), ("number", None), ("", b"")]
        while True:
            try:
                producer.produce(topic, value, key, headers=headers, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
        if number % _POLL_EVERY == 0:
            producer.poll(0)
    assert producer.flush(120) == 0
    assert not failures, failures[0]
    return Content(number, checksum % _MODULUS)


def content_of(spark: Any, bootstrap: str, topic: str) -> Content:
    """By stock Spark, with nothing of the pipeline."""
    frame = read_batch(spark, bootstrap, topic)
    hashes = frame.selectExpr("CAST(xxhash64(key, value) AS DECIMAL(38, 0)) AS hash")
    row = hashes.selectExpr("COUNT(1) AS records", "SUM(hash) AS checksum").collect()[0]
    return Content(row["records"], int(row["checksum"] or 0) % _MODULUS)


@dataclass(frozen=True)
class RealInput:
    """A run on a broker. directory: for the archive. page: where the audit's page is left."""

    broker: Pykbroker
    topic: str
    amount: Amount
    directory: Path
    page: Path
    commands: CommandLine
    say: Say = click.echo

    @property
    def copy(self) -> str:
        return f"{self.topic}-again"

    def run(self) -> Content:
        """What was sent; all steps but the last. Fails where a step finds a difference."""
        bootstrap, archive = self.broker.bootstrap, str(self.directory / "archive")
        create_topic(self.broker, self.topic, PARTITIONS)
        with self._step("produce"):
            sent = produce(bootstrap, self.topic, self.amount)
        with self._step("archive"):
            summary = self.commands.run("archive", "--topic", self.topic, "--to", archive)
        assert summary["records"] == sent.records, summary
        with self._step("audit of the topic beside its archive"):
            report = self.commands.run("audit", "--topic", self.topic, "--archive", archive)
        assert _records_in(report) == [sent.records], report
        delete_topic(self.broker, self.topic)
        create_topic(self.broker, self.copy, PARTITIONS)
        with self._step("replay"):
            summary = self.commands.run("replay", "--archive", archive, "--topic", self.topic, "--to-topic", self.copy)
        assert summary["records"] == sent.records, summary
        options = ["--topic", self.copy, "--archive", archive, "--replayed-from", self.topic, "--html", str(self.page)]
        with self._step("audit of what was replayed"):
            report = self.commands.run("audit", *options)
        (replay,) = report["replays"]
        assert sum(each["replayed"] for each in replay["partitions"]) == sent.records, replay
        assert (replay["steps_back"], replay["other_records"]) == (0, 0), replay
        return sent

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.say(f"{name}: {time.perf_counter() - started:.0f} s")


def _records_in(report: dict[str, Any]) -> list[int]:
    return [sum(each["records"] for each in topic["partitions"]) for topic in report["topics"]]


@click.command()
@click.option("--records", default=FULL.records, show_default=True, help="At least.")
@click.option("--size-bytes", default=FULL.size_bytes, show_default=True, help="Of keys and values, at least.")
@click.option("--cores", default=2, show_default=True, help="Of Spark.")
@click.option("--page", default="spark-audit.html", show_default=True, type=click.Path(path_type=Path, dir_okay=False))
def main(records: int, size_bytes: int, cores: int, page: Path) -> None:
    """Send real text through the whole pipeline, and compare it record by record."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="pykbroker-spark-") as work:
        broker = Pykbroker(Path(work) / "broker", {"log.retention.ms": "-1"})
        broker.directory.mkdir()
        broker.write_properties()
        broker.prepare()
        broker.start()
        try:
            commands = CommandLine(broker.bootstrap, cores)
            proof = RealInput(broker, "real-text", Amount(records, size_bytes), Path(work), page, commands)
            sent = proof.run()
            session = open_session(SessionOptions(master=f"local[{cores}]"))
            found = content_of(session, broker.bootstrap, proof.copy)
            session.stop()
        finally:
            broker.close()
    if found != sent:
        sys.exit(f"DIFFERENT: {sent} was sent, and {found} has come back")
    click.echo(f"equal: {sent.records:,} records, in {time.perf_counter() - started:.0f} s; the page is {page}")


if __name__ == "__main__":
    main()
