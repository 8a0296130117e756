"""A Spark session that has the stock Kafka connector.

`open_session` starts Spark where it does not run yet, and says in one sentence what is missing: Java, pyspark, or the
connector, which the first use fetches from Maven Central. A session that runs already, as in a notebook, is used as it
is, if it has the connector.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import BadOptions, ConnectorMissing, JavaMissing, JobFailed, SparkMissing
from .jvm import jvm_of
from .python_tasks import tasks_in_this_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_VERSION = "4.0.0"
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_VERSION}"
CONNECTOR_MB = 62
OLDEST_JAVA = 17
RECORDS_OF_A_PART = 2_000_000
FEWEST_OF_A_TASK = 100_000
MOST_PARTS = 2000
IVY_VARIABLE = "PYKBROKER_SPARK_IVY"
_PROVIDER = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
_EXCEPTION = re.compile(r"^(?:Exception in thread \S+ )?([\w.$]+(?:Exception|Error): .*)$", re.MULTILINE)

Say = Callable[[str], None]
"""Takes a line for the user."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Options of Spark's start.

    master: `local[*]`, `spark://host:7077`, `yarn` or `k8s://…`. jars: the connector's jars as files, which are not
    fetched then. driver_memory: as Spark writes it, `2g`. log: a file for what the JVM logs; None: thrown away.
    config: settings of Spark, which win over those set here.
    """

    master: str = "local[*]"
    jars: Sequence[str] = ()
    driver_memory: str = "2g"
    log: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)


def ivy_directory() -> Path:
    """The directory of the connector: `PYKBROKER_SPARK_IVY`, or `pykbroker/ivy` in the user's cache directory."""
    given = os.environ.get(IVY_VARIABLE)
    if given:
        return Path(given)
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "pykbroker" / "ivy"


@contextmanager
def pipeline_session(
    options: SessionOptions | None = None, *, spark: SparkSession | None = None, say: Say = lambda line: None
) -> Iterator[SparkSession]:
    """A session with the pipeline's own SQL settings, on the Spark that is given, that runs, or that is started.

    What was started here is stopped at the end. Raises SparkMissing, JavaMissing, ConnectorMissing, BadOptions.
    """
    base = spark or _running_session()
    if base is not None:
        with tasks_in_this_python(base):
            yield _own_settings(base)
        return
    started = open_session(options or SessionOptions(), say=say)
    litter = _artifacts_of(started)
    try:
        with tasks_in_this_python(started):
            yield _own_settings(started)
    finally:
        started.stop()
        if litter is not None:
            shutil.rmtree(litter, ignore_errors=True)
            with contextlib.suppress(OSError):  # another Spark may use it
                litter.parent.rmdir()


def _artifacts_of(session: SparkSession) -> Path | None:
    """The directory that Spark 4.0.0 makes in the current one for classes and files that nobody adds here."""
    from py4j.protocol import Py4JError

    try:
        of_session: Any = session._jsparkSession
        directory = Path(of_session.artifactManager().artifactPath().toString()).parent
    except Py4JError:
        return None
    return directory if directory.parent.name == "artifacts" else None


def open_session(options: SessionOptions, *, say: Say = lambda line: None) -> SparkSession:
    """Start Spark. Raises SparkMissing, JavaMissing, ConnectorMissing, BadOptions, JobFailed."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise SparkMissing("pyspark is not installed: pip install 'pykbroker[spark]'") from None
    _check_java()
    for jar in options.jars:
        if "://" not in jar and not Path(jar).is_file():
            raise BadOptions(f"There is no jar {jar}")
    jars = list(options.jars) or _fetched_jars()
    builder = SparkSession.builder.master(options.master).appName("pykbroker")
    for name, value in _settings(options, jars).items():
        builder = builder.config(name, value)
    if not jars:
        say(
            f"Spark's Kafka connector is fetched from Maven Central into {ivy_directory()}, about {CONNECTOR_MB} MB; "
            "this happens once."
        )
    with _standard_error_of_java(options.log) as log, _own_interrupt_handler():
        try:
            session = builder.getOrCreate()
        except Exception as error:  # Py4j's, Python's and Spark's: they have nothing else in common
            raise _why_no_session(log.read_text(errors="replace"), error) from None
    session.sparkContext.setLogLevel("ERROR")
    if not jars:
        _remember_jars(session)
    return session


def _settings(options: SessionOptions, jars: Sequence[str]) -> dict[str, str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": options.driver_memory,
        "spark.sql.session.timeZone": "UTC",
    }
    if options.master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if jars:
        settings["spark.jars"] = ",".join(jars)
    else:
        settings |= {"spark.jars.packages": CONNECTOR, "spark.jars.ivy": str(ivy_directory())}
    return settings | dict(options.config)


def _running_session() -> SparkSession | None:
    """The caller's session: the active one of this thread, or the one that its Spark has begun with."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def _own_settings(base: SparkSession) -> SparkSession:
    """A session beside `base`: the caller's settings stay what they are. Raises ConnectorMissing, BadOptions."""
    if not hasattr(base, "_jvm"):
        raise BadOptions("This session is one of Spark Connect; the pipeline needs a driver in its own process")
    _check_connector(base)
    session = base.newSession()
    for name, value in SQL_SETTINGS.items():
        session.conf.set(name, value)
    return session


SQL_SETTINGS = {
    # Dates are those of UTC, wherever the pipeline runs.
    "spark.sql.session.timeZone": "UTC",
    # Sums of checksums go around at 2**64.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A topic may be called 2024 or true.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # Without it Spark sorts what it writes into several directories.
    "spark.sql.maxConcurrentOutputFileWriters": "64",
    # Of what goes to Python at a time; a bound of bytes costs a look at every row, and stands where rows may be large.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
}


def tasks_for(session: SparkSession, records: int) -> int:
    """The number of tasks that so many records are worth. The start of one costs a third of a second where it runs
    Python, and each makes files of its own.
    """
    cores = session.sparkContext.defaultParallelism
    return min(1 + records // FEWEST_OF_A_TASK, max(cores, records // RECORDS_OF_A_PART))


def shuffle_in_parts(session: SparkSession, records: int) -> None:
    """Spark's 200 tasks of each shuffle cost more than a few million records do."""
    parts = max(2 * session.sparkContext.defaultParallelism, records // RECORDS_OF_A_PART)
    session.conf.set("spark.sql.shuffle.partitions", min(parts, MOST_PARTS))


def _check_connector(session: SparkSession) -> None:
    from py4j.protocol import Py4JJavaError

    try:
        jvm_of(session).java.lang.Thread.currentThread().getContextClassLoader().loadClass(_PROVIDER)
    except Py4JJavaError:
        raise ConnectorMissing(
            f"This Spark session has no Kafka connector: build it with spark.jars.packages={CONNECTOR}"
        ) from None


# ---- Java


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    hint = f"install Java {OLDEST_JAVA} or newer, and set JAVA_HOME"
    if command is None or not Path(command).is_file():
        where = "on PATH, and JAVA_HOME is not set" if not home else f"in JAVA_HOME={home}"
        raise JavaMissing(f"No java {where}: {hint}")
    try:
        answer = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - our own command
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaMissing(f"{command} does not run ({error}): {hint}") from None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    if match is None or int(match[1]) < OLDEST_JAVA:
        what = "does not tell its version" if match is None else f"is version {match[1]}"
        raise JavaMissing(f"{command} {what}: {hint}")


# ---- the connector


def _list_of_jars() -> Path:
    return ivy_directory() / f"connector-{SPARK_VERSION}.txt"


def _fetched_jars() -> list[str]:
    """The connector's jars of an earlier run; nothing is resolved again. Empty where one of them is not there."""
    try:
        jars = _list_of_jars().read_text().splitlines()
    except OSError:
        return []
    return jars if all(Path(jar).is_file() for jar in jars) else []


def _remember_jars(session: SparkSession) -> None:
    listed = session.sparkContext.getConf().get("spark.jars") or ""
    jars = [jar.removeprefix("file://") for jar in listed.split(",") if jar]
    text = "".join(f"{jar}\n" for jar in jars)
    path = _list_of_jars()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    partial.write_text(text)
    partial.replace(path)


@contextmanager
def _standard_error_of_java(log: str | None) -> Iterator[Path]:
    """Spark's JVM inherits this process's standard error when it starts: its log is kept from the terminal."""
    with tempfile.NamedTemporaryFile(prefix="pykbroker-spark-", suffix=".log") as temporary:
        path = Path(log or temporary.name)
        with path.open("ab") as file:
            sys.stderr.flush()
            kept = os.dup(2)
            os.dup2(file.fileno(), 2)
            try:
                yield path
            finally:
                os.dup2(kept, 2)
                os.close(kept)


@contextmanager
def _own_interrupt_handler() -> Iterator[None]:
    """Spark's handler of Ctrl-C calls the JVM on the connection on which the interrupted call waits for its answer."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _why_no_session(log: str, error: Exception) -> ConnectorMissing | JobFailed:
    if "unresolved dependenc" in log or "UNRESOLVED DEPENDENCIES" in log or "download failed" in log.lower():
        return ConnectorMissing(
            f"Spark's Kafka connector {CONNECTOR} cannot be fetched from Maven Central. Without a network: run this "
            f"once where there is one, copy {ivy_directory()} to the same place here, or set {IVY_VARIABLE} to it; "
            "or name the jars with --jars."
        )
    reasons = _EXCEPTION.findall(log)
    return JobFailed(f"Spark does not start: {reasons[0] if reasons else error}")
