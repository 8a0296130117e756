"""Stock Spark on both brokers, and the pipeline beside bare jobs of Spark that read the same."""

from __future__ import annotations

import functools
import itertools
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from benchmarks.bench import Bench, Figures, Measure, Scene
from pykbroker.spark import ArchiveOptions, AuditOptions, Source, archive, audit
from spark_compat.session import open_session
from spark_compat.streams import read_batch, read_stream, topic_writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CORES = 2
LATENCY_RATE = 20_000
LATENCY_S = 120.0
PIPELINE_RECORDS = 5_000_000
PIPELINE_PARTITIONS = 24
GROWTH_RECORDS = 1_000_000
REPETITIONS = 3
_DEADLINE_S = 1200


@functools.cache
def session() -> SparkSession:
    """One for all measures: its JVM is warm behind the first of them."""
    spark = open_session(Path(tempfile.mkdtemp(prefix="pykbroker-bench-spark-")), cores=CORES)
    spark.conf.set("spark.sql.shuffle.partitions", str(2 * CORES))
    return spark


def records(count: int, size: int) -> DataFrame:
    """Values of so many bytes, cut out of a text at other places each."""
    text = "".join(map(str, range(2 * size)))[: 2 * size]
    return (
        session()
        .range(count)
        .selectExpr(
            "CAST(CAST(id % 100000 AS STRING) AS BINARY) AS key",
            f"CAST(SUBSTRING('{text}', 1 + id % {size}, {size}) AS BINARY) AS value",
        )
    )


def write(bench: Bench, topic: str, count: int, size: int) -> None:
    records(count, size).write.format("kafka").option("kafka.bootstrap.servers", bench.broker.bootstrap).option(
        "topic", topic
    ).save()


def timed(work: Callable[[], Any]) -> float:
    """Seconds."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def create(bench: Bench, topic: str, partitions: int) -> None:
    """With a record in each partition: Spark's job dies on Apache Kafka where a topic was created a moment ago."""
    bench.create_topic(topic, partitions)
    producer = Producer({"bootstrap.servers": bench.broker.bootstrap})
    for partition in range(partitions):
        producer.produce(topic, b"first", partition=partition)
    assert producer.flush(60) == 0


# ---- Spark's own source and sink


def stock(name: str, size: int, count: int, partitions: int) -> dict[str, Measure]:
    """Write, read as a batch, read as a stream: of the same topic, which the last of them deletes."""
    topic = f"spark-{size}"

    def write_all(bench: Bench) -> Figures:
        create(bench, topic, partitions)
        write(bench, topic, 1000, size)
        amount = bench.count(count)
        return bench.with_cpu(lambda: {"records/s": amount / timed(lambda: write(bench, topic, amount, size))})

    def read_all(bench: Bench) -> Figures:
        frame = read_batch(session(), bench.broker.bootstrap, topic)
        return bench.with_cpu(
            lambda: {"records/s": bench.count(count) / timed(lambda: frame.write.format("noop").mode("append").save())}
        )

    def stream_all(bench: Bench) -> Figures:
        def run() -> None:
            with checkpoint() as path:
                stream = read_stream(session(), bench.broker.bootstrap, topic)
                writer = stream.writeStream.format("noop").option("checkpointLocation", path)
                assert writer.trigger(availableNow=True).start().awaitTermination(_DEADLINE_S)

        figures = bench.with_cpu(lambda: {"records/s": bench.count(count) / timed(run)})
        bench.delete_topic(topic)
        return figures

    return {f"spark write {name}": write_all, f"spark read {name}": read_all, f"spark availableNow {name}": stream_all}


@contextmanager
def checkpoint() -> Iterator[str]:
    path = tempfile.mkdtemp(prefix="pykbroker-bench-checkpoint-")
    try:
        yield path
    finally:
        shutil.rmtree(path)


def latency(bench: Bench) -> Figures:
    """A query copies a topic, as fast as its batches follow each other; each record is timed from end to end."""
    for topic in ("latency", "latency-copy"):
        create(bench, topic, 6)
    bootstrap = bench.broker.bootstrap
    with checkpoint() as path:
        stream = read_stream(session(), bootstrap, "latency")
        query = topic_writer(stream, bootstrap, "latency-copy").option("checkpointLocation", path).start()
        try:
            seconds = max(5.0, LATENCY_S * bench.scale)
            command = ["latency", "latency-copy", str(LATENCY_RATE), str(seconds)]
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.spark_latency", bootstrap, *command],
                stdout=subprocess.PIPE, timeout=_DEADLINE_S, check=True, text=True,
            )  # fmt: skip
        finally:
            query.stop()
    found: Figures = json.loads(done.stdout)
    return found


# ---- the pipeline


def bare_count(bench: Bench, topic: str) -> float:
    return timed(read_batch(session(), bench.broker.bootstrap, topic).count)


def bare_parquet(bench: Bench, topic: str, directory: Path) -> float:
    frame = read_batch(session(), bench.broker.bootstrap, topic)
    return timed(lambda: frame.write.parquet(str(directory / "bare")))


def archive_into(bench: Bench, topic: str, directory: Path) -> float:
    options = ArchiveOptions(Source(bench.broker.bootstrap), str(directory / "archive"), topics=[topic])
    return timed(lambda: archive(options, spark=session()))


def audit_of(bench: Bench, topic: str) -> float:
    return timed(lambda: audit(AuditOptions(Source(bench.broker.bootstrap), topics=[topic]), spark=session()))


@contextmanager
def warm_topic(bench: Bench, topic: str, count: int) -> Iterator[Path]:
    """A filled topic, and a directory, behind a first small use of all of it.

    No name is used twice: Spark keeps its producers, whose next question about all of their topics creates again those
    that were deleted.
    """
    directory = Path(tempfile.mkdtemp(prefix="pykbroker-bench-archive-"))
    warm = f"warm-{topic}"
    create(bench, warm, 2)
    write(bench, warm, 20_000, 100)
    for work in (bare_parquet, archive_into):
        work(bench, warm, directory / warm)
    for work_of_topic in (bare_count, audit_of):
        work_of_topic(bench, warm)
    bench.delete_topic(warm)
    create(bench, topic, PIPELINE_PARTITIONS)
    write(bench, topic, count, 100)
    try:
        yield directory
    finally:
        bench.delete_topic(topic)
        shutil.rmtree(directory)


def archive_and_audit(bench: Bench) -> Figures:
    """Each beside the mean of two bare jobs, one in front of it and one behind, three times; the median of the ratios.

    How fast such a machine is changes from one minute to the next.
    """
    with warm_topic(bench, "pipeline", bench.count(PIPELINE_RECORDS)) as directory:
        places = (directory / str(number) for number in itertools.count())
        archiving = beside_bare_jobs(
            lambda: archive_into(bench, "pipeline", next(places)), lambda: bare_parquet(bench, "pipeline", next(places))
        )
        auditing = beside_bare_jobs(lambda: audit_of(bench, "pipeline"), lambda: bare_count(bench, "pipeline"))
    return {
        "archive s": archiving[0],
        "archive / bare speed": archiving[1],
        "audit s": auditing[0],
        "audit / bare speed": auditing[1],
    }


def beside_bare_jobs(work: Callable[[], float], bare: Callable[[], float]) -> tuple[float, float]:
    """The median of the seconds, and that of the speed beside bare jobs."""
    times, bare_times = [], [bare()]
    for _ in range(REPETITIONS):
        times.append(work())
        bare_times.append(bare())
    means = [(before + behind) / 2 for before, behind in itertools.pairwise(bare_times)]
    ratios = [mean / seconds for mean, seconds in zip(means, times, strict=True)]
    return statistics.median(times), statistics.median(ratios)


def growth(bench: Bench) -> Figures:
    """The longest time per record of 2, 4 and 8 times the data, over that of the least."""
    times: dict[str, list[float]] = {"archive": [], "audit": []}
    for factor in (1, 2, 4, 8):
        count = factor * bench.count(GROWTH_RECORDS)
        with warm_topic(bench, f"growth-{factor}", count) as directory:
            times["archive"].append(archive_into(bench, f"growth-{factor}", directory) / count)
            times["audit"].append(audit_of(bench, f"growth-{factor}") / count)
    return {
        f"{name} {what}": value
        for name, found in times.items()
        for what, value in (("most / at 1 ×", max(found) / found[0]), ("µs/record at 8 ×", found[-1] * 1e6))
    }


SPARK = Scene(
    {
        **stock("100 B", 100, 3_000_000, 24),
        **stock("1 kB", 1000, 500_000, 6),
        "spark streaming latency": latency,
    }
)
PIPELINE = Scene({"spark pipeline, 5 million": archive_and_audit})
GROWTH = Scene({"spark pipeline, growth": growth})
