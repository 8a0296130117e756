"""Figures of the image: its size on top of the base, and the time from a container's start to the first record.

    python -m compat_tests.container.first_record [ROUNDS]

The time includes what buildah itself takes to run a command, which stands beside it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from confluent_kafka import Producer

from compat_tests.container.buildah import BASE, IMAGE, Buildah
from compat_tests.waiting import DEADLINE_S, until

PORT = 9092
START = "/etc/kafka/docker/run"


def size_on_top_mb(buildah: Buildah) -> float:
    """The size of the image without its base, as buildah tells it."""
    images = [each for each in json.loads(buildah("images", "--json")) if each["names"]]
    sizes = {each["names"][0].partition(":")[0]: each["size"] for each in images}
    return _mb(sizes[IMAGE]) - _mb(sizes[BASE])


def seconds_to_first_record(buildah: Buildah, container: str) -> float:
    """From the command that runs the container to the acknowledgement of a record, by a stock client."""
    start_s = time.monotonic()
    process = subprocess.Popen(buildah.running(container, START), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(_is_listening, f"port {PORT} is bound")
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{PORT}"})
        producer.produce("first", b"record")
        assert producer.flush(DEADLINE_S) == 0
        return time.monotonic() - start_s
    finally:
        for each in psutil.Process(process.pid).children(recursive=True):
            if not each.children():
                os.kill(each.pid, signal.SIGTERM)
        process.wait(DEADLINE_S)


def seconds_of_buildah(buildah: Buildah, container: str) -> float:
    start_s = time.monotonic()
    subprocess.run(buildah.running(container, "true"), check=True)
    return time.monotonic() - start_s


def _is_listening() -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", PORT)) == 0


def _mb(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"B": 1e-6, "KB": 1e-3, "MB": 1, "GB": 1e3}[unit]


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        buildah = Buildah.fastest(Path(directory))
        try:
            buildah.build_image()
            sys.stdout.write(f"on top of the base: {size_on_top_mb(buildah):.0f} MB\n")
            for _ in range(rounds):
                container = buildah.container()
                took_s, of_buildah_s = (
                    seconds_to_first_record(buildah, container),
                    seconds_of_buildah(buildah, container),
                )
                sys.stdout.write(f"first record after {took_s:.2f} s, of which buildah took {of_buildah_s:.2f} s\n")
        finally:
            buildah.remove()


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 5)
