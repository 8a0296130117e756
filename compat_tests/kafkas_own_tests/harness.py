"""The harness: its Java classes, compiled once for each state of their sources, and the class paths of its JVMs."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from compat_tests.apache_kafka.broker import SMALL_JVM
from compat_tests.apache_kafka.jars import KAFKA_VERSION, JarSet, JarsMissing, cache_directory, kafka_libs
from compat_tests.apache_kafka.java import JavaMissing, find_java

HERE = Path(__file__).parent
SOURCES = HERE / "java"
TEST_JARS = JarSet(f"kafka-tests-{KAFKA_VERSION}", HERE / "jars.lock", "PYKBROKER_KAFKA_TEST_LIBS")
BUILD_TIMEOUT_S = 300
KEPT_BUILDS = 8
"""Builds of other sources that may be in use, by runs in other checkouts."""


class HarnessMissing(Exception):
    """The harness cannot be built here; the text says in one line why."""


def why_there_is_no_harness() -> str | None:
    """None where it can be built."""
    try:
        classes()
    except (HarnessMissing, JarsMissing, JavaMissing) as reason:
        return str(reason)
    return None


@functools.cache
def test_jars() -> Path:
    return TEST_JARS.directory()


def jars_class_path() -> str:
    """Kafka's jars come first: the archive of their classes is of just that class path."""
    return f"{kafka_libs()}/*:{test_jars()}/*"


@functools.cache
def classes() -> Path:
    """The directory of the compiled classes. Raises HarnessMissing, JarsMissing, JavaMissing."""
    find_java()
    directory = cache_directory() / f"kafkas-own-tests-{_digest()}"
    directory.parent.mkdir(parents=True, exist_ok=True)
    with open(directory.parent / ".kafkas-own-tests.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            _build(directory)
    return directory


def _digest() -> str:
    digest = hashlib.sha256()
    for path in [Path(__file__), TEST_JARS.lock_file, *sorted(path for path in SOURCES.rglob("*") if path.is_file())]:
        digest.update(f"{path.relative_to(HERE)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _build(directory: Path) -> None:
    """Everything happens beside the directory, which a complete build is renamed to."""
    java_compiler = shutil.which("javac", path=Path(find_java()).resolve().parent) or shutil.which("javac")
    if java_compiler is None:
        raise HarnessMissing("Apache Kafka's own tests need javac (a JDK)")
    class_path = jars_class_path()
    with tempfile.TemporaryDirectory(prefix=f".{directory.name}.", dir=directory.parent) as work:
        target = Path(work, "classes")
        target.mkdir()
        sources = sorted(map(str, SOURCES.rglob("*.java")))
        _run([java_compiler, "-nowarn", "-proc:none", "-d", str(target), "-cp", class_path, *sources])
        _run([find_java(), "-cp", f"{target}:{class_path}", "nodes.ChangedClasses", str(target)])
        shutil.copytree(SOURCES / "META-INF", target / "META-INF")
        _extract_sources_of_plugins(target)
        target.rename(directory)
    builds = sorted(directory.parent.glob("kafkas-own-tests-*"), key=lambda path: path.stat().st_mtime)
    for old in builds[:-KEPT_BUILDS]:
        shutil.rmtree(old)


def _extract_sources_of_plugins(directory: Path) -> None:
    """Tests of Connect compile plugins whose sources they look for in a directory of the class path, not in a jar."""
    with zipfile.ZipFile(test_jars() / f"connect-runtime-{KAFKA_VERSION}-test.jar") as jar:
        jar.extractall(directory, [name for name in jar.namelist() if name.startswith("test-plugins/")])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise HarnessMissing(f"the harness for Apache Kafka's own tests was not built: {done.stdout}{done.stderr}")


def kafka_command() -> list[str]:
    """The command of one node of Apache Kafka up to its properties; tests name classes of their jars in them."""
    logging = f"-Dlog4j2.configurationFile={HERE / 'nodes-log4j2.properties'}"
    return [find_java(), *SMALL_JVM, logging, "-cp", jars_class_path(), "kafka.Kafka"]


def classes_of_clusters() -> dict[str, str]:
    """The test classes that start a cluster, with the jar that each is in."""
    jars = [str(test_jars() / jar.file_name) for jar in TEST_JARS.jars() if jar.classifier == "test"]
    command = [find_java(), "-cp", f"{classes()}:{jars_class_path()}", "nodes.TestClasses", *jars]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=True)
    return {name: jar for jar, name in map(str.split, done.stdout.splitlines())}
