"""The pipeline where its extra is not installed: it is imported, and says what is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys

for module in ("numpy", "pyarrow", "pandas", "pyspark", "confluent_kafka", "plotly"):
    sys.modules[module] = None
from pykbroker.spark import *
from pykbroker.spark.errors import SparkMissing

source = Source("127.0.0.1:9")
try:
    CALL
except SparkMissing as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("call", "package"),
    [
        ('archive(ArchiveOptions(source, "/tmp/none", topics=["t"]))', "pyspark"),
        ('audit(AuditOptions(source, topics=["t"]))', "numpy"),
        ('replay(ReplayOptions(source, "/tmp/none", "t", "u"))', "confluent-kafka"),
        ('mirror(MirrorOptions(source, Source("127.0.0.1:8"), topics=["t"]))', "confluent-kafka"),
    ],
)
def test_what_is_not_installed_is_named(call: str, package: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("CALL", call)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == f"{package} is not installed: pip install 'pykbroker[spark]'\n", done.stderr
