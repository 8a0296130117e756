"""What every test folder shares: tests that need Java, Spark, kcat, mounts or namespaces say so with a marker.

Where it is missing they are left out, with the reason. PYKBROKER_REQUIRE=java,spark names markers whose tests must not
be left out: of those a skip is a failure.
"""

import functools
import gc
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path

import pytest

# Behind all else: an installed pykbroker comes before the tree (compat_tests/installed.py).
sys.path.append(str(Path(__file__).parent))

from compat_tests.apache_kafka import JavaMissing, find_java, why_there_is_no_kafka
from compat_tests.chaos.network import why_there_are_no_namespaces
from compat_tests.installed import prefer_what_is_installed
from compat_tests.kafkas_own_tests.harness import why_there_is_no_harness
from compat_tests.old_clients.installed_clients import why_there_are_no_old_clients
from compat_tests.strace import why_nothing_can_be_traced
from compat_tests.volumes import why_nothing_can_be_mounted
from spark_compat.class_archive import use_short_lived_jvms

pytest_plugins = ["compat_tests.referee.plugin", "compat_tests.side_by_side", "compat_tests.turns"]


@functools.cache
def _spark_is_missing() -> str | None:
    if importlib.util.find_spec("pyspark") is None:
        return "needs pyspark: pip install 'pykbroker[spark]'"
    try:
        find_java()
    except JavaMissing as reason:
        return str(reason)
    return None


@functools.cache
def _kcat_is_missing() -> str | None:
    return None if shutil.which("kcat") else "needs kcat (Debian package kcat)"


@functools.cache
def _openssl_is_missing() -> str | None:
    return None if shutil.which("openssl") else "needs openssl (Debian package openssl)"


@functools.cache
def _tshark_is_missing() -> str | None:
    return None if shutil.which("tshark") else "needs tshark (Debian package tshark)"


@functools.cache
def _chromium_is_missing() -> str | None:
    if importlib.util.find_spec("selenium") is None:
        return "needs selenium: pip install 'pykbroker[test]'"
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"needs {' and '.join(missing)} (Debian packages chromium and chromium-driver)" if missing else None


@functools.cache
def _promtool_is_missing() -> str | None:
    return None if shutil.which("promtool") else "needs promtool (Debian package prometheus)"


@functools.cache
def _sphinx_is_missing() -> str | None:
    missing = [name for name in ("sphinx", "myst_parser", "furo") if importlib.util.find_spec(name) is None]
    return "needs Sphinx: pip install 'pykbroker[docs]'" if missing else None


REQUIREMENTS: dict[str, Callable[[], str | None]] = {
    "java": functools.cache(why_there_is_no_kafka),
    "jdk": functools.cache(why_there_is_no_harness),
    "spark": _spark_is_missing,
    "kcat": _kcat_is_missing,
    "openssl": _openssl_is_missing,
    "tshark": _tshark_is_missing,
    "chromium": _chromium_is_missing,
    "promtool": _promtool_is_missing,
    "sphinx": _sphinx_is_missing,
    "mounts": functools.cache(why_nothing_can_be_mounted),
    "strace": functools.cache(why_nothing_can_be_traced),
    "netns": functools.cache(why_there_are_no_namespaces),
    "old_clients": functools.cache(why_there_are_no_old_clients),
}


def pytest_configure() -> None:
    prefer_what_is_installed()
    use_short_lived_jvms()


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, missing in REQUIREMENTS.items():
        if item.get_closest_marker(marker) and (reason := missing()):
            pytest.skip(reason)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """PySpark's sockets are closed here, where it is no warning, and not in whatever test the collector runs next; and
    librdkafka's clients with the file that made them: a traceback may hold them, and they write to standard error.
    """
    if item.get_closest_marker("spark") or (_is_last_of_file(item, nextitem) and _librdkafka_runs()):
        gc.collect()


def _is_last_of_file(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    return nextitem is None or nextitem.path != item.path


def _librdkafka_runs() -> bool:
    """Tell whether a client of librdkafka has its threads in this process, where Linux shows their names."""
    for task in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):
            if task.read_text().startswith("rdk:"):
                return True
    return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    required = [marker for marker in _required() if item.get_closest_marker(marker)]
    if report.skipped and required and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"left out, though PYKBROKER_REQUIRE asks for {', '.join(required)}: {report.longrepr}"
    return report


def _required() -> list[str]:
    return [marker for marker in os.environ.get("PYKBROKER_REQUIRE", "").split(",") if marker]
