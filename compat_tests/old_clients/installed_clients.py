"""Old clients in Python, each installed into a directory of the cache with what is pinned by its checksum.

kafka-python is a wheel. librdkafka 1.9.2 comes as the static library inside the Go module of the same version, and its
Python client is compiled against that: wheels of it there are only for Pythons that are older than ours. So this one
needs Go, a C compiler and Python's headers.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from compat_tests.apache_kafka.jars import JarsMissing, cache_directory
from compat_tests.apache_kafka.java import JavaMissing, find_java
from compat_tests.personalities.releases import jars_of

KAFKA_PYTHON = "kafka-python==2.0.2 --hash=sha256:2d92418c7cb1c298fa6c7f0fb3519b520d0d7526ac6cb7ae2a4fc65a51a94b6e"
CONFLUENT_KAFKA = (
    "confluent-kafka==1.9.2 --hash=sha256:2fb97bd25d436bd59fe079885aa77a3a2f23cface9c6359d4700053665849262"
)
LIBRDKAFKA_MODULE = "github.com/confluentinc/confluent-kafka-go@v1.9.2"
LIBRDKAFKA_SUM = "h1:gV/GxhMBUb03tFWkN+7kdhg+zf+QUM+wVkI9zwh770Q="
"""Of the module, as in a `go.sum`."""
OLD_JAVA_RELEASE = "2.1"
INSTALL_TIMEOUT_S = 600

_KAFKA_PYTHON_ENDS_WITH = (3, 12)
"""Its copy of six does not work from this Python on."""


class OldClientMissing(Exception):
    """A client cannot be installed here; the text says in one line why."""


def why_there_are_no_old_clients() -> str | None:
    """None where all of them can be installed."""
    try:
        kafka_python()
        confluent_kafka()
        find_java()
        jars_of(OLD_JAVA_RELEASE).directory()
    except (OldClientMissing, JarsMissing, JavaMissing) as reason:
        return f"needs old clients: {reason}"
    return None


@functools.cache
def kafka_python() -> Path:
    """The directory that goes onto PYTHONPATH for kafka-python 2.0.2. Raises OldClientMissing."""
    if sys.version_info >= _KAFKA_PYTHON_ENDS_WITH:
        raise OldClientMissing("kafka-python 2.0.2 does not run on Python 3.12 or newer")
    return _installed("kafka-python", KAFKA_PYTHON, lambda work: {})


@functools.cache
def confluent_kafka() -> Path:
    """The directory that goes onto PYTHONPATH for librdkafka 1.9.2 and its client. Raises OldClientMissing."""
    if platform.system() != "Linux" or platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc":
        raise OldClientMissing("librdkafka 1.9.2 is there for Linux with glibc on x86-64")
    for command in ("go", "gcc"):
        if shutil.which(command) is None:
            raise OldClientMissing(f"librdkafka 1.9.2 needs the command {command}")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        raise OldClientMissing("librdkafka 1.9.2 needs the headers of Python")
    return _installed("confluent-kafka", CONFLUENT_KAFKA, _with_librdkafka)


def _with_librdkafka(work: Path) -> dict[str, str]:
    """The variables with which a C compiler finds the library and its headers, which are copied into `work`."""
    environment = os.environ | {"GOFLAGS": "-mod=mod", "GOMODCACHE": str(work / "go"), "GOTOOLCHAIN": "local"}
    module = json.loads(_run(["go", "mod", "download", "-modcacherw", "-json", LIBRDKAFKA_MODULE], work, environment))
    if module.get("Sum") != LIBRDKAFKA_SUM:
        raise OldClientMissing(f"{LIBRDKAFKA_MODULE} is {module.get('Sum')}, locked is {LIBRDKAFKA_SUM}")
    vendor = Path(module["Dir"], "kafka", "librdkafka_vendor")
    headers, libraries = work / "include", work / "lib"
    (headers / "librdkafka").mkdir(parents=True)
    libraries.mkdir()
    for header in vendor.glob("*.h"):
        shutil.copy(header, headers / "librdkafka")
    shutil.copy(vendor / "librdkafka_glibc_linux.a", libraries / "librdkafka.a")
    return {
        "C_INCLUDE_PATH": str(headers),
        "LIBRARY_PATH": str(libraries),
        "LDFLAGS": "-lm -ldl -lpthread -lrt",
    }


def _installed(name: str, requirement: str, prepare: Callable[[Path], Mapping[str, str]]) -> Path:
    """Everything happens beside the directory, which a complete installation is renamed to."""
    of_this_python = f"{requirement} {sys.implementation.cache_tag} {platform.machine()}"
    directory = cache_directory() / f"old-{name}-{hashlib.sha256(of_this_python.encode()).hexdigest()[:16]}"
    directory.parent.mkdir(parents=True, exist_ok=True)
    with open(directory.parent / f".old-{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs at once: one installs, the other waits for it
        if not directory.exists():
            with tempfile.TemporaryDirectory(prefix=f".old-{name}.", dir=directory.parent) as work:
                _install(Path(work), requirement, prepare(Path(work)))
                Path(work, "site").rename(directory)
    return directory


def _install(work: Path, requirement: str, variables: Mapping[str, str]) -> None:
    (work / "requirements.txt").write_text(f"{requirement}\n")
    options = ["--quiet", "--no-deps", "--no-cache-dir", "--require-hashes", "--target", str(work / "site")]
    command = [sys.executable, "-m", "pip", "install", *options, "-r", "requirements.txt"]
    _run(command, work, os.environ | dict(variables))


def _run(command: list[str], work: Path, environment: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise OldClientMissing(f"{command[0]} did not end within {INSTALL_TIMEOUT_S} s") from None
    if done.returncode != 0:
        last = (done.stdout + done.stderr).strip().splitlines()[-15:]
        raise OldClientMissing(f"{' '.join(command[:4])} failed with {done.returncode}: " + "\n".join(last))
    return done.stdout
