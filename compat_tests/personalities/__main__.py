"""Probes releases of Apache Kafka anew, and writes the personalities that come along with pykbroker.

`python -m compat_tests.personalities [NAME ...]` starts a broker of each, as `releases` says.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from compat_tests.brokers import pykbroker_command

from .releases import RELEASES, Release

SHIPPED = Path(__file__).parents[2] / "pykbroker" / "personality" / "shipped"


def probe(name: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        broker = Release(Path(directory, "broker"), name)
        try:
            broker.start()
            command = pykbroker_command("probe", broker.bootstrap, "--thorough", "-o", str(SHIPPED / f"{name}.toml"))
            subprocess.run([*command, "--software", f"Apache Kafka {RELEASES[name]}"], check=True, timeout=120)
        finally:
            broker.close()


for each in sys.argv[1:] or RELEASES:
    probe(each)
