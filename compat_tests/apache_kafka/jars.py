"""Sets of jars, pinned by SHA-256 in lock files and kept in a cache directory; Apache Kafka's own is `jars.lock`.

`kafka_libs()` is the one way to Kafka's, for every test that needs Kafka's classes or the JSON schemas inside its jars.
A set is fetched at first use by Maven where it is installed, else by the Apache Ivy that ships inside pyspark, else by
a Maven that is installed for it (Debian, as root). No dependency is resolved: the lock file is the whole list.
`python -m compat_tests.apache_kafka` fetches Kafka's and prints where they are.
"""

import fcntl
import functools
import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from .java import JavaMissing, find_java

KAFKA_VERSION = "4.3.1"
LIBS_VARIABLE = "PYKBROKER_KAFKA_LIBS"
FETCH_TIMEOUT_S = 900

logger = logging.getLogger(__name__)


class JarsMissing(Exception):
    """The jars are neither there nor to be had; the text says in one line why."""


@dataclass(frozen=True, slots=True)
class Jar:
    sha256: str
    group: str
    artifact: str
    version: str
    classifier: str = ""

    @property
    def file_name(self) -> str:
        return "-".join(filter(None, (self.artifact, self.version, self.classifier))) + ".jar"


@dataclass(frozen=True, slots=True)
class JarSet:
    """name: the directory's name in the cache. variable: of the environment, names another directory that has them."""

    name: str
    lock_file: Path
    variable: str

    def jars(self) -> tuple[Jar, ...]:
        lines = [line for line in self.lock_file.read_text().splitlines() if line and not line.startswith("#")]
        return tuple(Jar(sha256, *coordinates.split(":")) for sha256, coordinates in map(str.split, lines))

    def directory(self) -> Path:
        """The directory that holds every locked jar, each with its checksum. Raises JarsMissing."""
        chosen = os.environ.get(self.variable)
        directory = Path(chosen) if chosen else cache_directory() / self.name
        directory.parent.mkdir(parents=True, exist_ok=True)
        with open(directory.parent / f".{directory.name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs at once: one fetches, the other waits for it
            if not directory.exists():
                _fetch_into(directory, self.jars())
            elif wrong := wrong_jars(directory, self.jars()):
                if chosen:
                    raise JarsMissing(f"{self.variable}={chosen}: {wrong[0]}, and {len(wrong) - 1} more")
                shutil.rmtree(directory)  # the lock file changed since it was filled
                _fetch_into(directory, self.jars())
        return directory


KAFKA_JARS = JarSet(f"kafka-{KAFKA_VERSION}", Path(__file__).with_name("jars.lock"), LIBS_VARIABLE)


@functools.cache
def kafka_libs() -> Path:
    """The directory of Apache Kafka's jars. Raises JarsMissing."""
    return KAFKA_JARS.directory()


def cache_directory() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pykbroker"


def class_path() -> str:
    """What follows `java -cp`."""
    return f"{kafka_libs()}/*"


def wrong_jars(directory: Path, jars: tuple[Jar, ...]) -> list[str]:
    """One line for each locked jar that is missing from the directory or is not what was locked."""
    return [problem for jar in jars if (problem := _problem(directory / jar.file_name, jar.sha256))]


def _problem(path: Path, sha256: str) -> str | None:
    try:
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return f"{path.name} is missing"
    return None if found == sha256 else f"{path.name} has SHA-256 {found}, locked is {sha256}"


def _fetch_into(directory: Path, jars: tuple[Jar, ...]) -> None:
    """Everything happens beside the directory; only a complete and verified set is renamed to it."""
    with tempfile.TemporaryDirectory(prefix=f".{directory.name}.", dir=directory.parent) as work:
        workspace = Path(work)
        _fetcher()(workspace, jars)
        if wrong := wrong_jars(workspace / "libs", jars):
            raise JarsMissing(f"Apache Kafka's jars were not fetched as locked: {wrong[0]}, and {len(wrong) - 1} more")
        (workspace / "libs").rename(directory)


def _fetcher() -> Callable[[Path, tuple[Jar, ...]], None]:
    try:
        find_java()
    except JavaMissing as reason:
        raise JarsMissing(f"Apache Kafka's jars cannot be fetched: {reason}") from None
    if shutil.which("mvn"):
        return _fetch_by_maven
    if ivy := _ivy_of_pyspark():
        return functools.partial(_fetch_by_ivy, ivy)
    if os.geteuid() == 0 and shutil.which("apt-get"):
        return _fetch_by_installed_maven
    raise JarsMissing("Apache Kafka's jars cannot be fetched: needs Maven (mvn) or pyspark, or root and apt-get")


def _fetch_by_maven(workspace: Path, jars: tuple[Jar, ...]) -> None:
    (workspace / "pom.xml").write_text(_pom(jars))
    # A local repository of its own: one that another tool left half-filled fails later resolves, Spark's among them.
    own_repository = f"-Dmaven.repo.local={workspace / 'repository'}"
    _run(["mvn", "-B", "-q", own_repository, "dependency:copy-dependencies", "-DoutputDirectory=libs"], workspace)


def _fetch_by_installed_maven(workspace: Path, jars: tuple[Jar, ...]) -> None:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    _run(["apt-get", "update", "-q"], workspace, environment)
    _run(["apt-get", "install", "-q", "-y", "--no-install-recommends", "maven"], workspace, environment)
    _fetch_by_maven(workspace, jars)


def _fetch_by_ivy(ivy: Path, workspace: Path, jars: tuple[Jar, ...]) -> None:
    (workspace / "ivy.xml").write_text(_ivy_module(jars))
    command = [find_java(), "-jar", str(ivy), "-ivy", "ivy.xml", "-cache", "cache"]
    _run([*command, "-retrieve", "libs/[artifact]-[revision](-[classifier]).[ext]"], workspace)


def _ivy_of_pyspark() -> Path | None:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))), None)


def _pom(jars: tuple[Jar, ...]) -> str:
    nothing_else = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    dependencies = "".join(
        f"<dependency><groupId>{jar.group}</groupId><artifactId>{jar.artifact}</artifactId>"
        f"<version>{jar.version}</version><classifier>{jar.classifier}</classifier>{nothing_else}</dependency>\n"
        for jar in jars
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>pykbroker</groupId><artifactId>referee</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


def _ivy_module(jars: tuple[Jar, ...]) -> str:
    dependencies = "".join(
        f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} rev={quoteattr(jar.version)} "
        f'transitive="false" conf="default->master">{_ivy_artifact(jar)}</dependency>\n'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="pykbroker" module="referee"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def _ivy_artifact(jar: Jar) -> str:
    classifier = f" m:classifier={quoteattr(jar.classifier)}" if jar.classifier else ""
    return f'<artifact name={quoteattr(jar.artifact)} type="jar" ext="jar"{classifier}/>'


def _run(command: list[str], cwd: Path, env: dict[str, str] | None = None) -> None:
    logger.info("fetching Apache Kafka's jars: %s", command[0])
    limit = FETCH_TIMEOUT_S
    try:
        done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        raise JarsMissing(f"{command[0]} did not end within {limit} s") from None
    if done.returncode != 0:
        last = (done.stdout + done.stderr).strip().splitlines()[-15:]
        raise JarsMissing(f"{command[0]} failed with {done.returncode}: " + "\n".join(last))
